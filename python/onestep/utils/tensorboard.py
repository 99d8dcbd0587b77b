"""SummaryWriter: scalars, texts, histograms and images for TensorBoard, which need nothing installed to be written."""

from __future__ import annotations

import socket
from datetime import datetime
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from onestep import _C
from onestep._missing import MissingAttribute
from onestep.utils import _summaries

_LATER = (
    "add_histogram_raw add_image_with_boxes add_video add_audio add_graph "
    "add_embedding add_pr_curve add_custom_scalars add_hparams add_mesh add_onnx_graph add_tensor"
)


class SummaryWriter:
    """Writes event files into log_dir (default: runs/TIME_HOST with `comment` at its end)."""

    def __init__(
        self,
        log_dir: Optional[str] = None,
        comment: str = "",
        purge_step: Optional[int] = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            log_dir = f"runs/{datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}{comment}"
        self.log_dir, self.purge_step = str(log_dir), purge_step
        self._files: Dict[str, Any] = {}
        self._file("")

    def _file(self, below: str) -> Any:
        if below not in self._files:
            self._files[below] = _C._EventFile(str(Path(self.log_dir, below)), self.purge_step)
        return self._files[below]

    def get_logdir(self) -> str:
        """The folder that is written to."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A point of the curve `tag`: a number, or a tensor of one element."""
        self._file("").scalar(tag, int(global_step or 0), float(scalar_value))

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
    ) -> None:
        """A point of several curves of one chart, each in a folder of its own below log_dir."""
        for tag, value in tag_scalar_dict.items():
            below = f"{main_tag.replace('/', '_')}_{tag}"
            self._file(below).scalar(main_tag, int(global_step or 0), float(value))

    def add_text(
        self, tag: str, text_string: str, global_step: Optional[int] = None, walltime: Optional[float] = None
    ) -> None:
        """A text, shown as Markdown."""
        self._file("").text(f"{tag}/text_summary", int(global_step or 0), text_string)

    def _add(self, step: Optional[int], value: bytes) -> None:
        self._file("").summary(int(step or 0), value)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Optional[int] = None,
        bins: Any = "tensorflow",
        walltime: Optional[float] = None,
        max_bins: Optional[int] = None,
    ) -> None:
        """How often which values are there, in buckets that grow by a tenth; or in `bins` as numpy.histogram takes them."""
        self._add(global_step, _summaries.histogram(tag, values, bins, max_bins))

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture: uint8, or numbers from 0 to 1; one, three or four channels."""
        self._add(global_step, _summaries.image(tag, img_tensor, dataformats))

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
        dataformats: str = "NCHW",
    ) -> None:
        """A batch of pictures, eight in a row."""
        self._add(global_step, _summaries.image(tag, img_tensor, dataformats))

    def add_figure(
        self, tag: str, figure: Any, global_step: Optional[int] = None, close: bool = True, walltime: Optional[float] = None
    ) -> None:
        """What matplotlib draws; several figures become a batch."""
        several = isinstance(figure, (list, tuple))
        drawn = [_summaries.drawn(one, close) for one in (figure if several else [figure])]
        self._add(global_step, _summaries.image(tag, _C.stack(drawn), "NHWC") if several else _summaries.image(tag, drawn[0], "HWC"))

    def flush(self) -> None:
        """Does nothing: every event is in the file once it is added."""

    def close(self) -> None:
        """Closes the files; what is added later goes to new ones."""
        self._files.clear()

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


for _name in _LATER.split():
    setattr(SummaryWriter, _name, MissingAttribute(f"torch.utils.tensorboard.SummaryWriter.{_name}"))
