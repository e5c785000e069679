"""An epoch as tutorials write it."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import nn


def train_one_epoch(
    model: nn.Module,
    loader: Iterable[tuple[torch.Tensor, torch.Tensor]],
    optimizer: torch.optim.Optimizer,
    device: str | torch.device,
) -> float:
    """Train for one epoch; returns the mean loss per image."""
    model.train()
    # bug "training never switched on":
    losses: list[float] = []
    # bug "gradients cleared once": losses = []
    # bug "gradients cleared once": optimizer.zero_grad()
    # bug "one step for the whole epoch": losses = []
    # bug "one step for the whole epoch": optimizer.zero_grad()
    sizes: list[int] = []
    # bug "an optimizer of its own": sizes = []
    # bug "an optimizer of its own": optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for images, targets in loader:
        # bug "last batch left out": batches = list(loader)
        # bug "last batch left out": full = len(batches[0][1])
        # bug "last batch left out": for images, targets in [each for each in batches if len(each[1]) == full]:
        # bug "measured when all is over": batches = list(loader)
        # bug "measured when all is over": for images, targets in batches:
        images = images.to(device)
        # bug "batches left where they are":
        targets = targets.to(device)
        # bug "batches left where they are":
        # bug "labels left behind":
        outputs = model(images)
        # bug "softmax before the loss": outputs = model(images).softmax(dim=-1)
        loss = F.cross_entropy(outputs, targets)
        # bug "labels smoothed": loss = F.cross_entropy(outputs, targets, label_smoothing=0.1)
        # bug "step along the sum": loss = F.cross_entropy(outputs, targets, reduction="sum")
        optimizer.zero_grad()
        # bug "gradients never cleared":
        # bug "gradients cleared once":
        # bug "gradients cleared too late":
        # bug "gradients cleared before the step": loss.backward()
        # bug "a batch too late": optimizer.step()
        # bug "one step for the whole epoch":
        loss.backward()
        # bug "gradients cleared before the step": optimizer.zero_grad()
        # bug "a batch too late": optimizer.zero_grad()
        # bug "step before backward": optimizer.step()
        # bug "no backward":
        optimizer.step()
        # bug "gradients cleared too late": optimizer.step()
        # bug "gradients cleared too late": optimizer.zero_grad()
        # bug "a batch too late": loss.backward()
        # bug "step before backward": loss.backward()
        # bug "no step":
        # bug "one step for the whole epoch":
        losses.append(loss.item() * len(targets))
        # bug "mean of batch means": losses.append(loss.item())
        # bug "sum of batch means": losses.append(loss.item())
        # bug "batch means over images": losses.append(loss.item())
        # bug "losses kept with their graphs": losses.append(loss * len(targets))
        # bug "step along the sum": losses.append(loss.item())
        # bug "a list of losses": losses.append(loss.item())
        sizes.append(len(targets))
    total = sum(sizes)
    # bug "one step for the whole epoch": optimizer.step()
    # bug "one step for the whole epoch": total = sum(sizes)
    # bug "every batch taken for full": total = len(sizes) * sizes[0]
    # bug "more asked of the loader than batches": total = len(loader.dataset)
    # bug "return inside the loop":     total = sum(sizes)
    return sum(losses) / total
    # bug "return inside the loop":     return sum(losses) / total
    # bug "mean of batch means": return sum(losses) / len(losses)
    # bug "sum over images for a mean": return sum(losses)
    # bug "sum of batch means": return sum(losses)
    # bug "loss of the last batch": return losses[-1] / sizes[-1]
    # bug "measured when all is over": again = [(model(images.to(device)), labels.to(device)) for images, labels in batches]
    # bug "measured when all is over": return sum(F.cross_entropy(*each, reduction="sum").item() for each in again) / total
    # bug "a tensor for a float": return torch.tensor(sum(losses) / total)
    # bug "a list of losses": return losses
    # bug "nothing returned":
