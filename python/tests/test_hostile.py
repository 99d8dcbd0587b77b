"""Arguments and orders of events that must end in a Python exception or a sound result, never in a crash: each stands for a
defect that was once found. What used to end the interpreter runs in one of its own, so that the others are still seen."""

import ctypes
import gc
import io
import json
import pickle
import struct
import subprocess
import sys
import threading
import weakref
import zipfile

import pytest

import onestep
from onestep import nn

PROLOGUE = "import onestep, onestep as torch, gc\nfrom onestep import nn\n"


def run(program):
    """Runs a program in an interpreter of its own; what it prints."""
    done = subprocess.run([sys.executable, "-c", PROLOGUE + program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    return done.stdout


def raises(program, error):
    run(f"try:\n    {program}\nexcept {error}:\n    pass\nelse:\n    raise SystemExit('nothing was raised')\n")


@pytest.mark.parametrize(
    "program, error",
    [
        ("x = torch.ones(2); del x.requires_grad", "AttributeError"),
        ("pow(2, 3, torch.ones(1))", "TypeError"),
        ("pow(torch.ones(1), 3, 5)", "TypeError"),
        ("torch.Tensor._make_subclass(int, torch.ones(2))", "TypeError"),
        ("type(torch.add)()", "TypeError"),
        (r"torch.sum(torch.ones(2), **{'\ud800': 1})", "UnicodeEncodeError"),
        (r"torch.sum('x', **{'\ud800': 1})", "UnicodeEncodeError"),
        ("l = []; l.append(l); torch.tensor(l)", "ValueError"),
        ("l = []; l.append(l); torch.ones(2)[l]", "ValueError"),
        ("torch.rand(2, generator=torch.Generator.__new__(torch.Generator))", "TypeError"),
        ("torch.zeros(2, dtype=torch.dtype.__new__(torch.dtype))", "TypeError"),
    ],
)
def test_refused_without_a_crash(program, error):
    raises(program, error)


def test_a_list_that_changes_while_arguments_are_read():
    run(
        """
class Changes:
    def __index__(self):
        parts[:] = [1, "a"]
        return 0
for op in (torch.cat, torch.stack):
    parts = [torch.ones(2), torch.ones(2)]
    try:
        op(parts, Changes())
    except TypeError as error:
        assert "list of tensors" in str(error)
"""
    )


def test_optimizers_refuse_states_of_other_sizes():
    run(
        """
for make in (torch.optim.AdamW, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)):
    p = nn.Parameter(torch.zeros(10))
    optimizer = make([p])
    p.grad = torch.ones(10)
    optimizer.step()
    p.data = torch.zeros(1000000)
    for grad in (p.grad, torch.ones(1000000)):
        p.grad = None
        if grad.numel() == p.numel():
            p.grad = grad
            try:
                optimizer.step()
            except torch.ShapeError:
                continue
            raise SystemExit("nothing was raised")
    p = nn.Parameter(torch.zeros(1000000))
    optimizer = make([p])
    p.grad = torch.ones(1000000)
    optimizer.step()
    saved = optimizer.state_dict()
    for name in saved["state"][0]:
        if name != "step":
            saved["state"][0][name] = torch.zeros(1)
    try:
        optimizer.load_state_dict(saved)
        optimizer.step()
    except torch.ShapeError:
        continue
    raise SystemExit("nothing was raised")
"""
    )


def test_a_gradient_of_the_data_before_is_refused():
    p = nn.Parameter(onestep.zeros(10))
    p.grad = onestep.ones(10)
    p.data = onestep.zeros(20)
    with pytest.raises(onestep.ShapeError):
        onestep.optim.SGD([p], lr=0.1).step()


class Sequence:
    """Its length is 2, but its items never end."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return i + 1


def test_sequences_have_the_length_that_they_say():
    assert onestep.tensor(Sequence()).tolist() == [1, 2]
    assert onestep.arange(5)[Sequence()].tolist() == [1, 2]

    class NoLength:
        def __getitem__(self, i):
            return 0

    with pytest.raises(TypeError):
        onestep.tensor(NoLength())


def test_tensors_in_nested_lists_have_one_element():
    for parts in ([onestep.zeros(2, 3), onestep.zeros(3, 2)], [onestep.zeros(1), onestep.zeros(2)], [onestep.zeros(2), [1, 2]]):
        with pytest.raises(ValueError):
            onestep.tensor(parts)
    assert onestep.tensor([[onestep.zeros(1, 1), 1], [1, 2]]).tolist() == [[0, 1], [1, 2]]


def test_ctypes_arrays_have_no_strides():
    array = (ctypes.c_float * 3)(1, 2, 3)
    x = onestep.as_tensor(array)
    array[0] = 5
    assert x.tolist() == [5, 2, 3]
    assert onestep.tensor((ctypes.c_float * 3 * 2)()).shape == (2, 3)


@pytest.mark.parametrize("dtype", [onestep.float32, onestep.int64])
def test_elements_must_be_aligned(dtype):
    with pytest.raises(ValueError, match="aligned"):
        onestep.frombuffer(bytearray(81), dtype=dtype, offset=1)


def test_elements_of_other_libraries_must_be_aligned():
    numpy = pytest.importorskip("numpy")
    floats = numpy.frombuffer(bytearray(81), dtype=numpy.uint8)[1:].view(numpy.float32)
    for adopt in (onestep.from_numpy, onestep.from_dlpack):
        with pytest.raises(ValueError, match="aligned to 4 bytes"):
            adopt(floats)


def test_frombuffer_checks_the_offset():
    for offset in (-1, -(2**63), 9, 2**63 - 1):
        with pytest.raises(ValueError, match="offset"):
            onestep.frombuffer(bytearray(8), dtype=onestep.uint8, offset=offset)


def test_a_buffer_outlives_the_data_of_its_tensor():
    x = onestep.ones(1000)
    view = memoryview(x)
    x.data = onestep.zeros(3)
    others = [onestep.full((1000,), 5.0) for _ in range(20)]
    assert view[0] == view[999] == 1 and len(others) == 20


def test_numpy_and_dlpack_outlive_the_data_of_their_tensor():
    numpy = pytest.importorskip("numpy")
    for export in (lambda x: x.numpy(), numpy.from_dlpack):
        x = onestep.ones(1000)
        array = export(x)
        x.data = onestep.zeros(3)
        others = [onestep.full((1000,), 5.0) for _ in range(20)]
        assert (array == 1).all() and len(others) == 20


def test_a_buffer_is_as_contiguous_as_was_asked_for():
    numpy = pytest.importorskip("numpy")
    x = onestep.arange(6.0).reshape(2, 3).t()
    assert bytes(x) == x.contiguous().numpy().tobytes()
    assert (numpy.asarray(memoryview(x)) == [[0, 3], [1, 4], [2, 5]]).all()


def test_devices_say_what_is_wrong():
    for name in ("cpu:x", "cpu:99999999999999", "cpu:", "cpu:-1"):
        with pytest.raises(RuntimeError, match="Invalid device string"):
            onestep.device(name)
    with pytest.raises(RuntimeError, match="negative"):
        onestep.device("cpu", -1)
    with pytest.raises(TypeError, match="string or a device"):
        onestep.device(5)
    assert onestep.device(onestep.device("cpu"), 3).index == 3


def test_seeds_are_those_of_pytorch():
    for seed in (-(2**63), -1, 0, 2**63, 2**64 - 1):
        assert onestep.manual_seed(seed) is onestep.default_generator
        generator = onestep.Generator()
        assert generator.manual_seed(seed) is generator
    for seed in (2**64, -(2**63) - 1, 2**200):
        with pytest.raises(RuntimeError, match="seed must be from"):
            onestep.manual_seed(seed)
    for seed in (1.5, "a", None):
        with pytest.raises(TypeError):
            onestep.manual_seed(seed)


def test_print_options_are_checked():
    for options in ({"precision": 10**9}, {"precision": -1}, {"edgeitems": -1}, {"linewidth": 0}, {"threshold": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(options))):
            onestep.set_printoptions(**options)
    assert str(onestep.tensor([1.5])) == "tensor([1.5000])"


def test_large_sizes_multiply_without_overflow():
    assert onestep.Size((2**40, 2**40)).numel() == 2**80


def test_a_context_keeps_no_pass_that_has_ended():
    """saved_tensors after an exception in backward, and after a backward pass within the backward function."""
    contexts = []

    class Twice(onestep.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            contexts.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            if fails:
                raise ValueError("on purpose")
            if len(contexts) < 3:
                with onestep.enable_grad():
                    Twice.apply(onestep.ones(2, requires_grad=True)).sum().backward()
            assert ctx.saved_tensors[0].shape == (2,)
            return grad * 2

    fails = True
    x = onestep.ones(2, requires_grad=True)
    y = Twice.apply(x).sum()
    with pytest.raises(ValueError, match="on purpose"):
        y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="is for the backward function"):
        contexts[0].saved_tensors
    fails = False
    y.backward()
    assert x.grad.tolist() == [2, 2]


def test_a_pass_may_run_the_same_op_again():
    class Twice(onestep.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            nonlocal inner
            if not inner:
                inner = True
                y.backward(retain_graph=True)
            assert ctx.saved_tensors[0].shape == (2,)
            return grad * 2

    inner = False
    x = onestep.ones(2, requires_grad=True)
    y = Twice.apply(x).sum()
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [4, 4]


def test_wrong_results_of_hooks_and_functions_are_named():
    x = onestep.ones(3, requires_grad=True)
    handle = x.register_hook(lambda grad: 5)
    with pytest.raises(TypeError, match="a hook must return a tensor or None, not int"):
        x.sum().backward()
    handle.remove()

    class Wrong(onestep.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return 5

    with pytest.raises(TypeError, match="Wrong.backward must return tensors or None, not int"):
        Wrong.apply(x).sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_hooks_are_freed_with_their_tensor_on_any_thread():
    class Callable:
        def __call__(self, grad):
            return None

    hook = Callable()
    known = weakref.ref(hook)
    graph = [onestep.ones(3, requires_grad=True) * 2]
    graph[0].register_hook(hook)
    del hook
    thread = threading.Thread(target=graph.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert known() is None


def test_a_tensor_that_is_being_freed_is_not_given_out():
    """Clearing the slots of a derived class runs Python while nothing refers to the object any more."""
    assert "[7.0, 7.0]" in run(
        """
class Asks:
    def __del__(self):
        leaf.seen = holder[0]()
class Derived(torch.Tensor):
    __slots__ = ("asks",)
leaf = torch.ones(2, requires_grad=True)
derived = torch.Tensor._make_subclass(Derived, torch.full((2,), 7.0))
view = derived[:]
holder = [lambda: view._base]
derived.asks = Asks()
del derived
gc.collect()
print(leaf.seen.tolist(), view._base is leaf.seen)
"""
    )


def test_sub_interpreters_are_refused():
    """In a process of its own: once there was a sub-interpreter, Python no longer says who holds its lock, which PyTorch asks."""
    pytest.importorskip("_xxsubinterpreters")
    run(
        "import _xxsubinterpreters as interpreters\n"
        "other = interpreters.create()\n"
        "try:\n    interpreters.run_string(other, 'import onestep')\n"
        "except interpreters.RunFailedError as error:\n    assert 'main interpreter' in str(error), error\n"
        "else:\n    raise SystemExit('nothing was raised')\n"
        "interpreters.destroy(other)\n"
        "assert str(onestep.ones(2).dtype) == 'torch.float32'  # the main one is as before\n"
    )


def safetensors(header, data=bytes(4)):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "entry",
    [
        {"data_offsets": [0.0, 4.0]},
        {"data_offsets": [False, 4]},
        {"data_offsets": [float("nan"), 4]},
        {"data_offsets": "ab"},
        {"shape": 5},
        {"shape": ""},
        {"dtype": ["F32"]},
        {"dtype": {"F32": 1}},
        {"shape": [0, 2**70], "data_offsets": [0, 0]},
        {"shape": [2500000000], "data_offsets": [0, 10**10]},
    ],
)
def test_safetensors_headers_are_checked(entry):
    header = {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **entry}}
    with pytest.raises(RuntimeError, match="load: "):
        onestep.load(io.BytesIO(safetensors(header)))


def archive(data, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as written:
        written.writestr("archive/data.pkl", data)
    file.seek(0)
    return file


def test_small_files_take_little_memory():
    with pytest.raises(RuntimeError, match="compressed"):
        onestep.load(archive(b"\x80\x02N." + bytes(1 << 20), zipfile.ZIP_DEFLATED))
    with pytest.raises(pickle.UnpicklingError, match="bytearray"):
        onestep.load(archive(b"\x80\x05" + pickle.BYTEARRAY8 + struct.pack("<Q", 1 << 40) + b"."))
    with pytest.raises(pickle.UnpicklingError, match="encoding"):
        onestep.load(archive(b"\x80\x02c_codecs\nencode\nX\1\0\0\0aX\4\0\0\0idna\x86R."))


def test_tuples_nested_in_a_file():
    """As keys they are hashed on the C stack; those of a few levels are fine."""
    run(
        """
import io, pickle, zipfile
file = io.BytesIO()
with zipfile.ZipFile(file, "w") as written:
    written.writestr("archive/data.pkl", b"\\x80\\x02}N" + pickle.TUPLE1 * 1000000 + b"Ks.")
file.seek(0)
try:
    torch.load(file)
except pickle.UnpicklingError as error:
    assert "nested too deep" in str(error)
else:
    raise SystemExit("nothing was raised")
"""
    )
    file = io.BytesIO()
    onestep.save({((1, 2), "a"): onestep.ones(2)}, file)
    file.seek(0)
    assert onestep.load(file)[((1, 2), "a")].tolist() == [1, 1]
