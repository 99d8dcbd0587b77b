"""torch.hub: files of weights, fetched once and kept in the cache directory that PyTorch uses, too."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import urllib.request
from typing import Any
from urllib.parse import urlparse

import onestep
from onestep._missing import unavailable_names

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of names like resnet18-5c106cde.pth
_directory: str | None = None


def get_dir() -> str:
    """The directory that files are kept under: what set_dir named, else $TORCH_HOME/hub."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "torch")
    return _directory or os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Names the directory that files are kept under."""
    global _directory
    _directory = os.path.expanduser(d)


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetches a file, which is at `dst` once it is whole and its SHA256 begins with `hash_prefix`; shows no progress."""
    dst = os.path.expanduser(dst)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(dst) or ".", suffix=".part", delete=False) as part:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers={"User-Agent": "torch.hub"})) as response:
                shutil.copyfileobj(response, part)
            part.flush()
            if hash_prefix and not (digest := _sha256(part.name)).startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
            os.chmod(part.name, 0o644)  # a temporary file is for its owner alone
            os.replace(part.name, dst)
        finally:
            if os.path.exists(part.name):
                os.remove(part.name)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """The state dict in the file at `url`, which is fetched unless `model_dir` (get_dir()/checkpoints) has it already."""
    model_dir = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        named = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, named.group(1) if named else None, progress)
    return onestep.load(path, map_location=map_location, weights_only=weights_only)


__getattr__ = unavailable_names("torch.hub")
