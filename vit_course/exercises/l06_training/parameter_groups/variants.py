"""Right answers in other styles: what no check may refuse."""

from torch import nn

from vit_course.training import parameter_groups


def in_the_lesson(model, weight_decay):
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        if parameter.ndim >= 2 and name.endswith("weight"):
            decayed.append(parameter)
        else:
            others.append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def by_the_kind_of_layer(model, weight_decay):
    layers = (module for module in model.modules() if isinstance(module, nn.Linear | nn.Conv2d))
    decayed = list({id(layer.weight): layer.weight for layer in layers}.values())
    known = set(map(id, decayed))
    others = [parameter for parameter in model.parameters() if id(parameter) not in known]
    groups = {"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0}
    return list(groups)


def in_tuples_with_names(model, weight_decay):
    groups = {True: [], False: []}
    for name, parameter in model.named_parameters():
        groups[len(parameter.shape) > 1 and name.split(".")[-1] == "weight"].append(parameter)
    return (
        {"params": tuple(groups[True]), "weight_decay": weight_decay, "name": "decayed"},
        {"params": groups[False], "weight_decay": 0.0, "name": "spared"},
    )


def by_names_as_in_mingpt(model, weight_decay):
    decay, parameters = set(), dict(model.named_parameters())
    for module_name, module in model.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            if name == "weight" and isinstance(module, (nn.Linear, nn.Conv2d)):
                decay.add(f"{module_name}.{name}")
    decay &= parameters.keys()  # a shared weight has one name there
    no_decay = parameters.keys() - decay
    return [
        {"params": [parameters[name] for name in sorted(decay)], "weight_decay": weight_decay},
        {"params": [parameters[name] for name in sorted(no_decay)], "weight_decay": 0.0},
    ]


RIGHT = {
    "parameter_groups": [
        parameter_groups,
        in_the_lesson,
        by_the_kind_of_layer,
        in_tuples_with_names,
        by_names_as_in_mingpt,
    ]
}
