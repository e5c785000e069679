"""Exercises whose answers are the input's numbers in other places: any two mistakes of layout go together."""

from __future__ import annotations

import torch

from exercise_kit.engine.two_mistakes import Layout, declare
from vit_course.exercises.checks.heads import heads_of, merged, split_heads
from vit_course.exercises.checks.patches import patches_of, patchify, unpatchify
from vit_course.exercises.misconceptions.patches import images_of

declare(patchify, Layout(patches_of, (torch.empty(2, 3, 6, 10), 2)))
declare(unpatchify, Layout(images_of, (torch.empty(2, 15, 12), 2, (6, 10))))
declare(split_heads, Layout(heads_of, (torch.empty(2, 7, 12), 3)))
declare(split_heads, Layout(merged, (torch.empty(2, 3, 7, 4),), place=1))
