"""Random masking by noise and a sort, as masked autoencoders do it."""

import torch


def random_masking(
    tokens: torch.Tensor, mask_ratio: float, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """The visible tokens of each image in their order, and a mask that is True where a patch is hidden."""
    batch, num_patches, embed_dim = tokens.shape
    num_hidden = round(mask_ratio * num_patches)
    # bug "the share that is left": num_hidden = num_patches - round(mask_ratio * num_patches)
    # bug "a half rounded up": num_hidden = int(mask_ratio * num_patches + 0.5)
    if not 0 < num_hidden < num_patches:
        # bug "the ratio not tested": if num_hidden < 0:
        # bug "the ratio alone tested": if not 0 < mask_ratio < 1:
        raise ValueError(f"mask_ratio {mask_ratio} hides {num_hidden} of {num_patches} patches")
    noise = torch.rand(batch, num_patches, generator=generator)
    # bug "by the global generator": noise = torch.rand(batch, num_patches)
    # bug "a generator of its own": noise = torch.rand(batch, num_patches, generator=torch.Generator().manual_seed(0))
    # bug "the same patches in each image": noise = torch.rand(1, num_patches, generator=generator).repeat(batch, 1)
    # bug "images that share a mask": noise = torch.rand((batch + 1) // 2, num_patches, generator=generator)
    # bug "images that share a mask": noise = noise.repeat(2, 1)[:batch]
    # bug "the first patches hidden": noise = torch.arange(num_patches).repeat(batch, 1)
    # bug "the last patch never hidden": noise = torch.rand(batch, num_patches, generator=generator)
    # bug "the last patch never hidden": noise[:, -1] = 1.0
    order = noise.argsort(dim=1)
    # bug "one run of patches": starts = torch.randint(num_patches - num_hidden + 1, (batch, 1), generator=generator)
    # bug "one run of patches": order = (starts + torch.arange(num_patches)) % num_patches
    # bug "one run around the end": starts = torch.randint(num_patches, (batch, 1), generator=generator)
    # bug "one run around the end": order = (starts + torch.arange(num_patches)) % num_patches
    hidden = order[:, :num_hidden]
    mask = torch.zeros(batch, num_patches, dtype=torch.bool).scatter(1, hidden, True)
    mask = mask.to(tokens.device)
    # bug "mask left on the cpu":
    left = order[:, num_hidden:].sort(dim=1).values
    # bug "left in the drawn order": left = order[:, num_hidden:]
    # bug "the hidden ones come back": left = order[:, : num_patches - num_hidden].sort(dim=1).values
    left = left.to(tokens.device)
    visible = tokens.gather(1, left[:, :, None].expand(-1, -1, embed_dim))
    # bug "zeros for the hidden": visible = tokens * ~mask[:, :, None]
    # bug "cut from the gradient": visible = tokens.detach().gather(1, left[:, :, None].expand(-1, -1, embed_dim))
    return visible, mask
    # bug "true for what is left": return visible, ~mask
    # bug "a mask of numbers": return visible, mask.to(tokens.dtype)
    # bug "always float32": return visible.float(), mask
    # bug "hidden in place": tokens.data.masked_fill_(mask[:, :, None], 0.0)
    # bug "hidden in place": return visible, mask
