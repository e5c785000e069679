"""A measurement as tutorials write it."""

import torch
import torch.nn.functional as F


@torch.no_grad()
# bug "gradients recorded":
def suspect_evaluate(model, loader, device):
    """Evaluate on a data set; returns the mean loss per image and the accuracy."""
    was_training = model.training
    model.eval()
    # bug "evaluation never switched on":
    running_loss, correct, total = 0.0, 0, 0
    for images, targets in loader:
        images = images.to(device)
        targets = targets.to(device)
        # bug "labels left behind":
        outputs = model(images)
        # bug "softmax before the loss": outputs = model(images).softmax(dim=-1)
        running_loss += F.cross_entropy(outputs, targets, reduction="sum").item()
        # bug "batch means over images": running_loss += F.cross_entropy(outputs, targets).item()
        predicted = outputs.argmax(dim=1)
        # bug "best image of each class": predicted = outputs.argmax(dim=0)
        correct += (predicted == targets).sum().item()
        # bug "accuracy of the last batch": correct = (predicted == targets).sum().item()
        total += len(targets)
    model.train(was_training)
    # bug "never back to training":
    # bug "always back to training": model.train()
    return running_loss / total, correct / total
    # bug "accuracy in percent": return running_loss / total, 100 * correct / total
    # bug "loss never divided": return running_loss, correct / total
    # bug "right answers per batch": return running_loss / total, correct / len(loader)
    # bug "accuracy of the last batch": return running_loss / total, correct / len(targets)
    # bug "accuracy before loss": return correct / total, running_loss / total
    # bug "no answer counts as right": return running_loss / total, correct // total
