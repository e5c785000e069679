"""Seeing each operator of torch that is called, without the compiler that torch would import for it."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """Stand in for torch's own, whose first operator imports torch's compiler; that takes longer than all checks."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
