"""Right answers in other styles: what no check may refuse."""


def count_by_parts(config):
    dim, hidden = config.embed_dim, config.hidden_dim

    def count_in_linear(inputs, outputs, bias=True):
        return inputs * outputs + (outputs if bias else 0)

    norm = 2 * dim
    block = (
        2 * norm
        + count_in_linear(dim, 3 * dim, config.qkv_bias)
        + count_in_linear(dim, dim)
        + count_in_linear(dim, hidden)
    )
    block += count_in_linear(hidden, dim)
    ends = (
        count_in_linear(config.in_channels * config.patch_size**2, dim)
        + norm
        + count_in_linear(dim, config.num_classes)
    )
    return dim + (1 + config.num_patches) * dim + config.depth * block + ends


def count_in_one_line(config):
    d, h = config.embed_dim, round(config.embed_dim * config.mlp_ratio)
    height, width = config.image_size
    n = (height // config.patch_size) * (width // config.patch_size)
    a = 4 * d * d + d + 3 * d * config.qkv_bias
    p = config.in_channels * config.patch_size**2
    return (p + 1) * d + (n + 2) * d + config.depth * (a + 2 * d * h + h + 5 * d) + 2 * d + (d + 1) * config.num_classes


RIGHT = {"count_parameters": [count_by_parts, count_in_one_line]}
