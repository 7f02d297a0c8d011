"""The functions that a kernel may call besides the language's own, written once for all C-like languages.

An auxiliary is found by its name: `add_complex64` is the pattern `add_{s}` of the complex types with s = complex64.
Its text names the functions that it calls, which are written before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lithify.lang.scalars import SCALARS, Kind, Scalar, f32, f64
from lithify.targets.cdialect.dialect import Dialect, computed, parts_of, unsigned_of
from lithify.targets.cdialect.literals import integer, literal

_INTEGER = {
    "min": "{t} min_{s}({t} a, {t} b) {{ return a < b ? a : b; }}",
    "max": "{t} max_{s}({t} a, {t} b) {{ return a > b ? a : b; }}",
    # 0 where the distance is not below the width
    "shl": "{t} shl_{s}({t} a, {t} b) {{ return ({w})b < {bits}u ? ({t})(({w})a << b) : 0; }}",
    # C leaves conversions of floats outside the type's range undefined; every comparison with NaN fails
    **{
        f"{source}_to": f"{{t}} {source}_to_{{s}}({{{source}}} x) {{{{\n"
        "  return x >= {beyond} ? {greatest} : x > {least} ? ({t})x : x == x ? {least} : 0;\n}}"
        for source in ("f32", "f64")
    },
}
_SIGNED = {
    # C leaves division by 0 undefined, and the least value by -1, which wraps around to itself
    "div": "{t} div_{s}({t} a, {t} b) {{ return b == 0 ? 0 : b == -1 ? ({t})(0 - ({w})a) : ({t})(a / b); }}",
    "rem": "{t} rem_{s}({t} a, {t} b) {{ return b == 0 || b == -1 ? 0 : ({t})(a % b); }}",
    "abs": "{t} abs_{s}({t} a) {{ return a < 0 ? ({t})(0 - ({w})a) : a; }}",
    "shr": "{t} shr_{s}({t} a, {t} b) {{ return ({t})(a >> (({w})b < {bits}u ? b : {last})); }}",
    "floor": "{t} floor_{s}({t} a, {t} b) {{ return a / b - (a % b < 0); }}",
}
_UNSIGNED = {
    "div": "{t} div_{s}({t} a, {t} b) {{ return b == 0 ? 0 : ({t})(a / b); }}",
    "rem": "{t} rem_{s}({t} a, {t} b) {{ return b == 0 ? 0 : ({t})(a % b); }}",
    "shr": "{t} shr_{s}({t} a, {t} b) {{ return ({w})b < {bits}u ? ({t})(a >> b) : 0; }}",
}
_COMPLEX = {
    "make": "{t} make_{s}({p} re, {p} im) {{ {t} z; z.re = re; z.im = im; return z; }}",
    "add": "{t} add_{s}({t} a, {t} b) {{ return make_{s}(a.re + b.re, a.im + b.im); }}",
    "sub": "{t} sub_{s}({t} a, {t} b) {{ return make_{s}(a.re - b.re, a.im - b.im); }}",
    "mul": "{t} mul_{s}({t} a, {t} b) {{\n  return make_{s}(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);\n}}",
    # R. L. Smith, "Algorithm 116: complex division" (1962): no overflow on the way
    "div": "{t} div_{s}({t} a, {t} b) {{\n"
    "  if (fabs{f}(b.re) >= fabs{f}(b.im)) {{\n"
    "    {p} r = b.re == 0 ? 0 : b.im / b.re, d = b.re + b.im * r;\n"
    "    return make_{s}((a.re + a.im * r) / d, (a.im - a.re * r) / d);\n  }}\n"
    "  {p} r = b.re / b.im, d = b.re * r + b.im;\n"
    "  return make_{s}((a.re * r + a.im) / d, (a.im * r - a.re) / d);\n}}",
    "neg": "{t} neg_{s}({t} a) {{ return make_{s}(-a.re, -a.im); }}",
    "conj": "{t} conj_{s}({t} a) {{ return make_{s}(a.re, -a.im); }}",
    "eq": "{b} eq_{s}({t} a, {t} b) {{ return a.re == b.re && a.im == b.im; }}",
    "ne": "{b} ne_{s}({t} a, {t} b) {{ return a.re != b.re || a.im != b.im; }}",
    "sqrt": "{t} sqrt_{s}({t} a) {{\n"
    "  {p} r = hypot{f}(a.re, a.im);\n"
    "  if (r == 0) return make_{s}(0, a.im);\n"
    "  if (a.re >= 0) {{\n"
    "    {p} x = sqrt{f}((r + a.re) / 2);\n"
    "    return make_{s}(x, a.im / (2 * x));\n  }}\n"
    "  {p} y = sqrt{f}((r - a.re) / 2);\n"
    "  return make_{s}(fabs{f}(a.im) / (2 * y), copysign{f}(y, a.im));\n}}",
    "exp": "{t} exp_{s}({t} a) {{\n  {p} r = exp{f}(a.re);\n  return make_{s}(r * cos{f}(a.im), r * sin{f}(a.im));\n}}",
    "log": "{t} log_{s}({t} a) {{ return make_{s}(log{f}(hypot{f}(a.re, a.im)), atan2{f}(a.im, a.re)); }}",
    "sin": "{t} sin_{s}({t} a) {{\n  return make_{s}(sin{f}(a.re) * cosh{f}(a.im), cos{f}(a.re) * sinh{f}(a.im));\n}}",
    "cos": "{t} cos_{s}({t} a) {{\n"
    "  return make_{s}(cos{f}(a.re) * cosh{f}(a.im), -(sin{f}(a.re) * sinh{f}(a.im)));\n}}",
}
_BY_KIND = {
    Kind.SIGNED: _INTEGER | _SIGNED,
    Kind.UNSIGNED: _INTEGER | _UNSIGNED,
    Kind.COMPLEX: _COMPLEX,
}
_STRUCT = "typedef struct {{ {p} re, im; }} {t};"


def complex_conversions(function: str) -> dict[str, str]:
    """The conversions between the complex types, for a dialect whose functions begin with `function`."""
    return {
        f"convert_{a}_{b}": f"{function} {b} convert_{a}_{b}({a} z) {{ return make_{b}(({p})z.re, ({p})z.im); }}"
        for a, b, p in (("complex64", "complex128", "double"), ("complex128", "complex64", "float"))
    }


def auxiliary_texts(names: Iterable[str], dialect: Dialect) -> list[str]:
    """The definitions of the auxiliaries named and of all that they need, in an order in which C accepts them."""
    done: dict[str, str] = {}
    for name in sorted(names):
        _add(name, dialect, done)
    return list(done.values())


def _add(name: str, dialect: Dialect, done: dict[str, str]) -> None:
    if name in done:
        return
    text = _text(name, dialect)
    for needed in _called(text, dialect):
        if needed != name:
            _add(needed, dialect, done)
    done[name] = text


def _text(name: str, dialect: Dialect) -> str:
    own = dialect.auxiliary_texts.get(name)
    if own is not None:
        return own
    if name in SCALARS:
        return _STRUCT.format(**_names(SCALARS[name], dialect))
    base, _, suffix = name.rpartition("_")
    scalar = SCALARS[suffix]
    text = f"{dialect.function} {_BY_KIND[scalar.kind][base]}"
    return text.format(**_names(scalar, dialect))


def _names(scalar: Scalar, dialect: Dialect) -> dict[str, str]:
    types = dialect.types
    part = parts_of(scalar) if scalar.is_complex else computed(scalar)
    return {
        "t": types[scalar],
        "s": scalar.name,
        "w": types[unsigned_of(scalar)],
        "p": types[part],
        "b": types[SCALARS["bool"]],
        "f": dialect.suffixes.get(part, ""),
        "bits": str(scalar.bits),
        "last": str(scalar.bits - 1),
        "f32": types[f32],
        "f64": types[f64],
    } | _limits(scalar, dialect)


def _limits(scalar: Scalar, dialect: Dialect) -> dict[str, str]:
    """The limits of an integer type, and the least power of two above it."""
    if not scalar.is_integer:
        return {}
    least, greatest = scalar.limits
    return {
        "least": integer(least, scalar, dialect).text,
        "greatest": integer(greatest, scalar, dialect).text,
        "beyond": literal(float(greatest + 1), f32, dialect).text,
    }


def _called(text: str, dialect: Dialect) -> Iterator[str]:
    """The auxiliaries that a text mentions."""
    for word in dict.fromkeys(re.findall(r"\w+", text)):
        if word in dialect.auxiliary_texts or word in ("complex64", "complex128"):
            yield word
            continue
        base, _, suffix = word.rpartition("_")
        if suffix in SCALARS and base in _BY_KIND.get(SCALARS[suffix].kind, {}):
            yield word
