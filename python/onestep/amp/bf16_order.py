"""The order in which products of bfloat16 are added up."""

from onestep import _C


def get_bf16_order() -> str:
    """"avx512" or "amx"."""
    return _C._get_bf16_order()


def fastest_bf16_order() -> str:
    """The order that is added up the faster here: "amx" where the CPU has AMX, and may use it, else "avx512"."""
    return _C._fastest_bf16_order()


def set_bf16_order(order: str) -> None:
    """Sets the order in which this thread adds up products of bfloat16, in both passes; every CPU computes the bits of either.
    "avx512", which it begins with, is that of the dot products of AVX512-BF16, "amx" that of AMX: several times as fast on a CPU
    that has it, elsewhere slower. A run of onestep.train takes that of its train.precision, "bf16" or "bf16_amx"."""
    _C._set_bf16_order(order)
