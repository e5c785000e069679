# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Numbers
#
# Three exercises, none of them about images.

# %%
import torch
from torch import nn

from numbers_course import check

# %% [markdown]
# ## Windows


# %% exercise="moving_average"
def moving_average(values, width):
    """The mean of every window of `width` values that lie side by side in a row.

    values:  (rows, places)
    returns: (rows, places - width + 1)

    Raise ValueError, naming both numbers, when width is more than places.

    >>> moving_average(torch.tensor([[1.0, 3.0, 5.0]]), 2).tolist()
    [[2.0, 4.0]]
    """
    ### BEGIN SOLUTION
    if width > values.shape[1]:
        raise ValueError(f"width {width} is more than {values.shape[1]} values")
    return values.unfold(1, width, 1).mean(dim=2)
    ### END SOLUTION


# %% check="moving_average" points=3
check("moving_average", moving_average)

# %% [markdown]
# ## Labels


# %% exercise="one_hot"
def one_hot(labels, num_classes):
    """A row for each label, with a one at its place.

    labels:  (count,) integers
    returns: (count, num_classes), float32

    >>> one_hot(torch.tensor([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    ### BEGIN SOLUTION
    return torch.eye(num_classes)[labels]
    ### END SOLUTION


# %% check="one_hot" points=2
check("one_hot", one_hot)

# %% [markdown]
# ## Columns


# %% exercise="Standardize"
class Standardize(nn.Module):
    """Every column with mean 0 and variance 1, then scaled and shifted by the parameters `scale` and `shift`.

    >>> Standardize(1)(torch.tensor([[0.0], [2.0]])).tolist()
    [[-1.0], [1.0]]
    """

    def __init__(self, num_features):
        super().__init__()
        ### BEGIN SOLUTION
        self.scale = nn.Parameter(torch.ones(num_features))
        self.shift = nn.Parameter(torch.zeros(num_features))
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        deviation = x - x.mean(dim=0)
        return deviation / deviation.square().mean(dim=0).sqrt() * self.scale + self.shift
        ### END SOLUTION


# %% check="Standardize" points=3
check("Standardize", Standardize)
