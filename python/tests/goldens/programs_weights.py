"""Weights computed from others, calls with other weights, and what is done to weights."""

from programs import case, refused


def trained(T, module, *shape, steps=2):
    """The state before and after some steps of SGD, and the outputs."""
    before = [(name, tensor.clone()) for name, tensor in module.state_dict().items()]
    optimizer = T.optim.SGD(module.parameters(), lr=0.1)
    outs = []
    for _ in range(steps):
        out = module(T.randn(*shape))
        optimizer.zero_grad()
        (out * out).sum().backward()
        optimizer.step()
        outs.append(out)
    outs.append(module.eval()(T.ones(*shape)))
    return before, outs, list(module.state_dict().items()), repr(module)


@case
def weight_norm(T):
    utils = T.nn.utils
    layer = utils.weight_norm(T.nn.Conv1d(2, 3, 2), dim=1)
    found = trained(T, utils.weight_norm(T.nn.Linear(3, 2)), 2, 3), trained(T, layer, 2, 2, 4)
    whole = utils.weight_norm(T.nn.Linear(3, 2), dim=None)
    utils.remove_weight_norm(layer)
    return found, list(whole.state_dict().items()), list(layer.state_dict().items()), layer(T.ones(1, 2, 4))


@case
def spectral_norm(T):
    utils = T.nn.utils
    layer = utils.spectral_norm(T.nn.ConvTranspose1d(2, 3, 2), n_power_iterations=2)
    found = trained(T, utils.spectral_norm(T.nn.Linear(3, 2)), 2, 3), trained(T, layer, 2, 2, 4)
    utils.remove_spectral_norm(layer)
    return found, list(layer.state_dict().items()), layer(T.ones(1, 2, 4))


@case
def parametrized_weight_norm(T):
    parametrize = T.nn.utils.parametrizations
    layer = parametrize.weight_norm(T.nn.Linear(3, 2))
    found = trained(T, layer, 2, 3), trained(T, parametrize.weight_norm(T.nn.Conv1d(2, 3, 2), dim=1), 2, 2, 4)
    old = T.nn.utils.weight_norm(T.nn.Linear(3, 2))
    layer.load_state_dict(old.state_dict())
    T.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    return found, layer.weight, old(T.ones(3)), layer(T.ones(3)), type(layer).__name__


@case
def parametrized_spectral_norm(T):
    parametrize = T.nn.utils.parametrizations
    first = trained(T, parametrize.spectral_norm(T.nn.Linear(3, 2)), 2, 3)
    norm = parametrize.spectral_norm(T.nn.LayerNorm(3))
    return first, trained(T, parametrize.spectral_norm(T.nn.ConvTranspose1d(2, 3, 2)), 2, 2, 4), norm.weight


def symmetric(T):
    class Symmetric(T.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, x):
            return x.triu()

    return Symmetric()


def doubled(T):
    class Doubled(T.nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, x):
            return x / 2

    return Doubled()


@case
def parametrizations(T):
    import copy

    parametrize = T.nn.utils.parametrize
    layer = parametrize.register_parametrization(T.nn.Linear(2, 2), "weight", symmetric(T))
    start = layer.weight, layer.parametrizations.weight.original
    parametrize.register_parametrization(layer, "weight", doubled(T))
    parametrize.register_parametrization(layer, "bias", doubled(T))
    text, twice = repr(layer), layer.weight
    other = copy.deepcopy(layer)
    copied = other.weight
    layer.weight = T.tensor([[1.0, 2.0], [2.0, 5.0]])
    found = trained(T, layer, 2, 2)
    with parametrize.cached():
        same = layer.weight is layer.weight
    bias = parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False).bias
    parametrize.remove_parametrizations(layer, "weight")
    names = [name for name, _ in layer.named_parameters()]
    kinds = parametrize.is_parametrized(other), parametrize.is_parametrized(other, "bias"), parametrize.is_parametrized(layer)
    plain = parametrize.type_before_parametrizations(other) is T.nn.Linear and type(layer) is T.nn.Linear
    return start, text, twice, copied, found, same, bias, layer.weight, names, kinds, plain


@case
def parametrizing_is_refused(T):
    class Cut(T.nn.Module):
        def forward(self, x):
            return x[:1]

    parametrize, linear = T.nn.utils.parametrize, T.nn.Linear
    layer = parametrize.register_parametrization(linear(2, 2), "weight", doubled(T))
    return (
        refused(lambda: parametrize.register_parametrization(linear(2, 2), "weigh", doubled(T))),
        refused(lambda: parametrize.register_parametrization(linear(2, 2), "weight", Cut())),
        refused(lambda: parametrize.register_parametrization(layer, "weight", Cut())),
        refused(lambda: parametrize.remove_parametrizations(linear(2, 2), "weight")),
        refused(lambda: T.nn.utils.remove_weight_norm(linear(2, 2))),
        refused(lambda: T.nn.utils.remove_spectral_norm(linear(2, 2))),
        refused(lambda: T.nn.utils.spectral_norm(T.nn.utils.spectral_norm(linear(2, 2)))[0]),
        refused(lambda: T.nn.utils.spectral_norm(linear(2, 2), n_power_iterations=0)),
        refused(lambda: T.nn.utils.parametrizations.spectral_norm(linear(2, 2), dim=2)),
    )


@case
def functional_call(T):
    model = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3), T.nn.Linear(3, 2))
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    given = {name: (2 * p).detach().requires_grad_() for name, p in model.named_parameters()}
    mean = T.zeros(3)
    x = T.randn(4, 2)
    out = T.func.functional_call(model, (given, {"1.running_mean": mean}), x)
    (out * out).sum().backward()
    kept = all(T.equal(own[name], p) and p.grad is None for name, p in model.named_parameters())
    alone = T.nn.utils.stateless.functional_call(model, {}, (x,))
    return out, [p.grad for p in given.values()], mean, kept, alone, model[1].running_mean


@case
def functional_call_of_tied_weights(T):
    model = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    x, given = T.ones(2), {"0.weight": T.tensor([[1.0, 2.0], [3.0, 4.0]])}
    call = T.func.functional_call
    return (
        call(model, given, x),
        call(model, given, x, tie_weights=False),
        refused(lambda: call(model, given, x, strict=True)),
        refused(lambda: call(model, {"2.weight": x}, x)),
        refused(lambda: call(model, 3, x)),
        refused(lambda: call(model, [given, given], x)),
    )


@case
def clipped_by_a_norm(T):
    model = T.nn.Linear(3, 2)
    model(T.ones(1, 3)).sum().backward()
    norm = T.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    T.nn.utils.clip_grads_with_norm_(model.parameters(), 0.5, norm)
    first = [p.grad.clone() for p in model.parameters()]
    T.nn.utils.clip_grads_with_norm_(model.bias, 10.0, T.tensor(1.0))
    return norm, first, model.bias.grad


@case
def fused_batch_norm(T):
    utils = T.nn.utils
    conv, norm = T.nn.Conv1d(2, 3, 2, bias=False), T.nn.BatchNorm1d(3)
    norm(conv(T.randn(4, 2, 5)))
    with T.no_grad():
        norm.weight.copy_(T.tensor([0.5, 2.0, -1.0]))
    turned, linear = T.nn.ConvTranspose1d(2, 3, 2), T.nn.Linear(2, 3)
    fused = utils.fusion.fuse_conv_bn_eval(conv.eval(), norm.eval())
    return (
        list(fused.state_dict().items()),
        list(utils.fuse_conv_bn_eval(turned.eval(), norm, transpose=True).state_dict().items()),
        list(utils.fuse_linear_bn_eval(linear.eval(), norm).state_dict().items()),
        refused(lambda: utils.fuse_conv_bn_eval(conv.train(), norm)),
    )


@case
def hooks_around_states(T):
    seen = []
    model = T.nn.Sequential(T.nn.Linear(1, 1), T.nn.Linear(1, 1, bias=False))
    model[0].register_state_dict_pre_hook(lambda module, prefix, keep: seen.append(["before", prefix, keep]))
    model.register_state_dict_post_hook(lambda module, state, prefix, meta: seen.append(["after", list(state), prefix]))
    model[1]._register_load_state_dict_pre_hook(lambda state, prefix, *rest: state.pop(prefix + "old", None))
    model[0].register_load_state_dict_pre_hook(lambda module, state, prefix, *_: seen.append([type(module).__name__, prefix]))
    state = dict(model.state_dict())
    text = repr(model.load_state_dict({**state, "1.old": T.ones(1)}))
    return seen, text


@case
def extra_states(T):
    class Counter(T.nn.Linear):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    one, two = T.nn.Sequential(Counter(1, 1)), T.nn.Sequential(Counter(1, 1))
    one[0].count = 5
    two.load_state_dict(one.state_dict())
    plain = T.nn.Sequential(T.nn.Linear(1, 1))
    return (
        list(one.state_dict()),
        two[0].count,
        refused(lambda: plain.load_state_dict(one.state_dict())),
        refused(lambda: one.load_state_dict(plain.state_dict())),
        [list(p.shape) for p in one.to_empty(device="cpu").parameters()],
    )


@case
def hooks_around_optimizer_states(T):
    optimizer, seen = T.optim.SGD(T.nn.Linear(1, 1).parameters(), lr=0.1), []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("save"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_state_dict_post_hook(lambda o, state: seen.append(["first", "more" in state]), prepend=True)
    optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append(["load", state.pop("more")]))
    last = optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    last.remove()
    optimizer.load_state_dict(state)
    return seen, "more" in state


@case
def parameter_dicts(T):
    held = T.nn.ParameterDict({"a": T.ones(1), "b": T.zeros(2)})
    twin = held.copy()
    first = held.popitem()
    kept = held.setdefault("a", T.zeros(3)), held.setdefault("c", T.zeros(1))
    names = list(held.keys())
    held.clear()
    return first, kept, names, len(held), list(twin.keys()), list(held.fromkeys(["x", "y"], T.ones(1)).keys())


@case
def skipped_initial_values(T):
    layer = T.nn.utils.skip_init(T.nn.Linear, 3, 2, bias=False)
    return list(layer.weight.shape), T.randn(2), refused(lambda: T.nn.utils.skip_init(int))
