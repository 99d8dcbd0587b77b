"""torch.special: names of ops."""

from onestep._C import (  # noqa: F401
    Tensor, digamma, digamma as psi, entr, igamma as gammainc, igammac as gammaincc, erf, erfc, erfcx, erfinv, exp2, expm1, i0, i0e, i1, i1e,
    lgamma as gammaln, log1p, log_ndtr, log_softmax, logit, logsumexp, ndtr, ndtri, polygamma, round, sigmoid as expit, sinc, softmax, xlog1py, xlogy,
)  # fmt: skip
from onestep._composed import mvlgamma as multigammaln  # noqa: F401
