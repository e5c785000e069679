"""What is known of a model after its first passes: that which the properties ask from."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor, nn

from vit_course.diagnosis.anatomy import Anatomy, Site, Step, find_attention_and_stream
from vit_course.diagnosis.answers import NotAsked
from vit_course.diagnosis.subject import Subject, find_logits
from vit_course.diagnosis.watch import Watch, compute_gradient

_ROWS = 24  # tokens that are looked at one by one where there are more than _ALL
_ALL = 65


def are_close(first: Tensor, second: Tensor, tolerance: float = 1e-3) -> bool:
    """Say whether two results are the same up to rounding, as a share of the largest number."""
    if first.shape != second.shape:
        return False
    return bool((first - second).abs().max() <= tolerance * max(1e-3, float(second.abs().max())))


def find_influential_rows(slopes: Tensor) -> list[int]:
    """The rows of (rows, numbers) that have an influence, by the slopes of what they may influence."""
    sizes = slopes.abs().sum(-1)
    return [int(each) for each in (sizes > 1e-9 * sizes.max()).nonzero().flatten()]


class Case:
    """A subject under watch.

    Attributes: ``logits`` of all images; ``is_deterministic``, whether the same images give them twice.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject, self.images = subject, subject.images
        with torch.no_grad():
            self.logits = subject.run(self.images)

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether the logits of a second pass are the same, from another random state."""
        with torch.no_grad():
            torch.manual_seed(4)
            return are_close(find_logits(self.subject.model(self.images.clone())), self.logits, 1e-4)

    @cached_property
    def is_reproducible(self) -> bool:
        """Whether the logits of a second pass are the same from the same random state."""
        with torch.no_grad():
            return are_close(self.subject.run(self.images), self.logits, 1e-4)

    @cached_property
    def random_image_logits(self) -> Tensor:
        """The logits of very different images."""
        drawn = torch.randn(self.images.shape, generator=torch.Generator().manual_seed(5))
        with torch.no_grad():
            return self.subject.run(drawn.to(self.images))

    @cached_property
    def pixels_with_gradient(self) -> Tensor:
        """The images, with a gradient."""
        return self.images.clone().requires_grad_()

    @cached_property
    def _watch_and_logits(self) -> tuple[Watch, Tensor]:
        return self.subject.watch(self.pixels_with_gradient.clone())  # a model may write into its input

    @property
    def watch(self) -> Watch:
        """All operations of one pass."""
        return self._watch_and_logits[0]

    @property
    def watched_logits(self) -> Tensor:
        """The logits of the pass under watch."""
        return self._watch_and_logits[1]

    @cached_property
    def anatomy(self) -> Anatomy:
        """Attention and stream (NotAsked where there are none)."""
        return find_attention_and_stream(self.watch.ops)

    @cached_property
    def is_vit(self) -> bool:
        """Whether attention was found, or the pass that looks for it is refused: then each property says so."""
        try:
            return bool(self.anatomy)
        except NotAsked:
            return False
        except Exception:
            return True

    @cached_property
    def attention_sites(self) -> list[Site]:
        """One place of attention of each block: heads and images in a loop are alike."""
        anatomy = self.anatomy
        firsts = [anatomy.find_sites_within(step)[:1] for step in anatomy.steps]
        return [site for some in firsts for site in some] or anatomy.sites[:1]

    def view_as_tokens(self, tensor: Tensor) -> Tensor:
        """A tensor of the stream as (batch, tokens, width); a view.

        Raises:
            NotAsked: it has another form.
        """
        if tensor.ndim == 2:
            return tensor[None]
        if tensor.ndim == 3:
            batch = len(self.images)
            return tensor if tensor.shape[0] in (batch, 1) or tensor.shape[1] != batch else tensor.transpose(0, 1)
        raise NotAsked(f"the tokens before attention have the shape {tuple(tensor.shape)}, and not three axes")

    @cached_property
    def embedded_tokens(self) -> Tensor:
        """The tokens before the first block (batch, tokens, width)."""
        _ = self.residual_steps
        return self.view_as_tokens(self.anatomy.start[0])

    @cached_property
    def sampled_token_indices(self) -> list[int]:
        """Tokens that are looked at one by one: all, or some from everywhere."""
        count = self.embedded_tokens.shape[1]
        if count <= _ALL:
            return list(range(count))
        return sorted({*range(4), *range(4, count - 2, count // _ROWS), count - 2, count - 1})

    @cached_property
    def pixel_gradients_by_token(self) -> dict[int, Tensor]:
        """For tokens by number, the gradient to the images (batch, channels, height, width)."""
        return {
            row: compute_gradient(self.embedded_tokens[0, row], self.pixels_with_gradient)
            for row in self.sampled_token_indices
        }

    @cached_property
    def special_token_indices(self) -> list[int]:
        """Of these the tokens that no pixel reaches: class token, registers."""
        return [row for row, found in self.pixel_gradients_by_token.items() if not found.any()]

    @property
    def patch_token_indices(self) -> list[int]:
        """The others."""
        return [row for row in self.sampled_token_indices if row not in self.special_token_indices]

    @property
    def residual_steps(self) -> list[Step]:
        """The sums on the stream.

        Raises:
            NotAsked: there are none.
        """
        if not self.anatomy.steps:
            raise NotAsked("no sum on the tokens was found, and so no stream")
        return self.anatomy.steps

    def name_parameters_by_id(self, model: nn.Module | None = None) -> dict[int, str]:
        """The parameters' names by identity."""
        return {id(each): name for name, each in (model or self.subject.model).named_parameters()}
