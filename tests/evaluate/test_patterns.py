"""Single patterns: what random terms over small integers do not reach."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lithify.arith import const, size
from lithify.evaluate import evaluate
from lithify.lang import build as b
from lithify.lang.assumptions import OpenCondition, assuming
from lithify.lang.errors import EvaluationError, TypeMismatch
from lithify.lang.index_functions import index_function, reverse, stride
from lithify.lang.levels import LOCAL, PAR, SEQ, VEC, Level
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import bf16, bool_, complex64, f8e4m3, f16, f32, f64, i8, i32, u8, u32
from lithify.lang.term import Term, abstract
from lithify.lang.types import Array, Index, Tuple, Type, array
from tests.evaluate.plain import padded


def vector(n: int, type_: Type = i32, name: str = "xs") -> Term:
    return b.param(name, Array(n, type_))


@pytest.mark.parametrize("mode", ["clamp", "mirror", "wrap"])
def test_pad_shows_elements_also_where_it_is_longer_than_the_array(mode: str) -> None:
    for n, left, right in itertools.product(range(1, 5), range(8), range(8)):
        xs = np.arange(10, 10 + n, dtype=np.int32)
        result = evaluate(b.pad_mode(mode, left, right, vector(n)), {"xs": xs})
        assert result.tolist() == [padded(xs.tolist(), i, mode) for i in range(-left, n + right)]


@pytest.mark.parametrize("mode", ["clamp", "mirror", "wrap"])
def test_pad_of_nothing_shows_no_elements(mode: str) -> None:
    unknown = b.param("xs", Array(size("n", 0), i32))
    with pytest.raises(OpenCondition, match=f"pad 1 0 {mode} of an array that may be empty, n.i32") as error:
        b.pad_mode(mode, 1, 0, unknown)
    assert error.value.conditions == ("1 <= n",)
    rounded = b.pad_mode(mode, 0, -size("n", 0) % 8, unknown)  # nothing, where there is nothing
    assert evaluate(rounded, {"xs": np.zeros(0, np.int32)}).shape == (0,)
    with assuming(), pytest.raises(EvaluationError, match="empty array"):
        evaluate(b.pad_mode(mode, 1, 0, unknown), {"xs": np.zeros(0, np.int32)})
    with pytest.raises(TypeMismatch, match=f"pad 1 0 {mode} of an empty array, 0.i32: there is no element to repeat"):
        b.pad_mode(mode, 1, 0, vector(0))
    assert evaluate(b.pad_mode(mode, 0, 0, vector(0)), {"xs": np.zeros(0, np.int32)}).shape == (0,)


def test_pad_fills_whole_elements() -> None:
    xs = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = evaluate(b.pad(1, 2, b.const(7, f32), b.param("xs", array(2, 3, f32))), {"xs": xs})
    assert np.array_equal(result, np.pad(xs, ((1, 2), (0, 0)), constant_values=7))
    result = evaluate(b.pad(2, 0, b.const(7, f32), vector(0, f32)), {"xs": np.zeros(0)})
    assert result.tolist() == [7, 7]


def test_integer_division_is_that_of_c() -> None:
    values = [-8, -7, -1, 0, 1, 5, 7, -128, 127]
    pairs = [(x, y) for x in values for y in values if y]
    xs = tuple(np.array(column, np.int8) for column in zip(*pairs, strict=True))
    term = b.map_(
        lambda p: b.tuple_(*[b.op(o, b.proj(0, p), b.proj(1, p)) for o in ("div", "rem")]),
        b.param("xs", Array(len(pairs), Tuple(i8, i8))),
    )
    quotients, remainders = evaluate(term, {"xs": xs})
    for (x, y), q, r in zip(pairs, quotients.tolist(), remainders.tolist(), strict=True):
        assert r == math.fmod(x, y)
        assert q == (-128 if (x, y) == (-128, -1) else math.trunc(x / y))


def test_operators_are_total() -> None:
    term = b.map_(lambda x: b.op("div", b.const(1, i32), x), vector(3), SEQ, "m")
    assert evaluate(term, {"xs": np.array([1, 0, 2], np.int32)}).tolist() == [1, 0, 0]
    assert evaluate(b.map_(lambda x: b.op("shl", x, x), vector(1)), {"xs": np.array([-1], np.int32)}).tolist() == [0]


def test_shifts() -> None:
    def shift(name: str, type_: Any, x: int, by: int) -> int:
        return int(evaluate(b.op(name, b.const(x, type_), b.const(by, type_))))

    for x, by in itertools.product([-128, -3, -1, 0, 1, 5, 127], range(10)):
        assert shift("shl", i8, x, by) == (x * 2**by + 128) % 256 - 128
        assert shift("shr", i8, x, by) == x // 2**by
    assert shift("shr", u8, 255, 1) == 127


@pytest.mark.parametrize("scalar", [f8e4m3, f16, bf16, f32])
def test_stored_arithmetic_rounds_at_every_operator(scalar: Any) -> None:
    rng = np.random.default_rng(1)
    x, y, z = (rng.uniform(0.5, 2, 64).astype(scalar.dtype) for _ in range(3))
    term = b.map_(
        lambda t: b.add(b.mul(b.proj(0, t), b.proj(1, t)), b.proj(2, t)),
        b.zip_(*[vector(64, scalar, name) for name in "xyz"]),
    )
    inputs = {"x": x, "y": y, "z": z}
    stored = evaluate(term, inputs, exact=False)
    assert stored.dtype == scalar.dtype
    assert np.array_equal(stored, (x * y) + z)
    wide = [v.astype(np.float64) for v in (x, y, z)]
    exact = evaluate(term, inputs)
    assert exact.dtype == np.float64
    assert np.array_equal(exact, wide[0] * wide[1] + wide[2])
    fused = b.map_(
        lambda t: b.op("fma", b.proj(0, t), b.proj(1, t), b.proj(2, t)),
        b.zip_(*[vector(64, scalar, name) for name in "xyz"]),
    )
    assert np.array_equal(evaluate(fused, inputs, exact=False), (wide[0] * wide[1] + wide[2]).astype(scalar.dtype))


@pytest.mark.parametrize("scalar", [f16, bf16, f32])
def test_stored_sums_keep_the_order(scalar: Any) -> None:
    xs = np.array([1] + [scalar.dtype.type(float(ml_dtypes.finfo(scalar.dtype).eps) / 2)] * 40, scalar.dtype)
    expected = xs[0]
    for x in xs[1:]:
        expected = (expected + x).astype(scalar.dtype)
    total = b.reduce_(b.add, b.const(0, scalar), vector(41, scalar))
    assert evaluate(total, {"xs": xs}, exact=False) == expected == 1
    assert evaluate(total, {"xs": xs}) > 1


def test_conversions() -> None:
    xs = np.array([-2.7, -0.5, 0.5, 2.7, 300.4], np.float32)

    def converted(scalar: Any) -> list[Any]:
        return evaluate(b.map_(lambda x: b.convert(scalar, x), vector(5, f32)), {"xs": xs}, exact=False).tolist()

    assert converted(i32) == [-2, 0, 0, 2, 300]
    assert converted(u8) == [0, 0, 0, 2, 255]
    assert converted(bool_) == [True] * 5
    assert converted(f16)[4] == float(np.float16(300.4))
    indices = b.generate(3, lambda i: b.convert(f32, i))
    assert evaluate(indices).tolist() == [0, 1, 2]


def test_complex_numbers() -> None:
    z = np.array([1 + 2j, -3j], np.complex64)
    term = b.map_(lambda x: b.tuple_(b.op("re", x), b.op("im", x), b.op("conj", x), b.mul(x, x)), vector(2, complex64))
    re, im, conj, square = evaluate(term, {"xs": z}, exact=False)
    assert (re.dtype, square.dtype) == (np.float32, np.complex64)
    assert np.array_equal(re, z.real)
    assert np.array_equal(im, z.imag)
    assert np.array_equal(conj, z.conj())
    assert np.array_equal(square, z * z)
    made = b.op("complex", b.const(math.inf, f32), b.const(2, f32))
    assert evaluate(made) == complex(math.inf, 2)


@pytest.mark.parametrize(
    ("name", "function"),
    [("sqrt", math.sqrt), ("exp", math.exp), ("log", math.log), ("sin", math.sin), ("cos", math.cos),
     ("rsqrt", lambda x: 1 / math.sqrt(x)), ("tan", math.tan), ("tanh", math.tanh), ("erf", math.erf),
     ("floor", math.floor), ("ceil", math.ceil), ("round", round), ("neg", lambda x: -x), ("abs", abs)],
)  # fmt: skip
def test_functions_of_one_number(name: str, function: Any) -> None:
    xs = [0.5, 1.0, 1.5, 2.5, 3.25]
    result = evaluate(b.map_(lambda x: b.op(name, x), vector(5, f64)), {"xs": np.array(xs)})
    assert np.allclose(result, [function(x) for x in xs], rtol=1e-15)


@pytest.mark.parametrize(("width", "scalar"), [(128, f32), (128, f16), (64, f16), (64, f64), (32, u8), (32, f16)])
def test_swizzle_is_that_of_addresses(width: int, scalar: Any) -> None:
    """Bits 4.. of the byte address are xored with bits 7.. when rows of `width` bytes lie one after another."""
    rows, columns = 16, width // scalar.bytes
    xs = np.arange(rows * columns).reshape(rows, columns).astype(scalar.dtype)
    result = evaluate(b.swz(width, b.param("xs", array(rows, columns, scalar))), {"xs": xs}, exact=False)
    flat = xs.reshape(-1)
    for r, c in np.ndindex(rows, columns):
        address = (r * columns + c) * scalar.bytes
        swizzled = address ^ (((address >> 7) & (width // 16 - 1)) << 4)
        assert result[r, c] == flat[swizzled // scalar.bytes]
    twice = b.swz(width, b.swz(width, b.param("xs", array(rows, columns, scalar))))
    assert np.array_equal(evaluate(twice, {"xs": xs}, exact=False), xs)


def test_swizzle_needs_whole_rows() -> None:
    with pytest.raises(EvaluationError, match="swz 128 of rows of 31"):
        evaluate(b.swz(128, b.param("xs", array(8, 31, f32))), {"xs": np.zeros((8, 31))})


def test_reindex_and_its_declared_inverse() -> None:
    xs = np.arange(12, dtype=np.int32)
    function = stride(3, 12)
    assert evaluate(b.reindex(function, vector(12)), {"xs": xs}).tolist() == [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]
    back = b.reindex(function.inverted(), b.reindex(function, vector(12)))
    assert np.array_equal(evaluate(back, {"xs": xs}), xs)
    assert evaluate(b.reindex(reverse(0), vector(0)), {"xs": xs[:0]}).shape == (0,)
    first = index_function("first", 3, 1, lambda i: i * 0)
    assert evaluate(b.reindex(first, vector(1)), {"xs": xs[4:5]}).tolist() == [4, 4, 4]


def test_scatter() -> None:
    ids = np.array([2, 0, 2, 1])
    xs = np.array([1, 2, 3, 4], np.int32)
    inputs = {"ids": ids, "xs": xs}
    target = b.param("ids", Array(4, Index(5)))
    for name, expected in (("add", [2, 4, 4, 0, 0]), ("mul", [2, 4, 3, 1, 1])):
        assert evaluate(b.scatter(OPERATORS[name], target, vector(4)), inputs).tolist() == expected
    permutation = b.scatter("permutation", b.param("ids", Array(4, Index(4))), vector(4))
    assert evaluate(permutation, {"ids": np.array([2, 0, 3, 1]), "xs": xs}).tolist() == [2, 4, 1, 3]
    with pytest.raises(EvaluationError, match="not a permutation"):
        evaluate(permutation, inputs)


class TwiceRow:
    """An instruction row for the test: x -> 2 x + y on a row and a number."""

    def result_type(self, operands: tuple[Type, ...]) -> Type:
        return operands[0]

    @property
    def definition(self) -> Term:
        return abstract(array(3, f32), lambda x: abstract(f32, lambda y: b.map_(lambda e: b.add(b.add(e, e), y), x)))

    def __hash__(self) -> int:
        return 1


def test_instructions_are_evaluated_by_their_rows() -> None:
    xs = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    row = TwiceRow()
    c = b.param("c", f32)
    ys = b.param("ys", Array(2, f32))
    grid = b.param("xs", array(2, 2, 3, f32))
    term = b.map_(lambda p: b.map_(lambda x: b.instr(row, x, b.proj(1, p)), b.proj(0, p)), b.zip_(grid, ys))
    result = evaluate(term, {"xs": xs, "ys": np.array([10.0, 20.0])})
    assert np.array_equal(result, 2 * xs + np.array([10, 20]).reshape(2, 1, 1))
    single = b.map_(lambda x: b.instr(row, x, c), b.join(grid))
    assert np.array_equal(evaluate(single, {"xs": xs, "c": 1.0}), 2 * xs.reshape(4, 3) + 1)


def test_levels_and_memories_do_not_change_the_value() -> None:
    xs = np.arange(12, dtype=np.float32)
    item, group = Level("item", 0), Level("group", 0)
    plain = b.join(b.map_(lambda row: b.map_(lambda x: b.mul(x, x), row), b.split(4, vector(12, f32))))
    lowered = b.launch((3,), (4,), b.join(b.map_(
        lambda row: b.let(b.to(LOCAL, b.copy(row, item)), lambda tile: b.map_(lambda x: b.mul(x, x), tile, item)),
        b.split(4, vector(12, f32)), group)))  # fmt: skip
    for level in (SEQ, PAR, VEC):
        assert np.array_equal(
            evaluate(b.map_(lambda x: b.mul(x, x), vector(12, f32), level), {"xs": xs}), xs.astype(float) ** 2
        )
    assert np.array_equal(evaluate(plain, {"xs": xs}), evaluate(lowered, {"xs": xs}))


# ---- inputs and sizes ----------------------------------------------------------------------------------------------


def test_sizes_are_found_from_the_shapes() -> None:
    n, m = size("n"), size("m")
    x, y = b.param("x", array(n, 2 * m, f32)), b.param("y", array(m + n, f32))
    term = b.tuple_(b.generate(m, lambda i: i), b.join(x), y)
    indices, joined, _ = evaluate(term, {"x": np.ones((3, 4)), "y": np.ones(5)})
    assert indices.tolist() == [0, 1]
    assert joined.shape == (12,)
    with pytest.raises(EvaluationError, match=r"axis 0 of y has length 6, its type says .*n = 3 \(axis 0 of x\)"):
        evaluate(term, {"x": np.ones((3, 4)), "y": np.ones(6)})
    with pytest.raises(EvaluationError, match=r"axis 1 of x|do not determine"):
        evaluate(term, {"x": np.ones((3, 5)), "y": np.ones(5)})


def test_sizes_are_given_where_the_shapes_do_not_tell() -> None:
    n = size("n")
    term = b.generate(n, lambda i: b.convert(i32, i))
    assert evaluate(term, sizes={"n": 3}).tolist() == [0, 1, 2]
    with pytest.raises(Exception, match="n is not bound"):
        evaluate(term)
    flat = b.split(n, b.param("xs", Array(2 * n, f32)))
    assert evaluate(flat, {"xs": np.zeros(6)}).shape == (2, 3)
    with pytest.raises(EvaluationError, match=r"length 6, its type says 2\*n = 8: n = 4 \(given\)"):
        evaluate(flat, {"xs": np.zeros(6)}, sizes={"n": 4})


def test_a_size_is_at_least_what_is_declared() -> None:
    xs = b.param("xs", Array(size("n"), f32))
    with pytest.raises(EvaluationError, match="size n is 0, declared to be at least 1"):
        evaluate(xs, {"xs": np.zeros(0)})
    assert evaluate(b.param("xs", Array(size("n", 0), f32)), {"xs": np.zeros(0)}).shape == (0,)


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        (Array(3, f32), np.zeros(4), "axis 0 of xs has length 4, its type says 3"),
        (Array(3, f32), np.zeros((3, 1)), "2 axes, its type has 1"),
        (array(3, 2, f32), np.zeros(3), "its type needs more"),
        (Array(3, i32), np.zeros(3), "given as float64"),
        (f32, 1j, "given as complex128"),
        (Array(2, Index(3)), np.array([0, 3]), r"holds 0 \.\. 3"),
        (Array(2, Index(3)), np.array([-1, 0]), r"holds -1 \.\. 0"),
        (Array(2, Index(3)), np.zeros(2), "holds indices"),
        (Tuple(f32, f32), 1.0, "give a tuple of 2"),
        (Array(2, Tuple(f32, f32)), (np.zeros(2), np.zeros(3)), r"axis 0 of xs.* has length 3"),
        (f32, (1.0, 2.0), "given as a tuple"),
    ],
)
def test_inputs_that_do_not_fit(type_: Type, value: Any, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        evaluate(b.param("xs", type_), {"xs": value})


def test_a_missing_input() -> None:
    with pytest.raises(EvaluationError, match="no value is given for xs"):
        evaluate(vector(3), {})


def test_results_do_not_alias_the_inputs() -> None:
    xs = np.arange(4, dtype=np.float64)
    result = evaluate(b.take(2, vector(4, f64)), {"xs": xs})
    result[0] = 99
    assert xs[0] == 0


# ---- indices -------------------------------------------------------------------------------------------------------


def test_indices_outside_an_array_are_refused() -> None:
    n = size("n")
    xs = b.param("xs", Array(n + 2, f32))
    assert evaluate(b.at(xs, b.const(1, Index(n + 2))), {"xs": np.arange(3.0)}) == 1
    for at in (n + 2, n + 5, const(3), const(-1)):
        with pytest.raises(TypeMismatch, match=r"index .* is (outside|not inside)"):
            b.const(at, Index(n + 2))


def test_nothing_is_evaluated_for_no_elements() -> None:
    """A body that would fail for any element does not fail for none."""
    term = b.map_(lambda x: b.op("div", x, b.const(0, i32)), vector(0))
    assert evaluate(term, {"xs": np.zeros(0, np.int32)}).shape == (0,)
    folded = b.reduce_(lambda acc, x: b.op("div", acc, x), b.const(5, i32), vector(0))
    assert evaluate(folded, {"xs": np.zeros(0, np.int32)}) == 5


def test_a_shared_body_is_evaluated_once() -> None:
    """2^60 as x + x, sixty times: linear in the number of nodes, not of paths."""
    x = b.param("x", u32)
    for _ in range(60):
        x = b.add(x, x)
    assert evaluate(x, {"x": np.uint32(1)}) == 2**60 % 2**32
    inside = b.map_(lambda y: _doubled(y, 60), vector(2, f64))
    assert evaluate(inside, {"xs": np.array([1.0, 2.0])}).tolist() == [2.0**60, 2.0**61]


def _doubled(x: Term, times: int) -> Term:
    for _ in range(times):
        x = b.add(x, x)
    return x


def test_a_matrix_product_in_pieces() -> None:
    """Larger than what is held at once: the same as NumPy."""
    rng = np.random.default_rng(0)
    a, c = rng.standard_normal((150, 210)), rng.standard_normal((210, 170))
    rows, columns = b.param("a", array(150, 210, f64)), b.param("c", array(210, 170, f64))
    term = b.map_(
        lambda row: b.map_(
            lambda col: b.reduce_(
                b.add, b.const(0, f64), b.map_(lambda p: b.mul(b.proj(0, p), b.proj(1, p)), b.zip_(row, col))
            ),
            b.transpose(columns),
        ),
        rows,
    )
    assert np.allclose(evaluate(term, {"a": a, "c": c}), a @ c, rtol=1e-12)
