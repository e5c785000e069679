"""Random masking by noise and a sort, as masked autoencoders do it."""

import torch


def suspect_masking(tokens, mask_ratio, generator):
    """The visible tokens of each image in their order, and a mask that is True where a patch is hidden."""
    batch, num_patches, embed_dim = tokens.shape
    num_hidden = round(mask_ratio * num_patches)
    # bug "the share that is left": num_hidden = num_patches - round(mask_ratio * num_patches)
    if not 0 < num_hidden < num_patches:
        # bug "the ratio not tested": if num_hidden < 0:
        raise ValueError(f"mask_ratio {mask_ratio} hides {num_hidden} of {num_patches} patches")
    noise = torch.rand(batch, num_patches, generator=generator)
    # bug "by the global generator": noise = torch.rand(batch, num_patches)
    # bug "a generator of its own": noise = torch.rand(batch, num_patches, generator=torch.Generator().manual_seed(0))
    # bug "the same patches in each image": noise = torch.rand(1, num_patches, generator=generator).repeat(batch, 1)
    # bug "the first patches hidden": noise = torch.arange(num_patches).repeat(batch, 1)
    order = noise.argsort(dim=1).to(tokens.device)
    hidden = order[:, :num_hidden]
    mask = torch.zeros(batch, num_patches, dtype=torch.bool, device=tokens.device).scatter(1, hidden, True)
    left = order[:, num_hidden:].sort(dim=1).values
    # bug "left in the drawn order": left = order[:, num_hidden:]
    visible = tokens.gather(1, left[:, :, None].expand(-1, -1, embed_dim))
    # bug "zeros for the hidden": visible = tokens * ~mask[:, :, None]
    # bug "cut from the gradient": visible = tokens.detach().gather(1, left[:, :, None].expand(-1, -1, embed_dim))
    return visible, mask
    # bug "true for what is left": return visible, ~mask
    # bug "a mask of numbers": return visible, mask.float()
    # bug "always float32": return visible.float(), mask
