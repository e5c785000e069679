"""benchmarks/models.py and loops.py: what is timed beside ours is the same work."""

import models
import pytest
import torch
from loops import AttentionHeadByHead, AttentionInLoops, patchify_in_loops
from models import count_flops
from peers import OURS, PEERS, build_models
from torch import nn

from vit_course.attention import MultiHeadSelfAttention
from vit_course.config import ViTConfig
from vit_course.patches import patchify
from vit_course.vit import VisionTransformer

SMALL = ViTConfig(16, 4, embed_dim=12, depth=2, num_heads=3)


def test_looped_patches_are_ours():
    images = torch.rand(2, 3, 8, 12)
    assert torch.equal(patchify_in_loops(images, 4), patchify(images, 4))


def join_linears(head):
    return torch.cat([linear.weight for linear in head]), torch.cat([linear.bias for linear in head])


def test_looped_attention_is_ours_on_slices_without_projection():
    looped, ours = AttentionInLoops(8, 2), MultiHeadSelfAttention(8, 2)
    x = torch.randn(3, 5, 8)
    with torch.no_grad():
        ours.projection.weight.copy_(torch.eye(8))
        ours.projection.bias.zero_()
        for third, maps in enumerate((looped.query, looped.key, looped.value)):
            rows = slice(8 * third, 8 * third + 8)
            ours.qkv.weight[rows] = torch.block_diag(*(linear.weight for linear in maps))
            ours.qkv.bias[rows] = torch.cat([linear.bias for linear in maps])
    torch.testing.assert_close(looped(x), ours(x))


def test_attention_head_by_head_is_ours():
    listed, ours = AttentionHeadByHead(8, 2), MultiHeadSelfAttention(8, 2)
    with torch.no_grad():
        ours.projection.load_state_dict(listed.projection.state_dict())
        for third in range(3):
            maps = [head[third] for head in listed.heads]
            weight, bias = join_linears(maps)
            ours.qkv.weight[8 * third : 8 * third + 8] = weight
            ours.qkv.bias[8 * third : 8 * third + 8] = bias
    x = torch.randn(3, 5, 8)
    torch.testing.assert_close(listed(x), ours(x))


@pytest.fixture(scope="module")
def compared_models():
    return build_models(SMALL, "cpu")


def test_everyone_gives_logits_of_the_same_shape(compared_models):
    images = torch.rand(2, 3, 16, 16)
    assert {model(images).shape for model in compared_models[0].values()} == {(2, 10)}


def test_everyone_has_our_parameters_or_a_remark(compared_models):
    _, facts = compared_models
    for name in PEERS:
        assert facts[name].get("parameters") == facts[OURS]["parameters"] or facts[name]["remark"]


def test_flops_are_those_of_the_matrix_products():
    model = VisionTransformer(SMALL)
    counted = count_flops(model, torch.rand(4, 3, 16, 16))
    tokens, dim, depth, hidden = 17, 12, 2, 48
    linears = 2 * (16 * 48 * dim + depth * tokens * (4 * dim * dim + 2 * dim * hidden) + dim * 10)
    assert counted["forward"] == linears + depth * 2 * 2 * tokens * tokens * dim
    assert 2.5 * counted["forward"] < counted["forward + backward"] <= 3 * counted["forward"]


def test_a_step_leaves_a_gradient_in_every_parameter():
    model = VisionTransformer(SMALL)
    nn.init.normal_(model.head.weight)
    models.make_backward_work(model, model, torch.rand(2, 3, 16, 16), torch.float32)()
    assert all(parameter.grad is not None for parameter in model.parameters())
