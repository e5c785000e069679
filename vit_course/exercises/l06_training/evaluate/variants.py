"""Right answers in other styles: what no check may refuse."""

import copy
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from sklearn.metrics import accuracy_score

from vit_course.training import evaluate


def in_the_lesson(model, loader, device):
    was_training = model.training
    model.eval()
    loss, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            loss += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(dim=1) == labels).sum().item()
            seen += len(labels)
    model.train(was_training)
    return loss / seen, right / seen


@torch.no_grad()
def decorated(model, loader, device):
    mode = model.training
    model.train(False)
    losses, hits = [], []
    for _number, (x, y) in enumerate(loader):
        logits = model(x.to(device))
        losses.append(F.cross_entropy(logits, y.to(device), reduction="none"))
        hits.append(logits.max(1)[1].eq(y.to(device)))
    model.train(mode)
    return torch.cat(losses).mean().item(), torch.cat(hits).float().mean().item()


@torch.inference_mode()
def with_tensors(model, loader, device):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    total = torch.zeros(3, dtype=torch.float64, device=device)
    for images, labels in loader:
        logits = model(images.to(device))
        right = torch.topk(logits, 1).indices.squeeze(1) == labels.to(device)
        mean = F.nll_loss(torch.log_softmax(logits, -1), labels.to(device))
        total += torch.tensor([mean.item() * len(labels), right.sum().item(), len(labels)], device=device)
    for module, training in modes:
        module.training = training
    return [(total[0] / total[2]).item(), (total[1] / total[2]).item()]


@contextmanager
def _evaluate_without_gradients(model):
    training, recording = model.training, torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        yield model.eval()
    finally:
        model.train(training)
        torch.set_grad_enabled(recording)


def all_at_once(model, loader, device):
    with _evaluate_without_gradients(model):
        pairs = [(model(images.to(device)), labels.to(device)) for images, labels in loader]
        logits, labels = (torch.cat(each) for each in zip(*pairs, strict=True))
        return float(F.cross_entropy(logits, labels)), accuracy_score(labels.cpu(), logits.argmax(-1).cpu())


def as_the_tutorial_does(model, dataloader, device):
    was_training = model.training
    model.eval()
    test_loss, correct, size = 0, 0, 0
    with torch.no_grad():
        for X, y in dataloader:
            X, y = X.to(device), y.to(device)
            prediction = model(X)
            test_loss += F.cross_entropy(prediction, y).item() * len(X)
            correct += (prediction.argmax(1) == y).type(torch.float).sum().item()
            size += len(X)
    if was_training:
        model.train()
    return test_loss / size, correct / size


def on_a_copy(model, loader, device):
    """The model itself is never touched."""
    quiet = copy.deepcopy(model).eval().requires_grad_(False)
    loss = right = count = 0
    for images, labels in loader:
        logits, labels = quiet(images.to(device)), labels.to(device)
        loss += float(F.cross_entropy(logits, labels, reduction="sum"))
        right += float((labels == logits.argmax(dim=1)).float().sum())
        count += len(labels)
    return loss / count, right / count


RIGHT = {"evaluate": [evaluate, in_the_lesson, decorated, with_tensors, all_at_once, as_the_tutorial_does, on_a_copy]}
