"""The language once more, element by element on nested Python lists: what the evaluator's tests compare with.

Slow and obvious: an array is a list, a tuple a tuple, a function a Python function. Nothing here is shared with the
evaluator under test.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lithify.lang.build import constant_value
from lithify.lang.index_functions import canonical_variable, operand_variable
from lithify.lang.term import Term
from lithify.lang.types import Array, Index, Tuple, Type


def truncated_quotient(a: int, b: int) -> int:
    return int(Fraction(a, b))


INTEGER_OPERATORS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": truncated_quotient,
    "rem": lambda a, b: a - b * truncated_quotient(a, b),
    "min": min,
    "max": max,
    "neg": lambda a: -a,
    "abs": abs,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "shl": lambda a, b: a * 2**b,
    "shr": lambda a, b: a // 2**b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "select": lambda c, a, b: a if c else b,
    "i32": lambda a: a,
}


def wrap(value: Any, type_: Type) -> Any:
    """An integer reduced to the width of its type."""
    bits, signed = getattr(type_, "bits", None), str(type_).startswith("i")
    if isinstance(value, bool) or bits is None:
        return value
    value %= 2**bits
    return value - 2**bits if signed and value >= 2 ** (bits - 1) else value


def number(size: Any, sizes: dict[Any, int]) -> int:
    return size.evaluate(sizes)


def run(term: Term, inputs: dict[str, Any], sizes: dict[Any, int], env: tuple[Any, ...] = ()) -> Any:
    """The value of a term; `env` holds the bound variables, the innermost first."""
    kind, attrs, args = term.kind, term.attrs, term.args

    def value(t: Term) -> Any:
        return run(t, inputs, sizes, env)

    def call(function: Term, *arguments: Any) -> Any:
        inner = env
        for argument in arguments:
            inner, function = (argument, *inner), function.args[0]
        return run(function, inputs, sizes, inner)

    match kind:
        case "param":
            return inputs[attrs[0]]
        case "bound":
            return env[attrs[0]]
        case "const":
            constant = constant_value(term)
            return number(constant, sizes) if isinstance(term.type, Index) else constant
        case "op":
            operands = [value(a) for a in args]
            if attrs[0].definition is not None:
                body, inner = attrs[0].definition, ()
                for operand in operands:
                    inner, body = (operand, *inner), body.args[0]
                return run(body, inputs, sizes, inner)
            return wrap(INTEGER_OPERATORS[attrs[0].name](*operands), term.type)
        case "index":
            formula = attrs[0]
            variables = [operand_variable(k, n) for k, n in enumerate(formula.extents)]
            given = {v: value(a) for v, a in zip(variables, args, strict=True) if v.constant is None}
            return int(formula.expression.evaluate(given | dict(sizes)))
        case "tuple":
            return tuple(value(a) for a in args)
        case "proj":
            return value(args[0])[attrs[0]]
        case "let":
            return call(args[1], value(args[0]))
        case "array":
            return [value(a) for a in args]
        case "at":
            return value(args[0])[value(args[1])]
        case "map":
            return [call(args[0], x) for x in value(args[1])]
        case "reduce":
            total = value(args[1])
            for x in value(args[2]):
                total = call(args[0], total, x)
            return total
        case "scan":
            total, results = value(args[1]), []
            for x in value(args[2]):
                total = call(args[0], total, x)
                results.append(total)
            return results
        case "pipe":
            total = value(args[2])
            for x in value(args[3]):
                total = call(args[0], total, call(args[1], x))
            return total
        case "iterate":
            x = value(args[1])
            for _ in range(number(attrs[0], sizes)):
                x = call(args[0], x)
            return x
        case "generate":
            return [call(args[0], i) for i in range(number(attrs[0], sizes))]
        case "to" | "launch":
            return value(args[0])
        case "scatter":
            return scatter(term, value(args[0]), value(args[1]), sizes)
        case "split":
            xs, n = value(args[0]), number(attrs[0], sizes)
            return [xs[i : i + n] for i in range(0, len(xs), n)]
        case "join":
            return [x for row in value(args[0]) for x in row]
        case "transpose":
            xs, type_ = value(args[0]), args[0].type
            assert isinstance(type_, Array)
            assert isinstance(type_.element, Array)
            return [[row[j] for row in xs] for j in range(number(type_.element.size, sizes))]
        case "take":
            return value(args[0])[: number(attrs[0], sizes)]
        case "drop":
            return value(args[0])[number(attrs[0], sizes) :]
        case "slide":
            xs, (n, step) = value(args[0]), (number(a, sizes) for a in attrs)
            return [xs[i : i + n] for i in range(0, len(xs) - n + 1, step)]
        case "pad":
            return pad(value(args[0]), attrs, [value(a) for a in args[1:]], sizes)
        case "zip":
            return list(zip(*[value(a) for a in args], strict=True))
        case "unzip":
            return unzip(value(args[0]), args[0].type)
        case "concat":
            return [x for a in args for x in value(a)]
        case "replicate":
            return [value(args[0])] * number(attrs[0], sizes)
        case "reindex":
            xs, function = value(args[0]), attrs[0]
            positions = range(number(function.extent, sizes))
            variables = canonical_variable(function.extent).variables()
            return [xs[function.forward.evaluate({**sizes, **dict.fromkeys(variables, i)})] for i in positions]
        case "gather":
            ids, xs = value(args[0]), value(args[1])
            return [xs[i] for i in ids]
    raise AssertionError(kind)


def unzip(xs: list[Any], type_: Type) -> tuple[list[Any], ...]:
    assert isinstance(type_, Array)
    assert isinstance(type_.element, Tuple)
    return tuple([x[i] for x in xs] for i in range(len(type_.element.items)))


def scatter(term: Term, ids: list[int], xs: list[Any], sizes: dict[Any, int]) -> list[Any]:
    assert isinstance(term.type, Array)
    n, mode = number(term.type.size, sizes), term.attrs[0]
    if mode == "permutation":
        return [xs[ids.index(i)] for i in range(n)]
    result = [mode.neutral(term.type.element)] * n
    for i, x in zip(ids, xs, strict=True):
        result[i] = wrap(INTEGER_OPERATORS[mode.name](result[i], x), term.type.element)
    return result


def pad(xs: list[Any], attrs: tuple[Any, ...], fill: list[Any], sizes: dict[Any, int]) -> list[Any]:
    left, right = number(attrs[0], sizes), number(attrs[1], sizes)
    if attrs[2] == "fill":
        return fill * left + xs + fill * right
    return [padded(xs, i, attrs[2]) for i in range(-left, len(xs) + right)]


def padded(xs: list[Any], i: int, mode: str) -> Any:
    """Walk from outside into the array, one step at a time."""
    n = len(xs)
    while not 0 <= i < n:
        match mode:
            case "clamp":
                i += 1 if i < 0 else -1
            case "wrap":
                i += n if i < 0 else -n
            case "mirror":
                i = -i - 1 if i < 0 else 2 * n - 1 - i
    return xs[i]


# ---- between the two representations -------------------------------------------------------------------------------


def as_lists(value: Any, type_: Type) -> Any:
    """A result of the evaluator (arrays of tuples as tuples of arrays) as nested lists and tuples."""
    if isinstance(type_, Tuple):
        return tuple(as_lists(v, t) for v, t in zip(value, type_.items, strict=True))
    if isinstance(type_, Array):
        return [as_lists(pick(value, i), type_.element) for i in range(length(value))]
    return value.item()


def pick(value: Any, i: int) -> Any:
    return tuple(pick(v, i) for v in value) if isinstance(value, tuple) else value[i]


def length(value: Any) -> int:
    return length(value[0]) if isinstance(value, tuple) else len(value)
