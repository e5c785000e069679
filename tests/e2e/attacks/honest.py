"""Honest answers that go with odd cells: no accident beside a right answer may cost its author a point."""

from tests.e2e.attacks.attack import ALL_OF_PATCHIFY, RIGHT, Attack

# what stands below a right answer, in the same cell
_BESIDE = {
    "figure that cannot be drawn": 'import matplotlib.pyplot as plt\nplt.title(r"$\\frac$")\nplt.plot([1])',
    "figure larger than any screen": "import matplotlib.pyplot as plt\nplt.figure(figsize=(1000, 1000))\nplt.plot([1])",
    "figure of many dots": 'import matplotlib.pyplot as plt\nplt.rcParams["figure.dpi"] = 100000\nplt.plot([1])',
    "display in a long loop": "for number in range(1500):\n    display(number)",
    "two streams": "import sys\nfor n in range(3000):\n    print(n, file=(sys.stdout, sys.stderr)[n % 2])",
    "stdout closed": "import sys\nsys.stdout.close()",
    "stdout thrown away": "import sys\nsys.stdout = sys.stderr = None",
    "warnings made errors": 'import warnings\nwarnings.simplefilter("error")',
    "value that cannot be shown": "class Shy:\n    def __repr__(self):\n        raise SystemExit\nShy()",
    "recursion limit lowered": "import sys\nsys.setrecursionlimit(60)",
    "import path emptied": "import sys\nsys.path.clear()",
    "working folder left": 'import os\nos.chdir("/")',
    "inference for ever": "import torch\ntorch.inference_mode().__enter__()",
    "another device for ever": 'import torch\ntorch.device("meta").__enter__()',
    "built-ins shadowed": "len = max = range = print = list = dict = None",
    "own kernel asked": "get_ipython().run_line_magic('reset', '-f out')\n%xmode Verbose\n%timeit -n1 -r1 1",
    "thread that fails": "import threading\nthreading.Thread(target=lambda: 1 / 0).start()",
    "exit called": "import sys\nsys.exit('done')",
}

ATTACKS = [
    Attack(f"honest: {name}", f"a right answer, and below it a {name}", f"{RIGHT}\n{below}\n", ALL_OF_PATCHIFY)
    for name, below in _BESIDE.items()
]
