"""Right answers in other styles: what no check may refuse."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vit_course.training import train_one_epoch


def in_the_lesson(model, loader, optimizer, device):
    model.train()
    total, seen = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
        seen += len(labels)
    return total / seen


def with_a_module_and_an_enumeration(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    model.to(device).train(True)
    losses, sizes = [], []
    for _step, batch in enumerate(loader):
        x, y = (each.to(device, non_blocking=True) for each in batch)
        loss = criterion(model(x), y)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu().numpy())
        sizes.append(x.shape[0])
    return np.average(losses, weights=sizes)


def clearing_through_the_model(model, loader, optimizer, device):
    was_training = model.training
    model.train()
    total, seen = torch.zeros((), device=device), 0
    for images, labels in loader:
        model.zero_grad()
        losses = F.cross_entropy(model(images.to(device)), labels.to(device), reduction="none")
        losses.mean().backward()
        optimizer.step()
        total += losses.detach().sum()
        seen += len(labels)
    model.train(was_training)
    return (total / seen).item()


def clearing_before_and_after(model, loader, optimizer, device):
    optimizer.zero_grad()
    model.train()
    running, count = 0.0, 0
    for images, labels in loader:
        log_shares = model(images.to(device)).log_softmax(dim=-1)
        loss = F.nll_loss(log_shares, labels.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        count += len(images)
        running += (float(loss) - running) * len(images) / count
    return running


def with_a_closure(model, loader, optimizer, device):
    model.train()
    total, seen = 0.0, 0
    for batch in loader:
        images, labels = (each.to(device) for each in batch)

        def compute_loss_and_gradients(images=images, labels=labels):
            for parameter in model.parameters():
                parameter.grad = None
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            return loss

        total += optimizer.step(compute_loss_and_gradients).item() * labels.size(0)
        seen += labels.size(0)
    return total / seen


def with_gradients_asked_for(model, loader, optimizer, device):
    model.train()
    parameters = list(model.parameters())
    loss_sum = torch.tensor(0.0, dtype=torch.float64)
    for images, labels in loader:
        loss = F.cross_entropy(model(images.to(device)), labels.to(device), reduction="sum")
        gradients = torch.autograd.grad(loss / len(labels), parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        loss_sum += loss.item()
    return loss_sum.item() / sum(len(labels) for _, labels in loader)


_LOOPS = [
    train_one_epoch,
    in_the_lesson,
    with_a_module_and_an_enumeration,
    clearing_through_the_model,
    clearing_before_and_after,
    with_a_closure,
    with_gradients_asked_for,
]


RIGHT = {"train_one_epoch": _LOOPS, "fix_training": _LOOPS}
