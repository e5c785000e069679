"""Right answers in other styles: what no check may refuse."""

import torch

from vit_course.modern import add_registers


def registers_by_slices(tokens, registers):
    batch, count, dim = tokens.shape
    many = registers.shape[1]
    result = tokens.new_zeros(batch, count + many, dim)
    result[:, 0] = tokens[:, 0]
    result[:, 1 : 1 + many] = registers
    result[:, 1 + many :] = tokens[:, 1:]
    return result


def registers_by_repeat(tokens, registers):
    cls_token, patches = tokens.split([1, tokens.shape[1] - 1], dim=1)
    return torch.cat((cls_token, registers.repeat(len(tokens), 1, 1), patches), dim=1)


def registers_image_by_image(tokens, registers):
    return torch.stack([torch.cat([image[:1], registers[0], image[1:]]) for image in tokens])


RIGHT = {"add_registers": [add_registers, registers_by_slices, registers_by_repeat, registers_image_by_image]}
