"""Layers and functions whose inputs are not one tensor of numbers, or that change something in place."""

from programs import case, refused


def with_gradients(T, f, *inputs):
    """f of the inputs, and the gradient of each that has one, of the sum weighted 1, 2, 3..."""
    inputs = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    y = f(*inputs)
    (y * T.arange(1.0, y.numel() + 1).reshape(y.shape)).sum().backward()
    return y, [x.grad for x in inputs if x.grad is not None]


@case
def embedding(T):
    table, ids = T.randn(4, 3), T.tensor([[1, 3, 1], [0, 2, 1]])
    embed = T.nn.functional.embedding
    cut = table.clone()
    return (
        with_gradients(T, lambda w: embed(ids, w, padding_idx=1, scale_grad_by_freq=True), table),
        embed(ids[:1], cut, max_norm=1.0, norm_type=1.0),
        cut,
        T.nn.Embedding(4, 2, max_norm=0.5)(ids),
    )


@case
def embedding_bag(T):
    bag, table = T.nn.functional.embedding_bag, T.randn(5, 3)
    flat, offsets = T.tensor([1, 4, 4, 0, 2, 1]), T.tensor([0, 2, 2, 6])
    rows, weights = T.tensor([[1, 4, 4], [0, 2, 1]]), T.randn(2, 3)
    found = []
    for mode in ("sum", "mean", "max"):
        found.append(with_gradients(T, lambda w: bag(flat, w, offsets, mode=mode), table))
        found.append(with_gradients(T, lambda w: bag(rows, w, mode=mode, padding_idx=4), table))
        found.append(with_gradients(T, lambda w: bag(flat, w, offsets, mode=mode, include_last_offset=True), table))
    found.append(with_gradients(T, lambda w, s: bag(rows, w, mode="sum", per_sample_weights=s), table, weights))
    twice = T.tensor([1, 4, 4, 1])  # PyTorch's counts are those of other rows where they differ
    found.append(with_gradients(T, lambda w: bag(twice, w, T.tensor([0, 1]), mode="sum", scale_grad_by_freq=True), table))
    layer = T.nn.EmbeddingBag.from_pretrained(table, mode="max", max_norm=1.0)
    return found, layer(flat, offsets), layer.weight, layer.weight.requires_grad, T.nn.EmbeddingBag(4, 2)(rows % 4)


@case
def embedding_bag_is_refused(T):
    bag, table, flat = T.nn.functional.embedding_bag, T.randn(5, 3), T.tensor([1, 2])
    zero = T.tensor([0])
    return (
        refused(lambda: bag(flat, table)),
        refused(lambda: bag(flat, table, T.tensor([1])))[:60],
        refused(lambda: bag(flat, table, zero, mode="x")),
        refused(lambda: bag(flat, table, zero, mode="max", scale_grad_by_freq=True)),
        refused(lambda: bag(flat, table, zero, per_sample_weights=T.ones(2))),
        refused(lambda: bag(flat, table, zero, mode="sum", per_sample_weights=T.ones(3))),
        refused(lambda: bag(flat, T.randn(5), zero)),
        refused(lambda: bag(T.tensor(1), table)),
    )


@case
def grid_samples(T):
    shapes = (2, 2, 4, 3), (1, 2, 3, 2, 4), (2, 3, 2, 2), (1, 2, 2, 1, 3)
    image, volume, places, deep = (1.5 * T.randn(*shape).double() for shape in shapes)
    found = []
    for padding in ("zeros", "border", "reflection"):
        for corners in (False, True):
            for mode in ("bilinear", "nearest", "bicubic"):
                settings = dict(mode=mode, padding_mode=padding, align_corners=corners)
                found.append(with_gradients(T, lambda x, g: T.nn.functional.grid_sample(x, g, **settings), image, places))
                if mode != "bicubic":
                    found.append(with_gradients(T, lambda x, g: T.nn.functional.grid_sample(x, g, **settings), volume, deep))
    return found


@case
def affine_grids(T):
    grid = T.nn.functional.affine_grid
    flat, deep = T.randn(2, 2, 3), T.randn(1, 3, 4)
    return (
        with_gradients(T, lambda theta: grid(theta, (2, 1, 3, 2), align_corners=False), flat),
        with_gradients(T, lambda theta: grid(theta, (2, 1, 1, 4), align_corners=True), flat),
        with_gradients(T, lambda theta: grid(theta, (1, 1, 2, 3, 2), align_corners=False), deep),
        refused(lambda: T.nn.functional.grid_sample(T.ones(1, 1, 2, 2), T.ones(1, 1, 1, 2), mode="x")),
        refused(lambda: T.nn.functional.grid_sample(T.ones(1, 1, 2, 2), T.ones(1, 1, 1, 2), padding_mode="x")),
    )


@case
def unpooled(T):
    found = []
    for dims, shape in ((1, (2, 3, 7)), (2, (2, 6, 4)), (3, (1, 2, 4, 4, 4))):
        functions = T.nn.functional
        x = T.randn(*shape)
        values, places = getattr(functions, f"max_pool{dims}d_with_indices")(x, 2)
        unpool = getattr(functions, f"max_unpool{dims}d")
        size = list(shape[-dims:])
        found.append([places, with_gradients(T, lambda v: unpool(v, places, 2, output_size=size), values)])
        layer = getattr(T.nn, f"MaxUnpool{dims}d")(2)
        found.append(layer(values, places))
        found.append(refused(lambda: layer(values, places, output_size=[n + 5 for n in size])))
    return found


@case
def functions_in_place(T):
    functions, found = T.nn.functional, []
    for name, arguments in (
        ("celu_", (0.5,)),
        ("selu_", ()),
        ("hardtanh_", (-0.5, 0.25)),
        ("threshold_", (0.1, 2.0)),
        ("rrelu_", (0.1, 0.3, True)),
        ("elu_", ()),
        ("leaky_relu_", (0.2,)),
    ):
        x = T.randn(2, 4)
        y = getattr(functions, name)(x, *arguments)
        found.append([x, y is x])
    x = T.randn(3, 4)
    functions.alpha_dropout(x, 0.4, True, inplace=True)
    return found, x, refused(lambda: functions.rrelu(x, 0.5, 0.1)), refused(lambda: functions.alpha_dropout(x, 1.5, True))


@case
def lazy_layers(T):
    nn = T.nn

    def make():
        return nn.Sequential(nn.LazyConv1d(4, 2), nn.LazyBatchNorm1d(), nn.Flatten(), nn.LazyLinear(3, bias=False))

    model, other = make(), make()
    before = repr(model), [nn.parameter.is_lazy(p) for p in model.parameters()]
    out = model(T.randn(3, 2, 4))
    other.load_state_dict(model.state_dict())
    model.eval()
    x = T.randn(2, 2, 4)
    copied = other.eval()(x)
    kinds = [type(layer).__name__ for layer in [*model, *other]]
    names = [name for name, p in model.named_parameters() if isinstance(p, nn.Parameter)]
    return before, out, model(x), copied, kinds, names, repr(other[3])


@case
def own_lazy_layer(T):
    class Scale(T.nn.modules.lazy.LazyModuleMixin, T.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = T.nn.UninitializedParameter()

        def initialize_parameters(self, x):
            if self.has_uninitialized_params():
                with T.no_grad():
                    self.weight.materialize(x.shape[-1:])
                    self.weight.fill_(2.0)

        def forward(self, x):
            return self.weight * x

    layer = Scale()
    return layer(T.ones(2, 3)), layer.weight, layer.has_uninitialized_params(), type(layer).__name__


@case
def layers_are_refused(T):
    nn, functions = T.nn, T.nn.functional
    return (
        refused(lambda: nn.LazyConv2d(2, 2)(T.ones(2, 2))),
        refused(lambda: nn.TripletMarginWithDistanceLoss(margin=-1.0)),
        refused(lambda: functions.channel_shuffle(T.ones(1, 3, 2), 2)),
        refused(lambda: functions.triplet_margin_with_distance_loss(T.ones(2), T.ones(2), T.ones(2), reduction="x")),
        refused(lambda: nn.Conv3d(3, 4, 2, groups=2)),
        refused(lambda: nn.Conv3d(3, 4, 2, 2, padding="same")),
    )


@case
def adaptive_log_softmax(T):
    layer = T.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 5, 9], div_value=2.0, head_bias=True)
    x, target = T.randn(6, 8, requires_grad=True), T.tensor([0, 4, 11, 2, 5, 8])
    output, loss = layer(x, target)
    (loss + output[1]).backward()
    single = layer(x[0], target[0])
    return (
        [list(item) for item in layer.state_dict().items()],
        [output, loss, x.grad, [p.grad for p in layer.parameters()], list(single)],
        [layer.log_prob(x), layer.predict(x), repr(layer)],
        refused(lambda: layer(x, target + 1)),
        refused(lambda: layer(x, target[:2])),
        refused(lambda: T.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [5, 3])),
    )


@case
def distances_of_pairs(T):
    x = T.randn(4, 3)
    return [with_gradients(T, lambda v: T.nn.functional.pdist(v, p), x) for p in (1.0, 2.0, 3.0)]


@case
def base_classes(T):
    """The names that programs look for in isinstance."""
    modules = T.nn.modules
    layers = T.nn.Conv3d(1, 1, 1), T.nn.ConvTranspose1d(1, 1, 1), T.nn.MaxPool2d(2), T.nn.AvgPool3d(2), T.nn.AdaptiveAvgPool1d(2)
    bases = (
        modules.conv._ConvNd,
        modules.conv._ConvTransposeNd,
        modules.pooling._MaxPoolNd,
        modules.pooling._AvgPoolNd,
        modules.pooling._AdaptiveAvgPoolNd,
    )
    sizes = modules.utils._ntuple(3)(2), modules.utils._pair((1, 2)), modules.utils._triple(1)
    return [[isinstance(layer, base) for base in bases] for layer in layers], sizes
