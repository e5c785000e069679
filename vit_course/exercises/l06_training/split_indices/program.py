"""A random split by a permutation, as data loaders have it."""

import torch


def split_indices(num_samples: int, num_validation: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Training and validation indices, the same for the same seed."""
    if not 0 < num_validation < num_samples:
        # bug "empty parts accepted": if num_samples < 0:
        # bug "no image left to train": if not 0 < num_validation <= num_samples:
        # bug "no image left to judge": if num_validation >= num_samples:
        raise ValueError(f"cannot validate with {num_validation} of {num_samples} images")
        # bug "asserted and not raised": raise AssertionError(f"cannot validate with {num_validation} images")
    generator = torch.Generator()
    # bug "a generator that goes on": generators = split_indices.kept = getattr(split_indices, "kept", {})
    # bug "a generator that goes on": generator = generators.setdefault(str(seed), torch.Generator().manual_seed(seed))
    generator.manual_seed(seed)
    # bug "a generator that goes on":
    # bug "the global generator is seeded": generator = torch.manual_seed(seed)
    # bug "seed not used": generator.manual_seed(42)
    order = torch.randperm(num_samples, generator=generator)
    # bug "no seed at all": order = torch.randperm(num_samples)
    # bug "the first images validate": order = torch.arange(num_samples).roll(-num_validation)
    # bug "the last images validate": order = torch.arange(num_samples)
    # bug "drawn with putting back": order = torch.randint(num_samples, (num_samples,), generator=generator)
    # bug "counted from one": order = torch.randperm(num_samples, generator=generator) + 1
    # bug "the last image never validates": order = torch.randperm(num_samples - 1, generator=generator)
    # bug "the last image never validates": order = torch.cat((torch.tensor([num_samples - 1]), order))
    cut = num_samples - num_validation
    train_indices = order[:cut]
    # bug "all images train": train_indices = torch.arange(num_samples)
    # bug "one lost at the cut": train_indices = order[: cut - 1]
    val_indices = order[cut:]
    # bug "two parts from two orders": val_indices = torch.randperm(num_samples, generator=generator)[cut:]
    return train_indices, val_indices
    # bug "parts the wrong way round": return val_indices, train_indices
    # bug "masks for indices": mask = torch.zeros(num_samples, dtype=torch.bool).scatter(0, val_indices, True)
    # bug "masks for indices": return ~mask, mask
    # bug "lists for tensors": return train_indices.tolist(), val_indices.tolist()
    # bug "arrays for tensors": return train_indices.numpy(), val_indices.numpy()
    # bug "indices of 32 bits": return train_indices.int(), val_indices.int()
    # bug "one shuffled order": return order
