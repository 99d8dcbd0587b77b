"""The trainer from Python: `train` a config, and `Run`, what a run folder holds."""

from __future__ import annotations

import json
import os
from html import escape
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import onestep
from onestep import _C, nn

Metrics = Dict[str, Any]
Callback = Callable[[Metrics], Any]


def _sets(values: Optional[Mapping[str, Any]]) -> List[str]:
    """The arguments of --set: {"train.steps": 100} as ["train.steps=100"]."""
    return [f"{key}={json.dumps(value)}" for key, value in (values or {}).items()]


def train(
    config: Union[str, os.PathLike, Mapping[str, Any]],
    out: Union[str, os.PathLike, None] = None,
    *,
    set: Optional[Mapping[str, Any]] = None,
    callback: Optional[Callback] = None,
    quiet: bool = False,
) -> "Run":
    """Trains a model as a config says, as `onestep train` does, and returns its run.

    config: the path of a config file, or a dict with its keys (docs/config.md). out: the run folder (default: runs/NAME of the
    config file, runs/config for a dict); an earlier run of that name is kept as NAME.previous. set: values that win over the
    config, {"train.steps": 100}. callback(metrics): called with every step's figures (step, loss, lr, grad_norm,
    tokens_per_second, seconds, and after an evaluation val_loss and val_accuracy); returning True ends the run, an exception
    or Ctrl-C ends it and is raised; the run is saved first. quiet: no progress on stderr.
    Raises ConfigError, IoError, or DivergedError for a loss that is not finite."""
    if isinstance(config, Mapping):
        text, source = json.dumps(config), "config"
    else:
        source = os.fspath(config)
        try:
            text = Path(source).read_text(encoding="utf-8")
        except OSError as error:
            raise onestep.IoError(f"{source}: {error.strerror}") from None
    return Run(_C._train(text, source, _sets(set), "" if out is None else os.fspath(out), quiet, callback))


class AttentionMaps:
    """The attention weights of a text: `tokens`, its T tokens, and `layers`, name -> weights [H, T, T], row = query, column = key.
    A notebook shows them as pictures."""

    def __init__(self, tokens: List[str], layers: Dict[str, _C.Tensor]) -> None:
        self.tokens = tokens
        self.layers = layers

    def _repr_html_(self) -> str:
        from onestep.display import attention_map

        return "".join(
            f"<h4>{escape(name)}</h4>{attention_map(weights, self.tokens)._repr_html_()}" for name, weights in self.layers.items()
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {list(weights.shape)}" for name, weights in self.layers.items())
        return f"<attention of {len(self.tokens)} tokens: {sizes}>"


class Report:
    """The page about a run: `html` is its text. A notebook shows it."""

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the page to a file, which a browser opens."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: 40em; border: 0" title="report"></iframe>'

    def __repr__(self) -> str:
        return f"<report, {len(self.html)} characters>"


class LanguageModel(nn.Module):
    """The trained model of a run: token ids int64 [B, T] -> logits [B, T, V]. Parameters are the engine's own."""

    def __init__(self, model: _C._Model) -> None:
        super().__init__()
        self._model = model
        for name, tensor in model.named_parameters(nn.Parameter):
            holder, leaf = self._holder(name)
            holder.register_parameter(leaf, tensor)
        for name, tensor in model.named_buffers(_C.Tensor):
            holder, leaf = self._holder(name)
            holder.register_buffer(leaf, tensor)

    def _holder(self, name: str) -> Any:
        """The module that holds what has this dotted name, made where there is none yet, and its last part."""
        *path, leaf = name.split(".")
        holder: nn.Module = self
        for part in path:
            if part not in holder._modules:
                holder.add_module(part, nn.Module())
            holder = holder._modules[part]
        return holder, leaf

    vocab_size = property(lambda self: self._model.vocab_size)
    context_length = property(lambda self: self._model.context_length)

    def forward(self, tokens: _C.Tensor) -> _C.Tensor:
        return self._model.forward(tokens)

    def train(self, mode: bool = True) -> "LanguageModel":
        super().train(mode)
        self._model.train(mode)
        return self

    def __repr__(self) -> str:
        return self._model.repr()


class Run:
    """A run folder: `Run("runs/shakespeare")`. checkpoint: last, best (by validation loss) or step-N."""

    def __init__(self, path: Union[str, os.PathLike], checkpoint: str = "last") -> None:
        self.path = Path(path)
        self.checkpoint = checkpoint
        if not (self.path / "config.json").is_file():
            raise onestep.IoError(f"{self.path}: is no run (holds no config.json)")
        self._loaded: Optional[LanguageModel] = None

    @property
    def config(self) -> Dict[str, Any]:
        """The resolved config, every default written out."""
        return json.loads((self.path / "config.json").read_text(encoding="utf-8"))

    @property
    def metrics(self) -> Dict[str, List[Optional[float]]]:
        """The logged steps as columns: step, loss, lr, grad_norm, ..., and val_loss, which is None between evaluations."""
        rows = []
        for line in (self.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):  # half a line: a run that is being written
                rows.append(json.loads(line))
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}

    @property
    def model(self) -> LanguageModel:
        """The model of the checkpoint, in evaluation mode."""
        if self._loaded is None:
            self._loaded = LanguageModel(_C._load_model(str(self.path), self.checkpoint)).eval()
        return self._loaded

    @property
    def tokenizer(self) -> Optional[_C.Tokenizer]:
        """The tokenizer of a run on text: encode, encode_prompt, decode, kind, vocab_size; None for a run on ids."""
        return self.model._model.tokenizer

    def _ids(self, prompt: Union[str, Sequence[int]]) -> List[int]:
        if not isinstance(prompt, str):
            return [int(i) for i in prompt]
        if self.tokenizer is None:
            raise onestep.ConfigError(f"{self.path}: was trained on ids and has no tokenizer (give a list of ids)")
        return self.tokenizer.encode_prompt(prompt)

    def generate(
        self,
        prompt: Union[str, Sequence[int]],
        tokens: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
        cache: bool = True,
        ignore_eos: bool = False,
    ) -> Union[str, List[int]]:
        """Continues a text, or a list of ids, by up to so many tokens, as `onestep generate` does; the text with its prompt (the
        ids). temperature 0 takes the most likely token each time; top_k, top_p and min_p leave the most likely ones only; a
        repetition_penalty above 1 makes tokens that the text has less likely. It ends before the first of the texts in stop (ids
        with the token that completed it), and, unless ignore_eos, at a token of model.eos_token_ids (which ids end with)."""
        if isinstance(stop, str) or not all(stop):
            raise onestep.ConfigError(f"stop: must be a list of texts that are not empty: got {stop!r}")
        model, given = self.model._model, self._ids(prompt)
        sampling = (temperature, top_k, top_p, min_p, repetition_penalty)
        ids = given + model.generate(given, tokens, *sampling, list(stop), seed, cache, ignore_eos)
        if not isinstance(prompt, str):
            return ids
        if len(ids) > len(given) and not ignore_eos and ids[-1] in model.eos:
            ids.pop()
        text, begin = model.text(ids), len(model.text(given))
        ends = [at for at in (text.find(word, begin) for word in stop) if at >= 0]
        return text[: min(ends, default=len(text))]

    def attention(self, text: Union[str, Sequence[int]]) -> AttentionMaps:
        """The attention weights of every layer for a text (or ids) of at most context_length tokens."""
        ids = self._ids(text)
        words = [self.tokenizer.decode([i]) if self.tokenizer else str(i) for i in ids]
        return AttentionMaps(words, dict(self.model._model.attention(ids)))

    def report(self, *others: "Run") -> Report:
        """The page about this run (beside others), which a notebook shows."""
        return Report(_C._report_html([str(run.path) for run in (self, *others)]))

    def resume(
        self, *, set: Optional[Mapping[str, Any]] = None, callback: Optional[Callback] = None, quiet: bool = False
    ) -> "Run":
        """Trains on from the newest checkpoint: after an interrupt, or further with set={"train.steps": N}."""
        return Run(_C._resume(str(self.path), _sets(set), quiet, callback))

    def _repr_html_(self) -> str:
        from onestep.display import loss_graph

        return loss_graph(self.metrics)._repr_html_()

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"
