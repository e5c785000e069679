"""Our own recipes: from a minute on two CPU cores to the best that an H200 gives.

Those for GPUs are set by calculation (`vit_course.recipes.calculated`) until a logged run says how they do.
"""

from __future__ import annotations

from dataclasses import replace

from vit_course.config import ViTConfig
from vit_course.data import Augmentation
from vit_course.recipes.recipe import Recipe
from vit_course.training import TrainingSettings

TWO_CORES, T4, H200 = "2 CPU cores", "Tesla T4", "H200"

MUON = TrainingSettings(
    epochs=5,
    batch_size=128,
    learning_rate=2e-3,
    muon_learning_rate=0.02,
    weight_decay=0.05,
    warmup=0.1,
    label_smoothing=0.1,
    augmentation=Augmentation(max_shift=2),
)
# three epochs of cpu-coffee: 68 % of the validation images with these, 61 % with the rates above and batches of 64
BRIEF = replace(MUON, batch_size=64, learning_rate=4e-3, muon_learning_rate=0.007)
ON_MNIST = ViTConfig(
    image_size=28,
    patch_size=7,
    in_channels=1,
    embed_dim=64,
    depth=4,
    num_heads=4,
    mlp_ratio=2.0,
    pooling="mean",
    position_std=0.5,
)
ON_CIFAR = replace(ON_MNIST, image_size=32, patch_size=4, in_channels=3, embed_dim=96)
# width, depth and MLP of the SL-ViT paper's plain baseline (Lee et al. 2021): 2.7 million parameters
SMALL = replace(ON_CIFAR, embed_dim=192, depth=9, num_heads=6)
ON_GPU = replace(
    MUON,
    batch_size=512,
    augmentation=Augmentation(max_shift=4, flip=True, erase=8),
    ema_decay=0.998,
    precision="auto",
    compile=True,
)
LONG = Augmentation(max_shift=4, flip=True, erase=8, mixup=0.8, cutmix=1.0, randaugment=True)

CPU_MINUTE = Recipe(
    name="cpu-minute",
    summary="MNIST in about a minute: sixteen patches of 7 x 7 pixels, five epochs.",
    dataset="mnist",
    config=ON_MNIST,
    settings=MUON,
    num_validation=5_000,
    hardware=TWO_CORES,
)
CPU_COFFEE = Recipe(
    name="cpu-coffee",
    summary="CIFAR-10 while the coffee brews: a ViT of 96 numbers a token and four blocks.",
    dataset="cifar10",
    config=ON_CIFAR,
    settings=replace(BRIEF, epochs=4, augmentation=Augmentation(flip=True)),
    num_validation=5_000,
    hardware=TWO_CORES,
)
CPU_COFFEE_MNIST = replace(
    CPU_MINUTE,
    name="cpu-coffee-mnist",
    summary="MNIST with patience: 96 numbers a token, sixteen epochs.",
    config=replace(ON_MNIST, embed_dim=96),
    settings=replace(MUON, epochs=16, label_smoothing=0.05),
    num_validation=1_000,
)
COLAB_T4 = Recipe(
    name="colab-t4",
    summary="CIFAR-10 on the GPU that Colab lends for nothing: nine blocks of width 192, half precision.",
    dataset="cifar10",
    config=SMALL,
    settings=replace(ON_GPU, epochs=45),
    num_validation=5_000,
    hardware=T4,
)
H200_MINUTE = replace(
    COLAB_T4,
    name="h200-minute",
    summary="CIFAR-10 for speed: nine blocks of width 192, fifty epochs.",
    settings=replace(ON_GPU, epochs=50),
    hardware=H200,
)
H200_BEST = replace(
    H200_MINUTE,
    name="h200-best",
    summary="CIFAR-10 for accuracy: nine blocks of width 192, MixUp, CutMix, RandAugment, 300 epochs.",
    settings=replace(ON_GPU, epochs=300, augmentation=LONG, ema_decay=0.9995),
)


def _on_cifar100(recipe: Recipe, summary: str) -> Recipe:
    return replace(
        recipe,
        name=f"{recipe.name}-cifar100",
        summary=summary,
        dataset="cifar100",
        config=replace(recipe.config, num_classes=100),
    )


OURS = (
    CPU_MINUTE,
    CPU_COFFEE,
    CPU_COFFEE_MNIST,
    _on_cifar100(CPU_COFFEE, "CIFAR-100 while the coffee brews: a first look at a hundred classes."),
    COLAB_T4,
    _on_cifar100(COLAB_T4, "CIFAR-100 on the GPU that Colab lends for nothing."),
    H200_MINUTE,
    _on_cifar100(H200_MINUTE, "CIFAR-100 for speed, with the same model."),
    H200_BEST,
    _on_cifar100(H200_BEST, "CIFAR-100 for accuracy, with the same model."),
)
