"""Random products of matrices as programs: views below, work before and after, any types, batches; and their values.

All values are integers, small where sums are floats, so that every order of summation gives the same number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lithify.lang.scalars import SCALARS

Function = Callable[..., Any]

# The types of both operands and of the sums.
TYPES = (
    *[("f32", "f32", "f32")] * 5,
    *[("complex64", "complex64", "complex64")] * 2,
    *[("i32", "i32", "i32")] * 2,
    *[("bf16", "bf16", "f32")] * 2,
    *[("i8", "i8", "i32")] * 2,
    ("f64", "f64", "f64"), ("f16", "f16", "f16"), ("f16", "f16", "f32"), ("u8", "i8", "i32"), ("i8", "u8", "i32"),
    ("u8", "u8", "i32"), ("i16", "i16", "i32"), ("f32", "f32", "f64"), ("f16", "bf16", "f32"), ("i8", "i8", "i8"),
    ("f8e4m3", "f8e4m3", "f32"), ("i8", "i8", "f32"),
)  # fmt: skip
SIZES = (1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 24, 31, 32, 33, 37, 48, 61, 64, 70)
# Reductions that are no sums of products: the second cannot be reordered, nor any of the others filled up with zeros.
REDUCTIONS = {
    "reduce max 0 (map (+) (zip row col))": lambda x, y, r: np.maximum(r, x + y),
    "reduce (λ acc p . p.0 * p.1 - acc) 1 (zip row col)": lambda x, y, r: x * y - r,
    "reduce (λ acc p . acc + abs (p.0 - p.1)) 0 (zip row col)": lambda x, y, r: r + np.abs(x - y),
    "reduce (+) 0 (map (λ (x, y) . x * y + 1) (zip row col))": lambda x, y, r: r + x * y + 1,
    "reduce (+) 5 (map (*) (zip row col))": lambda x, y, r: r + x * y,
}
_STARTS = {"reduce max": 0, "reduce (λ acc p . p.0": 1, "reduce (+) 5": 5}


@dataclass(frozen=True)
class Random:
    """A program, what it is called with, and what it has to return (all elements as the result's type holds them)."""

    text: str
    arguments: list[Any]
    expected: Any


@dataclass
class _Operand:
    """The text of a matrix made of an argument of some shape; its values, of those, in the type of the sums."""

    text: str
    shape: tuple[int, ...]
    value: Function


def _views(r: random.Random, m: int, k: int) -> list[tuple[str, tuple[int, ...], Function]]:
    """Texts, shapes below them and functions of views of m x k elements."""
    del r
    ways: list[tuple[str, tuple[int, ...], Function]] = [
        ("transpose", (k, m), lambda x: x.T),
        ("reverse", (m, k), lambda x: x[::-1]),
        ("map reverse", (m, k), lambda x: x[:, ::-1]),
        (f"take {m}", (m + 3, k), lambda x: x[:m]),
        ("map (drop 1)", (m, k + 1), lambda x: x[:, 1:]),
        (f"split {k}", (m * k,), lambda x: x.reshape(m, k)),
        (f"slide {k} 1", (m + k - 1,), lambda x: np.lib.stride_tricks.sliding_window_view(x, k)),
        (f"replicate {m}", (k,), lambda x: np.broadcast_to(x, (m, k))),
    ]
    if k >= 3:
        ways.append(("map (pad 1 1 0)", (m, k - 2), lambda x: np.pad(x, ((0, 0), (1, 1)))))
        ways.append(("map (pad 1 1 clamp)", (m, k - 2), lambda x: np.pad(x, ((0, 0), (1, 1)), mode="edge")))
    if k % 2 == 0:
        ways.append(("map join", (m, 2, k // 2), lambda x: x.reshape(m, k)))
        both = [slice(0, None, 2), slice(1, None, 2)]
        ways.append(("map (reorder (stride 2))", (m, k), lambda x: np.concatenate([x[:, s] for s in both], 1)))
    return ways


def _work(r: random.Random, stored: str, acc: str, plain: bool) -> tuple[str, Function] | None:
    """What is done to every element of an operand before it is multiplied."""
    x = "x" if stored == acc else f"({acc} x)"
    choice = r.random()
    if not plain and choice < 0.25:
        return f"λ x . {x} * 2 + 1", lambda v: v * 2 + 1
    if not plain and choice < 0.45 and not SCALARS[acc].is_complex:
        return f"λ x . max 0 {x}", lambda v: np.maximum(v, 0)
    return None if stored == acc else (f"λ x . {x}", lambda v: v)


def _operand(r: random.Random, name: str, m: int, k: int, types: tuple[str, str], plain: bool, wide: Any) -> _Operand:
    made, work = _Operand(name, (m, k), lambda x: x), _work(r, *types, plain)
    texts: list[str] = []
    functions: list[Function] = []
    for _ in range(r.choice((0, 0, 0, 1, 1, 2))):
        if len(made.shape) != 2:
            break
        text, shape, function = r.choice(_views(r, *made.shape)) if r.random() < 0.7 else _views(r, *made.shape)[0]
        made.shape = shape
        texts.append(text)
        functions.insert(0, function)
    inside = work is not None and len(made.shape) == 2 and r.random() < 0.4  # below the views
    if work is not None:
        texts.insert(len(texts) if inside else 0, f"map (map ({work[0]}))")
        functions.insert(0 if inside else len(functions), work[1])

    def value(x: Any) -> Any:
        x = x.astype(wide)
        for function in functions:
            x = function(x).astype(wide)
        return x

    text = name
    for each in reversed(texts):
        text = f"({each} {text})"
    return _Operand(text, made.shape, value)


def _numbers(rng: np.random.Generator, name: str, *shape: int) -> Any:
    scalar = SCALARS[name]
    if scalar.is_integer:
        return rng.integers(*scalar.limits, shape, endpoint=True).astype(scalar.dtype)
    most = 1 if scalar.bits <= 16 else 3
    values = rng.integers(-most, most + 1, shape)
    return (values + 1j * rng.integers(-most, most + 1, shape) if scalar.is_complex else values).astype(scalar.dtype)


def random_product(seed: int) -> Random:
    """The product of a seed."""
    r, rng = random.Random(seed), np.random.default_rng(seed)
    m, n, k = (r.choice(SIZES) for _ in range(3))
    left, right, acc = r.choice(TYPES)
    scalar = SCALARS[acc]
    wide = scalar.dtype if scalar.is_integer else np.complex128 if scalar.is_complex else np.float64
    special = None if scalar.is_complex or scalar.bits < 32 or r.random() < 0.75 else r.choice([*REDUCTIONS])
    plain = special is not None or scalar.bits < 32
    a = _operand(r, "a", m, k, (left, acc), plain, wide)
    rows = r.random() < 0.5  # does the right operand lie as it is read?
    b = _operand(r, "b", *((n, k) if rows else (k, n)), (right, acc), plain, wide)
    pairs = r.choice(("zip row col", "zip col row"))
    reduction = special or f"reduce (+) 0 (map (*) ({pairs}))"
    text = f"map (λ row . map (λ col . {reduction}) {b.text if rows else f'(transpose {b.text})'}) {a.text}"
    arguments = [_numbers(rng, left, *a.shape), _numbers(rng, right, *b.shape)]
    if special is not None and special.startswith("reduce (λ acc p . p.0") and not scalar.is_integer:
        arguments = [np.sign(np.abs(x.astype(np.float64))).astype(x.dtype) for x in arguments]

    def product(x: Any, y: Any) -> Any:
        x, y = a.value(x), b.value(y).T if rows else b.value(y)
        if special is None:
            return x @ y
        start = next((value for text, value in _STARTS.items() if special.startswith(text)), 0)
        result = np.full((m, n), start, wide)
        for i in range(k):
            result = REDUCTIONS[special](x[:, i : i + 1], y[i : i + 1], result).astype(wide)
        return result

    with np.errstate(over="ignore"):
        if r.random() < 0.2:
            g = r.choice((1, 2, 5))
            over = r.choice(("ab", "ab", "a", "b"))
            bound, array = ("(a, b)", "(zip a b)") if over == "ab" else (over, over)
            text = f"map (λ {bound} . {text}) {array}"
            arguments = [
                np.stack([_numbers(rng, str_, *x.shape) for _ in range(g)]) if name in over else x
                for name, str_, x in zip("ab", (left, right), arguments, strict=True)
            ]
            if special is not None and not scalar.is_integer:
                arguments = [np.sign(np.abs(x.astype(np.float64))).astype(x.dtype) for x in arguments]
            each = [[x[i] if name in over else x for i in range(g)] for name, x in zip("ab", arguments, strict=True)]
            expected = np.stack([product(x, y) for x, y in zip(*each, strict=True)])
            return Random(f"main = λ a b . {text}", arguments, expected.astype(scalar.dtype))
        result = product(*arguments)
        text, result, more = _after(r, rng, text, result, acc)
    names = " ".join(["a", "b", "c", "α", "β"][: 2 + len(more)])
    with np.errstate(over="ignore"):
        return Random(f"main = λ {names} . {text}", [*arguments, *more], result.astype(scalar.dtype))


def _after(r: random.Random, rng: np.random.Generator, text: str, x: Any, acc: str) -> tuple[str, Any, list[Any]]:
    """Work on the result: the text, the values, and further arguments."""
    m, n = x.shape
    choice = r.randrange(10)
    if choice == 0 and not SCALARS[acc].is_complex:
        return f"map (map (max 0)) ({text})", np.maximum(x, 0), []
    if choice == 1:
        c = _numbers(rng, acc, n)
        return f"map (λ row . map (λ (x, y) . x + y) (zip row c)) ({text})", x + c.astype(x.dtype), [c]
    if choice == 2:
        c = _numbers(rng, acc, m)
        added = x * 2 + c.astype(x.dtype)[:, None]
        return f"map (λ (row, y) . map (λ x . x * 2 + y) row) (zip ({text}) c)", added, [c]
    if choice in (3, 4):
        c, two, three = _numbers(rng, acc, m, n), SCALARS[acc].dtype.type(2), SCALARS[acc].dtype.type(3)
        scaled = x * 2 + c.astype(x.dtype) * 3
        lies = "c" if choice == 3 else "(transpose c)"
        both = f"map (λ (r, s) . map (λ (x, y) . α * x + β * y) (zip r s)) (zip ({text}) {lies})"
        return both, scaled, [c if choice == 3 else np.ascontiguousarray(c.T), two, three]
    if choice == 5:
        return f"transpose ({text})", x.T, []
    if choice == 6:
        return f"map (pad 1 2 7) ({text})", np.pad(x, ((0, 0), (1, 2)), constant_values=7), []
    return text, x, []
