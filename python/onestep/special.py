"""torch.special: names of ops that are there."""

from onestep._C import (  # noqa: F401
    digamma, digamma as psi, igamma as gammainc, igammac as gammaincc, erf, erfc, erfinv, exp2, expm1, lgamma as gammaln, log1p, log_softmax, logsumexp, polygamma, round,
    sigmoid as expit, sinc, softmax, xlogy,
)  # fmt: skip
from onestep._composed import mvlgamma as multigammaln  # noqa: F401
