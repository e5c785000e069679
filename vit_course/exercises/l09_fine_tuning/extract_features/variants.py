"""Right answers in other styles: what no check may refuse."""

import torch
from torch import nn

from vit_course.fine_tuning import extract_features


def by_an_identity_for_the_head(model, loader, device):
    modes = [(part, part.training) for part in model.modules()]
    head, model.head = model.head, nn.Identity()
    model.eval()
    features, labels = [], []
    try:
        with torch.inference_mode():
            for images, some in loader:
                features.append(model(images.to(device)).to("cpu"))
                labels.append(some.to("cpu"))
    finally:
        model.head = head
        for part, mode in modes:
            part.training = mode
    return torch.cat(features).clone(), torch.cat(labels)


def by_a_forward_hook(model, loader, device):
    asleep = [part for part in model.modules() if not part.training]
    awake = [part for part in model.modules() if part.training]
    kept, labels = {}, []
    with model.head.register_forward_hook(lambda head, given, result: kept.update({len(kept): given[0].detach()})):
        try:
            with torch.no_grad():
                model.eval()
                for images, some in loader:
                    model(images.to(device))
                    labels += some.tolist()
        finally:
            for part in awake:
                part.training = True
            for part in asleep:
                part.training = False
    return [torch.cat([kept[number].cpu() for number in sorted(kept)]), torch.tensor(labels)]


def in_front_of_the_head(model, loader, device):
    states = {name: part.training for name, part in model.named_modules()}
    model.eval()
    rows, labels = [], []

    def keep_input_of_head(head, given):
        rows.append(given[0].detach().cpu())

    handle = model.head.register_forward_pre_hook(keep_input_of_head)
    try:
        for images, some in loader:
            with torch.no_grad():
                model(images.to(device))
            labels.append(some.cpu())
    finally:
        handle.remove()
        for name, part in model.named_modules():
            part.training = states[name]
    return torch.vstack(rows), torch.hstack(labels)


RIGHT = {"extract_features": [extract_features, by_an_identity_for_the_head, by_a_forward_hook, in_front_of_the_head]}
