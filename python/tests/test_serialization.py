"""save and load: both formats, files of PyTorch, and files that must be refused."""

import io
import pathlib
import pickle
import zipfile
from collections import OrderedDict

import pytest

import onestep as T
from onestep.serialization import load, safe_globals, save

GOLDENS = pathlib.Path(__file__).parent / "goldens"


def through(value, **kwargs):
    file = io.BytesIO()
    save(value, file)
    file.seek(0)
    return load(file, **kwargs)


def test_a_checkpoint_comes_back():
    m = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.BatchNorm1d(4))
    optimizer = T.optim.AdamW(m.parameters())
    m(T.randn(5, 3)).sum().backward()
    optimizer.step()
    got = through({"model": m.state_dict(), "optimizer": optimizer.state_dict()})
    assert isinstance(got["model"], OrderedDict) and got["model"]._metadata == m.state_dict()._metadata
    assert all(T.equal(a, b) for a, b in zip(got["model"].values(), m.state_dict().values()))
    assert got["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict(got["optimizer"])


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -1,
        255,
        2**31,
        -(2**70),
        1.5,
        "h\u00e9",
        b"\xff\x00",
        [1, [2]],
        (1, (2, ())),
        {1, 2},
        {"a": {"b": 1}},
        OrderedDict(a=1),
        T.float32,
        T.Size((2, 3)),
        T.device("cpu"),
    ],
    ids=repr,
)
def test_plain_values(value):
    got = through(value)
    assert got == value and type(got) is type(value)


def test_tensors_of_all_kinds():
    shared = T.nn.Parameter(T.ones(2))
    values = [
        T.zeros(0, 3),
        T.tensor(2.0),
        T.arange(6).reshape(2, 3).t(),
        T.ones(2).to(T.bfloat16),
        T.ones(2).half(),
        T.ones(2) > 0,
        T.arange(3, dtype=T.uint8),
        shared,
        shared,
    ]
    got = through(values)
    assert all(a.dtype == b.dtype and a.shape == b.shape and T.equal(a, b) for a, b in zip(got, values))
    assert isinstance(got[-1], T.nn.Parameter) and got[-1].data_ptr() == got[-2].data_ptr()


def test_a_file_of_pytorch():
    got = load(GOLDENS / "from_torch.pt")
    assert list(got["model"]) == ["weight", "bias"] and got["model"]["weight"].shape == (2, 3)
    assert got["view"].tolist() == [2, 4, 6] and got["rest"] == [1, 2.5, None, "x", T.Size([1]), T.float64, T.device("cpu")]


def with_pickle(data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/data/0", b"\0" * 8)
    file.seek(0)
    return file


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit",)


def test_names_that_are_not_known_are_refused():
    for weights_only in (None, True):
        with pytest.raises(pickle.UnpicklingError, match="GLOBAL __builtin__.exec|GLOBAL builtins.exec"):
            load(with_pickle(pickle.dumps(Evil(), 2)), weights_only=weights_only)


def tensor_of(offset, size, stride):
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ"
        + b"K"
        + bytes([offset])
        + b"(K"
        + bytes([size])
        + b"t(K"
        + bytes([stride])
        + b"t\x89Ntr".replace(b"tr", b"tR")
        + b"."
    )


def test_tensors_outside_of_their_storage_are_refused():
    assert load(with_pickle(tensor_of(1, 1, 1))).tolist() == [0.0]
    for place in ((0, 3, 1), (1, 2, 1), (0, 2, 2), (2, 1, 1)):
        with pytest.raises(pickle.UnpicklingError, match="outside its storage"):
            load(with_pickle(tensor_of(*place)))


def test_attributes_of_types_are_refused():
    with pytest.raises(pickle.UnpicklingError, match="attributes of a"):
        load(with_pickle(b"\x80\x02ctorch\nSize\n}(X\x01\0\0\0aK\x01ub."))


def test_damaged_files():
    file = io.BytesIO()
    save({"a": T.arange(4)}, file)
    whole = file.getvalue()
    for size in range(0, len(whole), 37):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            load(io.BytesIO(whole[:size]))


class Plain:
    def __init__(self):
        self.x = 1


def test_any_object_of_a_trusted_file():
    found = load(with_pickle(pickle.dumps({"a": Plain(), "b": {2**70, 1j}}, 2)), weights_only=False)
    assert found["a"].x == 1 and found["b"] == {2**70, 1j}


def test_whole_models_are_read_only_if_trusted():
    m = T.nn.Linear(2, 2)
    with pytest.raises(pickle.UnpicklingError, match="Linear was not an allowed global"):
        through(m)
    assert T.equal(through(m, weights_only=False).weight, m.weight)
    with safe_globals([T.nn.Linear]):
        assert T.equal(through(m).weight, m.weight)
    with pytest.raises(pickle.UnpicklingError):
        through(m)


def test_safetensors(tmp_path):
    tensors = {"b": T.arange(3), "a": T.randn(2, 2), "half": T.ones(3).half(), "none": T.zeros(0), "one": T.tensor(1.0)}
    save(tensors, tmp_path / "x.safetensors")
    got = load(tmp_path / "x.safetensors")
    assert set(got) == set(tensors) and all(T.equal(got[k], tensors[k]) and got[k].dtype == tensors[k].dtype for k in got)
    whole = (tmp_path / "x.safetensors").read_bytes()
    for damaged in (whole[:-1], whole + b"x", whole[:20], b"", whole.replace(b'"shape":[2,2]', b'"shape":[2,3]')):
        with pytest.raises(RuntimeError, match="load: "):
            load(io.BytesIO(damaged))


def test_pytorch_reads_what_save_wrote(tmp_path):
    torch = pytest.importorskip("torch")
    m = T.nn.Linear(2, 3)
    save({"model": m.state_dict(), "n": 2**40, "p": m.weight, "t": T.arange(6).reshape(2, 3).t()}, tmp_path / "x.pt")
    got = torch.load(tmp_path / "x.pt")
    assert got["model"]["weight"].tolist() == m.weight.tolist() and got["model"]._metadata == m.state_dict()._metadata
    assert isinstance(got["p"], torch.nn.Parameter) and got["n"] == 2**40 and got["t"].tolist() == [[0, 3], [1, 4], [2, 5]]


class Scaled(T.nn.Module):
    """With a tensor that is a buffer, and one that is a mere attribute."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", T.ones(2))
        self.shift = T.zeros(2)


def test_a_whole_model_with_tensors_of_every_kind():
    file = io.BytesIO()
    save(Scaled(), file)
    file.seek(0)
    with safe_globals([Scaled]):
        model = load(file)
    assert model.scale.tolist() == [1, 1] and model.shift.tolist() == [0, 0]
