"""Right answers in other styles: what no check may refuse."""

import torch
import torch.nn.functional as F

from vit_course import positions as reference


def _refuse_wrong_number_of_positions(tokens, positions):
    if positions.size(1) != tokens.size(1) + 1:
        raise ValueError(f"expected {tokens.size(1) + 1} positions, got {positions.size(1)}")


def class_token_by_expand(tokens, class_token, positions):
    _refuse_wrong_number_of_positions(tokens, positions)
    return torch.cat((class_token.expand(tokens.shape[0], -1, -1), tokens), 1) + positions


def class_token_by_repeat(tokens, class_token, positions):
    _refuse_wrong_number_of_positions(tokens, positions)
    return torch.cat([class_token.repeat(len(tokens), 1, 1), tokens], dim=1) + positions


def class_token_by_tile(tokens, class_token, positions):
    _refuse_wrong_number_of_positions(tokens, positions)
    return torch.hstack([torch.tile(class_token, (len(tokens), 1, 1)), tokens]) + positions


def class_token_by_repeat_interleave(tokens, class_token, positions):
    _refuse_wrong_number_of_positions(tokens, positions)
    return torch.cat([class_token.repeat_interleave(len(tokens), dim=0), tokens], dim=1) + positions


def class_token_by_broadcast_to(tokens, class_token, positions):
    _refuse_wrong_number_of_positions(tokens, positions)
    batch, _, embed_dim = tokens.shape
    return torch.cat([class_token.broadcast_to(batch, 1, embed_dim), tokens], dim=1) + positions.expand(batch, -1, -1)


def class_token_with_positions_first(tokens, class_token, positions):
    _refuse_wrong_number_of_positions(tokens, positions)
    first = (class_token + positions[:, :1]).expand(len(tokens), -1, -1)
    return torch.cat([first, tokens + positions[:, 1:]], dim=1)


def class_token_by_new_empty(tokens, class_token, positions):
    _refuse_wrong_number_of_positions(tokens, positions)
    batch, num_patches, embed_dim = tokens.shape
    result = tokens.new_empty(batch, num_patches + 1, embed_dim)
    result[:, 0] = class_token[0, 0]
    result[:, 1:] = tokens
    result += positions
    return result


def class_token_by_padding(tokens, class_token, positions):
    _refuse_wrong_number_of_positions(tokens, positions)
    return F.pad(tokens, (0, 0, 1, 0)) + positions + F.pad(class_token, (0, 0, 0, tokens.shape[1]))


def class_token_by_loops(tokens, class_token, positions):
    _refuse_wrong_number_of_positions(tokens, positions)
    return torch.stack([torch.cat([class_token[0], image]) + positions[0] for image in tokens])


RIGHT = {
    "add_class_token": [
        reference.add_class_token,
        class_token_by_expand,
        class_token_by_repeat,
        class_token_by_tile,
        class_token_by_repeat_interleave,
        class_token_by_broadcast_to,
        class_token_with_positions_first,
        class_token_by_new_empty,
        class_token_by_loops,
        class_token_by_padding,
    ]
}
