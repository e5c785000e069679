"""A convolution whose weight and bias are replaced by new parameters."""

from torch import nn


def conv_from_linear(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """Linear(C * P * P -> D) -> Conv2d(C -> D) that strides by its kernel."""
    C, P = in_channels, patch_size
    conv = nn.Conv2d(C, projection.out_features, P, stride=P)
    # bug "stride forgotten": conv = nn.Conv2d(C, projection.out_features, P)
    # bug "three channels hard coded": conv = nn.Conv2d(3, projection.out_features, P, stride=P)
    rows = projection.weight.detach().clone()
    # bug "weight read the wrong way": rows = projection.weight.detach().clone().T
    kernels = rows.reshape(-1, C, P, P)
    # bug "kernels with channels last": kernels = rows.reshape(-1, P, P, C).permute(0, 3, 1, 2)
    # bug "kernels transposed": kernels = rows.reshape(-1, C, P, P).transpose(2, 3)
    # bug "weight not reshaped": kernels = rows
    conv.weight = nn.Parameter(kernels)
    # bug "copied while gradients are recorded": conv.weight.copy_(kernels)  # raises
    # bug "weights never copied":
    conv.bias = None if projection.bias is None else nn.Parameter(projection.bias.detach().clone())
    # bug "bias that the Linear lacks": if projection.bias is not None:
    # bug "bias that the Linear lacks":     conv.bias = nn.Parameter(projection.bias.detach().clone())
    # bug "bias left random":
    # bug "weights never copied":
    return conv
