#!/usr/bin/env python3
"""One matrix product by oneDNN, OpenBLAS or PyTorch (MKL; oneDNN in bfloat16): the flags of `onestep bench matmul`."""
import ctypes
import ctypes.util

from common import PRECISION, arguments, report

args = arguments(__doc__, ["torch", "onednn", "openblas"], [("m", 512), ("n", 512), ("k", 512), ("batch", 1)],
                 [("op", "NN", ["NN", "NT", "TN"]), PRECISION])
if args.precision != "float32" and args.framework != "torch":
    raise SystemExit(f"matmul.py: {args.framework} is timed in float32 alone")
trans_a, trans_b = args.op[0] == "T", args.op[1] == "T"


def torch_call():
    import torch
    torch.set_num_threads(args.threads)
    dtype = torch.float32 if args.precision == "float32" else torch.bfloat16
    a = torch.randn(args.batch, *((args.k, args.m) if trans_a else (args.m, args.k))).to(dtype)
    b = torch.randn(args.batch, *((args.n, args.k) if trans_b else (args.k, args.n))).to(dtype)
    a, b = a.mT if trans_a else a, b.mT if trans_b else b
    out = torch.empty(args.batch, args.m, args.n, dtype=dtype)
    if args.batch == 1:
        a, b, out = a[0], b[0], out[0]
    return lambda: torch.matmul(a, b, out=out)


def library_call(name):
    import numpy as np
    path = ctypes.util.find_library({"onednn": "dnnl", "openblas": "openblas"}[name])
    if not path:
        raise SystemExit(f"matmul.py: {name} is not installed (Debian: libdnnl-dev, libopenblas-dev)")
    library = ctypes.CDLL(path)
    random = np.random.default_rng(0)
    shapes = ((args.m, args.k), (args.k, args.n), (args.m, args.n))
    a, b, c = (random.standard_normal((args.batch, *shape), dtype=np.float32) for shape in shapes)
    at = lambda x, i: ctypes.c_void_p(x.ctypes.data + i * x.strides[0])
    long, real = ctypes.c_int64, ctypes.c_float
    lda, ldb = args.m if trans_a else args.k, args.k if trans_b else args.n

    def onednn(i):
        letter = lambda transposed: ctypes.c_char(b"T" if transposed else b"N")
        library.dnnl_sgemm(letter(trans_a), letter(trans_b), long(args.m), long(args.n), long(args.k), real(1), at(a, i),
                           long(lda), at(b, i), long(ldb), real(0), at(c, i), long(args.n))

    def openblas(i):
        code = lambda transposed: 112 if transposed else 111
        library.cblas_sgemm(101, code(trans_a), code(trans_b), args.m, args.n, args.k, real(1), at(a, i), lda, at(b, i), ldb,
                            real(0), at(c, i), args.n)

    one = onednn if name == "onednn" else openblas
    return lambda: [one(i) for i in range(args.batch)]


call = torch_call() if args.framework == "torch" else library_call(args.framework)
report("matmul", args, call, warmup=5,
       gflops=lambda ms: 2e-6 * args.batch * args.m * args.n * args.k / ms)
