"""Right answers in other styles: what no check may refuse."""

import itertools

import numpy as np
import torch


def rotary_by_offsets(rotate):
    """By dot products alone: the same one for the same offset, and different ones for different offsets."""
    rows, columns = 4, 3
    torch.manual_seed(8)
    query, key = torch.randn(3, 2, 1, 12).repeat(1, 1, 12, 1), torch.randn(3, 2, 1, 12).repeat(1, 1, 12, 1)
    front = torch.randn(3, 2, 4, 12)
    queries, keys = torch.cat([front, query], 2), torch.cat([front + 1, key], 2)
    try:
        new_queries, new_keys = rotate(queries, keys, (rows, columns))
        torch.testing.assert_close(new_queries.norm(dim=3), queries.norm(dim=3), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(new_keys.norm(dim=3), keys.norm(dim=3), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(new_queries[:, :, :5], queries[:, :, :5], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(new_keys[:, :, :5], keys[:, :, :5], atol=1e-4, rtol=1e-4)
        for image in range(3):
            by_itself = rotate(queries[image], keys[image], (rows, columns))
            torch.testing.assert_close(by_itself[0], new_queries[image], atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(by_itself[1], new_keys[image], atol=1e-4, rtol=1e-4)
        scores = new_queries[:, :, 4:] @ new_keys[:, :, 4:].mT
        by_offset = {}
        for one, other in itertools.product(range(rows * columns), repeat=2):
            offset = (other // columns - one // columns, other % columns - one % columns)
            by_offset.setdefault(offset, []).append(scores[:, :, one, other])
    except AssertionError:
        return False
    if any((torch.stack(same) - same[0]).abs().amax() > 1e-4 for same in by_offset.values()):
        return False
    different = torch.stack([same[0].flatten() for same in by_offset.values()])
    if torch.pdist(different).amin() < 1e-3:
        return False
    return _has_speeds(rotate, 12)


def _has_speeds(rotate, head_dim):
    """Say whether one-hot queries turn by different angles with a step down, and others with a step to the right."""
    speeds = []
    for grid in ((2, 1), (1, 2)):
        ones = torch.eye(head_dim)[:, None].repeat(1, 2, 1)
        speeds.append([round(each, 3) for each in rotate(ones, ones, grid)[0][:, 1].diagonal().tolist()])
    turns = [{number for number, cosine in enumerate(each) if cosine < 0.9995} for each in speeds]
    return not turns[0] & turns[1] and all(len(set(each)) == 1 + head_dim // 4 for each in speeds)


def rotary_by_numpy(rotate):
    """Each number alone, on every patch: a turn adds up from patch to patch. The answer is numpy's bool."""
    rows, columns, head_dim = 3, 4, 8
    one_hot = np.zeros((head_dim, 1 + rows * columns, head_dim))
    one_hot[np.arange(head_dim), :, np.arange(head_dim)] = 1
    noise = np.random.default_rng(5).normal(size=(2, 3, 1 + rows * columns, head_dim))
    pair, (query, key) = (torch.from_numpy(one_hot),) * 2, torch.from_numpy(noise)
    images = query[:, None] * torch.tensor([[[1.0]], [[2.0]]], dtype=torch.float64)
    found = [each.numpy() for each in rotate(*pair, (rows, columns))]
    of_images = [each.numpy() for each in rotate(images, key[:, None].expand_as(images), (rows, columns))]
    if any(each.shape != one_hot.shape for each in found) or any(each.shape != images.shape for each in of_images):
        return False
    turns = found[0].transpose(1, 0, 2)
    down, right = turns[1 + columns], turns[2]
    powers = np.linalg.matrix_power
    grid = [powers(right, column) @ powers(down, row) for row in range(rows) for column in range(columns)]
    wanted = np.stack([np.eye(head_dim), *grid])
    given = (images.numpy(), np.broadcast_to(key.numpy()[:, None], images.shape))
    same = np.allclose(turns, wanted, atol=1e-4) & np.allclose(down @ down.T, np.eye(head_dim), atol=1e-4)
    same &= np.allclose(right @ right.T, np.eye(head_dim), atol=1e-4)
    for seen, before in zip(of_images, given, strict=True):
        same &= np.allclose(seen, np.einsum("...tc,tcd->...td", before, wanted), atol=1e-4)
    cosines = [np.sort(each.diagonal())[::2] for each in (down, right)]
    still = (down.diagonal() > 0.999) ^ (right.diagonal() > 0.999)
    return same & still.all() & all((np.diff(each)[: head_dim // 4] > 1e-3).all() for each in cosines)


def rotary_by_eigenvalues(rotate):
    """A step down and a step to the right as matrices, and their angles as eigenvalues."""
    grid, width, generator = (3, 5), 16, torch.Generator().manual_seed(2)
    draw = torch.randn(2, 4, 2, 18, width, dtype=torch.float64, generator=generator)
    before = {"query": draw[0], "key": draw[1]}
    after = dict(zip(before, rotate(draw[0], draw[1], grid), strict=True))
    if any(after[name].shape != x.shape for name, x in before.items()):
        return False
    matrices = {}
    for name, x in before.items():
        if not torch.allclose(after[name][:, :, :4], x[:, :, :4], atol=1e-5):
            return False
        flat, turned = x.flatten(0, 1), after[name].flatten(0, 1)
        columns = torch.eye(width, dtype=torch.float64)[:, None].expand(-1, 18, -1)
        matrices[name] = rotate(columns, columns, grid)[name == "key"].transpose(0, 1)
        if not torch.allclose(torch.einsum("btc,tcd->btd", flat, matrices[name]), turned, atol=1e-6):
            return False
    turns = matrices["query"]
    if not torch.allclose(turns, matrices["key"], atol=1e-6):
        return False
    down, right = turns[8], turns[4]
    for number, (row, column) in enumerate(itertools.product(range(3), range(5))):
        expected = torch.linalg.matrix_power(down, row) @ torch.linalg.matrix_power(right, column)
        if not torch.allclose(turns[3 + number], expected, atol=1e-5):
            return False
    angles = [torch.linalg.eigvals(each) for each in (down, right)]
    if not all(torch.allclose(each.abs(), torch.ones(width, dtype=torch.float64), atol=1e-5) for each in angles):
        return False
    sizes = [each.angle().abs().sort().values for each in angles]
    apart = ((down - torch.eye(width)).abs().amax(1) > 1e-3) != ((right - torch.eye(width)).abs().amax(1) > 1e-3)
    steps = [((each.diff() > 1e-3).sum() == width // 4) & ((each > 1e-3).sum() == width // 2) for each in sizes]
    return bool(apart.all() and all(steps))


def rotary_that_answers_in_tensors(rotate):
    return torch.tensor(rotary_by_offsets(rotate))


RIGHT = {"is_rotary": [rotary_by_offsets, rotary_by_numpy, rotary_by_eigenvalues, rotary_that_answers_in_tensors]}
