"""The state dict that the check of load_torchvision makes up is torchvision's own, by names and shapes."""

from dataclasses import replace

from exercise_kit.engine.probes import Probe
from vit_course.exercises.l05_vit.load_torchvision.claims import MODEL, draw_torchvision_weights


def test_names_and_shapes_are_torchvisions() -> None:
    from torchvision.models import VisionTransformer

    config = replace(MODEL, image_size=12)
    theirs = VisionTransformer(
        image_size=config.height,
        patch_size=config.patch_size,
        num_layers=config.depth,
        num_heads=config.num_heads,
        hidden_dim=config.embed_dim,
        mlp_dim=config.hidden_dim,
        num_classes=config.num_classes,
    )
    made_up, _ = draw_torchvision_weights(Probe(0), config)
    assert {name: tensor.shape for name, tensor in made_up.items()} == {
        name: tensor.shape for name, tensor in theirs.state_dict().items()
    }
