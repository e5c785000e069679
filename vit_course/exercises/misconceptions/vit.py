"""Known mistakes of lesson 05: the whole model.

All of them compute with torch's functions on parameters by name; most take one wrong step.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.exercise import InTraining
from vit_course.config import ViTConfig
from vit_course.exercises.checks.vit import (
    TALL_MODEL,
    VisionTransformer,
    after_block,
    classified,
    embedded,
    encoded,
    normed,
    parameter_shapes,
    patch_tokens,
)
from vit_course.exercises.checks.weights import StandIn

PICTURE = "05_vit, The whole model in one picture"
PARTS = "05_vit, Six parts"
COUNT = "05_vit, Where the parameters live"


class _Model(StandIn):
    """What the wrong models have in common: right parameters, and a right step wherever none is overridden."""

    class_token: Tensor
    positions: Tensor

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(parameter_shapes(config))
        self.config = config

    def held(self) -> dict[str, Tensor]:
        """Every parameter by name, a shared one under each of its names."""
        return self.state_dict(keep_vars=True)

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.encode(self.embed(images)))

    def embed(self, images: Tensor) -> Tensor:
        return embedded(self.held(), images, self.config)

    def encode(self, x: Tensor) -> Tensor:
        return encoded(self.held(), x, self.config)

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), normed(self.held(), "norm", x, self.config)[:, 0])


@VisionTransformer.misconception("What happens to the stream between the last block and the head?", PICTURE)
class NoFinalNorm(_Model):
    """The final norm is made but never used: the head reads the raw stream."""

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), x[:, 0])


@VisionTransformer.misconception("Does the norm stand before the blocks or after them?", PICTURE)
class NormBeforeTheBlocks(_Model):
    """The last norm is applied before the first block, and the head reads the raw stream."""

    def embed(self, images: Tensor) -> Tensor:
        return normed(self.held(), "norm", super().embed(images), self.config)

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), x[:, 0])


@VisionTransformer.misconception("How many blocks does your __init__ make?", COUNT)
class OneBlockUsedDepthTimes(_Model):
    """There is one block, and forward runs it depth times."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(replace(config, depth=1))
        self.times = config.depth

    def encode(self, x: Tensor) -> Tensor:
        for _ in range(self.times):
            x = after_block(self.held(), 0, x, self.config)
        return x


@VisionTransformer.misconception("What does [x] * 3 hold: three things, or one thing three times?", COUNT)
class TheSameBlockListedDepthTimes(_Model):
    """The list of blocks holds one and the same block depth times, so all blocks share their weights."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.blocks = nn.ModuleList([self.get_submodule("blocks.0")] * config.depth)


@VisionTransformer.misconception("Over which axis does nn.LayerNorm take mean and spread?", PICTURE, InTraining.HIDDEN)
class FinalNormOverTheTokens(_Model):
    """The final norm takes mean and spread over the tokens of an image, where each token has its own."""

    def classify(self, x: Tensor) -> Tensor:
        spread = (x.var(dim=1, keepdim=True, correction=0) + self.config.layer_norm_eps).sqrt()
        normal = (x - x.mean(dim=1, keepdim=True)) / spread
        first = (normal * self.held()["norm.weight"] + self.held()["norm.bias"])[:, 0]
        return classified(self.held(), first)


@VisionTransformer.misconception("Where does the result of a block go?", PICTURE, InTraining.WORSE)
class BlocksWithoutEffect(_Model):
    """The blocks are called and their results dropped, so the head reads what entered the first of them."""

    def encode(self, x: Tensor) -> Tensor:
        return x


@VisionTransformer.misconception("Which block is the first on the way?", PICTURE, InTraining.UNSEEN)
class BlocksInReverseOrder(_Model):
    """The last block comes first. Nobody sees that in training, and weights of others do not fit."""

    def encode(self, x: Tensor) -> Tensor:
        for number in reversed(range(self.config.depth)):
            x = after_block(self.held(), number, x, self.config)
        return x


@VisionTransformer.misconception("Which axes does squeeze() drop when there is one image?", PICTURE, InTraining.UNSEEN)
class BatchOfOneSqueezed(_Model):
    """squeeze() drops every axis of size 1, and with a single image the batch is one."""

    def classify(self, x: Tensor) -> Tensor:
        return super().classify(x).squeeze()


@VisionTransformer.misconception("Who asked for a dropout?", PARTS, InTraining.HIDDEN)
class DropoutNobodyAskedFor(_Model):
    """While training, a dropout is at work that the config does not name."""

    def embed(self, images: Tensor) -> Tensor:
        return F.dropout(super().embed(images), 0.1, self.training)


@VisionTransformer.misconception("On which device is a tensor that nobody has sent anywhere?", PARTS, InTraining.STOPS)
class TokensPouredIntoTheCpu(_Model):
    """Class token and patches are written into a new tensor on the CPU, wherever the images are."""

    def embed(self, images: Tensor) -> Tensor:
        right = super().embed(images)
        poured = torch.zeros(right.shape, dtype=right.dtype)
        poured[:] = right
        return poured


@VisionTransformer.misconception("What does the loss function of your training do first with its input?", PICTURE)
class SoftmaxInTheHead(_Model):
    """The model ends in a softmax, where logits were asked for."""

    def classify(self, x: Tensor) -> Tensor:
        return super().classify(x).softmax(dim=-1)


@VisionTransformer.misconception("At which index does the class token stand?", PARTS)
class LastTokenPooled(_Model):
    """The head reads the last token, the bottom right patch, where it should read the class token."""

    def classify(self, x: Tensor) -> Tensor:
        return super().classify(x.flip(1))


@VisionTransformer.misconception("How many tokens leave the last block, and how many does the head want?", PICTURE)
class EveryTokenClassified(_Model):
    """The head is applied to every token, and no token is picked."""

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), normed(self.held(), "norm", x, self.config))


@VisionTransformer.misconception("Which token was put there to be read, and what are the others for?", PARTS)
class MeanOfAllTokens(_Model):
    """The head reads the mean of all tokens; that is a ViT too, but not the one asked for."""

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), normed(self.held(), "norm", x, self.config).mean(dim=1))


@VisionTransformer.misconception("In which order does your cat list the class token and the patches?", PARTS)
class ClassTokenLast(_Model):
    """The class token stands after the patches, and the head reads index 0, the top left patch."""

    def embed(self, images: Tensor) -> Tensor:
        first = self.class_token.expand(len(images), -1, -1)
        return torch.cat([patch_tokens(self.held(), images, self.config), first], dim=1) + self.positions


@VisionTransformer.misconception("Whose position is in row 0 of positions?", PARTS)
class ClassTokenLastAndReadThere(ClassTokenLast):
    """The class token stands after the patches and is read there, but row 0 of the positions is meant for it."""

    def classify(self, x: Tensor) -> Tensor:
        return super().classify(x.flip(1))


@VisionTransformer.misconception("How many rows do the positions have, and how many the tokens you add them to?", PARTS)
class PositionsBeforeTheClassToken(_Model):
    """The positions are added to the patches before the class token joins, so it gets none."""

    def embed(self, images: Tensor) -> Tensor:
        patches = patch_tokens(self.held(), images, self.config) + self.positions[:, : self.config.num_patches]
        return torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1)


@VisionTransformer.misconception("Which token has lost its row of the positions?", PARTS, InTraining.HIDDEN)
class NoPositionAddedToTheClassToken(_Model):
    """The patches get their rows of the positions before the class token joins, and row 0 is never added."""

    def embed(self, images: Tensor) -> Tensor:
        patches = patch_tokens(self.held(), images, self.config) + self.positions[:, 1:]
        return torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1)


@VisionTransformer.misconception("How many times are the positions added on the way?", PICTURE, InTraining.HIDDEN)
class PositionsAddedBeforeEveryBlock(_Model):
    """The positions are added anew before every block, where they are added once, before the first."""

    def encode(self, x: Tensor) -> Tensor:
        for number in range(self.config.depth):
            x = after_block(self.held(), number, x + self.positions * (number > 0), self.config)
        return x


@VisionTransformer.misconception("How many times are the positions added on the way?", PICTURE, InTraining.HIDDEN)
class PositionsAddedAtTheStartAndBeforeEveryBlock(_Model):
    """The positions are added to the tokens, and then once more before each of the blocks."""

    def encode(self, x: Tensor) -> Tensor:
        for number in range(self.config.depth):
            x = after_block(self.held(), number, x + self.positions, self.config)
        return x


@VisionTransformer.misconception("Does forward mention self.positions?", PARTS)
class PositionsNeverAdded(_Model):
    """The positions are a parameter, but forward never adds them."""

    def embed(self, images: Tensor) -> Tensor:
        return super().embed(images) - self.positions


@VisionTransformer.misconception("Is the class token one of the tokens that have a place?", PARTS)
class NoPositionForTheClassToken(_Model):
    """The positions have a row for each patch and none for the class token."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.positions = nn.Parameter(torch.zeros(1, config.num_patches, config.embed_dim))


@VisionTransformer.misconception("What does nn.Module do with a plain tensor that is an attribute?", PARTS)
class TensorsThatAreNoParameters(_Model):
    """Class token and positions are plain tensors, so no optimiser and no state dict knows of them."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        plain = {name: self._parameters.pop(name) for name in ("class_token", "positions")}
        self.plain = {name: torch.zeros(tensor.shape) for name, tensor in plain.items() if tensor is not None}


@VisionTransformer.misconception("How many rows of patches are there, and how many columns?", PARTS)
class SquareImageAssumed(_Model):
    """The number of patches is counted from the height alone."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        side = config.height // config.patch_size
        self.positions = nn.Parameter(torch.zeros(1, 1 + side**2, config.embed_dim))


# whoever trains this has, as a rule, the very config in that variable
@VisionTransformer.misconception("Where do the sizes in your __init__ come from?", PARTS, InTraining.UNSEEN)
class GlobalInPlaceOfTheConfig(_Model):
    """The sizes come from a variable outside of the class, and the config that was passed is not read."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(TALL_MODEL)


@VisionTransformer.misconception("Which of the config's fields does an EncoderBlock want to know?", PARTS)
class QkvBiasIgnored(_Model):
    """The blocks are made without telling them config.qkv_bias, so they always have that bias."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(replace(config, qkv_bias=True))


@VisionTransformer.misconception("Which of the config's fields does an EncoderBlock want to know?", PARTS)
class MlpRatioIgnored(_Model):
    """The blocks are made without telling them config.mlp_ratio, so their MLPs are four times as wide."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(replace(config, mlp_ratio=4.0))


@VisionTransformer.misconception("Which eps does nn.LayerNorm take when nobody names one?", PARTS)
class FinalEpsLeftAtTheDefault(_Model):
    """The final norm is made without an eps, so it uses torch's default of 1e-5."""

    def classify(self, x: Tensor) -> Tensor:
        final = F.layer_norm(x, (self.config.embed_dim,), self.held()["norm.weight"], self.held()["norm.bias"])
        return classified(self.held(), final[:, 0])


@VisionTransformer.misconception("Do the blocks learn which eps the config names?", PARTS)
class EpsOfTheBlocksLeftAtTheDefault(_Model):
    """The blocks are made without telling them config.layer_norm_eps."""

    def encode(self, x: Tensor) -> Tensor:
        return encoded(self.held(), x, replace(self.config, layer_norm_eps=1e-6))


@VisionTransformer.misconception("Who tells F.dropout whether the model is training?", PARTS)
class DropoutOnAfterEval(_Model):
    """Dropout goes on after eval(), since F.dropout is not told self.training."""

    def embed(self, images: Tensor) -> Tensor:
        return F.dropout(super().embed(images), self.config.embedding_dropout)


@VisionTransformer.misconception("How long is the vector that the head reads?", PICTURE)
class AllTokensIntoTheHead(_Model):
    """All tokens are flattened into one long vector for the head, where the class token alone should be read."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear((1 + config.num_patches) * config.embed_dim, config.num_classes)


@VisionTransformer.misconception("Where does that layer put its norms, and which activation has it?", PARTS)
class LibraryLayersForTheBlocks(_Model):
    """The blocks are nn.TransformerEncoderLayers, which by default are post-norm with a ReLU."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        sizes = config.embed_dim, config.num_heads, config.hidden_dim
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(*sizes, batch_first=True) for _ in range(config.depth))


@VisionTransformer.misconception("Which of its axes does attention take for the tokens?", PARTS)
class AttentionOverTheBatch(_Model):
    """Batch and tokens change places before the blocks: class tokens meet only class tokens, and see no picture."""

    def encode(self, x: Tensor) -> Tensor:
        return super().encode(x.transpose(0, 1)).transpose(0, 1)


@VisionTransformer.misconception("Does reshape move a number, or only draw new borders?", PARTS)
class BatchAndTokensReshaped(_Model):
    """(batch, tokens, embed_dim) is reshaped into (tokens, batch, embed_dim), so pieces of several images mingle."""

    def encode(self, x: Tensor) -> Tensor:
        batch, tokens, embed_dim = x.shape
        return super().encode(x.reshape(tokens, batch, embed_dim)).reshape(x.shape)


@VisionTransformer.misconception("Which dtype does torch.zeros give when nobody asks for another?", PARTS)
class TokensPouredIntoFloat32(_Model):
    """Class token and patches are written into a new float32 tensor, whatever the dtype of the model."""

    def embed(self, images: Tensor) -> Tensor:
        right = super().embed(images)
        poured = torch.zeros(right.shape, device=right.device)
        poured[:] = right
        return poured


@VisionTransformer.misconception("Does the optimiser get to hear how the class token did?", PARTS)
class ClassTokenCutFromTheGraph(_Model):
    """The class token's .data is used, through which no gradient flows, so it never learns."""

    def embed(self, images: Tensor) -> Tensor:
        return super().embed(images) - self.class_token_in_first_row() + self.class_token_in_first_row().detach()

    def class_token_in_first_row(self) -> Tensor:
        return F.pad(self.class_token, (0, 0, 0, self.config.num_patches))
