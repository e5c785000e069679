"""What answers need: modules, builtins, special attributes; whatever else code uses is for a person to look at.

A list of tricks is never complete, so what is listed here is what honest answers use. The code of an answer, and what
it reaches, is held to all of it; the rest of a notebook, where people look around, to what could change how answers
run: it may not change a library or the shell, take frames, start threads, or use a module that is not listed.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from exercise_kit.engine.course_named import read_package_name
from exercise_kit.submission.static_rules import (
    find_called_name,
    find_statement_globals,
    find_used_imports,
    read_constant_text,
    resolve_dotted_name,
    walk_outermost_names,
)

_WHOLE = """
    __future__ abc argparse array ast base64 binascii bisect bz2 cProfile calendar cmath codecs collections colorsys
    configparser contextlib copy csv dataclasses datetime decimal difflib dis doctest enum errno filecmp fnmatch
    fractions functools getopt getpass gettext glob graphlib gzip hashlib heapq hmac html io ipaddress itertools json
    keyword locale lzma math mimetypes ntpath numbers optparse pathlib platform posixpath pprint pstats quopri random
    re reprlib secrets shlex shutil stat statistics string stringprep struct sysconfig tarfile tempfile
    textwrap this time timeit token tokenize tomllib traceback tracemalloc turtle typing unicodedata urllib uuid
    warnings wave xml zipfile zlib zoneinfo

    Bottleneck PIL absl accelerate albumentations altair annotated_types attr attrs beartype bokeh
    bs4 chardet colorcet cv2 cycler cvxpy datasets dateutil duckdb easydict einops fastprogress frozendict gdown
    graphviz h5py holoviews huggingface_hub humanize imageio imblearn imutils ipywidgets jaxtyping jsonschema kagglehub
    lightgbm lxml markdown matplotlib matplotlib_inline matplotlib_venn missingno ml_collections mlxtend more_itertools
    mpl_toolkits mpmath natsort networkx nltk numexpr numpy omegaconf openpyxl opt_einsum packaging pandas pendulum
    peft plotly plotnine polars prettytable psutil pyarrow pycocotools pydantic pydot pygments pyparsing pytest pytz
    pywt regex requests rich safetensors scipy seaborn sentencepiece shapely simplejson skimage sklearn sortedcontainers
    soundfile statsmodels sympy tabulate tensorboard termcolor textblob threadpoolctl tifffile tiktoken tokenizers toml
    toolz torchinfo torchmetrics torchsummary torchtyping torchvision typeguard typing_extensions umap unidecode wandb
    wordcloud xarray xgboost yaml yellowbrick
"""
_USUAL = frozenset(_WHOLE.split())
# of these modules some names, by their beginnings
_PARTS = {
    "torch": "",
    "sys": """
        version version_info hexversion stdout stderr stdin argv maxsize float_info int_info getsizeof exit executable
        platform path byteorder getrecursionlimit
    """,
    "os": """
        path getcwd listdir makedirs mkdir environ cpu_count remove sep linesep name getpid walk scandir stat getenv
        urandom chdir rename unlink rmdir curdir pardir devnull
    """,
    "inspect": "signature Parameter isfunction isclass ismethod getdoc cleandoc isroutine getfullargspec getsource",
    "operator": """
        itemgetter mul add sub truediv floordiv matmul eq ne lt le gt ge neg mod pow xor and_ or_ not_ index contains
        getitem setitem concat iadd imul abs inv pos lshift rshift truth is_ is_not
    """,
    "types": "SimpleNamespace MappingProxyType GenericAlias NoneType EllipsisType UnionType TracebackType ModuleType",
    "logging": "getLogger info warning debug error basicConfig INFO DEBUG WARNING ERROR CRITICAL Logger exception log",
    "tqdm": "tqdm trange auto notebook autonotebook std",
    "IPython": "display get_ipython core.display core.magic utils",
    "gc": "collect",
    "pickle": "dump dumps HIGHEST_PROTOCOL",
    "importlib": "reload metadata util.find_spec",
    "google": "colab",
    "subprocess": "run check_output",  # what no worker may do
    "unittest": "TestCase main TestSuite TextTestRunner",
    "weakref": "ref WeakKeyDictionary WeakValueDictionary",
    "timm": "",
    "transformers": "",
}
_OF_TORCH_NAMES = """
    _assert _check _check_is_size _check_value _calculate_fan_in_and_fan_out _calculate_correct_fan
    _ConvNd _BatchNorm _NormBase _InstanceNorm _DropoutNd _Loss _LRScheduler
"""
_OF_TORCH = frozenset(_OF_TORCH_NAMES.split())
# modules of torch that hold nothing but functions and classes for everybody: one of them may be looked up by its name
_LOOKED_UP = frozenset({"torch.nn", "torch.nn.functional", "torch.nn.init", "torch.optim", "torch.optim.lr_scheduler"})
# modules of torch's that answers have business with; its functions and classes are no modules
_TORCH_MODULES_NAMES = """
    nn linalg fft special func autograd testing random cuda mps cpu backends amp optim utils distributions jit
    types compiler sparse nested functional masked return_types quantization ao version accelerator profiler hub
"""
_TORCH_MODULES = frozenset(_TORCH_MODULES_NAMES.split())
_UNUSUAL_OF_TORCH_NAMES = """
    CompilationUnit compile_extension load_library classes ops cpp_extension
"""
_UNUSUAL_OF_TORCH = frozenset(_UNUSUAL_OF_TORCH_NAMES.split())
_UNUSUAL_BUILTINS = """
    eval exec compile __import__ globals vars __builtins__ __loader__ __build_class__ __spec__ breakpoint delattr
"""
_BUILTINS = frozenset(dir(builtins)) - frozenset(_UNUSUAL_BUILTINS.split())
_SPECIAL = """
    init new call repr str len iter next getitem setitem delitem contains enter exit name qualname doc module
    annotations version class post_init eq ne lt le gt ge hash bool int float index abs neg pos invert add radd
    iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul
    imatmul and or xor rand ror rxor lshift rshift wrapped name_ match_args slots dataclass_fields format round
    divmod file all author path parameters getattr init_subclass class_getitem set_name copy deepcopy reversed
    missing setstate getstate array array_priority jit_unused_properties constants ignored_properties complex
    debug main setattr
"""
_SPECIAL_NAMES = frozenset(f"__{name}__" for name in _SPECIAL.split())
# of frames, functions and the shell: what leads to code and variables that are no business of an answer's
_FRAMES = """
    f_back f_globals f_locals f_builtins f_code f_trace tb_frame tb_next gi_frame cr_frame ag_frame gi_code
    cell_contents co_filename co_code co_consts user_ns user_global_ns user_module get_referrers get_referents
    get_objects setprofile settrace addaudithook _getframe ast_transformers input_transformers_post
    input_transformers_cleanup input_transformer_manager events run_cell run_code run_ast_nodes
"""
_ALWAYS_ODD = frozenset(_FRAMES.split()) | {"__globals__", "__closure__", "__builtins__", "__subclasses__"}
_METACLASSES = frozenset({"abc.ABCMeta", "enum.EnumMeta", "enum.EnumType"})
# run by whoever looks at a result, after the call
_LATE_NAMES = """
    __torch_dispatch__ __torch_function__ __getattribute__ __instancecheck__ __del__ __class__
"""
_LATE = frozenset(_LATE_NAMES.split())
_OF_THE_SHELL = frozenset({"run_line_magic", "run_cell_magic", "system", "getoutput", "__class__"})
# settings that a notebook may make; `plt.rcParams["figure.dpi"] = 90` is one of a library that computes nothing
_SETTINGS = ("torch.backends.", "os.environ", "sys.stdout", "sys.stderr", "torch.utils.data.")
_SHOWN = ("__repr__", "__str__", "__len__")
_CHANGED_NAMES = """
    torch torchvision numpy math functools operator builtins contextlib copy inspect json os random select socket
    sys time types threading IPython linecache gc warnings tqdm logging
"""
_CHANGED = frozenset(_CHANGED_NAMES.split())
_VARIABLES = ("globals(", "locals(", "vars(", "builtins", "sys.modules", "__builtins__")
_UPDATES = frozenset({"update", "setdefault", "__setitem__", "pop", "clear"})


class Use(NamedTuple):
    """What code uses, and the node where it does."""

    used: str
    node: ast.AST


def find_unusual_in_answer(statement: ast.stmt, names: Mapping[str, str], used_names: frozenset[str]) -> Iterator[Use]:
    """Yield what an answer, or code that it reaches, uses beyond what answers need.

    Args:
        statement: of the notebook's top level.
        names: see :func:`~exercise_kit.submission.static_rules.resolve_imported_names`.
        used_names: the names of imports that the answer uses.
    """
    for used in find_used_imports(statement, used_names):
        if not _is_usual(used):
            yield Use(used, statement)
    for builtin in sorted(find_statement_globals(statement) - _BUILTINS - names.keys()):
        if hasattr(builtins, builtin) or builtin == "__builtins__":
            yield Use(builtin, statement)
    for name in walk_outermost_names(statement):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load) and _PARTS.get(names.get(name.id, "")):
            yield Use(names[name.id], name)  # a module handed on
    for node in ast.walk(statement):
        yield from _find_unusual_access(node, names)
        if isinstance(node, ast.Attribute) and _is_dunder(node.attr) and not _is_usual_dunder(node, names):
            yield Use(node.attr, node)
        elif isinstance(node, ast.ClassDef):
            metaclasses = (each.value for each in node.keywords if each.arg == "metaclass")
            yield from (
                Use("metaclass", node) for each in metaclasses if resolve_dotted_name(each, names) not in _METACLASSES
            )
        elif isinstance(node, ast.FunctionDef) and node.name in _LATE:
            yield Use(node.name, node)
    yield from find_unusual_anywhere(statement, names)


def find_unusual_anywhere(statement: ast.stmt, names: Mapping[str, str]) -> Iterator[Use]:
    """Yield what could change how answers run, wherever it stands in a notebook."""
    looked_up = {id(each) for node in ast.walk(statement) for each in _find_containers(node)}
    for name in walk_outermost_names(statement):
        dotted = None if isinstance(getattr(name, "ctx", None), ast.Store) else resolve_dotted_name(name, names)
        if dotted == "sys.modules" and id(name) in looked_up:
            continue  # "google.colab" in sys.modules
        if dotted and not _is_usual(dotted):
            yield Use(dotted, name)
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in _ALWAYS_ODD:
            yield Use(node.attr, node)
        elif isinstance(node, ast.keyword) and node.arg in _ALWAYS_ODD:
            yield Use(node.arg, node.value)
        target = _find_changed_object(node)
        if target is not None:
            yield from _find_unusual_change(target, node, names)
        if isinstance(node, ast.Call):
            yield from _find_unusual_call(node, statement)


def _find_containers(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what stands on the right of ``in``."""
    if isinstance(node, ast.Compare):
        pairs = zip(node.ops, node.comparators, strict=True)
        yield from (each for operator, each in pairs if isinstance(operator, ast.In | ast.NotIn))


def _is_usual(dotted: str) -> bool:
    """Say whether a module, and the part of it, is one that answers use."""
    root, *parts = _resolve_module_alias(dotted).split(".")
    if root in _USUAL or root in (read_package_name(), "builtins"):
        return True
    if root not in _PARTS or not parts:
        return root in _PARTS
    if root == "torch":
        is_module = f"torch.{parts[0]}" in sys.modules
        private = any(each.startswith("_") and not _is_dunder(each) and each not in _OF_TORCH for each in parts)
        return not private and _UNUSUAL_OF_TORCH.isdisjoint(parts) and (not is_module or parts[0] in _TORCH_MODULES)
    rest = f"{'.'.join(parts)}."
    return not _PARTS[root] or any(rest.startswith(f"{each}.") for each in _PARTS[root].split())


def _resolve_module_alias(dotted: str) -> str:
    """``sys.modules`` for ``os.sys.modules``: a module that is reached through another one."""
    root, *parts = dotted.split(".")
    thing: Any = sys.modules.get(root)
    for place, part in enumerate(parts):
        thing = getattr(thing, part, None)
        if isinstance(thing, ModuleType) and thing.__name__.partition(".")[0] != root:
            return _resolve_module_alias(".".join((thing.__name__, *parts[place + 1 :])))
    return dotted


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_usual_dunder(node: ast.Attribute, names: Mapping[str, str]) -> bool:
    return node.attr in _SPECIAL_NAMES or _is_own_dict(node, names)


def _is_own_dict(node: ast.Attribute, names: Mapping[str, str]) -> bool:
    """``self.__dict__``, of which an answer may keep its settings."""
    return node.attr == "__dict__" and getattr(node.value, "id", "") == "self" and "self" not in names


def _find_unusual_access(node: ast.AST, names: Mapping[str, str]) -> Iterator[Use]:
    """``getattr`` with a name that nobody can read, and ``getattr`` handed on."""
    if not isinstance(node, ast.Call):
        return
    for given in (*node.args, *(each.value for each in node.keywords)):
        if isinstance(given, ast.Name) and given.id in ("getattr", "setattr") and given.id not in names:
            yield Use(given.id, given)
    if find_called_name(node.func) in ("getattr", "setattr") and len(node.args) > 1:
        subject, name = node.args[:2]
        text = read_constant_text(name)
        if text is None and not _is_harmless_access(subject, name, names):
            yield Use(f"{find_called_name(node.func)}(…, …)", node)
        elif text is not None and _is_dunder(text) and text not in _SPECIAL_NAMES:
            yield Use(f"{find_called_name(node.func)}(…, {text})", node)


def _is_harmless_access(subject: ast.expr, name: ast.expr, names: Mapping[str, str]) -> bool:
    """Say whether a computed attribute leads nowhere: ``getattr(self, f"head{i}")``, ``getattr(F, activation)``."""
    begins = isinstance(name, ast.JoinedStr) and isinstance(name.values[0], ast.Constant)
    is_object = isinstance(subject, ast.Name) and subject.id not in names
    return begins or is_object or resolve_dotted_name(subject, names) in _LOOKED_UP


def _find_changed_object(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return node if isinstance(node, ast.Attribute) else node.value
    if (
        isinstance(node, ast.Call)
        and find_called_name(node.func) in ("setattr", "__setattr__", "delattr")
        and node.args
    ):
        bound = node.func if isinstance(node.func, ast.Attribute) and len(node.args) == 2 else None
        return bound.value if bound and bound.attr == "__setattr__" else node.args[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _UPDATES:
        return node.func.value
    return None


def _find_unusual_change(target: ast.expr, node: ast.AST, names: Mapping[str, str]) -> Iterator[Use]:
    text = ast.unparse(target)
    dotted = resolve_dotted_name(target, names) or ""
    odd_attribute = (
        isinstance(target, ast.Attribute)
        and _is_dunder(target.attr)
        and not _is_own_dict(target, names)
        and target.attr
        not in ("__name__", "__doc__", "__qualname__", "__wrapped__", "__module__", "__annotations__", *_SHOWN)
    )
    is_of_shell = "get_ipython()" in text
    is_library = dotted.partition(".")[0] in {*_CHANGED, read_package_name()} and not f"{dotted}.".startswith(_SETTINGS)
    if odd_attribute or is_of_shell or is_library or text.startswith(_VARIABLES):
        yield Use(dotted or text, node)


def _find_unusual_call(call: ast.Call, statement: ast.stmt) -> Iterator[Use]:
    function = call.func
    is_text = bool(call.args) and read_constant_text(call.args[0]) is not None
    if getattr(function, "id", "") in ("exec", "eval") and not is_text and not isinstance(statement, _DEFINED):
        yield Use(find_called_name(function) or "", call)
    if (
        isinstance(function, ast.Attribute)
        and function.attr not in _OF_THE_SHELL
        and ast.unparse(function.value) == "get_ipython()"
    ):
        yield Use(f"get_ipython().{function.attr}", call)


_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
