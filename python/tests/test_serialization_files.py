"""save and load: PyTorch's own files both ways, safetensors, and files that are damaged or want to run code."""

import copy
import io
import json
import os
import pickle
import struct
import sys
import zipfile
from collections import OrderedDict

import pytest

import onestep as torch

GOLDENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens")
sys.path.insert(0, GOLDENS)
from torch_state import content  # noqa: E402

FILE = os.path.join(GOLDENS, "torch_state.pt")


def _pytorch():
    pytorch = pytest.importorskip("torch")
    if pytorch is torch:
        pytest.skip("PyTorch itself is needed")
    return pytorch


def plain(x):
    """A structure without tensors: types by name, values as lists."""
    if type(x).__name__ in ("Tensor", "Parameter"):
        return [type(x).__name__, str(x.dtype), list(x.shape), x.requires_grad, x.tolist()]
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, [plain(v) for v in x]]
    return x if isinstance(x, (int, float, str, type(None))) else str(x)


def through(x, load=torch.load, save=torch.save):
    file = io.BytesIO()
    save(x, file)
    file.seek(0)
    return load(file)


EXPECTED = plain(content(torch))


@pytest.mark.parametrize("name", ["torch_state.pt", "torch_legacy.pt"])
@pytest.mark.parametrize("weights_only", [None, False])
def test_pytorchs_file_is_read(name, weights_only):
    found = torch.load(os.path.join(GOLDENS, name), weights_only=weights_only)
    assert plain(found) == EXPECTED
    assert isinstance(found["model"], OrderedDict) and isinstance(found["parameter"], torch.nn.Parameter)


def test_the_generators_state_is_pytorchs():
    before = torch.get_rng_state()
    for state, following in torch.load(os.path.join(GOLDENS, "torch_rng.pt")):
        torch.set_rng_state(state)
        assert torch.equal(torch.get_rng_state()[24:], state[24:])  # what is before counts outputs, and seeding has drawn none
        assert torch.randn(3).tolist() == pytest.approx(following.tolist(), rel=1e-6)
    for wrong in (state[1:], torch.zeros(5056, dtype=torch.uint8), state.int()):
        with pytest.raises((RuntimeError, TypeError)):
            torch.set_rng_state(wrong)
    torch.set_rng_state(before)
    generator = torch.Generator().manual_seed(3)
    torch.rand(5, generator=generator)
    copies = copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))
    wanted = torch.rand(2, generator=generator).tolist()
    assert [torch.rand(2, generator=one).tolist() for one in copies] == [wanted, wanted]


def test_a_damaged_legacy_file_is_refused():
    with open(os.path.join(GOLDENS, "torch_legacy.pt"), "rb") as file:
        data = file.read()
    for end in (2, 10, 100, len(data) // 2, len(data) - 1):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(data[:end]))


def test_results_of_ops_are_saved_as_leaves():
    x = torch.ones(2, requires_grad=True) * 2
    for y in (through(x), pickle.loads(pickle.dumps(x))):
        assert y.tolist() == [2, 2] and y.requires_grad and y.is_leaf


@pytest.mark.parametrize("wrong", [{"map_location": "cuda"}, {"map_location": 3}, {"foo": 1}, {"map_location": "xyz"}])
def test_places_and_arguments_that_are_not_there(wrong):
    with pytest.raises((RuntimeError, TypeError)):
        torch.load(FILE, **wrong)


def test_round_trip():
    assert plain(through(content(torch))) == EXPECTED


def test_pytorch_reads_what_is_written():
    pytorch = _pytorch()
    found = through(content(torch), load=lambda file: pytorch.load(file, weights_only=True))
    assert plain(found) == EXPECTED == plain(content(pytorch))
    assert isinstance(found["parameter"], pytorch.nn.Parameter) and found["dtype"] is pytorch.float32


def test_what_pytorch_writes_is_read():
    pytorch = _pytorch()
    assert plain(through(content(pytorch), save=pytorch.save)) == EXPECTED


@pytest.mark.parametrize("source", ["pytorch's file", "own file"])
def test_views_and_tied_weights_share_their_elements(source):
    found = (torch.load(FILE) if source == "pytorch's file" else through(content(torch)))["model"]
    found["w"][1, 0] = 100.0
    assert found["tied"][1, 0].item() == 100 and found["row"][0].item() == 100 and found["turned"][0, 1].item() == 100


def test_loading_an_optimizers_state():
    x = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.AdamW([x], lr=0.1)
    x.sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    assert plain(through(state)) == plain(state)


def test_names_of_files(tmp_path):
    path = tmp_path / "state.pt"
    torch.save({"x": torch.ones(2)}, path)
    assert torch.load(str(path), map_location="cpu")["x"].tolist() == [1, 1]
    assert torch.load(path, map_location=torch.device("cpu"), weights_only=True)["x"].tolist() == [1, 1]
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")


class _Streamed:
    """A file that can only be read on, as one from a network."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def read(self, size=-1):
        return self.data.read(size)


@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
def test_files_that_are_open(tmp_path, suffix):
    path = str(tmp_path / f"state.{suffix}")
    torch.save({"x": torch.arange(1000.0), "none": torch.zeros(0)}, path)
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "rb") as whole, open(path, "rb", buffering=0) as raw:
        for file in (whole, raw, io.BytesIO(data), _Streamed(data)):
            x = torch.load(file)["x"]
            x[0] = 5  # memory of its own
            assert x.sum().item() == 499505
    after = io.BytesIO(b"before it" + data)
    after.seek(9)
    assert torch.load(after)["x"][999].item() == 999


def test_a_flipped_bit_of_an_element_is_found():
    file = io.BytesIO()
    torch.save({"x": torch.full((100,), 3.0)}, file)
    data = bytearray(file.getvalue())
    data[data.index(struct.pack("<f", 3.0) * 50)] ^= 1
    with pytest.raises(RuntimeError, match="load: the zip file is damaged: Bad CRC-32"):
        torch.load(io.BytesIO(data))


def _zip_with(path, change):
    """A file of save() in which change(bytes) was changed, by path and from memory: the two sentences."""
    file = io.BytesIO()
    torch.save({"x": torch.full((1000,), 3.0)}, file)
    data = bytearray(file.getvalue())
    change(data)
    path.write_bytes(data)
    for source in (str(path), io.BytesIO(data)):
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match="^load: "):
            torch.load(source)


def test_zip_files_that_point_elsewhere(tmp_path):
    def directory(data, name):
        return data.rindex(name) - 46  # of an entry

    def a_size(data):  # of data.pkl
        at = directory(data, b"archive/data.pkl")
        data[at + 20 : at + 28] = struct.pack("<II", 0x7FFFFFFE, 0x7FFFFFFE)

    def an_offset(data):
        at = data.rindex(b"PK\x05\x06")
        data[at + 16 : at + 20] = struct.pack("<I", struct.unpack("<I", data[at + 16 : at + 20])[0] + 100000)

    def an_entry(data):  # the storage's is that of another
        at, other = directory(data, b"archive/data/0"), directory(data, b"archive/version")
        data[at + 42 : at + 46] = data[other + 42 : other + 46]

    def a_header(data):
        at = data.index(b"archive/data/0") - 30
        data[at : at + 4] = b"XXXX"

    def a_flag(data):
        data[directory(data, b"archive/data/0") + 8] |= 1

    for change in (a_size, an_offset, an_entry, a_header, a_flag):
        _zip_with(tmp_path / "state.pt", change)


def test_infinities_and_signs_keep_their_bits():
    values = [0.0, -0.0, float("inf"), float("-inf"), 5e-45]
    assert repr(through(torch.tensor(values)).tolist()) == repr(torch.tensor(values).tolist())
    assert repr(through(values)) == repr(values)


# ---- safetensors


def _safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_safetensors_round_trip(tmp_path):
    path = str(tmp_path / "state.safetensors")
    tensors = {
        "b": torch.tensor([1.5, -2.0]),
        "a": torch.tensor([[1], [2]]),
        "c": torch.tensor([True, False]),
        "half": torch.tensor([0.5]).to(torch.bfloat16),
        "none": torch.zeros(0, 2),
        "turned": torch.arange(4.0).reshape(2, 2).t(),
    }
    torch.save(tensors, path)
    found = torch.load(path)
    assert {k: plain(v) for k, v in found.items()} == {k: plain(v) for k, v in tensors.items()}
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
    assert (8 + size) % 8 == 0 and header["b"]["dtype"] == "F32" and header["a"]["shape"] == [2, 1]


def test_safetensors_by_hand():
    header = {"__metadata__": {"format": "pt"}, "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    assert torch.load(io.BytesIO(_safetensors(header, struct.pack("<ff", 1.0, 2.0))))["x"].tolist() == [1, 2]


X = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
BROKEN = {
    "short data": _safetensors({"x": X}, b"1234"),
    "bytes left": _safetensors({"x": X}, b"123456789"),
    "overlap": _safetensors({"x": X, "y": {**X, "data_offsets": [4, 12]}}, b"1" * 12),
    "hole": _safetensors({"x": {**X, "data_offsets": [4, 12]}}, b"1" * 12),
    "shape": _safetensors({"x": {**X, "shape": [3]}}, b"1" * 8),
    "negative": _safetensors({"x": {**X, "shape": [-1, -2]}}, b"1" * 8),
    "dtype": _safetensors({"x": {**X, "dtype": "F7"}}, b"1" * 8),
    "no JSON": _safetensors(b"{nothing", b""),
    "a long header": struct.pack("<Q", 2**60) + b"{}",
    "names twice": _safetensors(b'{"x":%s,"x":%s}' % (2 * (b'{"dtype":"U8","shape":[1],"data_offsets":[0,1]}',)), b"1"),
    "nothing": b"",
    "text": b"hello, this is no checkpoint",
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_file_gives_one_sentence(name):
    with pytest.raises((RuntimeError, pickle.UnpicklingError)) as caught:
        torch.load(io.BytesIO(BROKEN[name]))
    assert str(caught.value) and "\n" not in str(caught.value)


# ---- damaged zip files, and code in them


def _zip(data, **more):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        for name, text in {"version": "3\n", **more}.items():
            archive.writestr("archive/" + name, text)
    file.seek(0)
    return file


def test_every_truncation_is_refused():
    with open(FILE, "rb") as file:
        data = file.read()
    for size in range(0, len(data), 97):
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)):
            torch.load(io.BytesIO(data[:size]))


class Opens:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_code_in_a_file_is_named_and_not_run(tmp_path):
    target = tmp_path / "written"
    system, evaluate = b"cos\nsystem\n(X\x04\x00\x00\x00truetR.", b"cbuiltins\neval\n(X\x01\x00\x00\x001tR."
    for data in (pickle.dumps(Opens(str(target)), 2), system, evaluate):
        with pytest.raises(pickle.UnpicklingError, match="open|system|eval"):
            torch.load(_zip(data))
    assert not target.exists()


@pytest.mark.parametrize(
    "name", ["collections\nOrderedDict.fromkeys", "torch\n__class__", "onestep\nload", "builtins\ngetattr"]
)
def test_names_near_those_that_are_known_are_refused(name):
    with pytest.raises(pickle.UnpicklingError):
        torch.load(_zip(f"\x80\x02c{name}\n.".encode()))


def _tensor(offset=0, size="(K\x02t", stride="(K\x01t", count=2):
    return (
        "\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
        f"X\x03\x00\x00\x00cpuK{chr(count)}tQK{chr(offset)}{size}{stride}\x89ccollections\nOrderedDict\n)RtR."
    ).encode("latin1")


def test_a_tensor_by_hand_and_one_outside_its_storage():
    data = {"data/0": struct.pack("<ff", 3.0, 4.0)}
    assert torch.load(_zip(_tensor(), **data)).tolist() == [3, 4]
    for bad in (
        _tensor(offset=1),
        _tensor(size="(K\x7ft"),
        _tensor(stride="(K\x05t"),
        _tensor(count=3),
        _tensor(size="(J\xff\xff\xff\xfft"),
    ):
        with pytest.raises(pickle.UnpicklingError, match="storage"):
            torch.load(_zip(bad, **data))
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        torch.load(_zip(_tensor()))  # without its storage


def test_a_failed_save_leaves_the_earlier_file(tmp_path):
    torch.save({"x": torch.ones(2)}, tmp_path / "x.pt")
    with pytest.raises(TypeError):
        torch.save({"x": lambda: 1}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt")["x"].tolist() == [1, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["x.pt"]
