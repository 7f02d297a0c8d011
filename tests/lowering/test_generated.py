"""Generated arrays and invariants: what no iteration changes is stored once, before; loops are what is left."""

from __future__ import annotations

import numpy as np
import pytest

import lithify as lf
from lithify.evaluate import evaluate
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.term import Term, subterms
from lithify.lowering import lower
from lithify.lowering.needs import is_cut, reads_within
from lithify.machine import GENERIC_CPU, GENERIC_GPU, DeviceModel
from lithify.program.devices import device
from tests.kernel.translated import flat, parameters_of

MODELS = {"host": device("cpu").model, "cpu through OpenCL": GENERIC_CPU, "gpu": GENERIC_GPU}


def term(text: str, *types: str) -> Term:
    return lf.parse(f"p {text}")["p"].term(*types)


def lowered(text: str, model: DeviceModel, *types: str) -> Term:
    return lower(term(text, *types), model).term


def in_front(t: Term) -> list[Term]:
    """The values of the lets at the front of a program."""
    found = []
    while t.kind == "let":
        found.append(t.args[0])
        t = t.args[1].args[0]
    return found


@pytest.mark.parametrize("machine", MODELS)
@pytest.mark.parametrize(
    "text",
    [
        "(xs : n.f32) = map (* 2) (generate 100 (λ i . (pad 32 67 mirror (map sum (slide 2 1 xs)))[130 - i]))",
        "(xs : n.f32) = generate 5 (λ i . generate 40 (λ j . (scan (+) 0 xs)[j] + f32 i))",
        "(xs : n.f32) = map (λ x . x * (scan (+) 0 xs)[3]) xs",
        "(xs : n.f32) = map (λ x . map (λ y . y * (scan (+) 0 xs)[3] + x) xs) xs",
    ],
)
def test_what_no_iteration_changes_is_stored_once_in_front(text: str, machine: str) -> None:
    (value,) = in_front(lowered(text, MODELS[machine], "100.f32"))
    assert value.kind == "to"
    assert value["memory"].name == "heap"


def test_what_an_outer_loop_changes_is_stored_in_it() -> None:
    program = lowered(
        "(xs : n.f32) = generate 5 (λ i . generate 40 (λ j . (scan (+) (f32 i) xs)[j]))", GENERIC_CPU, "40.f32"
    )
    assert not in_front(program)
    assert len([t for t in subterms(program) if t.kind == "scan"]) == 1


def test_little_work_is_not_worth_memory_outside_of_the_loop() -> None:
    program = lowered("(a : n.m.f32) = map (λ r . r[0] * (scan (+) 0 (take 2 a[0]))[1]) a", GENERIC_GPU, "9.8.f32")
    assert not in_front(program)


def test_a_generated_array_of_scalars_stays_a_view() -> None:
    program = lowered("(xs : n.f32) = map (* 2) (generate n (λ i . xs[i] * f32 i))", GENERIC_CPU, "64.f32")
    assert any(t.kind == "generate" and t.args[0].args[0].kind == "op" for t in subterms(program))


@pytest.mark.parametrize(
    ("body", "reads"),
    [
        ("map (* 2) r", 1),
        ("zip r (reverse r)", 2),
        ("let v = reverse r in v", 1),
        ("let v = reverse r in zip v v", 2),
        ("let v = r in let w = v in zip v w", 2),
        ("slide 3 1 r", 2),
        ("pad 1 1 clamp r", 2),
        ("pad 1 1 0 r", 1),
        ("map (λ c . map (+) (zip c c)) (split 1 r)", 2),
        ("map (λ c . map (* 2) c) (split 1 r)", 1),
        ("map (λ x . x * x) r", 1),  # a scalar is shared
        ("concat (take 3 r) (drop 3 r)", 1),
        ("concat (take 3 r) (drop 2 r)", 2),
    ],
)
def test_reads_of_an_element(body: str, reads: int) -> None:
    loop = term(f"(a : n.m.f32) = map (λ r . {body}) a", "4.7.f32")
    assert reads_within(loop.args[0].args[0]) == reads


@pytest.mark.parametrize(
    ("around", "cut"),
    [
        ("{}", False),
        ("take 3 {}", True),
        ("drop 1 (transpose {})", True),
        ("drop 1 (join {})", True),
        ("map (take 2) {}", True),
        ("transpose (split 1 (join {}))", False),
        ("map (λ x . {}) b", False),
        ("take 2 (map (λ x . {}) b)", False),
        ("take 2 (join (map (λ x . {}) b))", True),
    ],
)
def test_views_that_leave_out_part_of_a_scan(around: str, cut: bool) -> None:
    scan = "(scan (λ s r . map (+) (zip s r)) a[0] a)"
    program = term(f"(a : n.m.f32) (b : l.f32) = {around.format(scan)}", "4.4.f32", "3.f32")
    (path,) = [p for p, t in places(program) if t.kind == "scan"]
    assert is_cut(program, path) == cut


@pytest.mark.parametrize("machine", MODELS)
@pytest.mark.parametrize(
    "around",
    [
        "take 2 ({})",
        "drop 1 (transpose ({}))",
        "take 5 (join ({}))",
        "take 2 (to[heap] ({}))",
        "map[seq] (λ x . take 2 ({})) b",
        "(({}), take 2 ({}))",
        "(take 2 ({}), ({}))",
        "let y = {} in (y, take 2 y)",
    ],
)
def test_scans_of_rows_whose_result_is_not_kept_whole_are_stored_first(around: str, machine: str) -> None:
    """With levels given by hand, and where the same scan stands in another place that keeps all of it."""
    scan = "scan[seq, out] (λ s r . map[seq] (+) (zip s r)) a[0] a"
    written = around.replace("map[seq]", "map[global]") if machine == "gpu" else around
    program = term(f"(a : n.m.f32) (b : l.f32) = {written.replace('{}', scan)}", "4.4.f32", "3.f32")
    parameters = parameters_of(program)
    given = {"a": np.arange(16, dtype=np.float32).reshape(4, 4) ** 2, "b": np.ones(3, np.float32)}
    kernels = translate(lower(program, MODELS[machine]).term, parameters, device=MODELS[machine])
    results = run(kernels, {p["name"]: given[p["name"]] for p in parameters})
    for result, expected in zip(results, flat(evaluate(program, given)), strict=True):
        np.testing.assert_array_equal(result, expected)


def places(t: Term, path: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], Term]]:
    return [(path, t), *(found for k, a in enumerate(t.args) for found in places(a, (*path, k)))]


def test_a_copy_of_generated_rows_comes_to_an_end() -> None:
    """Vectors and a rest read the two ends of a row: that is no reason to store it first."""
    xs = np.arange(100, dtype=np.float32)
    program = lf.parse("p (xs : n.f32) = generate 10 (λ i . map (* f32 i) (scan (+) 0 xs))")["p"]
    np.testing.assert_array_equal(program(xs), np.outer(np.arange(10), np.cumsum(xs)))
