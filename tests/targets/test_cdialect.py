"""Index forms, conditions and literals as C text: printed, compiled, executed, compared with their definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.arith import ArithError, Expr, Variable, as_variable, const, maximum, minimum, proves, size, var, xor
from lithify.arith import loaded as loaded_index
from lithify.kernel import ir
from lithify.lang.levels import OUT
from lithify.lang.scalars import SCALARS, Scalar, bf16, f8e4m3, f16, f32, f64, i8, i32, i64, u8, u64
from lithify.targets.c import CTarget, find_compiler
from lithify.targets.c.dialect import C
from lithify.targets.cdialect.indices import IndexPrinter
from lithify.targets.cdialect.literals import literal
from lithify.targets.cdialect.text import Text
from lithify.targets.cdialect.values import shared_values
from lithify.targets.cdialect.width import LARGEST, Widths, bits_needed
from lithify.targets.opencl.dialect import OPENCL
from tests.targets.handmade import buffer, loop, op, program

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")
# Overflow of signed arithmetic ends the process: a wrong choice of width cannot pass.
CHECKED = CTarget(("-O0", "-ftrapv"), openmp=False)

EXTENTS = {"i": 7, "j": 5, "k": 3}
VARIABLES = {name: var(name, extent) for name, extent in EXTENTS.items()}
CASES_A_PROGRAM = 60


@st.composite
def forms(draw: st.DrawFn, depth: int = 3) -> Expr:
    """Index forms over i, j, k: sums, products, floors and remainders of possibly negative forms, xor, min and max."""
    kind = draw(st.integers(0, 9 if depth else 1))
    if kind == 0:
        return const(draw(st.sampled_from([0, 1, -1, 2, 3, 7, -5, 64, 1000, 1 << 20, 3_000_000_000])))
    if kind == 1:
        return draw(st.sampled_from(list(VARIABLES.values())))
    a, b = draw(forms(depth - 1)), draw(forms(depth - 1))
    c = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 16, 17]))
    match kind:
        case 2 | 3:
            return a + b * draw(st.sampled_from([1, -1, 2, -3, 16]))
        case 4:
            return a * b if a.hi < 1 << 20 and b.hi < 1 << 20 else a - b
        case 5 | 6:
            return a // c
        case 7:
            return a % c
        case 8:
            return minimum(a, b) if draw(st.booleans()) else maximum(a, b)
        case _:
            left, right = a % 32, b % 8
            return xor(left, right) if proves(left) and proves(right) else left


def evaluated(e: Expr) -> Any:
    """The values of a form for all i, j, k."""
    grid = np.meshgrid(*(np.arange(n) for n in EXTENTS.values()), indexing="ij")
    value = e.evaluate(dict(zip(VARIABLES.values(), grid, strict=True)))
    return np.broadcast_to(value, tuple(EXTENTS.values()))


def over_all(*stores: ir.Statement) -> ir.Statement:
    """The statements for all i, j, k."""
    body = stores
    for name in reversed(EXTENTS):
        body = (loop(VARIABLES[name], EXTENTS[name], *body),)
    return body[0]


@needs_compiler
@settings(max_examples=15)
@given(st.lists(forms(), min_size=1, max_size=CASES_A_PROGRAM).filter(lambda es: all(abs(e.hi) < 1e15 for e in es)))
def test_forms_have_their_values(es: list[Expr]) -> None:
    shape = tuple(EXTENTS.values())
    values = buffer("values", len(es), *shape, scalar=i64, role="output", memory=OUT)
    holds = buffer("holds", len(es), *shape, scalar=u8, role="output", memory=OUT)
    stores: list[ir.Statement] = []
    for number, e in enumerate(es):
        index = (const(number), *VARIABLES.values())
        guard = (e, es[number - 1] - e, VARIABLES["i"] - 2) if number % 2 else (e, 5 - e)
        stores.append(ir.Store(values, index, ir.IndexValue(e, i64)))
        stores.append(ir.Store(holds, index, ir.Choose(guard, ir.Constant(1, u8), ir.Constant(0, u8))))
    got, held = CHECKED.compile(program([], [values, holds], over_all(*stores)))()
    for number, e in enumerate(es):
        wanted = evaluated(e)
        np.testing.assert_array_equal(got[number], wanted, err_msg=str(e))
        if number % 2:
            i = np.arange(EXTENTS["i"])[:, None, None]
            truth = (wanted >= 0) & (evaluated(es[number - 1]) >= wanted) & (i >= 2)
        else:
            truth = (wanted >= 0) & (wanted <= 5)
        np.testing.assert_array_equal(held[number], truth, err_msg=f"0 <= {e} ..")


@given(forms())
def test_no_partial_sum_exceeds_the_peak(e: Expr) -> None:
    limits = [limit.constant for limit in Widths(64).limits(e)]
    top = max(limit for limit in limits if limit is not None)
    assert None not in limits
    assert np.abs(evaluated(e)).max() <= top
    total = np.full(tuple(EXTENTS.values()), e.offset)
    for monomial, coefficient in e.terms:
        term = const(coefficient)
        for atom in monomial:
            term = term * atom.expr
        total = total + evaluated(term)
        assert np.abs(total).max() <= top


@pytest.mark.parametrize(("extent", "bits"), [(2**31 - 1, 32), (2**31, 32), (2**31 + 1, 64), (3_270_680_000, 64)])
def test_width_at_the_edge(extent: int, bits: int) -> None:
    """The largest index of an array of 2^31 elements is 2^31 - 1, which still fits; one more does not."""
    assert bits_needed(var("i", extent)) == bits


def test_width_of_a_stride_times_a_row() -> None:
    row, column = var("row", 64), var("column", 64)
    assert bits_needed(row * 67_108_864 + column) == 64  # 63 x 67,108,864 is beyond 2^31
    assert bits_needed(row * 16_777_216 + column) == 32


def printer() -> IndexPrinter:
    p = IndexPrinter(C, 64, set(), lambda atom: Text(f"{atom.buffer}[..]"))
    for name, v in VARIABLES.items():
        p.declare(as_variable(v), name)
    return p


def text(e: Expr) -> str:
    return printer().text(e).text


i_, j_, k_ = VARIABLES.values()


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (i_ * 5 + j_, "5 * i + j"),
        (i_ - j_, "i - j"),
        (-i_, "-i"),
        (i_ // 4, "i / 4"),
        (i_ % 4, "i % 4"),
        ((i_ * 5 + j_) % 4 * 3 + k_, "3 * ((i + j) % 4) + k"),
        ((i_ - 3) // 4, "(i + 1) / 4 - 1"),
        (const(0), "0"),
        (i_ * j_, "i * j"),
        (i_ * 2 + 3_000_000_000, "2 * (int64_t)i + 3000000000"),
        (minimum(i_, j_), "min_i32(i, j)"),
    ],
    ids=str,
)
def test_text_of_forms(form: Expr, expected: str) -> None:
    assert text(form) == expected


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ((4 - i_,), "i < 5"),
        ((i_ - 2,), "i >= 2"),
        ((j_ - i_ - 1,), "i < j"),
        ((j_ - i_,), "i <= j"),
        ((i_ - j_ - 3,), "j + 3 <= i"),
        ((i_ - 1, 3 - i_), "(uint32_t)(i - 1) < 3u"),
        ((i_ - 1, 3 - j_), "i >= 1 && j < 4"),
        ((), "true"),
        ((const(-1),), "false"),
    ],
    ids=str,
)
def test_text_of_conditions(guard: ir.Guard, expected: str) -> None:
    assert printer().conditions(guard).text == expected


def test_floors_of_symbolic_forms() -> None:
    """Without a number below the numerator the floor is a function's; a proof of >= 0 makes it a plain division."""
    n = size("n")
    p = printer()
    p.declare(as_variable(n), "n")
    assert p.text(n // 4).text == "n / 4"
    i = var("x", n)
    p.declare(as_variable(i), "x")
    assert p.text((i - n) // 4).text == "floor_i64(x - n, 4)"


@needs_compiler
@pytest.mark.parametrize("scalar", SCALARS.values(), ids=str)
def test_literals_are_exact(scalar: Scalar) -> None:
    rng = np.random.default_rng(3)
    raw = rng.integers(0, 256, 64 * scalar.bytes, np.uint8)
    if scalar.name == "bool":
        raw &= 1
    numbers: Any = raw.view(scalar.dtype)
    if scalar.is_integer:
        numbers[:2] = scalar.limits
    out = buffer("out", 64, scalar=scalar, role="output", memory=OUT)
    kept = numbers.astype(np.float32) if scalar.is_float and scalar.bits < 32 else numbers
    stores = [ir.Store(out, (const(k),), ir.Constant(kept[k].item(), scalar)) for k in range(64)]
    got = CHECKED.compile(program([], [out], *stores))()
    if scalar.is_float or scalar.is_complex:
        wide = np.complex128 if scalar.is_complex else np.float64
        np.testing.assert_array_equal(got.astype(wide), numbers.astype(wide))
        if scalar.is_float:
            known = ~np.isnan(kept)
            np.testing.assert_array_equal(np.signbit(kept)[known], np.signbit(got.astype(kept.dtype))[known])
    else:
        np.testing.assert_array_equal(got, numbers)


@pytest.mark.parametrize(
    ("value", "scalar", "c", "opencl"),
    [
        (0.1, f32, "0.1f", "0.1f"),
        (0.1, f64, "0.1", "0.1"),
        (0.1, bf16, "0.100097656f", "0.100097656f"),
        (1e30, f32, "1.0e+30f", "1.0e+30f"),
        (5, f32, "5.0f", "5.0f"),
        (-0.0, f32, "-0.0f", "-0.0f"),
        (math.inf, f16, "INFINITY", "INFINITY"),
        (1e300, f16, "INFINITY", "INFINITY"),
        (-math.inf, f64, "-INFINITY", "-INFINITY"),
        (math.nan, f32, "NAN", "NAN"),
        (-(2**31), i32, "INT32_MIN", "INT_MIN"),
        (-128, i8, "-128", "-128"),
        (2**64 - 1, u64, "18446744073709551615u", "18446744073709551615u"),
        (0.3, f8e4m3, "0.3125f", "0.3125f"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_text_of_literals(value: Any, scalar: Scalar, c: str, opencl: str) -> None:
    assert literal(value, scalar, C).text == c
    assert literal(value, scalar, OPENCL).text == opencl


@needs_compiler
def test_values_used_twice_are_computed_once() -> None:
    x, out = buffer("x", 4), buffer("out", 4, role="output", memory=OUT)
    i = var("i", 4)
    value: ir.Value = ir.Load(x, (i,))
    for _ in range(40):  # as a tree it would be written 2^40 times
        value = op("add", value, value)
    assert len(shared_values(value)) == 39
    got = CHECKED.compile(program([x], [out], loop(i, 4, ir.Store(out, (i,), value))))(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(got, np.arange(4) * np.float32(2.0**40))


@needs_compiler
def test_indices_read_from_buffers() -> None:
    """A chain of loads in an index, negative ones among them."""
    ids, x = buffer("ids", 6, scalar=i32), buffer("x", 4)
    out = buffer("out", 6, role="output", memory=OUT)
    i = var("i", 6)
    e = loaded_index(ids, (i,), -4, 7)
    assert not proves(e)
    body = loop(i, 6, ir.Store(out, (i,), ir.Load(x, (e // 4 + 1,), (e // 4 + 1,), ir.Constant(-1.0, f32))))
    numbers = np.array([-4, -1, 0, 3, 4, 7], np.int32)
    got = CHECKED.compile(program([ids, x], [out], body))(numbers, np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(got, numbers // 4 + 1)


def test_names_do_not_clash() -> None:
    """Variables of one name, nested, and names that C knows."""
    outer, inner = var("i", 3), var("i", 4)
    out = buffer("int", 3, 4, scalar=i32, role="output", memory=OUT)
    text_ = CTarget().source(
        program([], [out], loop(outer, 3, loop(inner, 4, ir.Store(out, (outer, inner), ir.IndexValue(inner, i32)))))
    )
    assert "for (int32_t i = 0; i < 3; ++i)" in text_
    assert "for (int32_t i_1 = 0; i_1 < 4; ++i_1)" in text_
    assert "int_1[4 * i + i_1] = i_1;" in text_
    assert isinstance(as_variable(outer), Variable)


@given(forms(), st.integers(1, 9), st.integers(1, 9))
def test_limits_over_sizes_hold_for_their_values(e: Expr, n: int, m: int) -> None:
    """i < n and j < m instead of constants: the limits, evaluated, bound the form."""
    sizes = {"i": size("n"), "j": size("m")}
    symbolic = {VARIABLES[name]: var(name, extent) for name, extent in sizes.items()}
    try:
        form = e.substitute(symbolic)
    except ArithError:  # a proof that held for the constants does not for sizes
        return
    values = {sizes["i"]: n, sizes["j"]: m}
    top = max(limit.evaluate(values) for limit in Widths(32).limits(form))
    rows, columns, k = np.meshgrid(np.arange(n), np.arange(m), np.arange(3), indexing="ij")
    known = {**values, symbolic[VARIABLES["i"]]: rows, symbolic[VARIABLES["j"]]: columns, VARIABLES["k"]: k}
    assert np.abs(form.evaluate(known)).max() <= top


def test_what_32_bits_assume_of_sizes() -> None:
    widths = Widths(32)
    n, m = size("n"), size("m")
    row, column = var("row", n), var("column", m)
    assert widths.bits(row * m + column) == 32
    limit = max(widths.assumed, key=lambda e: e.evaluate({n: 100, m: 100}))
    assert limit.evaluate({n: 65536, m: 32767}) <= LARGEST[32] < limit.evaluate({n: 65536, m: 32769})
    assert Widths(64).bits(row * m + column) == 64
