"""How the scalar operators are written: one table for all C-like languages, which a dialect overrides in places.

The names in braces: {t} the type of the operands, {w} the unsigned type in which its wrap-around arithmetic is done,
{s} the operands' scalar type as in the language (it names auxiliaries), {f} the suffix of mathematical functions.
Signed arithmetic goes through unsigned types because overflow of signed ones is undefined in C and wraps here.
"""

from __future__ import annotations

from collections.abc import Mapping

from lithify.lang.scalars import Kind
from lithify.targets.cdialect.text import (
    BITS,
    CHOICE,
    EQUALITY,
    LOGIC,
    PLUS,
    PRIMARY,
    QUOTIENT,
    RELATION,
    TIMES,
    UNARY,
    Template,
    call,
    infix,
    prefix,
)

Operations = Mapping[tuple[str, Kind], Template]

BOOL, SIGNED, UNSIGNED, FLOAT, COMPLEX = Kind.BOOL, Kind.SIGNED, Kind.UNSIGNED, Kind.FLOAT, Kind.COMPLEX
INTEGER = (SIGNED, UNSIGNED)

RELATIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
EQUALITIES = {"eq": "==", "ne": "!="}

SELECT = Template("{0} ? {1} : {2}", CHOICE, (LOGIC, LOGIC, LOGIC))
_DIVIDE = Template("{0} / {1}", QUOTIENT, (TIMES, UNARY))


def _wrapped(symbol: str) -> Template:
    """Arithmetic on integers of any width that wraps around."""
    return Template(f"({{t}})(({{w}}){{0}} {symbol} ({{w}}){{1}})", UNARY, (PRIMARY, PRIMARY))


def _auxiliary(name: str, arity: int) -> Template:
    return call(f"{name}_{{s}}", arity, auxiliary=f"{name}_{{s}}")


def _mathematical(names: Mapping[str, str], arity: int) -> dict[tuple[str, Kind], Template]:
    return {(name, FLOAT): call(f"{function}{{f}}", arity) for name, function in names.items()}


OPERATIONS: Operations = {
    # integers
    **{(name, kind): _wrapped(s) for name, s in (("add", "+"), ("sub", "-"), ("mul", "*")) for kind in INTEGER},
    **{(name, kind): _auxiliary(name, 2) for name in ("div", "rem", "min", "max", "shl", "shr") for kind in INTEGER},
    **{(name, kind): infix(s, BITS) for name, s in (("and", "&"), ("or", "|"), ("xor", "^")) for kind in INTEGER},
    # not ~, of which compilers warn where the operand was a truth value
    **{("not", kind): Template("({t})({0} ^ -1)", UNARY, (PRIMARY,)) for kind in INTEGER},
    ("neg", SIGNED): Template("({t})(0 - ({w}){0})", UNARY, (PRIMARY,)),
    ("abs", SIGNED): _auxiliary("abs", 1),
    ("abs", UNSIGNED): Template("{0}", PRIMARY, (PRIMARY,)),
    # truth values
    ("and", BOOL): infix("&&", LOGIC),
    ("or", BOOL): infix("||", LOGIC),
    ("xor", BOOL): infix("!=", EQUALITY),
    ("not", BOOL): Template("!{0}", LOGIC, (PRIMARY,)),  # compilers warn of `!a == b`
    # floating point
    ("add", FLOAT): infix("+", PLUS),
    ("sub", FLOAT): infix("-", PLUS),
    ("mul", FLOAT): infix("*", TIMES),
    ("div", FLOAT): _DIVIDE,
    ("neg", FLOAT): prefix("-"),
    ("rsqrt", FLOAT): Template("1 / sqrt{f}({0})", QUOTIENT, (CHOICE,)),
    ("tf32", FLOAT): call("round_tf32", 1, auxiliary="round_tf32"),
    **_mathematical({"min": "fmin", "max": "fmax", "pow": "pow"}, 2),
    **_mathematical({"fma": "fma"}, 3),
    **_mathematical(
        {name: name for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "erf", "floor", "ceil")}
        | {"abs": "fabs", "round": "rint"},
        1,
    ),
    # complex numbers are structs of two parts
    **{(name, COMPLEX): _auxiliary(name, 2) for name in ("add", "sub", "mul", "div", "eq", "ne")},
    **{(name, COMPLEX): _auxiliary(name, 1) for name in ("neg", "conj", "sqrt", "exp", "log", "sin", "cos")},
    ("re", COMPLEX): Template("{0}.re", PRIMARY, (PRIMARY,)),
    ("im", COMPLEX): Template("{0}.im", PRIMARY, (PRIMARY,)),
    # comparisons and choice
    **{(n, kind): infix(s, RELATION) for n, s in RELATIONS.items() for kind in (*INTEGER, FLOAT)},
    **{(n, kind): infix(s, EQUALITY) for n, s in EQUALITIES.items() for kind in (*INTEGER, FLOAT, BOOL)},
    ("complex", FLOAT): call("make_{c}", 2, auxiliary="make_{c}"),
}

# With a constant on the right (a shift within the width, a divisor other than 0 and -1) no auxiliary is needed. The
# operand is the left one, {n} the constant.
BY_CONSTANT: Operations = {
    **{("div", kind): Template("({t})({0} / {n})", UNARY, (TIMES,)) for kind in INTEGER},
    **{("rem", kind): Template("({t})({0} % {n})", UNARY, (TIMES,)) for kind in INTEGER},
    **{("shl", kind): Template("({t})(({w}){0} << {n})", UNARY, (PRIMARY,)) for kind in INTEGER},
    **{("shr", kind): Template("({t})({0} >> {n})", UNARY, (UNARY,)) for kind in INTEGER},
}

# For vectors where the language has them. {u} is the unsigned vector type of the same element size; comparisons give
# -1 for true in integers as wide as the elements.
VECTOR_OPERATIONS: Operations = {
    **{(n, SIGNED): Template(f"as_{{t}}(as_{{u}}({{0}}) {s} as_{{u}}({{1}}))", PRIMARY, (CHOICE, CHOICE))
       for n, s in (("add", "+"), ("sub", "-"), ("mul", "*"))},
    **{(n, UNSIGNED): infix(s, p) for n, s, p in (("add", "+", PLUS), ("sub", "-", PLUS), ("mul", "*", TIMES))},
    **{(name, kind): call(name, 2) for name in ("min", "max") for kind in INTEGER},
    **{("not", kind): prefix("~") for kind in (*INTEGER, BOOL)},
    ("neg", SIGNED): Template("as_{t}(-as_{u}({0}))", PRIMARY, (CHOICE,)),
    # not by `abs`, whose result for the least integer a compiler may take for positive, as one does
    ("abs", SIGNED): Template("max({0}, as_{t}(-as_{u}({0})))", PRIMARY, (CHOICE,)),
    ("and", BOOL): infix("&", BITS),
    ("or", BOOL): infix("|", BITS),
    ("xor", BOOL): infix("^", BITS),
    ("rsqrt", FLOAT): Template("1.0f / sqrt({0})", QUOTIENT, (CHOICE,)),
    ("tf32", FLOAT): Template(
        "select(as_{t}((as_{u}({0}) + 0xfffu + ((as_{u}({0}) >> 13) & 1u)) & 0xffffe000u), {0}, isnan({0}))",
        PRIMARY, (CHOICE,)),
}  # fmt: skip
