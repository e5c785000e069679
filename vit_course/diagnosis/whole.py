"""The model as a whole: one image, its batch, its pixels, its output."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.diagnosis.answers import NotAsked, Remarks, describe_error, report_unusual, report_wrong
from vit_course.diagnosis.case import Case, are_close
from vit_course.diagnosis.subject import copy_model, find_logits
from vit_course.diagnosis.watch import compute_gradient


def image_alone(case: Case) -> Remarks:
    """An image's logits do not depend on the other images of its batch."""
    count = len(case.images)
    if count < 2:
        raise NotAsked("the model takes one image at a time")
    try:
        with torch.no_grad():
            alone = [case.subject.run(image[None]) for image in case.images]
    except Exception as error:
        seen = f"a batch of one raises {describe_error(error)}; a batch of {count} runs"
        yield report_wrong(seen, "PatchEmbedding: batch of one squeezed", error=error)
        return
    if any(each.shape != case.logits[:1].shape for each in alone):
        seen = f"one image gives logits of shape {tuple(alone[0].shape)}, {count} images {tuple(case.logits.shape)}"
        yield report_wrong(seen, "VisionTransformer: batch of one squeezed")
    elif case.is_deterministic and not are_close(torch.cat(alone), case.logits):
        far = float((torch.cat(alone) - case.logits).abs().max())
        yield report_wrong(f"the logits of an image alone and in its batch differ by {far:.2g}")


def steady_in_evaluation(case: Case) -> Remarks:
    """In evaluation the same images give the same logits twice."""
    if not case.is_deterministic:
        drawn = ("rand", "bernoulli", "normal")
        at = next((op for op in case.watch.ops if "dropout" in op.name or op.name.startswith(drawn)), None)
        name = "MultiHeadSelfAttention: weights dropped" if at is not None and "dropout" in at.name else ""
        yield report_wrong("in evaluation the same images give other logits the second time", name, at)


def gradient_flows(case: Case) -> Remarks:
    """A backward pass runs through the whole model."""
    try:
        compute_gradient(case.watched_logits, case.pixels_with_gradient)
    except RuntimeError as error:
        in_place = "inplace" in str(error) or "in-place" in str(error)
        mistake = "EncoderBlock: stream changed in place" if in_place else ""
        yield report_wrong(f"the backward pass raises {describe_error(error)}", mistake, error=error)


def every_pixel(case: Case) -> Remarks:
    """Every pixel of every channel changes the logits, and a gradient comes back to it."""
    if case.is_deterministic and are_close(case.random_image_logits, case.logits, 1e-6):
        yield report_wrong("very different images give the same logits")
        return
    reached = compute_gradient(case.watched_logits, case.pixels_with_gradient).abs().amax(0)
    if not reached.any():
        ops = (op for op in case.watch.ops if op.data and not op.out.requires_grad and op.out.is_floating_point())
        seen = "the logits change with the images, but no gradient comes back to them"
        yield report_wrong(seen, "patchify: pixels cut from their gradient", next(ops, None))
    elif seen := describe_unread_pixels(reached):
        yield report_wrong(seen)


def describe_unread_pixels(reached: Tensor) -> str:
    """That some of an image's numbers, by their slopes (channels, height, width), have no influence; else ""."""
    share = float((reached == 0).float().mean())
    dead = [number for number, plane in enumerate(reached) if not plane.any()]
    which = f", among them all of channel {dead[0]}" if dead else ""
    return f"{share:.0%} of an image's numbers do not change the logits{which}" if share > 0.01 else ""


def logits_no_probabilities(case: Case) -> Remarks:
    """The output is logits: no softmax stands behind the head."""
    found, last = case.logits, case.watch.ops[-1] if case.watch.ops else None
    if found.ndim < 2 or found.shape[-1] < 2:
        return
    if found.ndim > 2:
        seen = f"the logits have the shape {tuple(found.shape)}: one row for each token"
        yield report_wrong(seen, "VisionTransformer: every token classified")
    total, shares = found.sum(-1), found.exp().sum(-1)
    if (found >= 0).all() and are_close(total, torch.ones_like(total), 1e-4):
        seen = "the output of each image is positive and adds up to 1; cross-entropy takes a softmax again"
        yield report_wrong(seen, "VisionTransformer: softmax in the head", last)
    elif are_close(shares, torch.ones_like(shares), 1e-4):
        seen = "the output is logarithms of probabilities: nll_loss needs that, cross-entropy does not"
        yield report_unusual(seen, at=last)
    elif last and last.name in ("sigmoid", "sigmoid_") and found.min() >= 0 and found.max() <= 1:
        seen = "the output passes a sigmoid: right for several labels an image, wrong before cross-entropy"
        yield report_unusual(seen, at=last)


def dtype_follows(case: Case) -> Remarks:
    """A model in float64 computes in float64 from end to end."""
    model = copy_model(case.subject.model).double()
    try:
        with torch.no_grad():
            watch, found = case.subject.watch(case.images.double(), model=model)
    except Exception as error:
        seen = f"after `.double()` the model raises {describe_error(error)}: a tensor in it has a dtype of its own"
        yield report_unusual(seen, "patchify: float32 whatever the input", error=error)
        return
    coarse = (torch.float32, torch.float16, torch.bfloat16)
    narrow = [op for op in watch.ops if op.data and op.out.dtype in coarse]
    if found.dtype != torch.float64 or narrow:
        seen = f"after `.double()` a part still computes in float32, and the logits are {str(found.dtype)[6:]}"
        yield report_unusual(seen, "EncoderBlock: stream in float32", narrow[0] if narrow else None)


def device_follows(case: Case) -> Remarks:
    """The model runs wherever it is moved to: no tensor in it stays behind."""
    mistake = "patchify: tokens made on the cpu"
    try:
        with torch.no_grad():
            found = find_logits(copy_model(case.subject.model).to("meta")(case.images.to("meta")))
    except Exception as error:
        words = str(error)
        if "meta" not in words or not any(each in words for each in ("Cannot copy out of", "device", "cpu")):
            raise NotAsked(f"on torch's device without numbers it raises {describe_error(error)}") from None
        yield report_unusual(f"moved to another device, the model raises {describe_error(error)}", mistake, error=error)
        return
    if found.device.type != "meta":
        yield report_unusual(f"moved to another device, the model still gives logits on {found.device.type}", mistake)


def input_left_alone(case: Case) -> Remarks:
    """The images are the same after a pass as before."""
    kept = case.images.clone()
    with torch.no_grad():
        case.subject.model(case.images)
    if not torch.equal(kept, case.images):
        case.images.copy_(kept)
        yield report_wrong("the pass changes the images that it is given", "patchify: input changed in place")


PROPERTIES = (
    image_alone,
    steady_in_evaluation,
    gradient_flows,
    every_pixel,
    logits_no_probabilities,
    dtype_follows,
    device_follows,
    input_left_alone,
)
