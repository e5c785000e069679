"""torchvision's ViT-B/16: real weights, or a stand-in that says so, and never a traceback or a word on stderr."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from vit_course import torchvision_vit


def build_tiny_torchvision_vit() -> nn.Module:
    from torchvision.models.vision_transformer import VisionTransformer

    return VisionTransformer(16, 8, num_layers=2, num_heads=2, hidden_dim=8, mlp_dim=12, num_classes=5)


@pytest.fixture
def empty_torch_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for torch's downloads, and a ViT-B/16 that is not as large."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr("torchvision.models.vit_b_16", build_tiny_torchvision_vit)
    return tmp_path


@pytest.fixture
def weights_server() -> Iterator[SimpleNamespace]:
    """A server of the bytes that a test puts into ``weights_server.content``."""
    files = SimpleNamespace(content=b"", requests=0)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_GET(self) -> None:
            files.requests += 1
            self.send_response(200)
            self.send_header("Content-Length", str(files.length or len(files.content)))
            self.end_headers()
            self.wfile.write(files.content)

        def log_message(self, *_: object) -> None:
            pass

    files.length = 0
    with ThreadingHTTPServer(("localhost", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        files.address = f"http://localhost:{server.server_port}"
        yield files
        server.shutdown()


def set_weights_url(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = SimpleNamespace(IMAGENET1K_V1=SimpleNamespace(url=url))
    monkeypatch.setattr("torchvision.models.ViT_B_16_Weights", weights)


def serialize_weights(model: nn.Module) -> tuple[bytes, str]:
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    content = buffer.getvalue()
    return content, f"vit_b_16-{hashlib.sha256(content).hexdigest()[:8]}.pth"


def test_without_an_answer_a_stand_in_says_so(
    empty_torch_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    set_weights_url("http://localhost:9/vit_b_16-c867db91.pth", monkeypatch)  # port 9 discards: nobody listens
    model, is_real = torchvision_vit.vit_b_16()
    assert not is_real
    assert not model.training
    assert all(bool((parameter != 0).all()) for parameter in model.parameters())
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out == (
        "No real weights here (localhost does not answer): a ViT-B/16 with random weights stands in.\n"
    )
    assert not list(empty_torch_cache.rglob("*.pth"))


def test_real_weights_are_fetched_once(
    empty_torch_cache: Path,
    weights_server: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    trained = build_tiny_torchvision_vit()
    torchvision_vit._randomize(trained)
    weights_server.content, name = serialize_weights(trained)
    set_weights_url(f"{weights_server.address}/{name}", monkeypatch)
    for _ in range(2):
        model, is_real = torchvision_vit.vit_b_16()
        assert is_real
        assert torch.equal(model.heads.head.weight, trained.heads.head.weight)
    assert weights_server.requests == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.count("with its real weights") == 2


@pytest.mark.parametrize(("length", "reason"), [(0, "was damaged"), (10**6, "download")])
def test_a_damaged_download_is_thrown_away(
    length: int,
    reason: str,
    empty_torch_cache: Path,
    weights_server: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    weights_server.content, weights_server.length = b"not what was promised", length
    set_weights_url(f"{weights_server.address}/vit_b_16-c867db91.pth", monkeypatch)
    _, is_real = torchvision_vit.vit_b_16(patience=1.0)
    assert not is_real
    printed = capsys.readouterr()
    assert printed.err == ""
    assert reason in printed.out
    assert not list(empty_torch_cache.rglob("*.pth"))
