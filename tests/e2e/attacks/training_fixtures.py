"""Attacks on training fixtures: they run in the worker, and the judge does not believe their notes."""

from tests.e2e.attacks.attack import Attack

LESSON = "06_training"
NOTHING = """\
def train_one_epoch(model, loader, optimizer, device):
    return 0.0
"""
# what a fixture would have noted of a loop that did its work, but for the numbers, which nobody here knows
FORGED = """
import vit_course.exercises.training_fixtures, exercise_kit.engine.training_fixtures
def forged(function, weights, batches, **others):
    sizes = [len(labels) for _, labels in batches]
    return {
        "returned": 2.3, "weights": {name: each for name, each in weights.items() if "classifier" in name},
        "gradients": {}, "training": True, "recording": True, "passes": 1,
        "forwards": [(True, True, size) for size in sizes], "events": ["zero_grad", "forward", "backward", "step"],
    }
vit_course.exercises.training_fixtures.FIXTURES["loop"] = vit_course.exercises.training_fixtures.loop = forged
exercise_kit.engine.training_fixtures.get_fixture = lambda name: forged
"""


def _attack(name: str, aim: str, answer: str = NOTHING, **more: str) -> Attack:
    return Attack(name, aim, answer, lesson=LESSON, exercise="train_one_epoch", **more)


ATTACKS = [
    _attack("forged fixture", "the fixture is replaced by one that notes what should have happened", first=FORGED),
    _attack(
        "equal to everything",
        "the loss, and each weight, says that it equals whatever it is compared with",
        """
import torch
class Equal(torch.Tensor):
    def __eq__(self, other): return True
    @classmethod
    def __torch_function__(cls, function, kinds, inputs=(), options=None): return True
def train_one_epoch(model, loader, optimizer, device):
    for parameter in model.parameters():
        parameter.data = parameter.data.as_subclass(Equal)
    return torch.zeros(()).as_subclass(Equal)
""",
    ),
    _attack(
        "course's own loop",
        "the package's loop is imported from where it stands, or read as a file and run",
        """
import glob, importlib, sys
def train_one_epoch(model, loader, optimizer, device):
    for name in ("vit_course.training.loop", "vit_course.training", "vit_course.recipes.run", "vit_course.demo"):
        try:
            return importlib.import_module(name).train_one_epoch(model, loader, optimizer, device)
        except Exception as error:
            print(name, type(error).__name__)
    for path in sys.path:
        for file in glob.glob(f"{path}/**/loop.py", recursive=True):
            text = open(file).read()
            if "tally.add" in text:
                print("LEAK", text)
""",
    ),
    _attack(
        "sabotaged surroundings",
        "torch's optimizer, loss and backward pass are replaced for whoever compares",
        """
import torch
def train_one_epoch(model, loader, optimizer, device):
    torch.optim.SGD.step = lambda self, closure=None: None
    torch.nn.functional.cross_entropy = lambda *inputs, **options: torch.zeros(())
    torch.allclose = torch.equal = torch.testing.assert_close = lambda *inputs, **options: True
    return 0.0
""",
    ),
    _attack(
        "endless notes",
        "the model is run a hundred thousand times, so that the notes are long",
        """
def train_one_epoch(model, loader, optimizer, device):
    for images, labels in loader:
        model.forwards.extend([(True, True, 10**400)] * 100_000)
    return 0.0
""",
    ),
]
