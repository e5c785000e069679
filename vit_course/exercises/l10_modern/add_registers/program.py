"""Registers, as they are put between the class token and the patches of a ViT."""

import torch


def add_registers(tokens: torch.Tensor, registers: torch.Tensor) -> torch.Tensor:
    """Class token, registers, patches."""
    cls, patches = tokens[:, :1], tokens[:, 1:]
    # bug "tokens cut from their gradient": cls, patches = tokens[:, :1].detach(), tokens[:, 1:].detach()
    reg = registers.expand(len(tokens), -1, -1)
    # bug "one register for all": reg = registers[:, :1].expand(len(tokens), registers.shape[1], -1)
    # bug "registers of zeros": reg = torch.zeros_like(registers).expand(len(tokens), -1, -1)
    # bug "registers for the first image only": reg = torch.zeros_like(registers).repeat(len(tokens), 1, 1)
    # bug "registers for the first image only": reg = torch.cat([registers, reg[1:]])
    # bug "registers cut from their gradient": reg = registers.detach().expand(len(tokens), -1, -1)
    x = torch.cat([cls, reg, patches], dim=1)
    # bug "registers first": x = torch.cat([reg, cls, patches], dim=1)
    # bug "registers last": x = torch.cat([cls, patches, reg], dim=1)
    # bug "registers in place of patches": x = torch.cat([cls, reg, patches[:, reg.shape[1] :]], dim=1)
    # bug "registers added to the patches": x = torch.cat([cls, patches + reg.mean(dim=1, keepdim=True)], dim=1)
    # bug "class token lost": x = torch.cat([reg, patches], dim=1)
    # bug "patches in front of the class token": x = torch.cat([patches, reg, cls], dim=1)
    # bug "registers joined to the batch": length = min(tokens.shape[1], reg.shape[1])
    # bug "registers joined to the batch": x = torch.cat([tokens[:, :length], registers[:, :length]], dim=0)
    # bug "made on the cpu": x = torch.zeros(len(tokens), tokens.shape[1] + reg.shape[1], cls.shape[2], dtype=tokens.dtype)
    # bug "made on the cpu": x[:] = torch.cat([cls, reg, patches], dim=1)
    # bug "tokens changed in place": x = torch.cat([cls, reg, patches], dim=1)
    # bug "tokens changed in place": tokens.data[:, 1] = registers.data[:, 0]
    return x
    # bug "always float32": return x.float()
