"""LayerNorm in steps, with the axes of its statistics named once."""

import torch


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Give each token mean 0 and variance 1, then scale and shift each dimension."""
    axes: tuple[int, ...] = (-1,)
    # bug "statistics over the tokens": axes = (-2,)
    # bug "statistics over the first axis": axes = (0,)
    # bug "one mean for a whole image": axes = tuple(range(1, x.dim()))
    # bug "batch norm": axes = tuple(range(x.dim() - 1))
    # bug "one mean for everything": axes = tuple(range(x.dim()))
    # bug "axis counted from the front": axes = (2,)
    mean = x.mean(dim=axes, keepdim=True)
    # bug "float32 whatever the input": x, weight, bias = x.float(), weight.float(), bias.float()
    # bug "float32 whatever the input": mean = x.mean(dim=axes, keepdim=True)
    # bug "statistics out of the graph": mean = x.detach().mean(dim=axes, keepdim=True)
    variance = x.var(dim=axes, correction=0, keepdim=True)
    # bug "divided by one less": variance = x.var(dim=axes, keepdim=True)
    # bug "std plus eps": variance = x.var(dim=axes, keepdim=True)
    # bug "deviations never squared": variance = torch.zeros_like(mean)
    # bug "mean left in": variance = x.square().mean(dim=axes, keepdim=True)
    # bug "squares summed not averaged": variance = (x - mean).square().sum(dim=axes, keepdim=True)
    # bug "variance by the mean of the squares": variance = x.square().mean(dim=axes, keepdim=True) - mean.square()
    # bug "statistics out of the graph": variance = x.detach().var(dim=axes, correction=0, keepdim=True)
    deviations = x - mean
    # bug "mean left in": deviations = x
    # bug "divided but not centered": deviations = x
    root = (variance + eps).sqrt()
    # bug "divided by the variance": root = variance + eps
    # bug "squared for the root": root = (variance + eps) ** 2
    # bug "eps outside the root": root = variance.sqrt() + eps
    # bug "std plus eps": root = variance.sqrt() + eps
    # bug "eps left out": root = variance.sqrt()
    # bug "eps of its own": root = (variance + 1e-5).sqrt()
    result = deviations / root
    # bug "bias added before the weight": result = deviations / root + bias
    result = weight * result
    # bug "weight and bias swapped": result = bias * result
    # bug "weight left out":
    # bug "weight and bias never used":
    result = result + bias
    # bug "weight and bias swapped": result = result + weight
    # bug "bias left out":
    # bug "weight and bias never used":
    # bug "bias added before the weight":
    return result
    # bug "tokens left in one long row": return result.flatten(0, -2)
    # bug "x changed in place": return x.copy_(result)
    # bug "first axis squeezed": return result.squeeze(0)
