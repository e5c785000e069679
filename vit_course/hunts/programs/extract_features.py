"""A hook on the last norm, as features are taken from a model that was built to classify."""

import torch


@torch.no_grad()
# bug "the graph kept":
def suspect_features(model, loader, device):
    """What the head reads of every image, and the labels, both on the CPU."""
    features, labels = [], []

    def keep(norm, args, tokens):
        features.append(tokens[:, 0].cpu())
        # bug "before the last norm": features.append(args[0][:, 0].cpu())
        # bug "the mean of all tokens": features.append(tokens.mean(dim=1).cpu())
        # bug "the last token": features.append(tokens[:, -1].cpu())
        # bug "logits for features": features.append(model.head(tokens[:, 0]).cpu())
        # bug "rows of length one": features.append(torch.nn.functional.normalize(tokens[:, 0]).cpu())
        # bug "features left on the device": features.append(tokens[:, 0])
        # bug "the last batch alone": features[:] = [tokens[:, 0].cpu()]

    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    # bug "taken in training mode":
    handle = model.norm.register_forward_hook(keep)
    try:
        for images, targets in loader:
            model(images.to(device))
            # bug "images left where they are": model(images)
            # bug "guesses for labels": targets = model(images.to(device)).argmax(dim=1)
            labels.append(targets.cpu())
            # bug "the last batch alone": labels[:] = [targets.cpu()]
    finally:
        handle.remove()
        # bug "a hook left behind":
        for module, mode in modes:
            module.training = mode
            # bug "left in evaluation mode": pass
            # bug "always back to training": module.training = True
    return torch.cat(features), torch.cat(labels)
