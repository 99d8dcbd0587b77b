"""Writes portable_math.json: log, pow (pown where the exponent is whole), sin and cos in double, correctly rounded (mpmath 1.3.0, 400 bits).

Run from this folder: python3 portable_math.py > portable_math.json
Numbers are hexadecimal, as C's %a prints them. Each case: function, arguments, value.
"""
import json
import random

import mpmath

mpmath.mp.prec = 400
FUNCTIONS = {"log": mpmath.log, "pow": mpmath.power, "sin": mpmath.sin, "cos": mpmath.cos}
random.seed(1)


def cases():
    for _ in range(200):
        yield "log", [1 - random.randrange(2**53) * 2.0**-53]  # what a normal draw takes
        yield "log", [random.uniform(0.5, 2) * 2.0 ** random.randint(-1000, 1000)]
        yield "pow", [random.choice([0.9, 0.95, 0.99, 0.999, random.random()]), float(random.randint(1, 20000))]
        yield "pow", [random.uniform(0, 30), random.uniform(-9, 9)]
        yield "sin", [random.random() * 6.283185307179586]
        yield "cos", [random.random() * 6.283185307179586]
        yield "sin", [random.uniform(-(2**20), 2**20)]
        yield "cos", [3.141592653589793 * random.randint(0, 5000) / 5000]
    for x in [5e-324, 1.0, 2.0, 0.5, 1 + 2.0**-52, 1 - 2.0**-53, 1.7976931348623157e308]:
        yield "log", [x]
    for k in range(1, 40):  # near the zeros
        yield "sin", [k * 3.141592653589793]
        yield "cos", [k * 3.141592653589793 / 2]


def value(name, arguments):
    y = FUNCTIONS[name](*map(mpmath.mpf, arguments))
    return float(y)


rows = [json.dumps([name, [a.hex() for a in arguments], value(name, arguments).hex()])
        for name, arguments in cases() if abs(value(name, arguments)) == 0 or 2.0**-1000 < abs(value(name, arguments)) < 1e308]
print('{"made_by": "portable_math.py", "cases": [\n' + ",\n".join(rows) + "]}")
