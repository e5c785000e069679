"""The recipes: our own, from a minute on two CPU cores to the best that a large GPU gives, and published notebooks'.

Ours for GPUs are named by their goal, and sized by the runs of 2026-11-26 on an H200 (benchmarks/results/gpu): 50
epochs with light changes end at 86.0 % of the test images and 98.8 % of the training images, 180 with strong ones at
93.0 %, so that changes and length are what counts. What each is to reach stands in predictions.json there until a
logged run says how it does. The five published notebooks, A to E, are there as published, slips included, and mended.
What a notebook does not say is chosen here and named in `differences`. A mended recipe keeps the kind of model and the
data, mends the slips, and trains soundly.
"""

from __future__ import annotations

from dataclasses import replace

from vit_course.config import ViTConfig
from vit_course.data import Augmentation
from vit_course.recipes.deviations import (
    GELU_AFTER_MLP,
    HEADS_ON_SLICES,
    NO_PROJECTION,
    SOFTMAX_BEFORE_LOSS,
    TORCH_START,
)
from vit_course.recipes.presets import PRESETS
from vit_course.recipes.recipe import Published, Recipe
from vit_course.training import TrainingSettings

TWO_CORES, T4, LARGE_GPU = "2 CPU cores", "Tesla T4", "H200 or H100"

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
# width, depth and MLP of the SL-ViT paper's plain baseline (Lee et al. 2021): 2.7 million parameters; three heads of
# 64, which a GPU multiplies at a better rate than six of 32
SMALL = replace(ON_CIFAR, embed_dim=192, depth=9, num_heads=3)
TURNED = Augmentation(max_shift=4, flip=True, erase=8, affine=1.0, color=1.0)
MIXED = replace(TURNED, mixup=0.8, cutmix=1.0)
ON_GPU = replace(MUON, batch_size=512, augmentation=MIXED, ema_decay=0.9995, precision="auto", compile=True)

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
    settings=replace(
        BRIEF,
        epochs=16,
        augmentation=Augmentation(max_shift=2, flip=True),
        # so that sixteen epochs take the time of eight
        growth=((0.5, 0.5), (0.8, 0.75)),
        precision="auto",
    ),
    num_validation=5_000,
    hardware=TWO_CORES,
    mimetic=True,
    whitened=True,
)
CPU_LUNCH = replace(
    CPU_COFFEE,
    name="cpu-lunch",
    summary="CIFAR-10 over lunch: 59 epochs of cpu-coffee at smaller rates, photos turned and recolored.",
    settings=replace(
        CPU_COFFEE.settings,
        epochs=59,
        learning_rate=3e-3,
        muon_learning_rate=0.005,
        augmentation=TURNED,
        growth=((0.3, 0.5), (0.6, 0.75)),
    ),
)
# starts at random and sees whole images, since lessons look in it for what training alone has written: a mimetic start
# and resized positions make neighbors alike by themselves (docs/train.md has what that costs in accuracy)
CPU_COURSE = replace(
    CPU_LUNCH,
    name="cpu-course",
    summary="The ViT that comes with the course: 24 epochs of cpu-coffee's model with a class token, whole images.",
    config=replace(ON_CIFAR, pooling="class_token"),
    settings=replace(MUON, epochs=24, augmentation=Augmentation(max_shift=2, flip=True)),
    mimetic=False,
    whitened=False,
    seeds=(0,),
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
    summary="CIFAR-10 on the GPU that Colab lends for nothing, in about twenty minutes.",
    dataset="cifar10",
    config=SMALL,
    settings=replace(ON_GPU, epochs=120, ema_decay=0.999),
    num_validation=5_000,
    hardware=T4,
    mimetic=True,
    whitened=True,
)
# too short to learn from blends as well
GPU_MINUTE = replace(
    COLAB_T4,
    name="gpu-minute",
    summary="CIFAR-10 in half a minute of a large GPU, after nearly a minute of compiling.",
    settings=replace(ON_GPU, epochs=50, augmentation=TURNED, ema_decay=0.998),
    hardware=LARGE_GPU,
)
# 49,000 images to learn from; 45,000 would cost some tenths of a percent
GPU_BEST = replace(
    GPU_MINUTE,
    name="gpu-best",
    summary="CIFAR-10 for accuracy, in six minutes of a large GPU.",
    settings=replace(ON_GPU, epochs=550),
    num_validation=1_000,
)


def _change_to_cifar100(recipe: Recipe, summary: str) -> Recipe:
    return replace(
        recipe,
        name=f"{recipe.name}-cifar100",
        summary=summary,
        dataset="cifar100",
        config=replace(recipe.config, num_classes=100),
    )


BUILTIN = (
    CPU_MINUTE,
    CPU_COFFEE,
    CPU_LUNCH,
    CPU_COURSE,
    CPU_COFFEE_MNIST,
    _change_to_cifar100(
        replace(CPU_COFFEE, mimetic=False, whitened=False),  # its log is of a random start
        "CIFAR-100 while the coffee brews: a first look at a hundred classes.",
    ),
    COLAB_T4,
    _change_to_cifar100(COLAB_T4, "CIFAR-100 on the GPU that Colab lends for nothing."),
    GPU_MINUTE,
    _change_to_cifar100(GPU_MINUTE, "CIFAR-100 in a minute of a large GPU, with the same model."),
    GPU_BEST,
    _change_to_cifar100(GPU_BEST, "CIFAR-100 for accuracy, with the same model."),
)


ONE_GPU = "one GPU"
LAB_DEVIATIONS = (TORCH_START, HEADS_ON_SLICES, NO_PROJECTION, SOFTMAX_BEFORE_LOSS)
CRITICAL_DEVIATIONS = (TORCH_START, NO_PROJECTION, GELU_AFTER_MLP, SOFTMAX_BEFORE_LOSS)
SPLIT_A = "Of CIFAR-10 the notebook keeps 10,000 training images back, and 5,000 are kept here."
SPLIT = "A validation split is kept back, and the test images are looked at once, at the end."
CROPS = "Flips, and shifts for the notebook's random crops and rotations."
UNSTATED = "The notebook's augmentation is not known to us: flips and shifts here."

# Adam is AdamW without decay
PLAIN_ADAM = TrainingSettings(
    epochs=5, batch_size=128, learning_rate=5e-3, weight_decay=0.0, warmup=0.0, schedule="constant", gradient_clip=None
)
ONE_CYCLE = TrainingSettings(
    epochs=180,
    batch_size=256,
    learning_rate=3e-4,
    weight_decay=0.03,
    warmup=0.3,
    gradient_clip=None,
    augmentation=Augmentation(max_shift=4, flip=True),
    precision="auto",
    compile=True,
)
# models this narrow cannot learn their images by heart, and learn faster by Adam than by Muon
TINY = replace(PLAIN_ADAM, learning_rate=0.01, warmup=0.1, schedule="cosine", gradient_clip=1.0)
MUON_CIFAR = replace(MUON, augmentation=Augmentation(max_shift=2, flip=True))


def _mend_config(config: ViTConfig) -> ViTConfig:
    """The same sizes without dropout, with mean pooling and learned positions that are large enough to be seen."""
    return replace(
        config,
        positions="learned",
        position_std=0.5,
        pooling="mean",
        initialisation="paper",
        embedding_dropout=0.0,
        attention_dropout=0.0,
        mlp_dropout=0.0,
    )


A_MNIST = Recipe(
    name="seed-a-mnist",
    summary="The lab sheet on MNIST: a ViT of 8 numbers a token that trains on probabilities.",
    dataset="mnist",
    config=PRESETS["lab_mnist"],
    settings=PLAIN_ADAM,
    num_validation=5_000,
    hardware=TWO_CORES,
    published=Published(0.7150, epochs=5, device="Tesla T4"),
    deviations=LAB_DEVIATIONS,
    differences=(SPLIT,),
)
A_CIFAR10 = replace(
    A_MNIST,
    name="seed-a-cifar10",
    summary="The lab sheet's further experiment: CIFAR-10 with 16 numbers a token and four blocks.",
    dataset="cifar10",
    config=PRESETS["lab_cifar10"],
    published=Published(0.3944, epochs=5, device="Tesla T4"),
    differences=(SPLIT, SPLIT_A),
)
B_MNIST = Recipe(
    name="seed-b-mnist",
    summary="The torchvision-style walk-through on MNIST: patches of 2 pixels, a head of two layers.",
    dataset="mnist",
    config=PRESETS["walkthrough_mnist"],
    settings=replace(PLAIN_ADAM, epochs=10, learning_rate=1e-3),
    num_validation=5_000,
    hardware=TWO_CORES,
    published=Published(0.9588),
    differences=(
        SPLIT,
        "The notebook's epochs and optimizer are not known to us: 10 epochs of Adam here, and it was still learning.",
    ),
)
C_CIFAR10 = Recipe(
    name="seed-c-cifar10",
    summary="The Lightning demo on CIFAR-10: six blocks, dropout 0.2, 180 epochs of OneCycle.",
    dataset="cifar10",
    config=PRESETS["lightning_cifar10"],
    settings=ONE_CYCLE,
    num_validation=5_000,
    hardware=ONE_GPU,
    published=Published(0.788, epochs=180, device="one GPU", seconds=28 * 60 + 17),
    differences=(SPLIT, UNSTATED, "The learning rate rises in a line, where OneCycle has half a cosine."),
)
C_CIFAR100 = replace(
    C_CIFAR10,
    name="seed-c-cifar100",
    summary="The Lightning demo on CIFAR-100: twenty-four blocks, dropout 0.1, 180 epochs of OneCycle.",
    dataset="cifar100",
    config=PRESETS["lightning_cifar100"],
    settings=replace(ONE_CYCLE, learning_rate=1e-3),
    published=Published(0.498, epochs=180, device="one GPU", seconds=3600 + 41 * 60 + 41),
)
D_CIFAR100 = Recipe(
    name="seed-d-cifar100",
    summary="The critical reader on CIFAR-100: sines that learn, a GELU and a softmax too many.",
    dataset="cifar100",
    config=PRESETS["critical_cifar100"],
    settings=replace(
        PLAIN_ADAM,
        epochs=30,
        learning_rate=5e-4,
        augmentation=Augmentation(max_shift=4, flip=True),
        precision="auto",
    ),
    num_validation=5_000,
    hardware=ONE_GPU,
    published=Published(0.37, of="validation"),
    deviations=CRITICAL_DEVIATIONS,
    differences=(SPLIT, CROPS, "The notebook's epochs and learning rate are not known to us: 30 epochs at 5e-4 here."),
)
E_CIFAR10 = Recipe(
    name="seed-e-cifar10",
    summary="The annotated classifier on CIFAR-10: 48 numbers a token, learning rate 0.01 throughout.",
    dataset="cifar10",
    config=PRESETS["annotated_cifar10"],
    settings=replace(
        PLAIN_ADAM,
        epochs=100,
        batch_size=256,
        learning_rate=0.01,
        weight_decay=0.01,
        augmentation=Augmentation(max_shift=4, flip=True),
    ),
    num_validation=5_000,
    hardware=TWO_CORES,
    published=Published(0.755, epochs=100),
    differences=(SPLIT, UNSTATED),
)


def _make_mended_recipe(recipe: Recipe, summary: str, config: ViTConfig, settings: TrainingSettings) -> Recipe:
    return replace(
        recipe,
        name=f"{recipe.name}-mended",
        summary=summary,
        config=config,
        settings=settings,
        hardware=TWO_CORES,
        deviations=(),
        differences=(),
    )


AS_PUBLISHED = (A_MNIST, A_CIFAR10, B_MNIST, C_CIFAR10, C_CIFAR100, D_CIFAR100, E_CIFAR10)
MENDED = (
    _make_mended_recipe(
        A_MNIST,
        "The lab sheet's sizes on MNIST, with logits in the loss, whole heads and their projection.",
        _mend_config(A_MNIST.config),
        TINY,
    ),
    _make_mended_recipe(
        A_CIFAR10,
        "The lab sheet's sizes on CIFAR-10, mended in the same way, and with a schedule.",
        _mend_config(A_CIFAR10.config),
        replace(TINY, augmentation=Augmentation(flip=True)),
    ),
    _make_mended_recipe(
        B_MNIST,
        "The walk-through's width, depth and head of two layers on MNIST, with patches of 4 pixels and a schedule.",
        replace(_mend_config(B_MNIST.config), patch_size=4),
        MUON,
    ),
    _make_mended_recipe(
        C_CIFAR10,
        "CIFAR-10 with the demo's head of two layers on four blocks of width 96, and 20 epochs of Muon for 180.",
        replace(_mend_config(C_CIFAR10.config), embed_dim=96, depth=4, num_heads=4),
        replace(MUON_CIFAR, epochs=20),
    ),
    _make_mended_recipe(
        C_CIFAR100,
        "CIFAR-100 with four blocks of width 128 in place of twenty-four of 256, and 24 epochs of Muon for 180.",
        replace(_mend_config(C_CIFAR100.config), embed_dim=128, depth=4, num_heads=4),
        replace(MUON_CIFAR, epochs=24, precision="auto"),
    ),
    _make_mended_recipe(
        D_CIFAR100,
        "The critical reader's four blocks on CIFAR-100, a tanh head, logits in the loss and the projection back.",
        replace(_mend_config(D_CIFAR100.config), embed_dim=96, num_heads=4, mlp_ratio=2.0, representation_size=96),
        replace(MUON_CIFAR, epochs=10),
    ),
    _make_mended_recipe(
        E_CIFAR10,
        "The annotated classifier's sizes and tanh GELU, with Muon and a schedule: 20 epochs for 100.",
        _mend_config(E_CIFAR10.config),
        replace(MUON_CIFAR, epochs=20),
    ),
)
