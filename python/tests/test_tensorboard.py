"""SummaryWriter, read back by TensorBoard where it is installed."""

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
    with pytest.raises(NotImplementedError, match="add_histogram"):
        writer.add_histogram("x", torch.ones(3))
