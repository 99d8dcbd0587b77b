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
    for name, one in more(torch, d, w).items():
        found[name] = [v.detach().reshape(-1).double().tolist() for v in numbers_of(torch, one, w)]
        found[name] += [list(one.batch_shape), list(one.event_shape), list(one.expand((2, *one.batch_shape)).sample((3,)).shape)]
    for name, one in by_the_gamma_function(torch, d, w.double()).items():
        numbers = numbers_of(torch, one, w)
        if name == "Kumaraswamy":
            del numbers[7]  # its mode, of which PyTorch says NaN
        if one.has_rsample:  # whose gradients are approximations in PyTorch
            found[f"gradients of {name}'s draws"] = [numbers.pop().reshape(-1).double().tolist()]
        found[name] = [[float(f"{x:.9g}") for x in v.detach().reshape(-1).tolist()] for v in numbers]
        found[name] += [list(one.batch_shape), list(one.event_shape), list(one.expand((2, *one.batch_shape)).sample((3,)).shape)]
    found.update(divergences(torch, d, w))
    return found


def more(torch, d, w):
    """Distributions with parameters made of w [4, 5]."""
    positive, t = w.abs() + 0.1, torch.tensor(0.7)
    square = w[:, :4] @ w[:, :4].mT + torch.eye(4)
    tanh = [d.transforms.TanhTransform(cache_size=1), d.AffineTransform(1.0, -2.0)]
    return {
        "Uniform": d.Uniform(w - 1, w + positive), "Exponential": d.Exponential(positive), "Laplace": d.Laplace(w, positive),
        "Cauchy": d.Cauchy(w, positive), "HalfNormal": d.HalfNormal(positive), "LogNormal": d.LogNormal(w, positive),
        "Gumbel": d.Gumbel(w, positive), "Geometric(probs)": d.Geometric(torch.sigmoid(w)), "Geometric(logits)": d.Geometric(logits=w),
        "OneHotCategorical": d.OneHotCategorical(logits=w), "Independent": d.Independent(d.Normal(w, positive), 1),
        "OneHotCategoricalStraightThrough": d.OneHotCategoricalStraightThrough(positive),
        "RelaxedBernoulli": d.RelaxedBernoulli(t, logits=w), "RelaxedOneHotCategorical": d.RelaxedOneHotCategorical(t, logits=w),
        "MultivariateNormal(covariance)": d.MultivariateNormal(w[0, :4], square),
        "MultivariateNormal(precision)": d.MultivariateNormal(w[:, :4], precision_matrix=square),
        "MultivariateNormal(scale_tril)": d.MultivariateNormal(w[0, :4], scale_tril=torch.linalg.cholesky(square)),
        "tanh of Normal": d.TransformedDistribution(d.Normal(w.double(), positive.double()), tanh),
        "sigmoid of Independent": d.TransformedDistribution(d.Independent(d.Normal(w, 1.0), 1), [d.SigmoidTransform()]),
        "softplus and power of Laplace": d.TransformedDistribution(d.Laplace(w, 1.0), [d.SoftplusTransform(), d.PowerTransform(2.0)]),
        "affine by tensors": d.TransformedDistribution(d.Normal(w[0, 0].double(), 1.0), [d.AffineTransform(w.double(), positive.double())]),
        "composed": d.TransformedDistribution(d.Uniform(0.1, positive + 1), d.ComposeTransform([d.ExpTransform(), d.ExpTransform().inv])),
    }  # fmt: skip


def by_the_gamma_function(torch, d, w):
    """Distributions with parameters made of w [4, 5] in float64, whose probabilities need the gamma function, or that come from these."""
    positive, p, other = w.abs() + 0.1, torch.sigmoid(w), 2 * w.exp()
    count = torch.tensor(7.0, dtype=w.dtype)
    return {
        "Gamma": d.Gamma(positive, other), "Chi2": d.Chi2(3 * positive), "Dirichlet": d.Dirichlet(positive), "Beta": d.Beta(positive, other),
        "StudentT": d.StudentT(4 * positive, w, other), "FisherSnedecor": d.FisherSnedecor(3 * positive, 2 + 3 * other),
        "InverseGamma": d.InverseGamma(1.5 + positive, other), "Poisson": d.Poisson(9 * positive), "Binomial(probs)": d.Binomial(count, p),
        "Binomial(logits)": d.Binomial(100 * count, logits=w), "NegativeBinomial": d.NegativeBinomial(count, p),
        "NegativeBinomial(logits)": d.NegativeBinomial(3 * count, logits=w), "Multinomial": d.Multinomial(6, positive),
        "Multinomial(logits)": d.Multinomial(3, logits=w), "Pareto": d.Pareto(other, positive), "Weibull": d.Weibull(other, 1 + positive),
        "HalfCauchy": d.HalfCauchy(positive), "Kumaraswamy": d.Kumaraswamy(0.5 + positive, 0.5 + other),
        "MixtureSameFamily": d.MixtureSameFamily(d.Categorical(logits=w), d.Normal(w, positive)),
        "mixture of vectors": d.MixtureSameFamily(d.Categorical(logits=w[0, :4]), d.Independent(d.Normal(w, positive), 1)),
    }  # fmt: skip


def numbers_of(torch, one, w):
    """All that a distribution tells; what PyTorch's has not is left out of the list on both sides."""
    drawn = one.sample()
    values = [drawn, one.sample((2, 3)), one.log_prob(drawn)]
    values += torch.autograd.grad((values[-1] * 1.5).sum(), w, retain_graph=True)
    for tell in (
        one.entropy, one.perplexity, lambda: one.mean, lambda: one.mode, lambda: one.variance, lambda: one.stddev,
        lambda: one.cdf(drawn), lambda: one.icdf(torch.full((4, 5), 0.3)), one.enumerate_support, lambda: one.covariance_matrix,
        lambda: one.precision_matrix,
    ):  # fmt: skip
        try:
            values.append(tell())
        except (NotImplementedError, AttributeError):
            values.append(torch.tensor([-123.0]))
    if one.has_rsample:
        draws = one.rsample((2,))
        values += [draws, *torch.autograd.grad((draws * 1.5).sum(), w, retain_graph=True)]
    return values


def divergences(torch, d, w):
    """Of all pairs of two kinds of parameters."""
    p = torch.sigmoid(w)
    makers = {
        "Bernoulli": lambda a, b: d.Bernoulli(b), "Categorical": lambda a, b: d.Categorical(b), "Normal": d.Normal,
        "OneHotCategorical": lambda a, b: d.OneHotCategorical(b), "Geometric": lambda a, b: d.Geometric(b), "Laplace": d.Laplace,
        "HalfNormal": lambda a, b: d.HalfNormal(b), "Exponential": lambda a, b: d.Exponential(b), "LogNormal": d.LogNormal,
        "Gamma": lambda a, b: d.Gamma(b.double(), a.double().exp()), "Beta": lambda a, b: d.Beta(b.double(), a.double().exp()),
        "Dirichlet": lambda a, b: d.Dirichlet(b.double()),
        "Poisson": lambda a, b: d.Poisson(b), "Binomial": lambda a, b: d.Binomial(9, b),
        "Uniform": lambda a, b: d.Uniform(a - b, a + b), "Independent": lambda a, b: d.Independent(d.Normal(a, b), 1),
        "MultivariateNormal": lambda a, b: d.MultivariateNormal(a[:, :2], torch.diag_embed(b[:, :2])),
    }  # fmt: skip
    found = {}
    for name, make in makers.items():
        kl = d.kl_divergence(make(w, p), make(w + 0.1, p * 0.9))
        values = [kl, *torch.autograd.grad(kl[kl < 1e30].sum(), w, retain_graph=True)]
        found[f"KL of {name}"] = [v.detach().reshape(-1).double().tolist() for v in values]
    return found


if __name__ == "__main__":
    import json
    from pathlib import Path

    import torch

    Path(__file__).with_suffix(".json").write_text(json.dumps({"torch": torch.__version__, "results": results(torch)}) + "\n")
