"""Right answers in other styles: what no check may refuse."""

import torch

from vit_course.modern import random_masking


def masking_of_the_paper(tokens, mask_ratio, generator):
    """The authors' way: noise, two argsorts, gather; what is left is put into order."""
    batch, num_patches, dim = tokens.shape
    keep = num_patches - round(num_patches * mask_ratio)
    if keep < 1 or keep >= num_patches:
        raise ValueError(f"a mask_ratio of {mask_ratio} is out of range")
    noise = torch.rand(batch, num_patches, generator=generator)
    shuffled = noise.argsort(dim=1)
    kept = shuffled[:, :keep].sort(dim=1).values.to(tokens.device)
    mask = torch.ones(batch, num_patches, dtype=torch.bool, device=tokens.device).scatter(1, kept, False)
    return torch.gather(tokens, 1, kept[:, :, None].expand(-1, -1, dim)), mask


def masking_image_by_image(tokens, mask_ratio, generator):
    batch, num_patches, _ = tokens.shape
    hidden = round(mask_ratio * num_patches)
    if not 1 <= hidden <= num_patches - 1:
        raise ValueError("mask_ratio " + str(mask_ratio))
    mask = torch.zeros(batch, num_patches, dtype=torch.bool)
    for image in range(batch):
        mask[image, torch.randperm(num_patches, generator=generator)[:hidden]] = True
    mask = mask.to(tokens.device)
    return torch.stack([each[~row] for each, row in zip(tokens, mask, strict=True)]), mask


def masking_by_the_smallest(tokens, mask_ratio, generator):
    num_patches = tokens.shape[1]
    hidden = round(mask_ratio * num_patches)
    if hidden <= 0 or hidden >= num_patches:
        raise ValueError(f"mask_ratio={mask_ratio} leaves nothing to do")
    noise = torch.rand(tokens.shape[:2], generator=generator)
    mask = torch.zeros_like(noise).scatter(1, noise.topk(hidden, dim=1).indices, 1.0).bool().to(tokens.device)
    return [tokens[~mask].unflatten(0, (len(tokens), -1)), mask]


RIGHT = {
    "random_masking": [
        random_masking,
        masking_of_the_paper,
        masking_image_by_image,
        masking_by_the_smallest,
    ]
}
