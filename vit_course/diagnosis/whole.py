"""The model as a whole: one image, its batch, its pixels, its output."""

from __future__ import annotations

from pathlib import Path

import torch

from vit_course.diagnosis.answers import NotAsked, Remarks, unusual, wrong
from vit_course.diagnosis.case import Case, close
from vit_course.diagnosis.subject import logits_of, twin
from vit_course.diagnosis.watch import is_of_the_model, pull


def image_alone(case: Case) -> Remarks:
    """An image's logits do not depend on the other images of its batch."""
    if len(case.images) < 2:
        raise NotAsked("the model takes one image at a time")
    try:
        with torch.no_grad():
            alone = [case.subject.run(image[None]) for image in case.images]
    except Exception as error:
        yield wrong(
            f"a batch of one raises {told(error)}; a batch of {len(case.images)} runs",
            "PatchEmbedding: batch of one squeezed",
            module=line_of(error),
        )
        return
    if any(each.shape != case.logits[:1].shape for each in alone):
        yield wrong(
            f"one image gives logits of shape {tuple(alone[0].shape)}, a batch {tuple(case.logits.shape)}",
            "VisionTransformer: batch of one squeezed",
        )
    elif case.steady and not close(torch.cat(alone), case.logits):
        far = float((torch.cat(alone) - case.logits).abs().max())
        yield wrong(f"the same image alone and in its batch gives logits that differ by {far:.2g}")


def steady_in_evaluation(case: Case) -> Remarks:
    """The same images give the same logits twice in evaluation."""
    if not case.steady:
        drops = [
            op for op in case.watch.ops if "dropout" in op.name or op.name.startswith(("rand", "bernoulli", "normal"))
        ]
        yield wrong(
            "the same images give other logits the second time, in evaluation",
            "MultiHeadSelfAttention: weights dropped",
            drops[0] if drops else None,
        )


def gradient_flows(case: Case) -> Remarks:
    """A backward pass runs through the whole model."""
    try:
        pull(case.answers, case.pixels)
    except RuntimeError as error:
        in_place = "inplace" in str(error) or "in-place" in str(error)
        mistake = "EncoderBlock: stream changed in place" if in_place else ""
        yield wrong(f"with gradients the model raises {told(error)}", mistake, module=line_of(error))


def every_pixel(case: Case) -> Remarks:
    """Every pixel of every channel has an influence on the logits, and a gradient comes back to it."""
    with torch.no_grad():
        other = case.subject.run(
            torch.randn(case.images.shape, generator=torch.Generator().manual_seed(5)).to(case.images)
        )
    if case.steady and close(other, case.logits, 1e-6):
        yield wrong("the logits are the same for quite different images")
        return
    reached = pull(case.answers, case.pixels).abs().amax(0)
    if not reached.any():
        cut = next(
            (op for op in case.watch.ops if op.data and not op.out.requires_grad and op.out.is_floating_point()), None
        )
        yield wrong(
            "the logits change with the images, and no gradient comes back to them",
            "patchify: pixels cut from their gradient",
            cut,
        )
    elif (share := float((reached == 0).float().mean())) > 0.01:
        dead = [number for number, plane in enumerate(reached) if not plane.any()]
        yield wrong(
            f"{share:.0%} of the numbers of an image have no influence"
            + (f"; among them all of channel {dead[0]}" if dead else "")
        )


def logits_no_probabilities(case: Case) -> Remarks:
    """The output is logits: no softmax stands behind the head."""
    found, last = case.logits, case.watch.ops[-1] if case.watch.ops else None
    if found.ndim < 2 or found.shape[-1] < 2:
        return
    if (found >= 0).all() and close(found.sum(-1), torch.ones_like(found.sum(-1)), 1e-4):
        yield wrong(
            "the numbers of each image are positive and add up to 1; cross-entropy takes a softmax of them again",
            "VisionTransformer: softmax in the head",
            last,
        )
    elif close(found.exp().sum(-1), torch.ones_like(found.sum(-1)), 1e-4):
        yield unusual(
            "the output are logarithms of probabilities: right for nll_loss, needless before cross-entropy", at=last
        )
    elif (found >= 0).all() and (found <= 1).all() and last and last.name in ("sigmoid", "sigmoid_"):
        yield unusual(
            "the output passes a sigmoid: right for several labels an image, wrong before cross-entropy", at=last
        )
    if found.ndim > 2:
        yield wrong(
            f"the logits have the shape {tuple(found.shape)}: one row of them for each token",
            "VisionTransformer: every token classified",
        )


def dtype_follows(case: Case) -> Remarks:
    """A model in float64 computes in float64 from end to end."""
    model = twin(case.subject.model).double()
    watch = None
    try:
        with torch.no_grad():
            watch, found = case.subject.watch(case.images.double(), model=model)
    except Exception as error:
        yield unusual(
            f"after `.double()` the model raises {told(error)}: a tensor in it has a dtype of its own",
            "patchify: float32 whatever the input",
            module=line_of(error),
        )
        return
    narrow = [op for op in watch.ops if op.data and op.out.dtype in (torch.float32, torch.float16, torch.bfloat16)]
    if found.dtype != torch.float64 or narrow:
        at = narrow[0] if narrow else None
        yield unusual(
            f"after `.double()` a part still computes in float32, and the logits are {str(found.dtype)[6:]}",
            _FLOAT32,
            at,
        )


_FLOAT32 = "EncoderBlock: stream in float32"


def device_follows(case: Case) -> Remarks:
    """The model runs wherever it is moved to: no tensor in it stays behind."""
    try:
        with torch.no_grad():
            found = logits_of(twin(case.subject.model).to("meta")(case.images.to("meta")))
    except Exception as error:
        words = str(error)
        if "Cannot copy out of meta" in words or ("meta" in words and ("device" in words or "cpu" in words)):
            yield unusual(
                f"moved to another device, the model raises {told(error)}",
                "patchify: tokens made on the cpu",
                module=line_of(error),
            )
            return
        raise NotAsked(f"on torch's device without numbers it raises {told(error)}") from None
    if found.device.type != "meta":
        yield unusual(
            f"moved to another device, the model still gives its logits on the {found.device.type}",
            "patchify: tokens made on the cpu",
        )


def input_left_alone(case: Case) -> Remarks:
    """The images are the same after a pass as before."""
    kept = case.images.clone()
    with torch.no_grad():
        case.subject.model(case.images)
    if not torch.equal(kept, case.images):
        case.images.copy_(kept)
        yield wrong("the pass changes the images that it is given", "patchify: input changed in place")


def told(error: BaseException) -> str:
    """An exception in one line."""
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0][:110]}" if words else type(error).__name__


def line_of(error: BaseException) -> str:
    """The last line outside torch that an exception passed."""
    found, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_of_the_model(file) and Path(file).parent != Path(__file__).parent:
            found = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


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
