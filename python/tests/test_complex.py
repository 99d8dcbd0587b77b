"""Complex tensors and Fourier transforms, beside Python's complex numbers and the sums of the definition."""

import cmath
import copy
import math
import pickle

import onestep as torch
import pytest
from onestep import fft

Z = [[0.5 - 1.5j, -2 + 0.25j, 3j], [-1 + 0j, 2 + 2j, -0.5 - 0.75j]]
W = [[1 + 1j, -0.5j, 2 - 1j], [0.25 + 0j, -1 - 1j, 3 + 0.5j]]


def near(found, wanted, tolerance=1e-5):
    """Nested lists of (complex) numbers, each within the tolerance."""
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted):
            near(a, b, tolerance)
    else:
        assert abs(found - wanted) <= tolerance * max(1, abs(wanted)), (found, wanted)


def each(f, *operands):
    return [[f(*numbers) for numbers in zip(*rows)] for rows in zip(*operands)]


UNARY = {
    "exp": cmath.exp, "log": cmath.log, "sqrt": cmath.sqrt, "abs": abs, "sin": cmath.sin, "cos": cmath.cos, "sinh": cmath.sinh,
    "cosh": cmath.cosh, "tanh": cmath.tanh, "angle": cmath.phase, "conj": lambda z: z.conjugate(), "square": lambda z: z * z,
    "reciprocal": lambda z: 1 / z, "neg": lambda z: -z, "sgn": lambda z: z / abs(z),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_and_methods_are_those_of_pythons_numbers(name):
    z = torch.tensor(Z, dtype=torch.complex128)
    wanted = each(UNARY[name], Z)
    near(getattr(torch, name)(z).tolist(), wanted, 1e-12)
    if name != "angle":
        near(getattr(z, name)().tolist(), wanted, 1e-12)


BINARY = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "**": lambda a, b: a**b,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_operators_meet_complex_and_real_tensors_and_numbers(name):
    f = BINARY[name]
    z, w = (torch.tensor(v, dtype=torch.complex128) for v in (Z, W))
    real = torch.tensor(each(lambda v: abs(v), W), dtype=torch.float64)
    near(f(z, w).tolist(), each(f, Z, W), 1e-12)
    near(f(z, real).tolist(), each(f, Z, real.tolist()), 1e-12)
    for number in (2, 0.5, 1 - 2j):
        near(f(z, number).tolist(), each(lambda v: f(v, number), Z), 1e-12)
        near(f(number, z).tolist(), each(lambda v: f(number, v), Z), 1e-12)
    if name != "**":
        near(f(real, z).tolist(), each(f, real.tolist(), Z), 1e-12)
        near(f(real, 2j).tolist(), each(lambda v: f(v, 2j), real.tolist()), 1e-12)
        near(f(2j, real).tolist(), each(lambda v: f(2j, v), real.tolist()), 1e-12)


def test_products_and_sums():
    z, w = (torch.tensor(v, dtype=torch.complex128) for v in (Z, W))
    product = [[sum(a * b for a, b in zip(row, other)) for other in W] for row in Z]
    for found in (z @ w.T, torch.einsum("ij,kj->ik", z, w), torch.nn.functional.linear(z, w), torch.matmul(z, w.mT), z.mm(w.T)):
        near(found.tolist(), product, 1e-12)
    near(z.sum().item(), sum(map(sum, Z)), 1e-12)
    near(z.prod(1).tolist(), [math.prod(row) for row in Z], 1e-12)
    near(torch.vdot(z[0], w[0]).item(), sum(a.conjugate() * b for a, b in zip(Z[0], W[0])), 1e-12)
    near(torch.linalg.norm(z).item(), math.sqrt(sum(abs(v) ** 2 for row in Z for v in row)), 1e-12)


def test_what_changes_shapes_does_it_to_both_parts():
    z = torch.tensor(Z)
    assert z.T.tolist() == [list(row) for row in zip(*Z)]
    assert z.view(torch.float32).tolist() == torch.view_as_real(z).flatten(1).tolist()
    assert torch.equal(z.view(torch.float32).view(torch.complex64), z)
    assert torch.nn.functional.pad(z[0, :1], (0, 2), value=1).tolist() == [Z[0][0], 1, 1]
    assert z.view(3, 2).tolist() == [[Z[0][0], Z[0][1]], [Z[0][2], Z[1][0]], [Z[1][1], Z[1][2]]]
    assert torch.cat([z, torch.ones(1, 3)]).tolist() == [*Z, [1, 1, 1]]
    assert torch.stack([z[0], torch.arange(3)]).tolist() == [Z[0], [0, 1, 2]]
    assert [part.tolist() for part in z.unbind(0)] == Z == [row.tolist() for row in z]
    assert torch.where(z.real > 0, z, 1j).tolist() == each(lambda v: v if v.real > 0 else 1j, Z)
    z[0, 1:] = 7j
    z[1] = torch.zeros(3)
    assert z.tolist() == [[Z[0][0], 7j, 7j], [0, 0, 0]]


def test_pairs_share_their_memory():
    pairs = torch.arange(8.0).reshape(2, 2, 2)
    z = torch.view_as_complex(pairs)
    assert z.tolist() == [[1j, 2 + 3j], [4 + 5j, 6 + 7j]] and torch.view_as_real(z).tolist() == pairs.tolist()
    z[0, 0] = -1
    assert pairs[0, 0].tolist() == [-1, 0]
    z *= 1j
    assert pairs[0].tolist() == [[0, -1], [-3, 2]]
    with pytest.raises(RuntimeError, match="must be of size 2"):
        torch.view_as_complex(torch.ones(3))


def test_kinds_and_dtypes():
    z = torch.tensor(Z)
    assert (z.dtype, z.shape, z.ndim, len(z), z.numel(), z.element_size()) == (torch.complex64, (2, 3), 2, 2, 6, 8)
    assert z.is_complex() and torch.is_complex(z) and not z.is_floating_point() and isinstance(z, torch.Tensor) and torch.is_tensor(z)
    assert z.to(torch.cdouble).dtype == torch.complex128 and z.real.dtype == torch.float32 == z.dtype.to_real()
    assert torch.ones(2).to(torch.complex64).tolist() == [1, 1] == torch.ones(2).cfloat().tolist()
    assert torch.zeros(2, dtype=torch.cfloat).tolist() == [0, 0] and torch.eye(2, dtype=torch.cfloat).tolist() == [[1, 0], [0, 1]]
    assert torch.ones(2, dtype=torch.cfloat, requires_grad=True).requires_grad and torch.full((2,), 1j, requires_grad=True).requires_grad
    assert torch.full((2,), 1j).tolist() == [1j, 1j] and torch.zeros_like(z).dtype == z.dtype
    assert torch.tensor([1, 2j]).tolist() == [1, 2j] and torch.tensor(3j).item() == 3j
    assert repr(z[0]) == "tensor([ 0.5000-1.5000j, -2.0000+0.2500j,  0.0000+3.0000j])"  # as PyTorch prints it
    for other in (copy.deepcopy(z), pickle.loads(pickle.dumps(z))):
        assert torch.equal(other, z)
    with pytest.raises(NotImplementedError, match="sort: not for complex tensors"):
        z.sort()
    with pytest.raises(NotImplementedError, match="erf: not for complex tensors"):
        torch.erf(z)


def test_data_that_are_no_numbers_are_refused():
    endless = []
    endless.extend([endless] * 50)
    for make in (torch.tensor, torch.cat):
        with pytest.raises((ValueError, TypeError)):
            make(endless)
    with pytest.raises(RuntimeError, match="Could not infer dtype of object"):
        torch.tensor([[1, object()]])
    with pytest.raises(RuntimeError, match="Could not infer dtype of complex"):
        torch.ones(2)[0] = 1j


def test_numpys_arrays():
    numpy = pytest.importorskip("numpy")
    z = torch.tensor(numpy.array(Z))
    assert z.dtype == torch.complex128 and z.tolist() == Z and numpy.array_equal(z.numpy(), numpy.array(Z))
    assert torch.tensor([numpy.array(Z)]).tolist() == [Z]
    assert torch.from_numpy(numpy.array(Z, dtype=numpy.complex64)).dtype == torch.complex64


def test_draws_are_pytorchs():
    """PyTorch 2.13: torch.manual_seed(1); torch.randn(3, dtype=torch.cfloat), and torch.rand(2, dtype=torch.cfloat)."""
    torch.manual_seed(1)
    near(torch.randn(3, dtype=torch.cfloat).tolist(), [0.4676466+0.1887438j, 0.04361241+0.4393377j, -0.3195458-0.1174718j])
    torch.manual_seed(1)
    near(torch.rand(2, dtype=torch.cfloat).tolist(), [0.7576316+0.2793109j, 0.4030693+0.7346845j])


@pytest.mark.parametrize("name", ["abs", "angle", "exp", "log", "sqrt", "tanh", "sgn", "reciprocal"])
def test_gradients_are_those_of_differences(name):
    parts = [torch.tensor(each(part, Z), dtype=torch.float64, requires_grad=True) for part in (lambda v: v.real, lambda v: v.imag - 0.1)]

    def f(real, imag):
        y = getattr(torch, name)(torch.complex(real, imag))
        return (y.real, y.imag) if y.is_complex() else y

    assert torch.autograd.gradcheck(f, parts)


def test_the_gradient_of_a_complex_leaf():
    """d abs(z)^2 = 2 z, as PyTorch writes dL/dreal + i dL/dimag; of abs at 0 it is 0."""
    z = torch.tensor([3 + 4j, 0], requires_grad=True)
    (z.abs() ** 2).sum().backward()
    assert z.grad.tolist() == [6 + 8j, 0]


def test_gradients_of_and_with_respect_to_complex_tensors():
    """With weights w, PyTorch gives conj(dy/dz) w: of y = z^2 2 conj(z) w; where y is not analytic, both parts' gradients."""
    z, w = torch.tensor(Z, dtype=torch.complex128, requires_grad=True), torch.tensor(W, dtype=torch.complex128)
    near(torch.autograd.grad(z * z, z, w)[0].tolist(), each(lambda a, b: 2 * a.conjugate() * b, Z, W), 1e-12)
    near(torch.autograd.grad(z.conj() * 2j, [z], [w])[0].tolist(), each(lambda b: 2j * b.conjugate(), W), 1e-12)
    (z * 3).backward(w)
    near(z.grad.tolist(), each(lambda b: 3 * b, W), 1e-12)
    assert torch.autograd.grad(z.real.sum(), [w.requires_grad_()], allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        z.sum().backward()


def test_rotary_embedding_by_complex_numbers():
    """What Llama's reference code does, beside sines and cosines."""
    torch.manual_seed(0)
    x = torch.randn(2, 5, 3, 8, dtype=torch.float64, requires_grad=True)
    angles = torch.outer(torch.arange(5.0), 1 / 10000 ** (torch.arange(0, 8, 2) / 8)).double()
    rotation = torch.polar(torch.ones_like(angles), angles).view(1, 5, 1, 4)
    rotated = torch.view_as_real(torch.view_as_complex(x.reshape(2, 5, 3, 4, 2)) * rotation).flatten(3)
    cos, sin = (f(angles).view(1, 5, 1, 4) for f in (torch.cos, torch.sin))
    a, b = x[..., ::2], x[..., 1::2]
    wanted = torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(3)
    assert torch.allclose(rotated, wanted)
    weights = torch.randn(rotated.shape, dtype=torch.float64)
    assert torch.allclose(*(torch.autograd.grad((y * weights).sum(), x)[0] for y in (rotated, wanted)))


def test_modules_hold_complex_buffers():
    module = torch.nn.Module()
    module.register_buffer("rotation", torch.tensor(Z), persistent=False)
    module.register_buffer("kept", torch.tensor(W))
    module.half()
    assert module.rotation.dtype == torch.complex64 and list(module.state_dict()) == ["kept"]
    module.load_state_dict({"kept": torch.tensor(Z)})
    assert module.kept.tolist() == Z
    with pytest.raises(NotImplementedError, match="Parameter: a complex tensor cannot be one"):
        torch.nn.Parameter(torch.tensor(Z))


def test_values_of_other_classes_answer_for_ops():
    """PyTorch's protocol: the op, the types, and the arguments as they were given."""

    class Logged:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types, len(args), kwargs

    value = Logged()
    assert torch.add(torch.ones(2), value, alpha=2) == ("add", (Logged,), 2, {"alpha": 2})
    assert torch.cat([torch.ones(2), value], dim=0) == ("cat", (Logged,), 1, {"dim": 0})


def test_files_hold_them_as_pytorch_does(tmp_path):
    z = torch.tensor(Z, dtype=torch.complex128)
    torch.save({"z": z, "column": z.T[1:], "dtype": z.dtype}, tmp_path / "z.pt")
    assert b"ComplexDoubleStorage" in (tmp_path / "z.pt").read_bytes()
    loaded = torch.load(tmp_path / "z.pt")
    assert loaded["z"].tolist() == Z and loaded["column"].tolist() == z.T[1:].tolist() and loaded["dtype"] is torch.complex128


# ---- Fourier transforms


def transformed(numbers, sign=-1):
    n = len(numbers)
    return [sum(x * cmath.exp(sign * 2j * math.pi * j * k / n) for j, x in enumerate(numbers)) for k in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 12, 64, 65, 97, 130, 131, 134])
def test_transforms_are_the_sums(n):
    torch.manual_seed(n)
    z = torch.randn(n, dtype=torch.complex128)
    x = z.real.contiguous()
    wanted = transformed(z.tolist())
    near(fft.fft(z).tolist(), wanted, 1e-10)
    near(fft.ifft(z).tolist(), [v / n for v in transformed(z.tolist(), 1)], 1e-10)
    near(fft.rfft(x).tolist(), transformed(x.tolist())[: n // 2 + 1], 1e-10)
    near(fft.irfft(fft.rfft(x), n).tolist(), x.tolist(), 1e-10)
    near(fft.ihfft(x).tolist(), [v / n for v in transformed(x.tolist(), 1)[: n // 2 + 1]], 1e-10)
    near(fft.hfft(fft.ihfft(x), n).tolist(), x.tolist(), 1e-10)
    near(fft.fft(z, norm="ortho").tolist(), [v / math.sqrt(n) for v in wanted], 1e-10)
    near(fft.ifft(fft.fft(z, norm="forward"), norm="forward").tolist(), z.tolist(), 1e-10)


def test_transforms_along_other_and_several_dims():
    x = torch.randn(4, 3, 6, dtype=torch.float64)
    assert torch.allclose(fft.fft(x, dim=0), fft.fft(x.movedim(0, -1)).movedim(-1, 0))
    assert torch.allclose(fft.fft2(x), fft.fft(fft.fft(x, dim=-1), dim=-2))
    assert torch.allclose(fft.fftn(x), fft.fft(fft.fft2(x), dim=0)) and torch.allclose(fft.ifftn(fft.fftn(x)).real, x)
    assert torch.allclose(fft.irfft2(fft.rfft2(x)), x) and torch.allclose(fft.irfftn(fft.rfftn(x, dim=(0, 2)), dim=(0, 2)), x)
    assert fft.fft(x, 8).shape == (4, 3, 8) and fft.fft(x, 2, 1).shape == (4, 2, 6)
    assert torch.allclose(fft.fft(x, 8)[..., 0], x.sum(-1).to(torch.complex128))
    assert fft.fftfreq(5, 0.5).tolist() == pytest.approx([0, 0.4, 0.8, -0.8, -0.4]) and fft.rfftfreq(4).tolist() == [0, 0.25, 0.5]
    assert fft.fftshift(torch.arange(5)).tolist() == [3, 4, 0, 1, 2] and fft.ifftshift(fft.fftshift(x)).tolist() == x.tolist()


def test_transforms_are_differentiable():
    x = torch.randn(2, 7, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: tuple(torch.view_as_real(fft.rfft(a, 12)).unbind(-1)), [x])
    assert torch.autograd.gradcheck(lambda a, b: fft.irfft(torch.complex(a, b)), [x, y])


def test_transforms_refuse_what_pytorch_refuses():
    for bad in (lambda: fft.fft(torch.ones(3), 0), lambda: fft.fft(torch.ones(3), norm="other"), lambda: fft.rfft(torch.tensor([1j]))):
        with pytest.raises(RuntimeError):
            bad()


def test_short_time_transforms():
    torch.manual_seed(0)
    x, window = torch.randn(2, 50, dtype=torch.float64), torch.hann_window(16, dtype=torch.float64)
    spectra = torch.stft(x, 16, 4, window=window, return_complex=True)
    assert spectra.shape == (2, 9, 13)
    frame = (x[1, 8:24] * window).tolist()  # the fourth: frames begin at -8
    near(spectra[1, :, 4].tolist(), transformed(frame)[:9], 1e-10)
    assert torch.allclose(torch.istft(spectra, 16, 4, window=window, length=50)[:, :48], x[:, :48])
    assert torch.hann_window(4).tolist() == pytest.approx([0, 0.5, 1, 0.5]) and torch.hamming_window(2).tolist() == pytest.approx([0.08, 1])
    assert torch.bartlett_window(5, False).tolist() == [0, 0.5, 1, 0.5, 0] and torch.blackman_window(2).tolist() == pytest.approx([0, 1])
    assert torch.kaiser_window(5, False, 3.5).tolist() == pytest.approx([0.1355343, 0.6784086, 1.0, 0.6784086, 0.1355343], rel=1e-6)  # numpy.kaiser
    with pytest.raises(RuntimeError, match="cover"):
        torch.istft(torch.stft(x, 16, 4, window=window, center=False, return_complex=True), 16, 4, window=window, center=False)
