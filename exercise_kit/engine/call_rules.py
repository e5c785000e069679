"""What an answer may call, in the exercises that ask their students to write something themselves.

Each such exercise has a :class:`Rule`, as its text says it. ``check`` notes what an answer calls while it runs
(:mod:`exercise_kit.engine.call_trace`) and compares it here; where an answer is graded, what its rule does not allow
refuses to be called (:mod:`exercise_kit.worker.withheld`), and what was refused is put into words here.
torch's operations on tensors are always allowed, and so are the functions of ``torch.nn`` that are no more than that;
what a library adds to these is not: a norm, an attention, a recurrent cell, a whole layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from exercise_kit.engine.call_trace import OWN
from exercise_kit.quoting import quote_first_line

# operators of aten by their names without underscores at the ends; those that torch tags as pointwise are allowed, too
_NAMED = """
    absolute add_batch_dim add_relu addbmm addmm addmm_activation addmv addr adjoint affine_grid_generator alias all
    allclose alpha_dropout amax amin aminmax and any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax
    argmin argsort argwhere as_strided as_strided_scatter assert_async assert_scalar assert_tensor_metadata atleast_1d
    atleast_2d atleast_3d baddbmm bartlett_window bernoulli bilinear binary_cross_entropy
    binary_cross_entropy_with_logits bincount binomial blackman_window block_diag bmm broadcast_tensors broadcast_to
    bucketize can_cast cartesian_prod cast cat cauchy cdist cdist_forward chain_matmul chalf channel_shuffle
    cholesky_inverse cholesky_solve chunk chunk_cat coalesce coalesced col2im column_stack combinations complex concat
    concatenate conj conj_physical constant_pad_nd contiguous convolution convolution_mode convolution_overrideable copy
    copy_from copy_from_and_resize corrcoef cosine_embedding_loss cosine_similarity count_nonzero cov cross
    cross_entropy_loss ctc_loss cummax cummax_helper cummin cummin_helper cumprod cumsum cumulative_trapezoid data det
    detach diag diag_embed diagflat diagonal diagonal_scatter diff dim dim_arange dirichlet_grad dist divide dot dropout
    dsplit dstack efficientzerotensor einsum embedding embedding_bag embedding_renorm empty empty_like empty_permuted
    empty_strided euclidean_dist expand expand_as exponential eye feature_alpha_dropout feature_dropout fill
    fill_diagonal fix flatten flatten_dense_tensors flip fliplr flipud floor_divide frobenius_norm full full_like
    fused_dropout fw_primal gather geometric geqrf ger get_device glu glu_jvp gradient greater greater_equal grouped_mm
    hamming_window hann_window hardswish has_compatible_shallow_copy_type has_same_storage_numel hash_tensor
    hinge_embedding_loss histc histogram histogramdd hsplit hstack huber_loss iand im2col imag index index_add
    index_copy index_fill index_put index_put_impl index_reduce index_select indices inner int_mm inverse ior irshift
    isclose isin isreal istft item kaiser_window kl_div kron kthvalue l1_loss lazy_clone less less_equal lift lift_fresh
    linear linspace local_scalar_dense log_normal log_sigmoid log_sigmoid_forward log_softmax logcumsumexp logdet
    logspace logsumexp lu_solve lu_unpack lu_with_info mH mT make_dual margin_ranking_loss masked_fill masked_scale
    masked_scatter masked_select matmul matrix_H matrix_exp matrix_power mean median meshgrid mm mode moveaxis movedim
    mse_loss msort multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward multinomial multiply mv
    nanmean nanmedian nanquantile nansum narrow native_channel_shuffle native_dropout neg_view negative new_empty
    new_empty_strided new_full new_ones new_zeros new_zeros_with_same_feature_meta nll_loss nll_loss2d
    nll_loss2d_forward nll_loss_forward nll_loss_nd nnz nonzero nonzero_numpy nonzero_static norm norm_except_dim normal
    normal_functional not_equal nuclear_norm numel numpy_T one_hot ones ones_like or orgqr ormqr outer output_nr pad
    pad_circular pad_enum pad_sequence pairwise_distance pdist pdist_forward permute pinverse pixel_shuffle
    pixel_unshuffle poisson poisson_nll_loss polar prelu prelu_kernel prod promote_types put quantile rand rand_like
    randint randint_like randn randn_like random randperm range ravel real record_stream reflection_pad1d
    reflection_pad2d reflection_pad3d remove_batch_dim renorm repeat repeat_interleave replication_pad1d
    replication_pad2d replication_pad3d requires_grad reshape reshape_alias reshape_as reshape_from_tensor resize
    resize_as resize_output resolve_conj resolve_neg result_type retain_grad retains_grad roll rot90 row_stack
    rrelu_with_noise rrelu_with_noise_functional sample_dirichlet scalar_tensor scaled_addmm scaled_mm scaled_mm_v2
    scatter scatter_add scatter_reduce searchsorted segment_reduce select select_scatter set set_data shallow_copy_data
    shape_as_tensor size slice slice_inverse slice_scatter slogdet smooth_l1_loss soft_margin_loss softmax sort split
    split_with_sizes squeeze stack standard_gamma standard_gamma_grad std std_mean stft storage_offset stride subtract
    sum sum_to_size svd swapaxes swapdims t take take_along_dim tensor_split tensordot tile to to_copy to_cpu to_dense
    topk trace transpose trapezoid trapz triangular_solve tril tril_indices trilinear triplet_margin_loss triu
    triu_indices type_as unbind unflatten unflatten_dense_tensors unfold uniform unique unique2 unique_consecutive
    unique_dim unique_dim_consecutive unpack_dual unsafe_chunk unsafe_index unsafe_index_put unsafe_masked_index
    unsafe_split unsafe_split_with_sizes unsafe_view unsqueeze values vander var var_mean vdot version view view_as
    view_as_complex view_as_real vsplit vstack weight_norm weight_norm_interface zero zeros zeros_like
"""
_FUNCTIONS = """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d affine_grid alpha_dropout assert_int_or_pair avg_pool1d avg_pool2d avg_pool3d bilinear
    binary_cross_entropy binary_cross_entropy_with_logits celu channel_shuffle conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy ctc_loss
    dropout dropout1d dropout2d dropout3d elu embedding embedding_bag feature_alpha_dropout fold fractional_max_pool2d
    fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices gaussian_nll_loss gelu
    glu grid_sample gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hinge_embedding_loss huber_loss interpolate
    kl_div l1_loss leaky_relu linear log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss max_pool1d
    max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d
    max_unpool2d max_unpool3d mish mse_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
    nll_loss normalize one_hot pad pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu
    relu6 rrelu selu sigmoid silu smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign tanh
    tanhshrink threshold triplet_margin_loss triplet_margin_with_distance_loss unfold upsample upsample_bilinear
    upsample_nearest
"""
_FILES = """
    activation channelshuffle container conv distance dropout flatten fold lazy linear loss module padding
    pixelshuffle pooling sparse upsampling utils
"""
_NAMES = frozenset(_NAMED.split())
_FAMILIES = re.compile(
    r"(linalg|fft|special|foreach|philox|upsample|grid_sampler|sym|is|to_sparse|sparse|conv(olution|_transpose|_depthwise|_tbc)?|slow_conv"
    r"|thnn_conv|max_pool|avg_pool|adaptive_(avg|max)_pool|fractional_max_pool|max_unpool|mkldnn_(convolution|linear)"
    r"|(cudnn|miopen|mps)_convolution)(_|[0-9]|$)"
)
FUNCTIONS = frozenset(f"torch.nn.functional.{name}" for name in _FUNCTIONS.split())
# the modules of ``torch.nn`` that compute one such operation, or hold others; by the files in which they stand
MODULES = tuple(f"torch.nn.modules.{file}." for file in _FILES.split())


@cache
def is_tensor_operation(operator: str) -> bool:
    """Say whether an operator, by its name in ``torch.ops.aten``, is an operation on tensors.

    The gradient of one is an operation too, but those of a norm and of attention compute the thing itself.
    """
    name = operator.strip("_")
    if name.removesuffix("_copy") in _NAMES or _FAMILIES.match(name):
        return True
    if "backward" in name:
        return not any(each in name for each in ("norm", "attention", "scaled_dot"))
    return any(_is_pointwise(each) for each in (operator, name, f"{name}_"))


def _is_pointwise(operator: str) -> bool:
    packet: Any = getattr(torch.ops.aten, operator, None)
    overloads = packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else ()
    return any(torch.Tag.pointwise in getattr(packet, each).tags for each in overloads)


_OPERATORS = "torch.ops.aten."
# the parts of torch that hold ready-made answers beside its operators, and what in them holds none
_ANSWERS_OF_TORCH = """
    nn ops _refs _decomp _prims _numpy _transformers _higher_order_ops.flex_attention ao quantization onnx
    export fx _inductor.fx_passes
"""
_HELPERS_OF_TORCH = """
    nn.functional._ nn._reduction. nn.grad. nn.init. nn.parameter. nn.utils. ops.prim. ops.prims. ops.profiler.
    ops.higher_order. onnx._ onnx.is_in_onnx_export export._ fx._ fx.experimental. fx.immutable_collections.
    fx.traceback. fx.node. fx.operator_schemas.
"""
_HOLDS_ANSWERS = tuple(f"torch.{part}." for part in _ANSWERS_OF_TORCH.split())
_HELPERS = (*MODULES, *(f"torch.{part}" for part in _HELPERS_OF_TORCH.split()))
_MULTIHEAD = "torch.nn.modules.activation.MultiheadAttention"
_TRACED = ("torch.fx._symbolic_trace.symbolic_trace", "torch.fx._symbolic_trace.Tracer")
# libraries that hold no answer: what they do to tensors are torch's operators, which are seen by themselves
_HARMLESS = """
    IPython PIL attr attrs beartype coverage cycler dateutil debugpy decorator einops executing fastcore fontTools
    icecream ipykernel jaxtyping joblib kiwisolver matplotlib more_itertools mpmath networkx numexpr numpy opt_einsum
    packaging pandas pluggy psutil pygments pyparsing _pydevd_bundle pydantic pydevd _pytest pytest pytest_cov rich
    scipy seaborn six sklearn stack_data sympy tabulate toolz torchinfo torchtyping tqdm traitlets typeguard
    typing_extensions
"""
_LIBRARIES = tuple(f"{library}." for library in _HARMLESS.split())


@dataclass(frozen=True)
class Rule:
    """What one exercise allows.

    Attributes:
        why: the sentence that a student reads after the name of what was called.
        tensors: whether operations on tensors, and the modules that hold them, are allowed.
        parts: whether the answer may call the modules in ``answers``.
        names: also allowed, as dotted names; one that ends in a dot allows everything in it.
        operators: also allowed, by the beginnings of their names.
        answers: the modules of the course's own answers, as dotted names that end in a dot.
        others: students' own answers to other exercises, or methods of theirs, that would answer this one too.
        libraries: whether everything else that is not the student's own may be called.
        withheld: a pattern in the names of what no process that runs the answer for a grade can compute, as
            :mod:`exercise_kit.worker.withheld` has it.
    """

    why: str
    tensors: bool = True
    parts: bool = True
    names: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    libraries: bool = False
    withheld: str = ""

    def allows(self, name: str) -> bool:
        """Say whether an answer may call what :class:`exercise_kit.engine.call_trace.Watch` noted by this name."""
        if name.startswith(OWN):
            return not f"{name.removeprefix(OWN)}.".startswith(tuple(f"{each}." for each in self.others))
        if self.libraries:
            return True
        if name.startswith(self.answers):
            return self.parts
        if name in self.names or name.startswith((*_LIBRARIES, *(each for each in self.names if each[-1] == "."))):
            return True
        if not self.tensors:
            return False
        if name.startswith(_OPERATORS):
            operator = name.removeprefix(_OPERATORS)
            return is_tensor_operation(operator) or operator.startswith(self.operators)
        if name in FUNCTIONS or (name.startswith(_HELPERS) and name not in (_MULTIHEAD, *_TRACED)):
            return True
        return name.startswith("torch.") and not name.startswith(_HOLDS_ANSWERS)

    def list_withheld_functions(self) -> dict[str, Any]:
        """List what refuses where an answer is graded, as :mod:`exercise_kit.worker.withheld_functions` takes it."""
        allowed = None if self.libraries else [*_LIBRARIES, *self.names]
        return {"own": list(self.others), "denied": [] if self.parts else list(self.answers), "allowed": allowed}


FREE = Rule("", libraries=True)


def describe_forbidden_call(rule: Rule | None, names: Iterable[str]) -> str | None:
    """Name the first thing that an answer called and may not; None where there is none.

    Args:
        rule: of the exercise; without one everything is allowed.
        names: what was noted while the answer ran, in order.
    """
    if rule is None:
        return None
    called = [_to_public_name(name) for name in dict.fromkeys(names) if not rule.allows(name)]
    forbidden = next((name for name in called if "._" not in name), *called[:1]) if called else None
    if forbidden is None:
        return None
    whose = "Your own " if forbidden.startswith(OWN) else ""
    return f"{whose}{quote_first_line(forbidden.removeprefix(OWN))} was called. {rule.why}"


def _to_public_name(name: str) -> str:
    """A dotted name as the documentation has it."""
    if name.startswith("torch.nn.modules."):
        return f"torch.nn.{name.rpartition('.')[2]}"
    if name.startswith(_OPERATORS):
        short = name.removeprefix(_OPERATORS)
        modules = {"torch": torch, "torch.nn.functional": torch.nn.functional}
        return next((f"{prefix}.{short}" for prefix, module in modules.items() if hasattr(module, short)), name)
    return name
