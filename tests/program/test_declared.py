"""What a program declares of its operators is tried out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.lang import build
from lithify.lang.algebra import absorbing_element, inverse_of
from lithify.lang.digest import digest
from lithify.lang.errors import TypeMismatch
from lithify.lang.scalars import bool_, i32
from lithify.lang.term import subterms
from lithify.rewrite.unaffected import ignores

RIGHT = [
    "operator plus (λ a b . a + b) associative commutative neutral 0",
    "operator larger (λ a b . max a b) associative commutative idempotent neutral (-inf)",
    "operator left (λ a b . a) associative idempotent",
    "operator mean (λ a b . (a + b) * 0.5) commutative idempotent",
    "operator minus (λ a b . a - b)",
    "operator plus (λ a b . a + b) associative commutative neutral 0 inverse (-)",
    "operator minus (λ a b . a - b) inverse (λ a b . b + a)",
    "operator larger (λ a b . max a b) associative absorbing inf neutral (-inf)",
    "operator between (λ a b . max 0 (min 1 (min a b))) associative commutative absorbing 0",
]
WRONG = [
    (
        "operator minus (λ a b . a - b) associative",
        r"not associative: \(a \* b\) \* c == a \* \(b \* c\).*a = .*b = .*c = ",
    ),
    ("operator minus (λ a b . a - b) commutative", "not commutative.*a = .*b = "),
    ("operator minus (λ a b . a - b) neutral 0", r"not neutral .*e \* a == a.*a = "),
    ("operator plus (λ a b . a + b) idempotent", "not idempotent"),
    ("operator mean (λ a b . (a + b) * 0.5) associative", "not associative"),
    ("operator larger (λ a b . max a b) associative neutral 0", "not neutral"),
    ("operator left (λ a b . a) commutative", "not commutative"),
    ("operator plus (λ a b . a + b) absorbing 0", r"not absorbing .*: z \* a == z does not hold for a = "),
    ("operator left (λ a b . a) absorbing 0", r"not absorbing .*: a \* z == z"),
    (
        "operator plus (λ a b . a + b) inverse (+)",
        r"not undone by its inverse: inverse \(a \* b\) b == a .* a = .*b = ",
    ),
    ("operator times (λ a b . a * b) inverse (/)", "not undone by its inverse"),
    ("operator plus (λ a b . a + b) inverse (λ a b . a > b)", "the function gives bool, f32 expected"),
    ("operator plus (λ a b . a + b) absorbing (0, 0)", r"the absorbing element of plus has type \(i32, i32\)"),
]


def program(declaration: str) -> lf.Program:
    name = declaration.split()[1]
    start = "(-inf)" if name == "larger" else "0"
    return lf.parse(f"{declaration}\nf = λ xs . reduce {name} {start} xs\n")["f"]


@pytest.mark.parametrize("declaration", RIGHT)
def test_what_holds_is_accepted(declaration: str) -> None:
    assert str(program(declaration).types("8.f32")[1]) == "f32"
    assert str(program(declaration).types("8.f64")[1]) == "f64"


@pytest.mark.parametrize(("declaration", "message"), WRONG)
def test_what_does_not_hold_is_refused(declaration: str, message: str) -> None:
    with pytest.raises(TypeMismatch, match=message):
        program(declaration).types("8.f32")


def test_operators_on_tuples() -> None:
    text = """
operator best (λ (a : (f32, i32)) (b : (f32, i32)) .
    if a.0 > b.0 then a else if b.0 > a.0 then b else if a.1 <= b.1 then a else b)
  associative commutative idempotent neutral (-inf, 2147483647)
f = λ (xs : n.f32) (ids : n.i32) . reduce best (-inf, 2147483647) (zip xs ids)
"""
    xs = np.array([1, 5, 3, 5], np.float32)
    value, position = lf.parse(text)["f"](xs, np.arange(4, dtype=np.int32))
    assert (value, position) == (5, 1)
    wrong = text.replace("if a.1 <= b.1 then a else b", "a")
    with pytest.raises(TypeMismatch, match=r"not commutative.*a = \("):
        lf.parse(wrong)["f"].types("4.f32", "4.i32")


def test_the_operators_that_the_package_ships() -> None:
    from pathlib import Path

    for path in sorted((Path(lf.__file__).parent / "operators").glob("*.lift")):
        text = path.read_text(encoding="utf-8")
        if "operator " in text:
            module = lf.load(path)
            assert module["amax"].types("9.f32")


LAWS = """
operator either (λ a b . a || b) associative commutative neutral false
operator both (λ a b . a && b) associative commutative neutral true absorbing false
operator add2 (λ a b . a + b) associative commutative neutral 0
operator sub2 (λ a b . a - b) inverse add2
operator sub3 (λ a b . a - b)
anyPair (xs : n.bool) (ys : n.bool) = reduce (λ acc (x, y) . either acc (both x y)) false (zip xs ys)
without (xs : n.i32) = reduce sub2 100 xs
unknown (xs : n.i32) = reduce sub3 100 xs
"""


def test_absorbing_elements_and_inverses_are_used_as_those_of_built_in_operators() -> None:
    """`pad-reduce` fills arrays up with what a combining function ignores: false && y is false, a - 0 is a."""
    module = lf.parse(LAWS)
    function = module["anyPair"].term("7.bool", "7.bool").args[0]
    element = build.param("y", bool_)
    assert ignores(function, build.tuple_(build.const(False, bool_), element))
    assert not ignores(function, build.tuple_(build.const(True, bool_), element))
    (both,) = [t.attrs[0] for t in subterms(function) if t.kind == "op" and t.attrs[0].name == "both"]
    assert absorbing_element(both, bool_) is build.const(False, bool_)
    without, unknown = (module[name].term("7.i32").args[0] for name in ("without", "unknown"))
    zero = build.const(0, i32)
    assert ignores(without, zero)
    assert not ignores(unknown, zero)
    (minus,) = [t.attrs[0] for t in subterms(without) if t.kind == "op"]
    undone = inverse_of(minus)
    assert undone is not None
    assert undone.name == "add2"
    for n in (1, 7, 33):
        xs = np.random.default_rng(n).integers(0, 9, n).astype(np.int32)
        assert module["without"](xs) == 100 - xs.sum()
        assert module["anyPair"](xs > 7, xs > 4) == bool((xs > 7).any())


def test_declarations_are_part_of_what_identifies_a_program() -> None:
    digests = set()
    claimed: list[dict[str, Any]] = [{}, {"associative": True}, {"neutral": 0}, {"inverse": lf.sub}]
    claimed.append({"idempotent": False})
    for claims in claimed:
        plus = lf.operator(lambda a, b: a + b, name="plus", **claims)
        digests.add(digest(lf.program(_reduced(plus, 0)).term("8.f32")))
    assert len(digests) == 4


# ---- in Python -------------------------------------------------------------------------------------------------------


@lf.operator(associative=True, commutative=True, neutral=(-np.inf, 2**31 - 1))
def best(p, q):  # type: ignore[no-untyped-def]
    (a, i), (b, j) = p, q
    return lf.select((b > a) | ((b == a) & (j < i)), q, p)


@lf.program
def argmax(xs):  # type: ignore[no-untyped-def]
    ids = lf.generate(lf.length(xs), lambda i: lf.i32(i))
    return lf.zip(xs, ids) >> lf.reduce(best, (-np.inf, 2**31 - 1)) >> (lambda p: p[1])


@pytest.mark.parametrize("size", [1, 7, 33, 1000, 100_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_operator_in_python(size: int, dtype: type) -> None:
    xs = np.random.default_rng(size).integers(0, 50, size).astype(dtype)
    assert argmax(xs) == xs.argmax()
    if size >= 1000:  # what is declared is used: there are sums side by side
        assert any("lanes" in name or "partial" in name for name in argmax.derivation(xs).names())


@pytest.mark.parametrize(
    ("function", "properties", "message"),
    [
        (lambda a, b: a - b, {"associative": True}, "operator minus is not associative"),
        (lambda a, b: a - b, {"commutative": True}, "operator minus is not commutative"),
        (lambda a, b: a + b, {"neutral": 1}, "operator minus is not neutral f32 1"),
        (lambda a, b: a + b, {"absorbing": 1}, "operator minus is not absorbing f32 1"),
        (lambda a, b: a + b, {"inverse": lf.add}, "operator minus is not undone by its inverse"),
        (lambda a, b: (a, b), {}, r"the function gives \(f32, f32\), f32 expected"),
        (lambda a, b: a + b, {"neutral": (0, 0)}, r"the neutral element of minus has type \(i32, i32\), f32 expected"),
    ],
)
def test_what_does_not_hold_in_python_is_refused(function: Any, properties: Any, message: str) -> None:
    minus = lf.operator(function, name="minus", **properties)

    def total(xs):  # type: ignore[no-untyped-def]
        return lf.reduce(minus, 0, xs)

    with pytest.raises(TypeMismatch, match=message) as caught:
        lf.program(total)(np.ones(8, np.float32))
    assert "test_declared.py, line" in str(caught.value.where)


def test_operators_of_one_name_are_not_mixed_up() -> None:
    """Neither in one process nor by way of the kernels that are kept on disk."""
    xs = np.arange(1, 9, dtype=np.float32)
    for function, neutral, expected in (
        (lambda a, b: a + b, 0, xs.sum()),
        (lambda a, b: a * b, 1, xs.prod()),
        (lambda a, b: lf.max(a, b), -np.inf, 8),
    ):
        combine = lf.operator(function, associative=True, commutative=True, neutral=neutral, name="combine")
        assert lf.program(_reduced(combine, neutral))(xs) == expected


def _reduced(combine: Any, start: float) -> Any:
    def total(xs):  # type: ignore[no-untyped-def]
        return lf.reduce(combine, start, xs)

    return total


def test_a_law_of_another_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(lf.TypeMismatch, match=r"declares no assoc\nhint: did you mean associative\?.*neutral.*inverse"):
        lf.operator(lambda a, b: a + b, assoc=True)  # type: ignore[arg-type]


def test_a_program_without_its_initial_value_says_so() -> None:
    with pytest.raises(lf.TypeMismatch, match=r"hint: the initial value is missing: `reduce f initial xs`"):
        lf.program(lambda xs: lf.reduce(lf.add, xs))(np.ones(3))
