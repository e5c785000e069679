"""Named experiments, each run by one command: the published notebooks as they are and mended, and our own.

`RECIPES` holds them by name; `find` looks one up and says what is near when there is none.
"""

from __future__ import annotations

from difflib import get_close_matches

from vit_course.recipes.builtin import AS_PUBLISHED, BUILTIN, MENDED
from vit_course.recipes.recipe import Published, Recipe, RecipeError

__all__ = ["RECIPES", "Published", "Recipe", "RecipeError", "find"]

# each notebook beside its mended twin
_PAIRS = tuple(recipe for pair in zip(AS_PUBLISHED, MENDED, strict=True) for recipe in pair)
RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (*BUILTIN, *_PAIRS)}


def find(name: str) -> Recipe:
    """The recipe of this name.

    Raises:
        RecipeError: when there is none; it names those that sound alike.
    """
    if name not in RECIPES:
        near = get_close_matches(name, RECIPES, n=3)
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        raise RecipeError(f"there is no recipe {name!r}. {hint}All of them: vit-course recipes")
    return RECIPES[name]
