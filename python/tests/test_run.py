"""The trainer and trained runs from Python."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import onestep
from onestep import nn

CONFIG = {
    "seed": 7,
    "model": {"kind": "gpt", "d_model": 16, "num_heads": 2, "num_layers": 2, "context_length": 8, "dropout": 0.1},
    "data": {"kind": "text", "text": "the cat sat on the mat and the dog sat on the log. " * 20, "tokenizer": "word"},
    "train": {"steps": 20, "batch_size": 4, "eval_every": 10, "eval_batches": 2, "log_every": 5, "checkpoint_every": 10},
}


def trained(folder: Path, **options) -> onestep.Run:
    return onestep.train(CONFIG, out=folder / "run", quiet=True, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> onestep.Run:
    return trained(tmp_path_factory.mktemp("run"))


def test_a_dict_and_a_file_train_the_same_run(run, tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps(CONFIG))
    other = onestep.train(path, out=tmp_path / "other", set={"train.log_every": 1}, quiet=True)
    assert other.metrics["step"] == list(range(20))
    logged = [loss for step, loss in zip(other.metrics["step"], other.metrics["loss"]) if step in run.metrics["step"]]
    assert logged == run.metrics["loss"]
    assert run.config["model"]["d_model"] == 16 and run.config["train"]["grad_accumulation"] == 1


def test_the_default_dtype_changes_no_run(run, tmp_path):
    onestep.set_default_dtype(onestep.float64)
    try:
        other = trained(tmp_path)
        assert other.generate("the cat", 5, temperature=0) == run.generate("the cat", 5, temperature=0)
    finally:
        onestep.set_default_dtype(onestep.float32)
    assert other.metrics["loss"] == run.metrics["loss"]


def test_the_callback_sees_every_step_and_the_bits_stay(run, tmp_path):
    rows = []
    other = trained(tmp_path, callback=rows.append)
    assert [row["step"] for row in rows] == list(range(20))
    logged = [row["loss"] for row in rows if row["step"] in run.metrics["step"]]
    assert onestep.equal(onestep.tensor(logged), onestep.tensor(run.metrics["loss"]))
    assert [row["step"] for row in rows if row["val_loss"] is not None] == [9, 19]
    for (name, a), (_, b) in zip(run.model.named_parameters(), other.model.named_parameters()):
        assert onestep.equal(a, b), name


def test_a_callback_ends_the_run_which_is_saved(run, tmp_path):
    stopped = trained(tmp_path, callback=lambda metrics: metrics["step"] == 6)
    assert stopped.metrics["step"][-1] < 19
    whole = stopped.resume(quiet=True)
    for (name, a), (_, b) in zip(run.model.named_parameters(), whole.model.named_parameters()):
        assert onestep.equal(a, b), name


def test_what_a_callback_raises_is_raised_once_the_run_is_saved(tmp_path):
    def fail(metrics):
        if metrics["step"] == 3:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trained(tmp_path, callback=fail)
    assert (tmp_path / "run" / "checkpoints" / "step-4").is_dir()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_saves_the_run(tmp_path):
    program = f"""
import json, os, signal, onestep
config = json.loads({json.dumps(json.dumps(CONFIG))})
send = lambda metrics: metrics["step"] == 2 and os.kill(os.getpid(), signal.SIGINT)
try:
    onestep.train(config, out={str(tmp_path / "run")!r}, quiet=True, callback=send)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "interrupted\n", done.stderr
    assert (tmp_path / "run" / "checkpoints" / "step-3").is_dir()


def test_a_finished_run_goes_on_with_more_steps(tmp_path):
    more = trained(tmp_path).resume(set={"train.steps": 25}, quiet=True)
    assert more.metrics["step"][-1] == 24


def test_the_model_is_a_module_with_the_engines_parameters(run):
    model = run.model
    assert isinstance(model, nn.Module) and not model.training
    assert model.context_length == 8 and model.vocab_size == run.tokenizer.vocab_size
    tokens = onestep.tensor([run.tokenizer.encode("the cat sat on the mat")])
    logits = model(tokens)
    assert logits.shape == (1, tokens.shape[1], model.vocab_size)
    logits.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    model.load_state_dict(model.state_dict())
    with onestep.no_grad():
        assert onestep.equal(model(tokens), logits)
        model.train()
        assert not onestep.equal(model(tokens), logits)  # dropout
        model.eval()
        next(model.parameters()).add_(1.0)
        assert not onestep.equal(model(tokens), logits)


def test_generate_continues_text_and_ids(run):
    fresh = onestep.Run(run.path)
    greedy = fresh.generate("the cat", tokens=5, temperature=0)
    assert greedy.startswith("the cat ") and len(fresh.tokenizer.encode(greedy)) == 7
    assert fresh.generate("the cat", tokens=5, temperature=0, cache=False) == greedy
    assert fresh.generate("the", tokens=5, seed=1) == fresh.generate("the", tokens=5, seed=1)
    assert fresh.generate(fresh.tokenizer.encode("the cat"), tokens=5, temperature=0) == fresh.tokenizer.encode(greedy)


def test_attention_has_a_word_for_every_row(run):
    maps = run.attention("the cat sat")
    assert maps.tokens == ["the", "cat", "sat"] and list(maps.layers) == ["layer 0", "layer 1"]
    assert maps.layers["layer 0"].shape == (2, 3, 3)
    assert onestep.allclose(maps.layers["layer 1"].sum(-1), onestep.ones(2, 3))
    assert "cat" in maps._repr_html_()


def test_the_report_is_the_page(run, tmp_path):
    page = run.report(run)
    assert page.html.startswith("<!doctype html>") and "<iframe" in page._repr_html_()
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html


def test_a_run_on_ids_has_no_tokenizer(tmp_path):
    data = {"kind": "tokens", "tokens": [0, 1, 2, 3, 4] * 20, "vocab_size": 5}
    run = onestep.train({**CONFIG, "data": data}, out=tmp_path / "run", set={"train.steps": 2}, quiet=True)
    assert run.tokenizer is None
    assert len(run.generate([1, 2, 3], tokens=2)) == 5
    with pytest.raises(onestep.ConfigError, match="no tokenizer"):
        run.generate("text")


def test_generation_ends_at_the_tokens_that_end_a_text(run, tmp_path):
    ids = run.tokenizer.encode("the cat")
    whole = run.generate(ids, tokens=12, temperature=0)
    end = whole[len(ids) + 3]
    ended = whole[: whole.index(end, len(ids)) + 1]
    other = trained(tmp_path, set={"model.eos_token_ids": [end]})
    assert other.generate(ids, tokens=12, temperature=0) == ended
    assert other.generate(ids, tokens=12, temperature=0, ignore_eos=True) == whole
    assert other.generate("the cat", tokens=12, temperature=0) == run.tokenizer.decode(ended[:-1])


def test_generation_stops_and_penalizes(run):
    whole = run.generate("the cat", tokens=12, temperature=0)
    word = whole.split()[4]
    at = whole.index(word, len("the cat"))
    assert run.generate("the cat", tokens=12, temperature=0, stop=["no such text", word]) == whole[:at]
    ids = run.generate(run.tokenizer.encode("the cat"), tokens=12, temperature=0, stop=[word])
    assert run.tokenizer.decode(ids) == whole[: at + len(word)]
    assert run.generate("the cat", tokens=12, min_p=1, seed=3) == whole
    assert run.generate("the cat", tokens=12, temperature=0, repetition_penalty=100) != whole
    for wrong in ("cat", [""]):
        with pytest.raises(onestep.ConfigError, match="stop: must be a list"):
            run.generate("the cat", stop=wrong)
    with pytest.raises(onestep.ConfigError, match="repetition_penalty"):
        run.generate("the cat", repetition_penalty=0)


def test_the_symbols_of_a_task_have_names(tmp_path):
    data = {"kind": "task", "task": "copy", "vocab_size": 5, "length": 3}
    run = onestep.train({**CONFIG, "data": data}, out=tmp_path / "run", set={"train.steps": 2}, quiet=True)
    assert run.tokenizer.encode("a b e") == [0, 1, 4]
    assert run.generate("a b e", tokens=3, seed=2).split() == [
        run.tokenizer.decode([i]) for i in run.generate([0, 1, 4], tokens=3, seed=2)
    ]


def test_bad_input_is_refused_with_the_place(tmp_path):
    with pytest.raises(onestep.ConfigError, match="/model/d_modle"):
        onestep.train({"model": {"d_modle": 3}}, out=tmp_path / "run")
    with pytest.raises(onestep.ConfigError, match="--set train.stepss=3"):
        trained(tmp_path, set={"train.stepss": 3})
    with pytest.raises(onestep.IoError, match="none.json"):
        onestep.train(tmp_path / "none.json")
    with pytest.raises(onestep.IoError, match="no run"):
        onestep.Run(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_not_finite_is_told(tmp_path):
    with pytest.raises(onestep.DivergedError, match="diverged"):
        trained(tmp_path, set={"optimizer.kind": "sgd", "optimizer.lr": 1e30})
