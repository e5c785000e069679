"""Groups for AdamW, by name and number of axes."""

import re  # noqa: F401  # bugs use it
from typing import Any

from torch import nn


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Weight decay for weight matrices and kernels, and none for anything else."""
    named_params = list(model.named_parameters())
    # bug "layers alone": named_params = [(name, param) for name, param in model.named_parameters() if "." in name]
    # bug "frozen ones left out": named_params = [pair for pair in model.named_parameters() if pair[1].requires_grad]
    # bug "shared weights listed twice": named_params = list(model.named_parameters(remove_duplicate=False))
    decay: list[nn.Parameter] = []
    no_decay: list[nn.Parameter] = []
    for name, param in named_params:
        decays = param.dim() >= 2 and name.endswith("weight")
        # bug "everything decayed": decays = True
        # bug "nothing decayed": decays = False
        # bug "the wrong group decayed": decays = not (param.dim() >= 2 and name.endswith("weight"))
        # bug "sorted by axes alone": decays = param.dim() >= 2
        # bug "sorted by the name weight alone": decays = name.endswith("weight")
        # bug "only biases spared": decays = not name.endswith("bias")
        # bug "only norms and biases spared": is_norm = isinstance(model.get_submodule(name.rpartition(".")[0]), nn.LayerNorm)
        # bug "only norms and biases spared": decays = not is_norm and not name.endswith("bias")
        # bug "norms known by their name": decays = name.endswith("weight") and "norm" not in name
        # bug "spared by a list of names": decays = not re.search("norm|bias|class_token|positions", name)
        # bug "convolutions forgotten": is_convolution = isinstance(model.get_submodule(name.rpartition(".")[0]), nn.Conv2d)
        # bug "convolutions forgotten": decays = param.dim() >= 2 and name.endswith("weight") and not is_convolution
        # bug "matrices of two axes alone": decays = param.dim() == 2
        # bug "weight anywhere in the name": decays = param.dim() >= 2 and "weight" in name
        (decay if decays else no_decay).append(param)
        # bug "matrices in both groups": no_decay.append(param)
        # bug "matrices in both groups": if decays:
        # bug "matrices in both groups":     decay.append(param)
        # bug "names for parameters": (decay if decays else no_decay).append(name)
        # bug "copies of the parameters": (decay if decays else no_decay).append(nn.Parameter(param.detach().clone()))
    spared = {"params": no_decay, "weight_decay": 0.0}
    # bug "no decay named for the second group": spared = {"params": no_decay}
    groups = [{"params": decay, "weight_decay": weight_decay}, spared]
    # bug "a decay written into the code": groups = [{"params": decay, "weight_decay": 0.05}, spared]
    return groups
    # bug "params that run dry": return [{**group, "params": (each for each in group["params"])} for group in groups]
    # bug "the spared group first": return groups[::-1]
    # bug "a single group": return groups[:1]
