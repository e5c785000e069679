"""A hook in front of the head, as features are taken from a model that was built to classify."""

from collections.abc import Iterable
from typing import Any

import torch


@torch.no_grad()
# bug "the graph kept":
# bug "gradients switched off for good":
def extract_features(
    model: Any, loader: Iterable[tuple[torch.Tensor, torch.Tensor]], device: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the head reads of every image, and the labels, both on the CPU."""
    features: list[torch.Tensor] = []
    labels: list[torch.Tensor] = []

    def keep(module: Any, args: Any, output: Any = None) -> None:
        chosen = args[0]
        # bug "before the last norm": chosen = args[0][:, 0]
        # bug "the class token however it pools": chosen = output[:, 0]
        # bug "the mean of all tokens": chosen = output.mean(dim=1)
        # bug "the last token": chosen = output[:, -1]
        # bug "all tokens": chosen = output
        # bug "logits for features": chosen = output
        # bug "rows of length one": chosen = torch.nn.functional.normalize(args[0])
        features.append(chosen.cpu())
        # bug "features left on the device": features.append(chosen)
        # bug "the last batch alone": features[:] = [chosen.cpu()]

    modes = [(module, module.training) for module in model.modules()]
    # bug "the model frozen": modes = [(module, module.training) for module in model.requires_grad_(False).modules()]
    model.eval()
    # bug "taken in training mode":
    # bug "gradients switched off for good": model.eval()
    # bug "gradients switched off for good": torch.set_grad_enabled(False)
    handle = model.head.register_forward_pre_hook(keep)
    # bug "before the last norm": handle = model.norm.register_forward_pre_hook(keep)
    # bug "the class token however it pools": handle = model.norm.register_forward_hook(keep)
    # bug "the mean of all tokens": handle = model.norm.register_forward_hook(keep)
    # bug "the last token": handle = model.norm.register_forward_hook(keep)
    # bug "all tokens": handle = model.norm.register_forward_hook(keep)
    # bug "logits for features": handle = model.head.register_forward_hook(keep)
    try:
        # bug "not undone after an error": if handle:
        for images, targets in loader:
            model(images.to(device))
            # bug "images left where they are": model(images)
            # bug "guesses for labels": targets = model(images.to(device)).argmax(dim=1)
            # bug "the short batch dropped": if labels and len(targets) < len(labels[0]):
            # bug "the short batch dropped":     continue
            # bug "the short batch dropped": model(images.to(device))
            labels.append(targets.cpu())
            # bug "the last batch alone": labels[:] = [targets.cpu()]
    finally:
        # bug "not undone after an error": if handle:
        handle.remove()
        # bug "a hook left behind":
        for module, mode in modes:
            module.training = mode
            # bug "left in evaluation mode": pass
            # bug "always back to training": module.training = True
            # bug "one mode for all modules": module.training = modes[0][1]
    return torch.cat(features), torch.cat(labels)
    # bug "the head taken off": model.head = torch.nn.Identity()
    # bug "the head taken off": return torch.cat(features), torch.cat(labels)
    # bug "labels in a second pass": return torch.cat(features), torch.cat([targets for _, targets in loader])
