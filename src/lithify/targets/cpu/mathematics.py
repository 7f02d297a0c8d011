"""Elementary functions as straight LLVM IR: every lane of a vector at once, no branch but for huge angles.

In f32 and f64, with errors of at most about two units in the last place over the whole range, subnormal numbers,
infinities and NaN included (measured by the tests). Reductions are Cody and Waite's (1980), with fused
multiply-adds; the polynomials are best approximations (`coefficients`, computed by `tools/minimax.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lithify.targets.cpu import avx512
from lithify.targets.cpu import coefficients as c
from lithify.targets.cpu.builder import Builder, Value


@dataclass(frozen=True, slots=True)
class _Format:
    """What the algorithms need to know of a float format."""

    name: str
    integer: str
    mantissa: int  # stored bits
    bias: int
    magic: float  # 1.5 2^mantissa: adding it rounds to an integer, in the low bits
    exp_high: float  # beyond these exp is infinite or 0
    exp_low: float
    ln2: tuple[float, float]  # high part with trailing zeros, low part
    least_normal: float
    erf_one: float  # from here on erf is 1
    shortest_vector: int  # the lanes of the shortest vector
    newton_steps: int  # for a root, from 14 bits

    @property
    def tables(self) -> str:
        return self.name.upper()


_FORMATS = {
    "float": _Format("float", "i32", 23, 127, 1.5 * 2.0**23, 89.0, -104.0,
                     (float.fromhex("0x1.62e400p-1"), float.fromhex("0x1.7f7d1cf79abcap-20")), 2.0**-126, 4.0,
                     shortest_vector=4, newton_steps=1),
    "double": _Format("double", "i64", 52, 1023, 1.5 * 2.0**52, 710.0, -746.0,
                      (float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")), 2.0**-1022, 6.0,
                      shortest_vector=2, newton_steps=2),
}  # fmt: skip
_LOG2_E = float.fromhex("0x1.71547652b82fep+0")
_SQRT_HALF_BITS = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCD}
# pi/2 in three parts of 53 bits
_HALF_PI = tuple(map(float.fromhex, ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110")))
_TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
# angles beyond this go to the C library, whose reduction is exact
_LARGEST_ANGLE = 2.0**27


def _table(name: str, format_: _Format) -> tuple[float, ...]:
    numbers: tuple[float, ...] = getattr(c, f"{name}_{format_.tables}")
    return numbers


def _polynomial(x: Value, numbers: Sequence[float]) -> Value:
    """Horner's scheme, with fused multiply-adds."""
    b = x.builder
    result: Value = b.constant(x.kind, numbers[-1], x.lanes)
    for number in reversed(numbers[:-1]):
        result = b.fma(result, x, number)
    return result


def exp(b: Builder, operands: Sequence[Value]) -> Value:
    """e^x = 2^n e^r, n the nearest integer to x / log 2."""
    x = operands[0]
    f = _FORMATS[x.kind]
    low, high = x.like(f.exp_low), x.like(f.exp_high)
    bounded = x.compare("gt", high).choose(high, x)
    clamped = bounded.compare("lt", low).choose(low, bounded)
    rounded = b.fma(clamped, _LOG2_E, f.magic)
    n = rounded - f.magic
    r = b.fma(n, -f.ln2[0], clamped)
    r = b.fma(n, -f.ln2[1], r)
    p = _polynomial(r, (1.0, 1.0, *_table("EXP", f)))
    if avx512.fits(p):
        return avx512.times_power_of_two(p, n)
    # 2^n in two factors: one alone may leave the range
    count = rounded.bits() - x.like(f.magic).bits()
    first = count.ashr(1)
    return p * _power_of_two(first, f) * _power_of_two(count - first, f)


def _power_of_two(n: Value, f: _Format) -> Value:
    return (n + f.bias).shl(f.mantissa).cast("bitcast", f.name)


def rsqrt(b: Builder, operands: Sequence[Value]) -> Value:
    """1 / sqrt x: by Newton's method from a rough value where there is an instruction for one (which takes much less
    time than a root and a division)."""
    x = operands[0]
    vector = x.splat(_FORMATS[x.kind].shortest_vector)
    if not avx512.fits(vector):
        return x.like(1.0) / b.intrinsic("sqrt", x)
    rough = result = avx512.rough_inverse_root(vector)
    for _ in range(_FORMATS[x.kind].newton_steps):
        error = b.fma(-(vector * result), result, 1.0)
        result = b.fma(result * 0.5, error, result)
    # that of 0 is infinite, that of infinity 0: no step is possible
    result = result.compare("eq", result).choose(result, rough)
    return result if x.lanes else Value(b, x.kind, 0, b.emit(f"extractelement {result.typed}, i64 0"))


def log(b: Builder, operands: Sequence[Value]) -> Value:
    """log x = e log 2 + log m, m in [sqrt 1/2, sqrt 2): the series in (m - 1) / (m + 1)."""
    x = operands[0]
    f = _FORMATS[x.kind]
    subnormal = x.compare("lt", f.least_normal)
    lift = f.mantissa + 2
    scaled = subnormal.choose(x * 2.0**lift, x)
    bits = scaled.bits()
    e = (bits - _SQRT_HALF_BITS[f.name]).ashr(f.mantissa)
    m = (bits - e.shl(f.mantissa)).cast("bitcast", f.name)
    exponent = subnormal.choose(e - lift, e).cast("sitofp", f.name)
    d = m - 1.0
    s = d / (d + 2.0)
    z = s * s
    half = d * d * 0.5
    r = _polynomial(z, _table("LOG", f)) * z
    low = b.fma(s, half + r, exponent * f.ln2[1])
    result = b.fma(exponent, f.ln2[0], d - (half - low))
    # +inf and NaN pass through, 0 gives -inf, negative numbers NaN
    result = x.compare("lt", float("inf")).choose(result, x)
    result = x.compare("eq", 0.0).choose(result.like(float("-inf")), result)
    return x.compare("lt", 0.0).choose(result.like(float("nan")), result)


@dataclass(frozen=True, slots=True)
class _Angle:
    """Sine and cosine of an angle reduced to [-pi/4, pi/4], and the number of quarter turns taken off."""

    sine: Value
    cosine: Value
    quarters: Value


def _reduce(x: Value) -> _Angle:
    """The reduction in f64; the polynomials in the format of x."""
    b = x.builder
    wide = x.cast("fpext", "double")
    d = _FORMATS["double"]
    rounded = b.fma(wide, _TWO_OVER_PI, d.magic)
    n = rounded - d.magic
    r = b.fma(n, -_HALF_PI[0], wide)
    r = b.fma(n, -_HALF_PI[1], r)
    if x.kind == "double":
        r = b.fma(n, -_HALF_PI[2], r)
    quarters = (rounded.bits() & 3).resized("i32", signed=False)
    if x.kind == "float":
        r = r.cast("fptrunc", "float")
    f = _FORMATS[x.kind]
    z = r * r
    sine = b.fma(_polynomial(z, _table("SIN", f)) * z, r, r)
    half = z * 0.5
    one = z.like(1.0)
    first = one - half
    # what 1 - z/2 lost in rounding is added to the small terms
    rest = b.fma(z * z, _polynomial(z, _table("COS", f)), (one - first) - half)
    return _Angle(sine, first + rest, quarters)


def _with_library(name: str, x: Value, result: Value) -> Value:
    """`result`, but for lanes with a huge angle, which the C library computes."""
    b = x.builder
    huge = b.intrinsic("fabs", x).compare("ge", _LARGEST_ANGLE)
    some = huge
    if huge.lanes:
        reduce_name = f"@llvm.vector.reduce.or.v{huge.lanes}i1"
        b.declare(f"declare i1 {reduce_name}({huge.type})")
        some = Value(b, "i1", 0, b.emit(f"call i1 {reduce_name}({huge.typed})"))
    before, label = b.block, b.fresh("huge")
    b.line(f"br i1 {some.text}, label %{label}, label %{label}.end")
    b.start(label)
    exact = huge.choose(b.intrinsic(name, x), result)
    b.line(f"br label %{label}.end")
    b.start(f"{label}.end")
    text = b.emit(f"phi {result.type} [ {exact.text}, %{label} ], [ {result.text}, %{before} ]")
    return Value(b, result.kind, result.lanes, text)


def _signed(value: Value, negative: Value) -> Value:
    return negative.choose(-value, value)


def sin(b: Builder, operands: Sequence[Value]) -> Value:
    """sin x by quadrant."""
    x = operands[0]
    angle = _reduce(x)
    value = (angle.quarters & 1).compare("ne", 0).choose(angle.cosine, angle.sine)
    value = _signed(value, (angle.quarters & 2).compare("ne", 0))
    value = x.compare("eq", 0.0).choose(x, value)  # keeps the sign of 0
    return _with_library("sin", x, value)


def cos(b: Builder, operands: Sequence[Value]) -> Value:
    """cos x by quadrant."""
    x = operands[0]
    angle = _reduce(x)
    value = (angle.quarters & 1).compare("ne", 0).choose(angle.sine, angle.cosine)
    return _with_library("cos", x, _signed(value, ((angle.quarters + 1) & 2).compare("ne", 0)))


def tan(b: Builder, operands: Sequence[Value]) -> Value:
    """tan x = sin x / cos x, or its negative inverse in odd quadrants."""
    x = operands[0]
    angle = _reduce(x)
    odd = (angle.quarters & 1).compare("ne", 0)
    value = odd.choose(-angle.cosine, angle.sine) / odd.choose(angle.sine, angle.cosine)
    value = x.compare("eq", 0.0).choose(x, value)
    return _with_library("tan", x, value)


def tanh(b: Builder, operands: Sequence[Value]) -> Value:
    """tanh |x| = 1 - 2 / (e^2|x| + 1); an odd polynomial near 0."""
    x = operands[0]
    f = _FORMATS[x.kind]
    size = b.intrinsic("fabs", x)
    z = x * x
    near = b.fma(_polynomial(z, _table("TANH", f)) * z, x, x)
    far = size.like(1.0) - size.like(2.0) / (exp(b, [size + size]) + 1.0)
    return b.intrinsic("copysign", size.compare("lt", 0.55).choose(near, far), x)


def erf(b: Builder, operands: Sequence[Value]) -> Value:
    """erf x = 1 - e^-G(|x|) with a polynomial G; an odd polynomial near 0."""
    x = operands[0]
    f = _FORMATS[x.kind]
    size = b.intrinsic("fabs", x)
    end = size.like(f.erf_one)
    bounded = size.compare("gt", end).choose(end, size)
    far = size.like(1.0) - exp(b, [-_polynomial(bounded - 2.5, _table("ERFC", f))])
    near = b.fma(_polynomial(x * x, _table("ERF", f)), x, x)
    return size.compare("lt", 1.0).choose(near, b.intrinsic("copysign", far, x))


def pow_(b: Builder, operands: Sequence[Value]) -> Value:
    """x^y: in f32 e^(y log |x|) computed in f64, with C's special cases; in f64 the C library's."""
    x, y = operands
    if x.kind == "double":
        return b.intrinsic("pow", x, y)
    wide, power = (v.cast("fpext", "double") for v in (x, y))
    size = b.intrinsic("fabs", wide)
    result = exp(b, [log(b, [size]) * power])
    result = (size.compare("eq", 1.0) & power.compare("eq", power)).choose(result.like(1.0), result)
    integer = b.intrinsic("floor", power).compare("eq", power)
    half = power * 0.5
    odd = integer & b.intrinsic("floor", half).compare("ne", half)
    sign = x.bits().compare("lt", 0)
    result = (odd & sign).choose(-result, result)
    outside = wide.compare("lt", 0.0) & wide.compare("gt", float("-inf")) & (integer ^ True)
    result = outside.choose(result.like(float("nan")), result)
    one = power.compare("eq", 0.0) | wide.compare("eq", 1.0)
    return one.choose(result.like(1.0), result).cast("fptrunc", "float")


FUNCTIONS: dict[str, Callable[[Builder, list[Value]], Value]] = {
    "exp": exp, "log": log, "sin": sin, "cos": cos, "tan": tan, "tanh": tanh, "erf": erf, "pow": pow_,
    "rsqrt": rsqrt,
}  # fmt: skip
