"""Memory shared with NumPy and by DLPack."""

import gc

import pytest

import onestep as torch

np = pytest.importorskip("numpy")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool", "float16"])
def test_numpy_both_ways_without_a_copy(dtype):
    array = np.array([[0, 1, 1], [1, 0, 0]], dtype=dtype)
    x = torch.from_numpy(array)
    assert str(x.dtype) == f"torch.{dtype}" and x.tolist() == array.tolist()
    array[0, 0] = 1
    assert x[0, 0].item() == 1
    back = x.T.numpy()
    assert back.dtype == array.dtype and back.shape == (3, 2)
    x[0, 1] = 0
    assert back[1, 0] == 0 and not array[0, 1]


def test_memory_outlives_its_owner():
    x = torch.from_numpy(np.arange(1000.0))
    y = torch.arange(1000.0).numpy()
    gc.collect()
    assert x.sum().item() == y.sum() == 499500
    assert np.asarray(torch.ones(3)).tolist() == [1, 1, 1]


def test_strided_arrays():
    array = np.arange(24.0).reshape(4, 6)
    assert torch.from_numpy(array[::2, 1::2]).tolist() == array[::2, 1::2].tolist()
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(array[::-1])
    assert torch.tensor(array[::2]).is_contiguous()


def test_refusals():
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError):
        torch.ones(2, dtype=torch.bfloat16).numpy()
    with pytest.raises(TypeError):
        torch.from_numpy(np.array(["a"]))
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(torch.ones(2, requires_grad=True))


def test_arithmetic_with_arrays():
    x, a = torch.ones(3), np.arange(3, dtype=np.float32)
    for y in (x + a, a + x):
        assert isinstance(y, torch.Tensor) and y.tolist() == [1, 2, 3]
    assert (x * np.float64(2)).dtype == torch.float32
    assert torch.tensor([a, a]).tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "uint8", "int64", "bool"])
def test_numbers_of_numpy_keep_their_dtype_in_lists(dtype):
    number = np.array(1, dtype=dtype)[()]
    for x in (torch.tensor(number), torch.tensor([number, number]), torch.tensor([[number]])):
        assert str(x.dtype) == f"torch.{dtype}" and (x == 1).all()


def test_dlpack():
    a = np.arange(6.0).reshape(2, 3)
    x = torch.from_dlpack(a)
    x[0, 0] = 5
    assert a[0, 0] == 5
    y = torch.arange(4)
    b = np.from_dlpack(y)
    y[1] = 9
    assert b.tolist() == [0, 9, 2, 3]
    z = torch.from_dlpack(torch.ones(2, dtype=torch.bfloat16))
    assert z.dtype == torch.bfloat16
    capsule = y.__dlpack__()
    torch.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="it was used"):
        torch.from_dlpack(capsule)
    with pytest.raises(BufferError):
        torch.ones(1, requires_grad=True).__dlpack__()


def test_bytes_as_another_dtype():
    numbers = np.array([[1.5, -2.0, 3.25, 0.0], [7.0, 8.0, -9.0, 10.0]], dtype=np.float32)
    x = torch.tensor(numbers)
    for dtype, other in ((torch.int32, np.int32), (torch.uint8, np.uint8), (torch.float64, np.float64), (torch.int64, np.int64)):
        assert torch.equal(x.view(dtype), torch.tensor(numbers.view(other)))
    assert x.t().view(torch.int32).tolist() == numbers.T.view(np.int32).tolist()
    assert x[1].view(torch.int64).tolist() == numbers[1].view(np.int64).tolist()
    x.view(torch.int32)[0, 1] = 0x40400000
    assert x[0].tolist() == [1.5, 3.0, 3.25, 0.0] and not x.requires_grad_().view(torch.int32).requires_grad
    with pytest.raises(torch.ShapeError, match="must have elements that lie side by side"):
        x.t().view(torch.uint8)
    with pytest.raises(torch.ShapeError, match="are not whole elements of torch.float64|are not whole elements of float64"):
        x[:, 1:].view(torch.float64)
    assert torch.tensor([0, 1], dtype=torch.uint8).view(torch.bool).tolist() == [False, True]
    with pytest.raises(torch.DTypeError, match="are not all bools"):
        torch.tensor([2], dtype=torch.uint8).view(torch.bool)


def test_storages(tmp_path):
    x = torch.arange(6.0).reshape(2, 3)
    storage = x[1].untyped_storage()
    assert torch.is_storage(storage) and storage.nbytes() == len(storage) == 24 and storage.data_ptr() == x.data_ptr()
    assert x.storage().size() == 6 and x.storage()[4] == 4 and x.storage()[1:3] == [1, 2]
    file = tmp_path / "bytes"
    file.write_bytes(bytes(20) + x.numpy().tobytes())
    mapped = torch.UntypedStorage.from_file(str(file), nbytes=44)
    read = torch.asarray(mapped[20:44], dtype=torch.uint8).view(torch.float32).reshape(2, 3)
    assert torch.equal(read, x) and mapped[20] == 0
    shared = torch.UntypedStorage.from_file(file, shared=True, nbytes=44)
    torch.asarray(shared).fill_(0)
    assert not np.fromfile(file, np.uint8).any()
    kept = np.ones(2)
    assert torch.asarray(kept).data_ptr() == kept.ctypes.data != torch.asarray(kept, copy=True).data_ptr()
    assert torch.asarray([1.0], requires_grad=True).requires_grad
