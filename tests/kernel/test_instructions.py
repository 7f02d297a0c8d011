"""Rows of the instruction tables in kernels: what is translated, what is refused, and mistakes that are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lithify.arith import const
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.evaluator.counts import Counts
from lithify.kernel.passes import PIPELINE
from lithify.kernel.show import show
from lithify.kernel.translate import translate
from lithify.kernel.walk import blocks_of, with_blocks
from lithify.lang import read_text
from lithify.lang.build import instr
from lithify.lang.errors import EvaluationError, Rejected
from lithify.machine import ROWS, InstructionRow, cpu_model, instruction, read_cpu, rows_for
from tests.instruction_tiles import STEPS, TILES, tile, values

BF16 = instruction("avx512.dot.16x2.bf16")
U8I8 = instruction("avx512.dot.16x4.u8i8")
TILE = instruction("amx.16x16x32.bf16")


def program(row: InstructionRow, steps: int = STEPS, tiles: int = TILES) -> ir.Program:
    term = tile(row, steps, tiles)
    return translate(term.term, term.parameters)


def inputs(row: InstructionRow, steps: int = STEPS, tiles: int = TILES) -> tuple[dict[str, Any], Any]:
    arguments, expected = values(row, steps, tiles)
    return dict(zip("abc", arguments, strict=True)), expected


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_tiles_are_right(row: InstructionRow, exact: bool) -> None:
    given, expected = inputs(row)
    (result,) = run(program(row), given, exact=exact)
    assert np.array_equal(result, expected)


def test_one_statement_an_instruction() -> None:
    text = show(program(BF16))
    assert "t[2, 0] := avx512.dot.16x2.bf16 a[2, 2*i] b[i, 0, 0, 0] t[2, 0]" in text
    assert text.count(BF16.name) == 3


def test_what_an_instruction_does_is_counted_once() -> None:
    given, _ = inputs(BF16)
    counts = Counts()
    run(program(BF16), given, counts=counts)
    assert counts.operations["mul"] == 3 * STEPS * 32


# ---- refusals ------------------------------------------------------------------------------------------------------

HEAD = "f = λ (a : 1.2.bf16) (b : 16.2.bf16) (c : 1.16.f32) (wide : 2.32.bf16) (xs : 16.1.2.bf16) . "
REFUSED = {
    "copy (instr[avx512.dot.16x2.bf16](a, transpose b, c))": "nobody says where",
    "instr[avx512.dot.16x2.bf16](a, take 2 (map (take 16) wide), c)":
        r"operand b of .* as in its registers: element \(i, j\) is 32\*i \+ j elements .* it is i \+ 2\*j",
    "instr[avx512.dot.16x2.bf16](map (λ x . x + x) a, transpose b, c)": "computed",
    "instr[avx512.dot.16x2.bf16](transpose (take 2 (map (λ r . [r[5]]) wide)), transpose b, c)":
        r"operand a of .* does not lie in memory",
    "instr[avx512.dot.16x2.bf16](a, transpose (pad 1 0 (fill (replicate 2 (bf16 0))) (take 15 b)), c)":
        "may lie outside",
    "map[vec] (λ x . instr[avx512.dot.16x2.bf16](x, transpose b, c)) xs": r"below map\[vec\]",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    text, reason = text.replace("copy (", "map[seq] (map[seq] (λ x . x)) ("), REFUSED[text]
    term = read_text(HEAD + text)["f"].elaborate()
    with pytest.raises(Rejected, match=reason):
        translate(term.term, term.parameters)


def test_a_result_must_lie_as_in_the_registers() -> None:
    text = HEAD + "transpose (instr[avx512.dot.16x2.bf16](a, transpose b, c))"
    term = read_text(text)["f"].elaborate()
    translate(term.term, term.parameters)  # a column of one row is the row
    text = HEAD + "map[seq] (λ x . join (instr[avx512.dot.16x2.bf16](a, transpose b, c))) xs"
    term = read_text(HEAD + "transpose (" + text.removeprefix(HEAD) + ")")["f"].elaborate()
    with pytest.raises(Rejected, match=r"the result of .* does not lie in memory as in its registers"):
        translate(term.term, term.parameters)


def test_a_device_needs_the_instruction() -> None:
    facts = replace(read_cpu(), flags=frozenset({"avx2", "fma"}))
    model = cpu_model(facts)
    assert BF16 not in rows_for(model)
    term = tile(BF16)
    with pytest.raises(Rejected, match=r"has no instruction avx512\.dot\.16x2\.bf16; it has avx2\.fma\.8\.f32"):
        translate(term.term, term.parameters, device=model)


def test_instructions_of_several_work_items_are_refused() -> None:
    row = replace(BF16, name="together", lanes=2)
    term = read_text(HEAD + "instr[avx512.dot.16x2.bf16](a, transpose b, c)")["f"].elaborate().term
    a, b, c = term.args
    with pytest.raises(Rejected, match="executed by 2 work-items together"):
        translate(instr(row, a, b, c), [("a", a.type), ("b", b.args[0].type), ("c", c.type)])


# ---- mistakes ------------------------------------------------------------------------------------------------------

Change = Callable[[ir.Instruction], ir.Instruction]


def mutated(original: ir.Program, change: Change, which: int = 0) -> ir.Program:
    """The program with its `which`-th instruction changed."""
    count = -1

    def block(statements: ir.Block) -> ir.Block:
        nonlocal count
        result: list[ir.Statement] = []
        for statement in statements:
            if isinstance(statement, ir.Instruction):
                count += 1
                result.append(change(statement) if count == which else statement)
            else:
                result.append(with_blocks(statement, block) if blocks_of(statement) else statement)
        return tuple(result)

    return replace(original, kernels=tuple(replace(k, body=block(k.body)) for k in original.kernels))


def _moved(load: ir.Load, by: int, dimension: int = -1) -> ir.Load:
    index = list(load.index)
    index[dimension] = index[dimension] + const(by)
    return ir.Load(load.buffer, tuple(index))


def _operand(number: int, by: int, dimension: int = -1) -> Change:
    def change(s: ir.Instruction) -> ir.Instruction:
        operands = list(s.operands)
        operands[number] = _moved(operands[number], by, dimension)
        a, b, c = operands
        return replace(s, operands=(a, b, c))

    return change


MUTANTS: dict[str, tuple[Change, str]] = {
    "a one element on": (_operand(0, 1), "what the statement stands for"),
    "a of the next row": (_operand(0, 1, 0), "what the statement stands for"),
    "b one element on": (_operand(1, 1), "what the statement stands for|run past the end"),
    "b of the next step": (_operand(1, 1, 0), "out of bounds|what the statement stands for"),
    "c of the next row": (_operand(2, 1, 0), "what the statement stands for"),
    "c one element on": (_operand(2, 1), "what the statement stands for"),
    "the result in the next row": (lambda s: replace(s, result=_moved(s.result, 1, 0)), "what the statement stands"),
    "another row": (lambda s: replace(s, row=replace(s.row, meaning=s.row.meaning.replace("s + ", "s - "))), "stands"),
    "no sum": (lambda s: replace(s, body=()), "what the statement stands for"),
    "other registers": (
        lambda s: replace(s, row=replace(s.row, fragments=(s.row.fragments[0], "λx. split 16 (join x)", "λx. x"))),
        "what the statement stands for",
    ),
}


@pytest.mark.parametrize("row", [BF16, U8I8], ids=lambda row: row.name)
@pytest.mark.parametrize("name", MUTANTS)
def test_mistakes_are_caught(name: str, row: InstructionRow) -> None:
    change, reason = MUTANTS[name]
    given, _ = inputs(row)
    with pytest.raises(EvaluationError, match=reason):
        run(mutated(program(row), change), given)


@pytest.mark.parametrize("which", range(4), ids=["result", *"abc"])
@pytest.mark.parametrize("by", [1, -1])
def test_lines_at_another_distance_are_caught(which: int, by: int) -> None:
    def change(s: ir.Instruction) -> ir.Instruction:
        pitches = list(s.pitches)
        pitches[which] = pitches[which] + const(by)
        result, a, b, c = pitches
        return replace(s, pitches=(result, a, b, c))

    given, expected = inputs(TILE, 2, 1)
    (result,) = run(program(TILE, 2, 1), given)
    assert np.array_equal(result, expected)
    with pytest.raises(EvaluationError, match=r"what the statement stands for|run past the end|which nothing wrote"):
        run(mutated(program(TILE, 2, 1), change), given)


LINES = "f = λ (a : 16.{width}.bf16) (b : 16.40.2.bf16) (c : 20.20.f32) . "


@pytest.mark.parametrize(("width", "apart"), [(32, 32), (50, 50)])
def test_lines_may_lie_apart(width: int, apart: int) -> None:
    text = LINES.format(width=width) + (
        "instr[amx.16x16x32.bf16](map (take 32) a, join (map transpose (map (take 16) b)), "
        "take 16 (drop 3 (map (take 16) (map (drop 2) c))))"
    )
    term = read_text(text)["f"].elaborate()
    translated = translate(term.term, term.parameters)
    (statement,) = translated.kernels[0].body
    assert isinstance(statement, ir.Instruction)
    assert [str(pitch) for pitch in statement.pitches] == ["16", str(apart), "80", "20"]
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-8, 9, size).astype(np.float32) for size in ((16, width), (16, 40, 2), (20, 20)))
    (result,) = run(translated, {"a": a, "b": b, "c": c})
    expected = c[3:19, 2:18] + a[:, :32] @ b[:, :16].transpose(0, 2, 1).reshape(32, 16)
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("a", ["transpose (map (take 16) x)", "map (take 32) (gather ids y)"])
def test_lines_must_be_whole_and_evenly_spaced(a: str) -> None:
    text = f"""f = λ (x : 32.40.bf16) (y : 16.40.bf16) (ids : 16.idx[16]) (b : 16.16.2.bf16) (c : 16.16.f32) .
        instr[amx.16x16x32.bf16]({a}, join (map transpose b), c)"""
    term = read_text(text)["f"].elaborate()
    with pytest.raises(Rejected, match=r"operand a of .* does not lie in memory as in its registers"):
        translate(term.term, term.parameters)


def test_the_last_operand_must_end_inside() -> None:
    given, _ = inputs(BF16, 1)
    with pytest.raises(EvaluationError, match=r"2 elements from a\[2, 1\] on run past the end of a"):
        run(mutated(program(BF16, 1), _operand(0, 1), which=2), given)


def test_accumulators_must_be_initialised() -> None:
    original = program(BF16)
    (kernel,) = original.kernels
    given, _ = inputs(BF16)
    without = replace(kernel, body=kernel.body[1:])  # the first row's initial values
    with pytest.raises(EvaluationError, match="which nothing wrote"):
        run(replace(original, kernels=(without,)), given)


def test_without_checks_the_machine_does_what_the_operands_say() -> None:
    given, expected = inputs(U8I8)
    wrong = mutated(program(U8I8), _operand(0, 1, 0))
    (result,) = run(wrong, given, checks=False)
    assert not np.array_equal(result[0], expected[0])
    assert np.array_equal(result[1:], expected[1:])


def test_passes_keep_instructions() -> None:
    before = program(U8I8)
    after = before
    for each in PIPELINE:
        after = each(after)
    assert show(after).count(U8I8.name) == show(before).count(U8I8.name)
