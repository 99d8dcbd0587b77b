"""torch.special: names of ops that are there."""

from onestep._C import (  # noqa: F401
    erf, erfc, erfinv, exp2, expm1, log1p, log_softmax, logsumexp, round, sigmoid as expit, sinc, softmax, xlogy,
)  # fmt: skip
