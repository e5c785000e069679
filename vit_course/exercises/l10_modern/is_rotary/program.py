"""A test for rotary positions: facts that hold for each of them, and for nothing else."""

from collections.abc import Callable

import torch
import torch.nn.functional as F

Pair = tuple[torch.Tensor, torch.Tensor]
Rotate = Callable[[torch.Tensor, torch.Tensor, tuple[int, int]], Pair]


def near(found: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether both hold the same numbers, up to rounding."""
    return bool((found - right).abs().max() < 1e-4)


def is_rotary(rotate: Rotate) -> bool:
    """Whether ``rotate`` turns queries and keys by the row and the column of their patch."""
    images, in_front, grid, head_dim = 2, 1, (3, 5), 8
    # bug "one pair in each half": images, in_front, grid, head_dim = 2, 1, (3, 5), 4
    # bug "no token in front": images, in_front, grid, head_dim = 2, 0, (3, 5), 8
    # bug "a square grid": images, in_front, grid, head_dim = 2, 1, (4, 4), 8
    # bug "two rows and two columns": images, in_front, grid, head_dim = 2, 1, (2, 2), 8
    # bug "one image": images, in_front, grid, head_dim = 1, 1, (3, 5), 8
    rows, columns = grid
    # bug "never says no": rows, columns = grid
    # bug "never says no": return True
    # bug "never says yes": rows, columns = grid
    # bug "never says yes": return False
    tokens = in_front + rows * columns
    # the same query and key at every place: what differs afterward comes from the place
    shape, generator = (2, images, 3, 1, head_dim), torch.Generator().manual_seed(0)
    query, key = torch.randn(shape, generator=generator).expand(-1, -1, -1, tokens, -1)
    # bug "query is key": query, _ = torch.randn(shape, generator=generator).expand(-1, -1, -1, tokens, -1)
    # bug "query is key": key = query
    # bug "key not looked at": query, _ = torch.randn(shape, generator=generator).expand(-1, -1, -1, tokens, -1)
    # bug "key not looked at": key = query
    new_query, new_key = rotate(query, key, grid)
    # bug "key not looked at": new_query, _ = rotate(query, key, grid)
    # bug "key not looked at": new_key = new_query
    if new_query.shape != query.shape or new_key.shape != key.shape:
        return False
        # bug "answer turned round": return True
        # bug "asserts where it should answer": raise AssertionError("these are no rotary positions")
    lengths = near(new_query.norm(dim=-1), query.norm(dim=-1)) and near(new_key.norm(dim=-1), key.norm(dim=-1))
    # bug "lengths not looked at": lengths = True
    first = slice(in_front + 1)
    # bug "shapes only": first = slice(in_front + 1)
    # bug "shapes only": return True
    # bug "lengths only": first = slice(in_front + 1)
    # bug "lengths only": return lengths
    stay = [near(new[..., first, :], old[..., first, :]) for new, old in ((new_query, query), (new_key, key))]
    start = all(stay)
    # bug "start not looked at": start = True
    # bug "every patch has to turn": start = not all(stay)
    scores = new_query[..., in_front:, :] @ new_key[..., in_front:, :].mT
    scores = scores.unflatten(-1, grid).unflatten(-3, grid)  # (..., row and column of the query, those of the key)
    down = near(scores[..., 1:, :, 1:, :], scores[..., :-1, :, :-1, :])
    # bug "moved to the right only": down = True
    right = near(scores[..., 1:, :, 1:], scores[..., :-1, :, :-1])
    # bug "moved down only": right = True
    # each number alone: how far it turns in a step down, and in a step to the right
    axes = torch.eye(head_dim)[:, None].expand(-1, rows * columns, -1)
    turned, _ = rotate(axes, axes, grid)
    cosines = [F.cosine_similarity(turned[:, 0], turned[:, patch], dim=-1) for patch in (columns, 1)]
    apart = torch.equal(cosines[0] > 0.9999, cosines[1] < 0.9999)
    # bug "nothing has to change": apart = True
    # bug "rows and columns not taken apart": apart = True
    speeds = all((each.sort().values.diff() > 1e-3).sum() == head_dim // 4 for each in cosines)
    # bug "nothing has to change": speeds = True
    # bug "speeds not looked at": speeds = True
    alone_query, alone_key = rotate(query[-1:], key[-1:], grid)
    # bug "key not looked at": alone_query, _ = rotate(query[-1:], key[-1:], grid)
    # bug "key not looked at": alone_key = alone_query
    alone = near(alone_query, new_query[-1:]) and near(alone_key, new_key[-1:])
    # bug "images not looked at": alone = True
    holds = lengths and start and down and right and apart and speeds and alone
    return holds
    # bug "answer turned round": return not holds
    # bug "asserts where it should answer": assert holds, "these are no rotary positions"
    # bug "asserts where it should answer": return True
    # bug "compared to the last digit": return holds and torch.equal(new_query[..., 1, :], query[..., 1, :])
    # bug "compared with one rotation": patch, pairs = torch.arange(15), 100.0 ** -torch.tensor([0.0, 0.5])
    # bug "compared with one rotation": angles = torch.cat([torch.outer(patch // 5, pairs), torch.outer(patch % 5, pairs)], 1)
    # bug "compared with one rotation": turns = torch.polar(torch.ones(15, 4), angles)
    # bug "compared with one rotation": by_hand = [
    # bug "compared with one rotation":     torch.view_as_real(torch.view_as_complex(each.reshape(2, 3, 16, 4, 2))[..., 1:, :] * turns)
    # bug "compared with one rotation":     for each in (query, key)
    # bug "compared with one rotation": ]
    # bug "compared with one rotation": same = [
    # bug "compared with one rotation":     near(new[..., 1:, :], right.flatten(-2))
    # bug "compared with one rotation":     for new, right in zip((new_query, new_key), by_hand, strict=True)
    # bug "compared with one rotation": ]
    # bug "compared with one rotation": return start and all(same)
    # bug "neighbors for pairs": found, before = (each.unflatten(-1, (-1, 2)).norm(dim=-1) for each in (new_query, query))
    # bug "neighbors for pairs": return holds and near(found, before)
    # bug "rows in the first half": return holds and near(new_query[..., :6, :4], query[..., :6, :4])
