"""onestep.nn against values made by PyTorch (goldens/make_nn.py)."""

import copy
import json
import pathlib
import pickle
import sys

import pytest

import onestep as T
import onestep.nn as nn
from onestep.nn import functional as F

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "goldens"))
import make_nn  # noqa: E402

GOLDEN = json.loads((HERE / "goldens" / "nn.json").read_text())


@pytest.mark.parametrize("case", GOLDEN["modules"])
@pytest.mark.filterwarnings("ignore")
def test_texts_names_and_initial_values(case):
    assert make_nn.module(T, case) == GOLDEN["modules"][case]


@pytest.mark.parametrize("case", GOLDEN["forward"])
def test_outputs_and_gradients(case):
    got = make_nn.forward(T, case, make_nn.FORWARD[case])
    assert len(got) == len(GOLDEN["forward"][case])
    for mine, theirs in zip(got, GOLDEN["forward"][case]):
        assert mine == pytest.approx(theirs, rel=2e-4, abs=2e-4)


@pytest.mark.parametrize("case", GOLDEN["init"])
def test_initial_values_have_the_bits_of_pytorch(case):
    assert make_nn.initial(T, case) == GOLDEN["init"][case]


def test_state_dicts_are_taken_as_pytorch_takes_them():
    seen: list = []
    given = {"weight": T.ones(1, 1), "bias": T.ones(1), "weight.x": T.ones(1)}
    with pytest.raises(RuntimeError, match='Unexpected.*"weight.x"'):
        nn.Linear(1, 1).load_state_dict(given)
    assert nn.Linear(1, 1).load_state_dict(given, strict=False).unexpected_keys == ["weight.x"]
    m = nn.Sequential(nn.Linear(1, 1))
    m.register_load_state_dict_post_hook(lambda module, keys: seen.append("all"))
    m[0].register_load_state_dict_post_hook(lambda module, keys: seen.append("child"))
    m[0].register_load_state_dict_pre_hook(lambda module, state, *_: seen.append(sorted(state)))
    m.load_state_dict({"0.weight": T.ones(1, 1), "0.bias": T.ones(1)})
    assert seen == [["0.bias", "0.weight"], "child", "all"]
    other = nn.Linear(1, 1)
    m[0].load_state_dict(other.state_dict(keep_vars=True), assign=True)
    assert m[0].weight is other.weight and list(other.state_dict({}, "x.", False)) == ["x.weight", "x.bias"]
    m = nn.Module()
    m.p, m.b, m.c = nn.Parameter(T.tensor(1.0)), nn.Buffer(T.ones(2)), nn.Buffer(T.ones(2), persistent=False)
    m.load_state_dict({"p": T.tensor([5.0]), "b": T.zeros(2)})
    assert m.p.item() == 5 and isinstance(m.b, nn.Buffer) and (m.b + m.c).tolist() == [1, 1] and not isinstance(T.ones(1), nn.Buffer)
    with pytest.raises(TypeError, match="as parameter 'bias'"):
        other.bias = nn.ReLU()


@pytest.mark.parametrize("target", [T.float64, T.float32, T.bfloat16])
@pytest.mark.parametrize("scores", [T.float64, T.float32, T.bfloat16])
def test_losses_of_scores_and_targets_of_two_dtypes(scores, target):
    x, y, met = T.tensor([[0.5, -1.0]]).to(scores), T.tensor([[0.25, 0.75]]).to(target), T.promote_types(scores, target)
    for loss, dtype in (
        (F.binary_cross_entropy_with_logits, target),
        (F.cross_entropy, met),
        (F.multilabel_soft_margin_loss, met),
    ):
        found = loss(x, y)
        assert found.dtype == dtype and found.item() == pytest.approx(loss(x.double(), y.double()).item(), rel=5e-3)


def test_masks_of_another_dtype_and_keys_beside_the_sequence():
    T.manual_seed(0)
    x, mask = T.randn(1, 2, 3, 4), T.zeros(3, 3).masked_fill(T.ones(3, 3, dtype=T.bool).triu(1), float("-inf"))
    for dtype in (T.bfloat16, T.float64):
        y = x.to(dtype)
        assert T.equal(F.scaled_dot_product_attention(y, y, y, mask), F.scaled_dot_product_attention(y, y, y, mask.to(dtype)))
    layer, x = T.nn.MultiheadAttention(4, 2, add_zero_attn=True), T.randn(3, 1, 4)
    alone = T.nn.MultiheadAttention(4, 2)
    alone.load_state_dict(layer.state_dict())
    # As in PyTorch, causal attention over the sequence and one key more: no query sees that key.
    assert T.equal(*(m(x, x, x, need_weights=False, attn_mask=mask, is_causal=True)[0] for m in (layer, alone)))


def test_padding_that_pytorchs_encoder_leaves_out_is_zero():
    T.manual_seed(0)
    layer = T.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    encoder, x = T.nn.TransformerEncoder(layer, 2).eval(), T.randn(2, 3, 4)
    behind, before = T.tensor([[False, True, True], [False] * 3]), T.tensor([[True, False, False], [False] * 3])
    with T.no_grad():
        assert (encoder(x, src_key_padding_mask=behind)[0, 1:] == 0).all()
        assert (encoder(x, src_key_padding_mask=before)[0, 0] != 0).any()
    recorded = encoder(x, src_key_padding_mask=behind)
    assert (recorded[0, 1:] != 0).any() and recorded.requires_grad


def test_softmin_negates_before_it_converts():
    x = T.tensor([0, 1, 200], dtype=T.uint8)
    assert F.softmin(x, 0, dtype=T.float64).tolist() == T.tensor([0.0, 255.0, 56.0]).double().softmax(0).tolist()


def test_layers_refuse_what_pytorchs_refuse():
    for make in (lambda: nn.GroupNorm(6, 6)(T.ones(1, 6)), lambda: nn.LSTM(0, 3)):
        with pytest.raises(ValueError):
            make()
    with pytest.raises(AssertionError):
        nn.Hardtanh(1.0, 0.0)
    assert nn.Hardtanh(min_value=-2.0, max_value=2.0)(T.tensor([-3.0, 1.5])).tolist() == [-2, 1.5]


def test_what_hooks_must_not_return():
    def loading(m):
        m.register_load_state_dict_post_hook(lambda *_: {})
        m.load_state_dict(m.state_dict())

    def saving(m):
        m.register_state_dict_post_hook(lambda *_: {})
        m.state_dict()

    def calling(m):
        m.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
        m(T.ones(1))

    for wrong, kind in ((loading, AssertionError), (saving, RuntimeError), (calling, RuntimeError)):
        with pytest.raises(kind):
            wrong(nn.Linear(1, 1))


def test_batch_norm_of_all_processes():
    net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm1d(2)), nn.ReLU()))
    assert isinstance(net[0], nn.SyncBatchNorm) and isinstance(net[1][0], nn.SyncBatchNorm)
    x = T.randn(4, 3, 2, 2)
    assert T.equal(net[0](x), nn.BatchNorm2d(3)(x))


def test_attention_as_a_function_with_separate_projections():
    T.manual_seed(0)
    layer, x = nn.MultiheadAttention(4, 2), T.randn(3, 1, 4)
    q, k, v = layer.in_proj_weight.chunk(3)
    rest = (layer.in_proj_bias, None, None, False, 0.0, layer.out_proj.weight, layer.out_proj.bias)
    found = F.multi_head_attention_forward(
        x, x, x, 4, 2, None, *rest, use_separate_proj_weight=True, q_proj_weight=q, k_proj_weight=k, v_proj_weight=v
    )
    assert T.allclose(found[0], layer(x, x, x)[0], atol=1e-6)


def test_bags_of_padding_alone_have_a_gradient():
    bags = T.nn.EmbeddingBag(5, 3, mode="max", padding_idx=2)
    bags(T.tensor([[2, 2]])).sum().backward()
    assert bags.weight.grad.abs().sum() == 0


def test_orthogonal():
    w = nn.init.orthogonal_(T.empty(5, 8), 2.0)
    assert T.allclose(w @ w.t(), 4 * T.eye(5), atol=1e-5)


def test_state_dict_errors():
    m = nn.Linear(2, 3)
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict({"weight": T.ones(2, 2), "foo": T.ones(1)})
    assert str(error.value) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n\tUnexpected key(s) in '
        'state_dict: "foo". \n\tsize mismatch for weight: copying a param with shape torch.Size([2, 2]) from checkpoint, the '
        "shape in current model is torch.Size([3, 2])."
    )
    assert repr(m.load_state_dict(m.state_dict())) == "<All keys matched successfully>"
    assert repr(m.load_state_dict({}, strict=False)) == "_IncompatibleKeys(missing_keys=['weight', 'bias'], unexpected_keys=[])"


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda m: setattr(m, "weight", T.ones(2)), TypeError, "cannot assign 'torch.FloatTensor' as parameter 'weight'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, "can't contain"),
        (lambda m: m.register_parameter("forward", None), KeyError, "attribute 'forward' already exists"),
        (lambda m: m.register_buffer("q", 3), TypeError, "cannot assign 'int' object to buffer 'q'"),
        (lambda m: m.add_module("q", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.get_submodule("q.q"), AttributeError, "Linear has no attribute `q`"),
        (lambda m: m.get_buffer("weight"), AttributeError, "`weight` is not a buffer"),
        (lambda m: m.q, AttributeError, "'Linear' object has no attribute 'q'"),
        (lambda m: m.to(T.int64), TypeError, "only accepts floating point"),
        (lambda m: m.train(3), ValueError, "training mode is expected to be boolean"),
        (lambda m: nn.Module()(1), NotImplementedError, 'Module [Module] is missing the required "forward" function'),
    ],
)
def test_module_errors(call, kind, text):
    with pytest.raises(kind) as error:
        call(nn.Linear(2, 3))
    assert text in str(error.value).replace("\\'", "'")


def test_forward_hooks_change_arguments_and_output():
    m, seen = nn.Linear(2, 2), []
    first = m.register_forward_pre_hook(lambda m, args: (args[0] * 0,))
    second = m.register_forward_hook(lambda m, args, out: seen.append(args[0].sum().item()) or out + 1)
    assert T.equal(m(T.ones(1, 2)), m.bias.reshape(1, 2) + 1) and seen == [0.0]
    first.remove()
    second.remove()
    assert T.equal(m(T.ones(1, 2)), nn.functional.linear(T.ones(1, 2), m.weight, m.bias))


def test_full_backward_hook():
    m, seen = nn.Linear(2, 2), []
    m.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append((grad_in[0], grad_out[0])) or (grad_in[0] * 2,))
    x = T.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    assert T.equal(seen[0][1], T.ones(1, 2)) and T.equal(seen[0][0], m.weight.sum(0, keepdim=True))
    assert T.equal(x.grad, 2 * seen[0][0])


def test_conversion_keeps_parameters_and_gradients():
    m = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    weight = m[0].weight
    m(T.randn(4, 2)).sum().backward()
    m.double()
    assert m[0].weight is weight and weight.dtype == T.float64 and weight.grad.dtype == T.float64
    assert m[1].running_mean.dtype == T.float64 and m[1].num_batches_tracked.dtype == T.int64


def test_deepcopy_is_independent():
    m = nn.Sequential(nn.Linear(2, 2))
    other = copy.deepcopy(m)
    nn.init.zeros_(other[0].weight)
    assert isinstance(other[0].weight, nn.Parameter) and not T.equal(m[0].weight, other[0].weight)


def test_parameter_containers():
    values = nn.ParameterList([T.ones(2), nn.Parameter(T.zeros(3))])
    named = nn.ParameterDict({"a": T.ones(1)})
    assert [name for name, _ in values.named_parameters()] == ["0", "1"] and list(named.state_dict()) == ["a"]
    assert repr(values) == (
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2]\n"
        "    (1): Parameter containing: [torch.float32 of size 3]\n)"
    )


def test_shared_parameters_are_listed_once():
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    m[1].weight = m[0].weight
    assert [name for name, _ in m.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert list(m.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_clip_grad():
    p = nn.Parameter(T.zeros(2))
    p.grad = T.tensor([3.0, 4.0])
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == 5.0
    assert p.grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-5)
    nn.utils.clip_grad_value_([p], 0.7)
    assert p.grad.tolist() == pytest.approx([0.6, 0.7], rel=1e-5)


def test_vector_of_parameters():
    m = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(m.parameters())
    nn.utils.vector_to_parameters(vector.detach() * 2, m.parameters())
    assert T.equal(nn.utils.parameters_to_vector(m.parameters()), 2 * vector)


def test_causal_mask_of_the_encoder():
    T.manual_seed(0)
    m = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2).eval()
    x = T.randn(1, 5, 4)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    assert T.allclose(m(x, mask=mask)[:, :3], m(x[:, :3], mask=mask[:3, :3]), atol=1e-6)


def test_losses_take_what_is_deprecated():
    x, y = T.tensor([1.0, 2.0, 3.0, 5.0]), T.tensor([0.0, 0.0, 1.0, 0.0])
    mse_loss = nn.functional.mse_loss
    assert mse_loss(x, y, size_average=False) == 34 and mse_loss(x, y, False) == 34
    assert mse_loss(x, y, reduce=False).tolist() == [1, 4, 4, 25]
    assert mse_loss(x, y, True, True, "sum") == 8.5
    scores, target = T.randn(4, 3), T.tensor([0, 2, 1, 0])
    whole = nn.functional.cross_entropy(scores, target, reduction="sum")
    assert nn.functional.cross_entropy(scores, target, size_average=False) == whole


def test_what_changes_no_place_is_a_tensor_of_its_own():
    x = T.zeros(1, 3, 2, 2)
    functional = nn.functional
    for y in (functional.channel_shuffle(x, 3), functional.pixel_shuffle(x, 1), functional.pixel_unshuffle(x, 1)):
        y.add_(1)
    assert x.sum() == 0


def test_dropout_of_channels_in_place_writes_an_input_without_a_batch():
    x = T.ones(4, 5)
    y = nn.functional.dropout1d(x, 0.5, True, True)
    assert T.equal(x, y) and set(y.sum(1).tolist()) <= {0.0, 10.0}


def test_instance_norm_without_momentum():
    x = T.randn(2, 3, 4)
    assert nn.InstanceNorm1d(3, momentum=None)(x).shape == x.shape


def test_state_of_batch_norm_from_long_ago():
    trained = nn.BatchNorm1d(2)
    trained(T.randn(4, 2))
    state = {name: value for name, value in trained.state_dict().items() if name != "num_batches_tracked"}
    fresh = nn.BatchNorm1d(2)
    fresh.load_state_dict(state)
    assert T.equal(fresh.running_mean, trained.running_mean) and fresh.num_batches_tracked == 0
    recent = trained.state_dict()
    del recent["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="Missing key"):
        fresh.load_state_dict(recent)


def test_weighted_losses():
    x, y, w = T.tensor([1.0, 2.0, 6.0]), T.zeros(3), T.tensor([1.0, 2.0, 3.0])
    functional = nn.functional
    assert functional.mse_loss(x, y, weight=w) == pytest.approx((1 + 8 + 108) / 6)
    assert functional.l1_loss(x, y, reduction="sum", weight=w) == 1 + 4 + 18
    assert functional.huber_loss(x, y, weight=w) == pytest.approx((0.5 + 3 + 16.5) / 3)  # a mean of the elements
    assert functional.huber_loss(x, y, "none", weight=w).tolist() == [0.5, 3, 16.5]
    with pytest.raises(RuntimeError, match="same size"):
        functional.l1_loss(x, y, weight=w[:2])
    assert functional.gaussian_nll_loss(x, y, 2.0) == functional.gaussian_nll_loss(x, y, T.full((3,), 2.0))


def test_functions_along_dims_that_are_not_given_or_several():
    x = T.randn(2, 3, 4)
    assert T.equal(nn.functional.softmax(x), x.softmax(0)) and T.equal(nn.functional.softmin(x[0]), (-x[0]).softmax(1))
    assert T.equal(nn.Softmax()(x[0]), x[0].softmax(1)) and T.equal(nn.functional.log_softmax(x[0, 0]), x[0, 0].log_softmax(0))
    with pytest.raises(TypeError):
        T.softmax(x)
    assert T.allclose(nn.functional.normalize(x, dim=(1, 2)).square().sum((1, 2)), T.ones(2))


def test_containers_as_sequences_and_dicts():
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert [type(one) for one in m * 2] == [nn.Linear, nn.ReLU] * 2 and (m * 2)[2] is m[0] and len(3 * m) == 6
    m *= 2
    assert len(m) == 4
    with pytest.raises(ValueError, match="Non-positive"):
        m * 0
    a, b = nn.ParameterDict({"z": T.ones(1), "a": T.zeros(1)}), nn.ParameterDict([("m", T.ones(2))])
    assert list(a) == ["a", "z"] and list(reversed(a)) == ["z", "a"]  # a plain dict is sorted, as in PyTorch
    assert list(a | b) == ["a", "z", "m"] and (a | b)["m"] is b["m"] and list({"k": T.ones(1)} | b) == ["k", "m"]
    assert repr(b) == "ParameterDict(  (m): Parameter containing: [torch.FloatTensor of size 2])"
    a |= b
    assert list(a) == ["a", "z", "m"]


def test_layers_that_wait_for_their_input_can_be_pickled_and_converted():
    lazy = pickle.loads(pickle.dumps(nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()).double()))
    y = lazy(T.randn(4, 5, dtype=T.float64))
    assert y.dtype == T.float64 and type(lazy[0]) is nn.Linear and lazy[0].weight.shape == (3, 5)


def test_rms_norm_of_halves_has_the_epsilon_of_float32():
    assert nn.RMSNorm(4).bfloat16()(T.full((1, 4), 0.05).bfloat16()).tolist() == [[1.0] * 4]  # as PyTorch gives


def test_a_dim_that_keeps_its_size_is_not_interpolated():
    x = T.arange(3.0).reshape(1, 1, 3)
    y = nn.functional.interpolate(x, scale_factor=1.3, mode="linear")
    assert T.equal(y, x) and y.add_(1).sum() == 6 and x.sum() == 3


def test_empty_lists_of_sequences():  # as in torch 2.13
    for function in (nn.utils.rnn.pad_sequence, nn.utils.rnn.pack_sequence):
        with pytest.raises(RuntimeError, match="received an empty list of sequences"):
            function([])


def test_arguments_that_are_refused():  # as in torch 2.13
    with pytest.raises(RuntimeError):
        F.margin_ranking_loss(T.ones(2), T.ones(2, 1), T.ones(2))
    with pytest.raises(RuntimeError, match="value"):
        F.pad(T.ones(1, 1, 2), (1, 1), mode="reflect", value=1.0)
    assert F.pad(T.ones(1, 1, 2), (1, 1), mode="reflect", value=0).tolist() == [[[1, 1, 1, 1]]]
    with pytest.raises(ValueError):
        nn.utils.clip_grad_value_([T.ones(1)], "a")
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        T.optim.lr_scheduler.StepLR(1, 2)


def test_groups_of_rows_are_normalised_to_memory_of_their_own():
    with T.no_grad():
        y = nn.functional.group_norm(T.ones(2, 4), 2)
    w = T.ones(2, 4).requires_grad_()
    y.add_(w).sum().backward()
    assert w.grad.tolist() == [[1.0] * 4] * 2
    assert nn.functional.group_norm(T.randn(2, 4).requires_grad_(), 2)._base is None


def test_recurrent_layers_have_the_same_bits_where_nothing_is_recorded():
    for make in (nn.LSTM, nn.GRU, nn.RNN):
        layer = make(7, 40, bidirectional=True)
        for rows in (1, 5, 40):
            x = T.randn(6, rows, 7)
            recorded = layer(x)[0]
            with T.no_grad():
                assert T.equal(layer(x)[0], recorded)
