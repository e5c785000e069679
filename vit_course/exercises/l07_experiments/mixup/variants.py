"""Right answers in other styles: what no check may refuse."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vit_course.staff.references import mixup


def _refuse_alpha(alpha):
    if not alpha > 0:
        raise ValueError(f"alpha has to be above 0, and is {alpha}")


def by_shuffled_indices(images, labels, num_classes, alpha, generator):
    _refuse_alpha(alpha)
    order = np.arange(images.shape[0])
    generator.shuffle(order)
    share = float(generator.beta(alpha, alpha))
    one_hot = torch.eye(num_classes, dtype=images.dtype, device=images.device)[labels]
    return images * share + images[order] * (1.0 - share), one_hot * share + one_hot[order] * (1.0 - share)


def by_dirichlet(images, labels, num_classes, alpha, generator):
    _refuse_alpha(alpha)
    share, rest = generator.dirichlet([alpha, alpha])
    partners = generator.random(len(images)).argsort()
    targets = torch.zeros(len(images), num_classes, dtype=images.dtype, device=images.device)
    rows = torch.arange(len(images), device=images.device)
    targets[rows, labels] += float(share)
    targets[rows, labels[partners]] += float(rest)
    return [float(share) * images + float(rest) * images[partners], targets]


def by_two_gammas(images, labels, num_classes, alpha, generator):
    _refuse_alpha(alpha)
    one, other = generator.standard_gamma(alpha, size=2)
    share = float(one / (one + other))
    partners = generator.permutation(len(images)).tolist()
    shuffled = torch.stack([images[each] for each in partners])
    targets = F.one_hot(labels, num_classes).to(images)
    return torch.lerp(shuffled, images, share), torch.lerp(targets[partners], targets, share)


def by_a_matrix(images, labels, num_classes, alpha, generator):
    _refuse_alpha(alpha)
    share, batch = generator.beta(alpha, alpha), len(images)
    other = torch.eye(batch)[torch.from_numpy(generator.permutation(batch))]
    blend = (share * torch.eye(batch) + (1 - share) * other).to(images)
    targets = nn.functional.one_hot(labels, num_classes).to(images)
    return (blend @ images.flatten(1)).reshape(images.shape), blend @ targets


RIGHT = {"mixup": [mixup, by_shuffled_indices, by_dirichlet, by_two_gammas, by_a_matrix]}
