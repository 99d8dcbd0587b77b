"""Pruning."""

from programs import case, refused


def pruned(T, prune, name, *arguments, again=0, **settings):
    """A layer pruned once or more: its state, and what it gives."""
    layer = T.nn.Linear(4, 3)
    for _ in range(1 + again):
        getattr(prune, name)(layer, "weight", *arguments, **settings)
    out = layer(T.ones(2, 4))
    out.sum().backward()
    state = [list(item) for item in layer.state_dict().items()]
    found = state, out, layer.weight_orig.grad, prune.is_pruned(layer)
    prune.remove(layer, "weight")
    return found, [list(item) for item in layer.state_dict().items()], prune.is_pruned(layer), len(layer._forward_pre_hooks)


@case
def pruning(T):
    import importlib

    prune = importlib.import_module(T.__name__ + ".nn.utils.prune")
    mask = T.tensor([[1, 0, 1, 1], [0, 0, 1, 1], [1, 1, 1, 0]])
    return [
        pruned(T, prune, "identity"),
        pruned(T, prune, "l1_unstructured", 5),
        pruned(T, prune, "l1_unstructured", 0.3, again=2),
        pruned(T, prune, "l1_unstructured", 4, importance_scores=T.rand(3, 4)),
        pruned(T, prune, "random_unstructured", 0.5, again=1),
        pruned(T, prune, "random_structured", 1, 0),
        pruned(T, prune, "random_structured", 1, 1, again=1),
        pruned(T, prune, "ln_structured", 0.5, 2, 1),
        pruned(T, prune, "ln_structured", 1, 1, 0, again=1),
        pruned(T, prune, "custom_from_mask", mask),
    ]


@case
def global_pruning(T):
    import importlib

    prune = importlib.import_module(T.__name__ + ".nn.utils.prune")
    model = T.nn.Sequential(T.nn.Linear(3, 2), T.nn.Linear(2, 3))
    pairs = [(model[0], "weight"), (model[1], "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.4)
    first = [list(item) for item in model.state_dict().items()]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=2)
    prune.l1_unstructured(model[0], "bias", 1)
    return first, [list(item) for item in model.state_dict().items()], model(T.ones(1, 3))


@case
def pruning_is_refused(T):
    import importlib

    prune = importlib.import_module(T.__name__ + ".nn.utils.prune")
    layer = T.nn.Linear(2, 2)
    return (
        refused(lambda: prune.l1_unstructured(layer, "weight", -1)),
        refused(lambda: prune.l1_unstructured(layer, "weight", 1.5)),
        refused(lambda: prune.l1_unstructured(layer, "weight", "x")),
        refused(lambda: prune.l1_unstructured(layer, "weight", 9)),
        refused(lambda: prune.ln_structured(layer, "bias", 1, 2, 0)),
        refused(lambda: prune.remove(T.nn.Linear(2, 2), "weight")),
        prune.RandomUnstructured(0).prune(T.ones(2)),
    )
