"""An epoch as tutorials write it."""

import torch.nn.functional as F


def suspect_train_one_epoch(model, loader, optimizer, device):
    """Train for one epoch; returns the mean loss per image."""
    model.train()
    # bug "training never switched on":
    running_loss, total = 0.0, 0
    for images, targets in loader:
        images = images.to(device)
        targets = targets.to(device)
        # bug "labels left behind":
        outputs = model(images)
        # bug "softmax before the loss": outputs = model(images).softmax(dim=-1)
        loss = F.cross_entropy(outputs, targets)
        optimizer.zero_grad()
        # bug "gradients never cleared":
        # bug "gradients cleared before the step": loss.backward()
        # bug "a batch too late": optimizer.step()
        loss.backward()
        # bug "gradients cleared before the step": optimizer.zero_grad()
        # bug "a batch too late": optimizer.zero_grad()
        # bug "step before backward": optimizer.step()
        optimizer.step()
        # bug "a batch too late": loss.backward()
        # bug "step before backward": loss.backward()
        # bug "no step":
        running_loss += loss.item() * len(targets)
        # bug "batch means over images": running_loss += loss.item()
        # bug "loss of the last batch": running_loss = loss.item() * len(targets)
        # bug "losses kept with their graphs": running_loss += loss * len(targets)
        total += len(targets)
        # bug "loss of the last batch": total = len(targets)
    return running_loss / total
    # bug "return inside the loop":     return running_loss / total
    # bug "sum over images for a mean": return running_loss
