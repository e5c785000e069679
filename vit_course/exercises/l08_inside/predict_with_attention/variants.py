"""Right answers in other styles: what no check may refuse."""

from contextlib import contextmanager

import torch

from vit_course import interpret as reference


@contextmanager
def put_into_evaluation_mode(model):
    """The model in evaluation mode, and each module in its own mode again, whatever happens."""
    training = {name for name, module in model.named_modules() if module.training}
    try:
        yield model.eval()
    finally:
        for name, module in model.named_modules():
            module.training = name in training


def predict_by_walking(model, image):
    with put_into_evaluation_mode(model), torch.no_grad():
        x = model.patch_embedding(image.unsqueeze(0))
        x = torch.cat([model.class_token, x], dim=1) + model.positions
        for block in model.blocks[:-1]:
            x = block(x)
        last = model.blocks[-1]
        attended, weights = last.attention(last.norm1(x), return_weights=True)
        x = x + attended
        x = x + last.mlp(last.norm2(x))
        probabilities = torch.softmax(model.head(model.norm(x)[:, 0]), dim=-1).squeeze(0)
    row = weights[0, :, 0, 1:].mean(0)
    columns = image.shape[2] // model.patch_embedding.patch_size
    return probabilities, (row / row.sum()).reshape(-1, columns)


def predict_by_a_forward_hook(model, image):
    kept = {}

    def keep_weights(module, inputs, output):
        kept["x"] = inputs[0]

    modes = [(module, module.training) for module in model.modules()]
    handle = model.blocks[-1].attention.register_forward_hook(keep_weights)
    try:
        model.eval()
        with torch.inference_mode():
            logits = model(image[None])[0]
        handle.remove()
        with torch.no_grad():
            weights = model.blocks[-1].attention(kept["x"], return_weights=True)[1].clone()
    finally:
        handle.remove()
        for module, mode in modes:
            module.training = mode
    _, height, width = image.shape
    seen = weights.mean(1)[0, 0, 1:]
    columns = round((len(seen) * width / height) ** 0.5)
    return logits.softmax(-1).clone(), (seen / seen.sum()).view(len(seen) // columns, columns)


def predict_with_the_model_asked_twice(model, image):
    """The hook calls the attention itself, with a guard, and the shares come before the mean."""
    heard = []

    def keep_inputs(module, inputs):
        if not heard:
            heard.append(None)
            heard[0] = module(*inputs, return_weights=True)[1]

    with put_into_evaluation_mode(model), torch.no_grad():
        handle = model.blocks[len(model.blocks) - 1].attention.register_forward_pre_hook(keep_inputs)
        with handle:  # which removes it at the end
            probabilities = model(torch.stack([image]))[0].softmax(0)
    size = model.patch_embedding.patch_size
    seen = heard[0][0, :, 0, 1:].sum(0)
    return probabilities, seen.reshape(image.shape[-2] // size, image.shape[-1] // size) / seen.sum()


RIGHT = {
    "predict_with_attention": [
        reference.predict_with_attention,
        predict_by_walking,
        predict_by_a_forward_hook,
        predict_with_the_model_asked_twice,
    ]
}
