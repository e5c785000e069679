"""A measurement as tutorials write it."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import nn


@torch.no_grad()
# bug "gradients recorded":
# bug "gradients switched off for good":
# bug "it goes on learning":
def evaluate(
    model: nn.Module, loader: Iterable[tuple[torch.Tensor, torch.Tensor]], device: str | torch.device
) -> tuple[float, float]:
    """Evaluate on a data set; returns the mean loss per image and the accuracy."""
    was_training = model.training
    # bug "gradients switched off for good": was_training = model.training
    # bug "gradients switched off for good": torch.set_grad_enabled(False)
    # bug "frozen parameters thawed": was_training = model.requires_grad_(False).training
    # bug "the parameters left frozen": was_training = model.requires_grad_(False).training
    model.eval()
    # bug "evaluation never switched on":
    losses, correct, sizes = [], [], []
    for images, targets in loader:
        images = images.to(device)
        # bug "batches left where they are":
        targets = targets.to(device)
        # bug "batches left where they are":
        # bug "labels left behind":
        outputs = model(images)
        # bug "softmax before the loss": outputs = model(images).softmax(dim=-1)
        losses.append(F.cross_entropy(outputs, targets, reduction="sum").item())
        # bug "mean of batch means": losses.append(F.cross_entropy(outputs, targets).item())
        # bug "sum of batch means": losses.append(F.cross_entropy(outputs, targets).item())
        # bug "batch means over images": losses.append(F.cross_entropy(outputs, targets).item())
        # bug "loss of the last batch": losses.append(F.cross_entropy(outputs, targets).item())
        # bug "labels smoothed": loss = F.cross_entropy(outputs, targets, reduction="sum", label_smoothing=0.1)
        # bug "labels smoothed": losses.append(loss.item())
        # bug "it goes on learning": loss = F.cross_entropy(outputs, targets, reduction="sum")
        # bug "it goes on learning": loss.backward()
        # bug "it goes on learning": losses.append(loss.item())
        predicted = outputs.argmax(dim=1)
        # bug "best image of each class": predicted = outputs.argmax(dim=0)
        # bug "no answer counts as right": predicted = outputs.amax(dim=1)
        correct.append((predicted == targets).sum().item())
        # bug "the accuracy in a tensor": correct.append((predicted == targets).sum())
        sizes.append(len(targets))
        # bug "back to training inside the loop": sizes.append(len(targets))
        # bug "back to training inside the loop": model.train(was_training)
        # bug "only the first batch": sizes.append(len(targets))
        # bug "only the first batch": break
    model.train(was_training)
    # bug "never back to training":
    # bug "always back to training": model.train()
    # bug "back to training inside the loop":
    # bug "frozen parameters thawed": model.requires_grad_(True).train(was_training)
    total = sum(sizes)
    # bug "every batch taken for full": total = len(sizes) * sizes[0]
    # bug "more asked of the loader than batches": total = len(loader.dataset)
    mean_loss = sum(losses) / total
    # bug "mean of batch means": mean_loss = sum(losses) / len(losses)
    # bug "loss never divided": mean_loss = sum(losses)
    # bug "sum of batch means": mean_loss = sum(losses)
    # bug "loss of the last batch": mean_loss = losses[-1]
    accuracy = sum(correct) / total
    # bug "accuracy in percent": accuracy = 100 * sum(correct) / total
    # bug "mean of batch accuracies": accuracy = sum(right / size for right, size in zip(correct, sizes)) / len(sizes)
    # bug "right answers per batch": accuracy = sum(correct) / len(correct)
    # bug "right answers counted": accuracy = sum(correct)
    # bug "accuracy of the last batch": accuracy = correct[-1] / sizes[-1]
    return mean_loss, accuracy
    # bug "accuracy before loss": return accuracy, mean_loss
    # bug "accuracy alone": return accuracy
    # bug "tensors for floats": return torch.tensor(mean_loss), torch.tensor(accuracy)
