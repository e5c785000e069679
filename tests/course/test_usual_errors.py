"""The errors of torch and Python that are asked most about: the line, torch's own words, and a question that leads on.

Each is made in three exercises, on the first line of a right answer; a module's errors in two classes.
"""

import re

import pytest

from exercise_kit.engine import check
from tests.course.told_answers import edit_right_program
from vit_course.exercises.catalog import EXERCISES

FUNCTIONS = ("patchify", "layer_norm", "scaled_dot_product_attention")
CLASSES = ("PatchEmbedding", "Mlp")
# a line about a tensor `x` → a word of what torch or Python says, and of the question
LINES = {
    "x @ x": ("batch|match|multipl", "first matrix|sizes differ"),
    "x.reshape(7, 11, 13)": ("is invalid for input of size", "How many numbers does that shape hold"),
    "x.transpose(0, -1).view(-1)": ("view size is not compatible", "neighbors in memory"),
    "torch.nn.Parameter(x).add_(1)": ("a leaf Variable that requires grad", "Should the gradient know"),
    "torch.nn.Parameter(x)[0].add_(1)": ("a view of a leaf Variable", "Should the gradient know"),
    "x @ x.mT.double()": ("same dtype|scalar type", "Which dtypes meet"),
    "x.sum(dim=9)": ("Dimension out of range", "How many axes"),
    "x.flatten(start=1)": ("unexpected keyword|invalid combination|Keyword", "Which names do its arguments have"),
    "[1].sort().shape": ("'NoneType' object has no attribute", "Which function gives None"),
    "[each for each in len(x)]": ("'int' object is not iterable", "range"),
    "x.shape(0)": ("'torch.Size' object is not callable", "Which name has brackets behind it"),
    "[1, 2][0.5]": ("list indices must be integers", "which type has the index"),
    "float(x)": ("converted to", "a whole tensor, or one number"),
    "1 if x > 0 else 2": ("is ambiguous", "one True or False"),
    "torch.cat([x, x[..., :1, :1]])": ("Sizes of tensors must match except", "Along which axis are they joined"),
    "torch.cat(x, x)": ("must be tuple of Tensors", "one list of them"),
    "torch.empty((x.shape[-1] / 1, 2))": ("float", "Which size is a float there|two divisions"),
    "x * x[..., 1:]": ("must match the size of tensor|", "sizes differ|has one more than the other"),
    "x * x[..., 2:]": ("must match the size of tensor|", "sizes differ|product of matrices"),
    "torch.stack([x, x[..., :1]])": ("stack expects each tensor to be equal size", "Print their shapes"),
    "x.shape + 1": ("can only concatenate tuple", "Which types meet"),
    "x.shape / 2": ("unsupported operand", "Which types meet"),
    "'width ' + x.shape[0]": ("can only concatenate str", "Which types meet"),
    "(lambda only: 0)(*x.shape)": ("positional argument", "How many arguments"),
    "[0 for one, in [x.shape]]": ("too many values to unpack", "How many axes has that tensor|each side of the equals"),
    "[0 for a, b, c, d, e, f in [x.shape]]": ("not enough values to unpack", "each side of the equals sign"),
    "torch.nn.Parameter(x).numpy()": ("Can't call numpy", "Does it have to leave torch"),
    "(torch.nn.Parameter(x) * 2).backward()": ("only for scalar outputs", "one number"),
    "x[999]": ("is out of bounds", "How many axes, or elements"),
    "x[0, 0, 0, 0, 0, 0]": ("too many indices", "How many axes, or elements"),
    "x.long().mean()": ("could not infer output dtype", "Which dtype"),
    "x[x]": ("used as indices", "Which dtype"),
    "x.expand(7, *x.shape)[:, :, 0].expand(6, *x.shape)": ("expanded size", "sizes differ|stretch"),
    "x.permute(0, 1)": ("number of dimensions", "Which axis is named twice there|every axis once"),
    "imges.shape": ("is not defined", "Where does that name get its value"),
    "x.shpe": ("has no attribute", "the thing before the dot"),
    "{}['width']": ("KeyError", "Which keys are there"),
    "range(x.shape[-1] / 2)": ("cannot be interpreted as an integer", "two divisions"),
    "torch.nn.Linear(1, 2)(x)": ("cannot be multiplied", "first matrix"),
    "torch.nn.ModuleList()(x)": (r"Module \[ModuleList\] is missing", "A ModuleList is a list"),
    "torch.nn.Module()(x)": ("is missing the required", "Which module is called there"),
    "torch.tensor([x, x])": ("only one element tensors|converted to", "torch.stack|one number"),
    "(lambda again: again(again))(lambda again: again(again))": ("recursion", "Which function calls itself"),
}
# an edit of a class's first such line → what is seen, and a word of the question
EDITS = [
    (r"super\(\).__init__\(\)\n", "pass\n", "Module.__init__() call", "first line of a module's `__init__`"),
    (r"nn\.Linear\((.*)\)", r"nn.Linear(\1, width=3)", "unexpected keyword argument 'width'", "Which names do its"),
    (r" nn\.Linear\((.*)\)", r" nn.Linear(\1).weight @ 1", "unsupported operand", "Which types meet at that sign"),
    (r"def forward\(self, ", "def forward(", "has no `self`", "What does Python hand to a method"),
    (r"def forward", "def forwrad", "one is called `forwrad`", "spelled right"),
]


def add_first_line(exercise, line):
    """A right answer that computes ``line`` first, of its first argument."""
    name = EXERCISES[exercise].objects[0]

    def insert_line(text):
        method = "forward" if EXERCISES[exercise].is_class else name
        head = re.compile(rf"^( *)def {method}\(\s*(?:self, )?(\w+)[^)]*\)[^:]*:\n(?:\s+\"\"\"[^\n]*\n)?", re.MULTILINE)
        return head.sub(lambda found: f"{found[0]}{found[1]}    x = {found[2]}\n{found[1]}    {line}\n", text, count=1)

    return edit_right_program(exercise, insert_line)


def expect_told(report, line, words, question):
    lead = next(each for each in report.results if each.verdict == "fail")
    assert line in lead.seen, report
    assert re.search(words, lead.seen), report
    assert re.search(question, lead.look), report
    assert not lead.causes, report


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_an_error_keeps_its_line_and_has_a_question(exercise, line):
    expect_told(check(exercise, *add_first_line(exercise, line)), line, *LINES[line])


@pytest.mark.parametrize("exercise", CLASSES)
@pytest.mark.parametrize(("old", "new", "words", "question"), EDITS)
def test_a_module_s_error_has_its_question(exercise, old, new, words, question):
    report = check(exercise, *edit_right_program(exercise, lambda text: re.sub(old, new, text, count=1)))
    lead = next(each for each in report.results if each.verdict == "fail")
    assert words in lead.seen, report
    assert question in lead.look, report
