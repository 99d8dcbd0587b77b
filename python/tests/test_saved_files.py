"""save and load: PyTorch's format both ways (with PyTorch where it is installed), safetensors, and files that are refused."""

import io
import pickle
import struct
import zipfile
from collections import OrderedDict

import pytest

import onestep
from onestep import nn


def some_state():
    onestep.manual_seed(1)
    base = onestep.arange(12).reshape(3, 4)
    return {
        "model": nn.Linear(3, 2).state_dict(),
        "parameter": nn.Parameter(onestep.rand(2)),
        "base": base, "column": base[:, 1], "nothing": onestep.empty(0, 3), "one": onestep.tensor(2.5),
        "kinds": [onestep.ones(3, dtype=t) for t in (onestep.float64, onestep.float16, onestep.bfloat16, onestep.int32,
                                                     onestep.uint8, onestep.bool)],
        "plain": [1, 2.5, "text", None, True, (1, 2), {3}, 2**40], "dtype": onestep.float16, "size": onestep.Size([2, 3]),
        "order": OrderedDict(a=1),
    }


def check_state(state, library):
    base = state["base"]
    assert base.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert state["column"].tolist() == [1, 5, 9]
    base[0, 1] = 7  # views still share
    assert state["column"].tolist() == [7, 5, 9]
    assert isinstance(state["parameter"], library.nn.Parameter) and state["parameter"].requires_grad
    assert tuple(state["nothing"].shape) == (0, 3) and state["one"].item() == 2.5 and state["one"].dim() == 0
    assert [str(t.dtype) for t in state["kinds"]] == [
        "torch.float64", "torch.float16", "torch.bfloat16", "torch.int32", "torch.uint8", "torch.bool"]
    assert all(t.tolist() == [1, 1, 1] for t in state["kinds"])
    assert state["plain"] == [1, 2.5, "text", None, True, (1, 2), {3}, 2**40]
    assert state["dtype"] == library.float16 and state["size"] == library.Size([2, 3])
    assert list(state["model"]) == ["weight", "bias"] and state["order"] == OrderedDict(a=1)


def test_round_trip(tmp_path):
    onestep.save(some_state(), tmp_path / "state.pt")
    check_state(onestep.load(tmp_path / "state.pt"), onestep)
    buffer = io.BytesIO()
    onestep.save(some_state(), buffer)
    buffer.seek(0)
    check_state(onestep.load(buffer), onestep)


def test_only_the_elements_in_use_of_a_shared_storage_are_written_once(tmp_path):
    x = onestep.zeros(1000)
    onestep.save([x, x[10:20], x], tmp_path / "x.pt")
    assert (tmp_path / "x.pt").stat().st_size < 6000
    a, b, c = onestep.load(tmp_path / "x.pt")
    b.fill_(1)
    assert a.sum().item() == 10 and c.sum().item() == 10


def test_pytorch_reads_it_and_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    onestep.save(some_state(), tmp_path / "ours.pt")
    check_state(torch.load(tmp_path / "ours.pt", weights_only=True), torch)
    layer = torch.nn.LSTM(3, 4)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(2, 1, 3))[0].sum().backward()
    optimizer.step()
    torch.save({"layer": layer.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "theirs.pt")
    state = onestep.load(tmp_path / "theirs.pt")
    for name, tensor in layer.state_dict().items():
        assert state["layer"][name].tolist() == tensor.tolist()
    assert state["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]


class Harmful:
    def __reduce__(self):
        return print, ("this must not run",)


def file_of(text: bytes, path, records=()):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", text)
        for name, content in records:
            archive.writestr(name, content)
    return path


def test_nothing_that_a_file_names_is_run(tmp_path, capsys):
    path = file_of(pickle.dumps(Harmful(), 2), tmp_path / "harmful.pt")
    with pytest.raises(pickle.UnpicklingError, match="print"):
        onestep.load(path)
    assert capsys.readouterr().out == ""


def test_damaged_files_are_refused_by_name(tmp_path):
    onestep.save(some_state(), tmp_path / "state.pt")
    whole = (tmp_path / "state.pt").read_bytes()
    (tmp_path / "short.pt").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.pt").write_text("no file of tensors")
    file_of(b"\x80\x02}q\x00", tmp_path / "open.pt")
    for name in ("short.pt", "text.pt", "open.pt"):
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match=name):
            onestep.load(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "state.pt") as archive:
        text = archive.read("archive/data.pkl")
        records = [(n, archive.read(n)[:2]) for n in archive.namelist() if "/data/" in n]
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match="little.pt"):
        onestep.load(file_of(text, tmp_path / "little.pt", records))


def test_a_failed_save_leaves_the_earlier_file(tmp_path):
    onestep.save({"x": onestep.ones(2)}, tmp_path / "x.pt")
    with pytest.raises(Exception):
        onestep.save({"x": lambda: 1}, tmp_path / "x.pt")
    assert onestep.load(tmp_path / "x.pt")["x"].tolist() == [1, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["x.pt"]


def test_safetensors(tmp_path):
    tensors = {"b": onestep.rand(2, 3), "a": onestep.tensor(3), "none": onestep.empty(0, 2),
               "half": onestep.ones(3, dtype=onestep.bfloat16)}
    onestep.save(tensors, tmp_path / "x.safetensors")
    back = onestep.load(tmp_path / "x.safetensors")
    assert set(back) == set(tensors)
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype and back[name].shape == tensor.shape and onestep.equal(back[name], tensor)
    onestep.save({}, tmp_path / "empty.safetensors")
    assert onestep.load(tmp_path / "empty.safetensors") == {}


@pytest.mark.parametrize("header, body", [
    ('{"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}', b"1234"),
    ('{"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}', b"123"),
    ('{"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}', b"12345"),
    ('{"x": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}', b"12345678"),
    ('{"x": {"dtype": "F9", "shape": [1], "data_offsets": [0, 4]}}', b"1234"),
    ('{"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}', b"1234"),
    ('{"x": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}}', b"1234"),
    ('{"x": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}}', b""),
    ('{"x": 1}', b""), ('{"x": {}}', b""), ("[]", b""), ('{"x"', b""),
    ('{"x": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}, "x": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}',
     b""),
])
def test_safetensors_that_break_the_rules(tmp_path, header, body):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + body)
    with pytest.raises(RuntimeError, match="bad.safetensors"):
        onestep.load(path)


def test_safetensors_with_a_wrong_length(tmp_path):
    path = tmp_path / "bad.safetensors"
    for content in (b"", b"\0" * 7, struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 3) + b"{}"):
        path.write_bytes(content)
        with pytest.raises(RuntimeError, match="bad.safetensors"):
            onestep.load(path)
