"""What the evaluator counts, and which index width a program needs."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.arith import Expr, as_variable, const, size, var
from lithify.kernel import ir
from lithify.kernel.evaluator import Counts, check_index_width, index_bits, run
from lithify.lang.errors import EvaluationError
from lithify.lang.levels import HEAP, LOCAL, PAR, PRIVATE
from lithify.lang.scalars import f16, f32
from tests.kernel.hand_written import (
    CASES,
    buffer,
    given,
    lanes,
    load,
    loop,
    on_cpu,
    on_groups,
    program,
    result,
    store,
)


def counted(subject: ir.Program, **options: int) -> Counts:
    counts = Counts()
    inputs = {b.name: np.ones([s.constant or 0 for s in b.shape], np.float32) for b in subject.parameters}
    run(subject, inputs, counts=counts, **options)
    return counts


@pytest.mark.parametrize(("stride", "lines"), [(1, 1), (2, 2), (32, 32), (0, 1)])
def test_lines_of_an_access_by_a_warp(stride: int, lines: int) -> None:
    """32 work-items read f32 elements a stride apart: 128-byte lines of 32 elements."""
    x, out = given("x", 64 * 32), result(64)
    kernel = on_groups(2, 32, lambda g, i: (store(out, g * 32 + i, load(x, g * 1024 + i * stride)),))
    counts = counted(program((x,), out, kernel))
    assert counts.accesses == 4  # two groups of one warp: a load and a store each
    assert counts.lines == 2 * lines + 2
    assert counts.bytes_read["heap"] == counts.bytes_written["heap"] == 64 * 4


@pytest.mark.parametrize(
    ("stride", "scalar", "cycles"),
    [(1, f32, 1), (2, f32, 2), (32, f32, 32), (33, f32, 1), (0, f32, 1), (1, f16, 1), (2, f16, 1), (64, f16, 32)],
)
def test_bank_conflicts(stride: int, scalar: object, cycles: int) -> None:
    """32 banks of 4 bytes; work-items that read the same word do not conflict."""
    x, out = given("x", 32), result(32)
    s = buffer("s", 32 * 64, memory=LOCAL, scalar=scalar)  # type: ignore[arg-type]
    kernel = on_groups(
        1, 32,
        lambda _g, i: (
            loop("j", 64, lambda j: (store(s, j * 32 + i, ir.Constant(1.0, s.scalar)),)),
            ir.Barrier(),
            store(out, i, load(s, i * stride)),
        ), s,
    )  # fmt: skip
    counts = counted(program((x,), out, kernel))
    assert counts.bank_accesses == 64 + 1
    assert counts.bank_cycles == 64 + cycles
    assert counts.local_bytes == 32 * 64 * s.scalar.bytes
    assert counts.barriers == 1


def test_vectors_and_splats() -> None:
    """A vector is one access; an element that all lanes read is read once."""
    x, y, out = given("x", 8, 4), given("y", 8), result(8, 4)
    kernel = on_cpu(
        loop("i", 8, lambda i: (lanes("v", 4, lambda v: (store(out, (i, v), add(load(x, i, v), load(y, i))),)),), PAR)
    )
    counts = counted(program((x, y), out, kernel))
    assert counts.bytes_read["heap"] == (32 + 8) * 4
    assert counts.bytes_written["heap"] == 32 * 4
    assert counts.accesses == 8 * 3
    assert counts.operations == {"add": 32}


def add(*operands: ir.Value) -> ir.Apply:
    from tests.kernel.hand_written import apply

    return apply("add", *operands)


def test_the_figures_of_whole_kernels() -> None:
    tree = counted(CASES["tree_sum"]().program)
    assert (tree.operations, tree.barriers, tree.local_bytes) == ({"add": 3 * 7}, 3 * 4, 32)
    pipeline = counted(CASES["ring"]().program)
    assert pipeline.asynchronous_bytes == 2 * 6 * 4 * 4
    assert pipeline.private_elements == 1
    assert counted(CASES["two_kernels"]().program).kernels == 2


# ---- index width ---------------------------------------------------------------------------------------------------


def copy_of(n: Expr) -> ir.Program:
    """out[i] := x[i] for i below n."""
    x, out = ir.Buffer("x", f32, (n,), HEAP, "input", 4), ir.Buffer("out", f32, (n,), HEAP, "output", 4)
    i = var("i", n)
    body = (ir.Loop(as_variable(i), n, PAR, (store(out, i, load(x, i)),)),)
    sizes = tuple(n.variables())
    return ir.Program("copy", (x,), (out,), (), (ir.Kernel("copy", body),), sizes)


@pytest.mark.parametrize(("n", "bits"), [(2**31 - 1, 32), (2**31, 32), (2**31 + 1, 64)])
def test_the_width_is_decided_from_sizes_without_allocating(n: int, bits: int) -> None:
    """The largest element number is n - 1."""
    assert index_bits(copy_of(const(n))) == bits
    symbolic = size("n")
    assert index_bits(copy_of(symbolic), {"n": n}) == bits
    check_index_width(copy_of(const(n)), 64)
    if bits == 64:
        with pytest.raises(EvaluationError, match=f"32-bit indices overflow: element numbers of out reach {n - 1}"):
            check_index_width(copy_of(const(n)), 32)


def test_rows_of_a_large_stride() -> None:
    """2^29 elements in rows of 67,108,864 with 64 rows: the last row begins above 2^31."""
    rows, pitch = 64, 67_108_864
    x, out = given("x", rows, pitch), result(rows)
    kernel = on_cpu(loop("r", rows, lambda r: (store(out, r, load(x, r, 0)),)))
    assert index_bits(program((x,), out, kernel)) == 64
    half = on_cpu(loop("r", rows // 2, lambda r: (store(out, r, load(x, r, 0)),)))
    assert index_bits(program((x,), out, half)) == 32


def test_symbolic_sizes_without_a_bound_need_64_bits() -> None:
    n = size("n")
    assert index_bits(copy_of(n)) == 64
    assert index_bits(copy_of(4 * n // 3), {"n": 3 * 2**29}) == 32
    assert index_bits(copy_of(4 * n // 3), {"n": 3 * 2**29 + 3}) == 64


def test_a_claimed_width_is_checked_when_a_program_runs() -> None:
    t, out = buffer("t", 1, memory=PRIVATE), result(1)
    x = given("x", 1)
    far = store(out, 0, load(x, 2**31, guard=(const(-1),), fill=0))
    subject = program((x,), out, on_cpu(far, scratch=(t,)))
    assert run(subject, {"x": np.zeros(1)})[0] == [0]
    with pytest.raises(EvaluationError, match="32-bit indices overflow"):
        run(subject, {"x": np.zeros(1)}, index_bits=32)
