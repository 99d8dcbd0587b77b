"""Draws, log probabilities and gradients of distributions; PyTorch's are in distributions.json, which `python distributions.py` writes."""

from importlib import import_module


def results(torch):
    """Name -> lists of numbers, with the package `torch`."""
    d = import_module(torch.__name__ + ".distributions")
    torch.manual_seed(3)
    w = torch.randn(4, 5, requires_grad=True)
    found = {}
    cases = {
        "Categorical(logits)": lambda: d.Categorical(logits=w), "Categorical(probs)": lambda: d.Categorical(w.exp()),
        "Normal(tensors)": lambda: d.Normal(w, w.abs() + 0.1), "Normal(numbers)": lambda: d.Normal(0.0, 1.5),
        "Bernoulli(logits)": lambda: d.Bernoulli(logits=w), "Bernoulli(probs)": lambda: d.Bernoulli(torch.sigmoid(w)),
        "Bernoulli(number)": lambda: d.Bernoulli(0.3),
    }  # fmt: skip
    for name, make in cases.items():
        one = make()
        drawn, several = one.sample(), one.sample((2, 3))
        log_prob, entropy = one.log_prob(drawn), one.entropy()
        values = [drawn, several.sum(), log_prob, entropy]
        if log_prob.requires_grad:
            values += torch.autograd.grad((log_prob * 1.5).sum() + entropy.sum(), w)
        if not name.startswith("Categorical"):
            values += [one.mean, one.variance, one.stddev]
        found[name] = [v.detach().reshape(-1).double().tolist() for v in values] + [list(one.batch_shape), list(several.shape)]
    found["Normal.rsample"] = [d.Normal(w, 0.5).rsample((2,)).detach().reshape(-1).double().tolist()]
    return found


if __name__ == "__main__":
    import json
    from pathlib import Path

    import torch

    Path(__file__).with_suffix(".json").write_text(json.dumps({"torch": torch.__version__, "results": results(torch)}) + "\n")
