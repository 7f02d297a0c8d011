"""Complex arithmetic on pairs of registers."""

from __future__ import annotations

from collections.abc import Callable

from lithify.targets.cpu import mathematics
from lithify.targets.cpu.builder import Builder, Value

Pair = tuple[Value, ...]


def apply(b: Builder, name: str, operands: list[Pair]) -> Pair:
    """An operator on complex operands; comparisons, `re` and `im` give one part."""
    return _TABLE[name](b, *operands)


def _mul(b: Builder, x: Pair, y: Pair) -> Pair:
    def times(p: Value, q: Value) -> Value:
        return b.binary("fmul contract", p, q)

    real = b.binary("fsub contract", times(x[0], y[0]), times(x[1], y[1]))
    return real, b.binary("fadd contract", times(x[0], y[1]), times(x[1], y[0]))


def _div(b: Builder, x: Pair, y: Pair) -> Pair:
    """Smith's method (Smith 1962): scales by the larger part of the divisor, so that nothing overflows early."""
    real_larger = b.intrinsic("fabs", y[0]).compare("ge", b.intrinsic("fabs", y[1]))
    large, small = real_larger.choose(y[0], y[1]), real_larger.choose(y[1], y[0])
    zero = large.compare("eq", 0.0)  # both parts are 0: divide by them as they are
    ratio = zero.choose(large, small / large)
    denominator = large + small * ratio
    real = real_larger.choose(x[0] + x[1] * ratio, x[0] * ratio + x[1])
    imaginary = real_larger.choose(x[1] - x[0] * ratio, x[1] * ratio - x[0])
    return real / denominator, imaginary / denominator


def _sqrt(b: Builder, x: Pair) -> Pair:
    """The root with the non-negative real part; computed in f64, so that f32 squares do not overflow."""
    kind = x[0].kind
    re, im = (p.cast("fpext", "double") for p in x) if kind == "float" else x
    modulus = b.intrinsic("sqrt", b.fma(re, re, im * im))
    root = b.intrinsic("sqrt", (modulus + b.intrinsic("fabs", re)) * 0.5)
    other = root.compare("eq", 0.0).choose(root.like(0.0), b.intrinsic("fabs", im) / (root * 2.0))
    right = re.compare("ge", 0.0)
    parts = right.choose(root, other), b.intrinsic("copysign", right.choose(other, root), im)
    return tuple(p.cast("fptrunc", "float") for p in parts) if kind == "float" else parts


def _exp(b: Builder, x: Pair) -> Pair:
    scale = mathematics.exp(b, [x[0]])
    return scale * mathematics.cos(b, [x[1]]), scale * mathematics.sin(b, [x[1]])


def _log(b: Builder, x: Pair) -> Pair:
    kind = x[0].kind
    re, im = (p.cast("fpext", "double") for p in x) if kind == "float" else x
    modulus = mathematics.log(b, [b.fma(re, re, im * im)]) * 0.5
    if kind == "float":
        modulus = modulus.cast("fptrunc", "float")
    return modulus, b.intrinsic("atan2", x[1], x[0])


def _sin(b: Builder, x: Pair) -> Pair:
    sine, cosine = mathematics.sin(b, [x[0]]), mathematics.cos(b, [x[0]])
    return sine * b.intrinsic("cosh", x[1]), cosine * b.intrinsic("sinh", x[1])


def _cos(b: Builder, x: Pair) -> Pair:
    sine, cosine = mathematics.sin(b, [x[0]]), mathematics.cos(b, [x[0]])
    return cosine * b.intrinsic("cosh", x[1]), -(sine * b.intrinsic("sinh", x[1]))


_TABLE: dict[str, Callable[..., Pair]] = {
    "add": lambda b, x, y: tuple(b.binary("fadd contract", p, q) for p, q in zip(x, y, strict=True)),
    "sub": lambda b, x, y: tuple(b.binary("fsub contract", p, q) for p, q in zip(x, y, strict=True)),
    "mul": _mul,
    "div": _div,
    "neg": lambda b, x: (-x[0], -x[1]),
    "conj": lambda b, x: (x[0], -x[1]),
    "re": lambda b, x: (x[0],),
    "im": lambda b, x: (x[1],),
    "eq": lambda b, x, y: (x[0].compare("eq", y[0]) & x[1].compare("eq", y[1]),),
    "ne": lambda b, x, y: (x[0].compare("ne", y[0]) | x[1].compare("ne", y[1]),),
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
    "sin": _sin,
    "cos": _cos,
}
