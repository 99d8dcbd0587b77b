"""Sparse tensors: places, values, products and their gradients, against the dense ones."""
import numpy
import pytest

import onestep as torch


def example(dtype=torch.float64):
    """[[0, 5, 0], [1, 0, 2]], whose 5 is 2 + 3 at one place."""
    indices = torch.tensor([[1, 0, 0, 1], [2, 1, 1, 0]])
    return torch.sparse_coo_tensor(indices, torch.tensor([2.0, 2.0, 3.0, 1.0], dtype=dtype), (2, 3))


def test_what_it_is():
    x = example()
    assert isinstance(x, torch.Tensor) and torch.is_tensor(x) and x.is_sparse and not torch.zeros(1).is_sparse
    assert (x.shape, x.dtype, x.dim(), x._nnz(), x.is_coalesced()) == ((2, 3), torch.float64, 2, 4, False)
    assert x.to_dense().tolist() == [[0, 5, 0], [1, 0, 2]] and x.t().to_dense().tolist() == [[0, 1], [5, 0], [0, 2]]
    assert (2 * x).to_dense().sum() == 16 and x.float().dtype == torch.float32


def test_coalesced_places_are_in_order():
    x = example()
    with pytest.raises(RuntimeError, match="uncoalesced"):
        x.indices()
    y = x.coalesce()
    assert y.indices().tolist() == [[0, 1, 1], [1, 0, 2]] and y.values().tolist() == [5, 1, 2] and torch.equal(y.to_dense(), x.to_dense())
    assert repr(y.float()) == (
        "tensor(indices=tensor([[0, 1, 1],\n                       [1, 0, 2]]),\n"
        "       values=tensor([5., 1., 2.]),\n       size=(2, 3), nnz=3, layout=torch.sparse_coo)"
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_of_a_dense_tensor_and_back(dtype):
    dense = torch.tensor([[[0, 1], [0, 0]], [[1, 0], [1, 1]]]).to(dtype)
    x = dense.to_sparse()
    assert x.is_coalesced() and x.indices().tolist() == [[0, 1, 1, 1], [0, 0, 1, 1], [1, 0, 0, 1]]
    assert x.to_dense().dtype == dtype and torch.equal(x.to_dense(), dense)
    assert torch.zeros(2, 2).to_sparse().coalesce().to_dense().tolist() == [[0, 0], [0, 0]]
    with pytest.raises(NotImplementedError, match="to_sparse: not for a tensor that requires grad"):
        torch.ones(2, 2, requires_grad=True).to_sparse()


def test_products_and_their_gradients_are_the_dense_ones():
    torch.manual_seed(0)
    indices = torch.tensor([[0, 2, 2, 3, 0], [1, 0, 2, 2, 1]])
    values = torch.randn(5, dtype=torch.float64, requires_grad=True)
    dense, add = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 2), (4, 2)))
    full = lambda values: torch.zeros(4, 3, dtype=torch.float64).index_put(tuple(indices), values, accumulate=True)  # noqa: E731
    x = torch.sparse_coo_tensor(indices, values, (4, 3))
    want = full(values) @ dense
    weight = torch.randn(4, 2, dtype=torch.float64)
    grads = torch.autograd.grad((want * weight).sum(), (values, dense))
    for got in (x @ dense, torch.mm(x, dense), torch.matmul(x, dense), torch.spmm(x, dense), torch.sparse.mm(x, dense), x.matmul(dense)):
        assert torch.allclose(got, want)
        assert all(map(torch.allclose, torch.autograd.grad((got * weight).sum(), (values, dense), retain_graph=True), grads))
    assert torch.allclose(torch.mv(x, dense[:, 0]), want[:, 0]) and torch.equal(torch.spmm(full(values), dense), want)
    assert torch.allclose(torch.addmm(add, x, dense, beta=2), 2 * add + want)
    assert torch.autograd.gradcheck(lambda v, d: torch.sparse_coo_tensor(indices, v, (4, 3)).t().t().coalesce().to_dense() @ d, (values, dense))


def test_a_function_keeps_one_for_its_backward():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, dense):
            x = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), values, (2, 2))
            ctx.save_for_backward(x, dense)
            return torch.matmul(x, dense)

        @staticmethod
        def backward(ctx, grad):
            x, dense = ctx.saved_tensors
            places = x._indices()
            return (grad @ dense.t())[places[0], places[1]], x.t().matmul(grad)

    torch.manual_seed(0)
    inputs = (torch.randn(2, dtype=torch.float64, requires_grad=True), torch.randn(2, 3, dtype=torch.float64, requires_grad=True))
    assert torch.autograd.gradcheck(Product.apply, inputs)


def test_a_module_keeps_it_as_a_buffer():
    module = torch.nn.Module()
    module.register_buffer("edges", example(torch.float32), persistent=False)
    assert module.double().edges.dtype == torch.float64 and not module.state_dict()


@pytest.mark.parametrize("indices, values, size", [
    ([[0, 2]], [1.0, 2.0], (2,)), ([[0, -1]], [1.0, 2.0], (2,)), ([[0, 1]], [1.0], (2,)), ([[0, 1]], [1.0, 2.0], (2, 2)),
    ([[0, 1]], [[1.0], [2.0]], (2, 1)),
])  # fmt: skip
def test_what_does_not_fit_is_refused(indices, values, size):
    with pytest.raises(torch.ShapeError, match="sparse_coo_tensor"):
        torch.sparse_coo_tensor(indices, values, size)


def test_without_a_size_it_is_as_large_as_the_places_need():
    assert torch.sparse.FloatTensor(torch.tensor([[0, 4], [1, 2]]), torch.ones(2)).shape == (5, 3)


def test_other_ops_say_that_they_are_missing():
    for use in (lambda x: torch.exp(x), lambda x: x.exp(), lambda x: x.sum(), lambda x: torch.zeros(2, 2) @ x, lambda x: x @ x, lambda x: x * x):
        with pytest.raises(NotImplementedError, match="sparse"):
            use(example())


def test_what_is_not_here_is_refused_and_never_wrong():
    x = torch.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], [3.0, 4.0, 5.0, 1.0], (2, 3))
    dense = torch.ones(3, 2)
    for call in (
        lambda: x == x, lambda: dense == x, lambda: bool(x), lambda: x + x, lambda: x[0], lambda: list(x), lambda: dense.exp() + x,
        lambda: numpy.asarray(x), lambda: numpy.ones((2, 3), "f4") * x, lambda: torch.mm(x, torch.ones(3)), lambda: torch.mv(x, dense),
        lambda: x @ dense.double(), lambda: torch.addmm(torch.ones(5, 2, 2), x, dense), lambda: x.exp(),
    ):  # fmt: skip
        with pytest.raises((NotImplementedError, TypeError, RuntimeError, ValueError)):
            call()
    assert not hasattr(x, "exp") and getattr(x, "grad", None) is None
    twice = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (1,), is_coalesced=True)
    assert twice.to_dense().tolist() == [3]
    with pytest.raises(ValueError, match="too many places"):
        torch.sparse_coo_tensor([[0, 2**24], [0, 0]], [1.0, 2.0], (2**40, 2**40)).coalesce()
    nan = torch.full((2, 2), float("nan"))
    assert torch.equal(torch.addmm(input=nan, mat1=x, mat2=dense, beta=0), torch.mm(input=x, mat2=dense))


def test_a_function_takes_one():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, x):
            ctx.save_for_backward(a, x)
            return a @ x

        @staticmethod
        def backward(ctx, grad):
            a, _ = ctx.saved_tensors
            return None, a.t() @ grad

    x = torch.ones(3, 2, requires_grad=True)
    Product.apply(torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)), x).sum().backward()
    assert x.grad.tolist() == [[4, 4], [0, 0], [3, 3]]
