"""SummaryWriter, read back by TensorBoard where it is installed."""

import struct
import zlib

import pytest

import onestep as torch
from onestep.utils.tensorboard import SummaryWriter


def test_tensorboard_reads_what_is_written(tmp_path):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss/train", torch.tensor(2.0 - step), step)
            writer.add_scalars("both", {"a": step, "b": 2 * step}, step)
        writer.add_text("note", "*text*", 2)

    def events(folder):
        accumulator = accumulators.EventAccumulator(str(folder))
        accumulator.Reload()
        return accumulator

    assert [(e.step, e.value) for e in events(tmp_path).Scalars("loss/train")] == [(0, 2.0), (1, 1.0), (2, 0.0)]
    assert [e.value for e in events(tmp_path / "both_b").Scalars("both")] == [0.0, 2.0, 4.0]
    assert events(tmp_path).Tensors("note/text_summary")[0].tensor_proto.string_val[0] == b"*text*"


def test_the_default_folder_and_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="-lr")
    writer.add_scalar("x", 1.0)
    assert writer.get_logdir().startswith("runs/") and writer.get_logdir().endswith("-lr")
    assert len(list((tmp_path / writer.log_dir).iterdir())) == 1
    with pytest.raises(NotImplementedError, match="add_video"):
        writer.add_video("x", torch.ones(3))


@pytest.fixture
def read(tmp_path):
    """Runs a function of a writer and reads what it wrote."""
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

    def written(write):
        with SummaryWriter(tmp_path) as writer:
            write(writer)
        accumulator = accumulators.EventAccumulator(str(tmp_path), size_guidance={"images": 0, "histograms": 0})
        return accumulator.Reload()

    return written


def pixels(image):
    """[height][width * channels] of a PNG whose rows have no filter."""
    data = image.encoded_image_string
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (width, height, depth) == (image.width, image.height, 8)
    channels = {2: 3, 6: 4}[kind]
    size = struct.unpack(">I", data[33:37])[0]
    assert data[37:41] == b"IDAT" and struct.unpack(">I", data[41 + size : 45 + size])[0] == zlib.crc32(data[37 : 41 + size])
    rows = zlib.decompress(data[41 : 41 + size])
    return [list(rows[i * (width * channels + 1) + 1 : (i + 1) * (width * channels + 1)]) for i in range(height)]


def test_histograms_are_numpys(read):
    numpy = pytest.importorskip("numpy")
    torch.manual_seed(0)
    x = torch.randn(500)

    def write(writer):
        writer.add_histogram("ten", x, 3, bins=10)
        writer.add_histogram("growing", x, 3)
        writer.add_histogram("few", x, 3, bins="auto", max_bins=5)
        writer.add_histogram("zeros", torch.zeros(4), 3)
        writer.add_histogram("list", [1, 2, 2])
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("none", torch.zeros(0))

    found = read(write)
    ten, growing = found.Histograms("ten")[0].histogram_value, found.Histograms("growing")[0].histogram_value
    counts, limits = numpy.histogram(x.double().numpy(), 10)
    assert ten.bucket == [0, *counts] and ten.bucket_limit == pytest.approx(limits)
    assert (ten.num, ten.min, ten.sum) == pytest.approx((500, x.min().item(), x.double().sum().item()))
    assert sum(growing.bucket) == 500 and found.Histograms("growing")[0].step == 3
    upper = growing.bucket_limit
    inside = [int(((x > low) & (x <= high)).sum()) for low, high in zip(upper, upper[1:])]
    assert growing.bucket[1:] == inside and len(upper) > 100
    assert sum(found.Histograms("few")[0].histogram_value.bucket) == 500
    assert len(found.Histograms("few")[0].histogram_value.bucket) <= 7
    assert found.Histograms("zeros")[0].histogram_value.bucket == [0, 4]
    assert sum(found.Histograms("list")[0].histogram_value.bucket) == 3


def test_images_are_their_pixels(read):
    picture = torch.arange(24, dtype=torch.uint8).reshape(3, 2, 4)

    def write(writer):
        writer.add_image("chw", picture, 5)
        writer.add_image("hwc", picture.permute(1, 2, 0), dataformats="HWC")
        writer.add_image("grey", torch.tensor([[0.0, 0.5], [1.0, 2.0]]), dataformats="HW")
        writer.add_images("batch", torch.arange(9.0).reshape(9, 1, 1, 1) / 255)
        writer.add_image("rgba", torch.zeros(4, 1, 1))
        with pytest.raises(ValueError, match="input_format: CHW"):
            writer.add_image("x", torch.zeros(2, 2))
        with pytest.raises(ValueError, match="3 or 4 channels, got 2"):
            writer.add_image("x", torch.zeros(2, 2, 2))
        with pytest.raises(ValueError, match="takes the letters"):
            writer.add_image("x", torch.zeros(2, 2), dataformats="HH")

    found = read(write)
    interleaved = picture.permute(1, 2, 0).reshape(2, 12).tolist()
    assert pixels(found.Images("chw")[0]) == interleaved == pixels(found.Images("hwc")[0]) and found.Images("chw")[0].step == 5
    assert pixels(found.Images("grey")[0]) == [[0] * 3 + [127] * 3, [255] * 6]
    batch = pixels(found.Images("batch")[0])
    assert batch == [[i for i in range(8) for _ in range(3)], [8] * 3 + [0] * 21]
    assert pixels(found.Images("rgba")[0]) == [[0] * 4]


def test_what_matplotlib_draws_is_an_image(read):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figures = [pyplot.figure(figsize=(2, 1), dpi=50, facecolor="red") for _ in range(2)]

    def write(writer):
        writer.add_figure("one", figures[0], close=False)
        writer.add_figure("two", figures)

    found = read(write)
    assert pixels(found.Images("one")[0]) == [[255, 0, 0] * 100] * 50
    assert (found.Images("two")[0].width, found.Images("two")[0].height) == (200, 50) and not pyplot.get_fignums()
