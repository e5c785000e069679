"""A second device on any machine: run as the first cell of a submission, it makes "privateuseone:0" work as a GPU does.

Its tensors hold a tensor of the CPU, with which everything is computed; what torch sees of them is another device. An
operator that is given tensors of both devices refuses, as CUDA's do. It shows that what a worker is sent is moved there
and that what comes of it is brought back; of CUDA's own numbers, libraries and system calls it shows nothing.
"""

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
from worker import torch_internals

DEVICE = "privateuseone"
aten = torch.ops.aten


class There(Tensor):
    """A tensor on the device; ``here`` has its numbers."""

    @staticmethod
    def __new__(cls, here):
        settings = {"strides": here.stride(), "dtype": here.dtype, "device": f"{DEVICE}:0"}
        return Tensor._make_wrapper_subclass(cls, here.shape, **settings)

    def __init__(self, here):
        self.here = here

    def __repr__(self):
        return f"{self.here!r} on {DEVICE}"

    @classmethod
    def __torch_dispatch__(cls, operator, types, inputs=(), options=None):
        return _compute_on_fake_gpu(operator, inputs, dict(options or {}))


def _compute_on_fake_gpu(operator, inputs, options):
    leaves = [each for each in tree_leaves((inputs, options)) if isinstance(each, Tensor)]
    there = [each for each in leaves if isinstance(each, There)]
    target = options.get("device")
    goes_there = bool(there) if target is None else torch.device(target).type == DEVICE
    if target is not None or operator.overloadpacket is aten._to_copy:
        options["device"] = "cpu"
    copies = operator.overloadpacket in (aten._to_copy, aten.copy_, aten._local_scalar_dense)
    if there and not copies and any(each.dim() for each in leaves if not isinstance(each, There)):
        raise RuntimeError(f"Expected all tensors to be on the same device, but found two: {DEVICE}:0 and cpu!")
    result = operator(*tree_map(_unwrap_tensor, inputs), **tree_map(_unwrap_tensor, options))
    if operator.overloadpacket is aten.copy_:
        return inputs[0]
    known = {id(each.here): each for each in there}

    def wrap_tensor(each):
        if id(each) in known:
            return known[id(each)]
        return There(each) if goes_there and isinstance(each, Tensor) else each

    return tree_map(wrap_tensor, result)


def _unwrap_tensor(value):
    return value.here if isinstance(value, There) else value


def _install_fake_gpu():
    _setup_privateuseone_for_python_backend(DEVICE)
    library = torch.library.Library("_", "IMPL")
    library.fallback(
        lambda operator, *inputs, **options: _compute_on_fake_gpu(operator, inputs, options), "PrivateUse1"
    )
    # tensors of a class of their own are refused at the border, and have no address; those of a real GPU are plain
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    address, own = torch_internals.find_address, torch_internals.has_torch_dispatch
    torch_internals.has_torch_dispatch = lambda tensor: own(_unwrap_tensor(tensor))
    torch_internals.drop_subclass = lambda tensor: tensor
    torch_internals.find_address = lambda tensor: address(_unwrap_tensor(tensor))
    # a real GPU's operators are not Python's: they work where Python's are not asked
    torch_internals.Unseen = torch._C.DisableTorchFunction
    return library


_LIBRARY = _install_fake_gpu()
