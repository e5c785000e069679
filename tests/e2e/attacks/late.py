"""What `late.toml` cannot hold: an answer whose text is computed, of more names than the worker sends."""

_NAMES = [f"f{number}" for number in range(1500)]
COMPUTED = {
    "more names than are sent": {
        "answer": "\n".join(f"def {name}(): pass" for name in _NAMES)
        + f"""

def layer_norm(x, weight, bias, eps):
    for n in range({len(_NAMES)}):
        own[f"f{{n}}"]()
    return torch.layer_norm(x, x.shape[-1:], weight, bias, eps)
own = {{each.__name__: each for each in ({", ".join(_NAMES)})}}
"""
    }
}
