"""Generated OpenCL under oclgrind: no races, no access out of bounds, no read of what nothing wrote."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lithify.targets.base import interface_of
from lithify.targets.opencl.oclgrind import check, check_source
from lithify.targets.opencl.source import program_source
from tests.targets.group_programs import CASES, close, transpose, tree_sum

SMALL = ("transpose", "transpose of f16", "tree sum", "tree sum in one launch", "column sums in one launch",
         "column sums of four in one launch", "stencil", "symbolic", "16 lanes of 50 f32", "8 lanes of 27 f16",
         "3 lanes of 10 f32", "gather 8 of 21", "tail of 19 under if", "19 truth values", "halves", "histogram",
         "histogram f32", "largest f32")  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_nothing_is_found(oclgrind: str, name: str) -> None:
    case = CASES[name]()
    report = check(case.program, case.arguments)
    assert not report.findings, "\n\n".join(map(str, report.findings))
    results = report.results if isinstance(report.results, tuple) else (report.results,)
    for got, wanted in zip(results, case.expected, strict=True):
        close(got, wanted)


@pytest.mark.parametrize(
    ("what", "old", "new", "complaint"),
    [
        ("a barrier is missing", "barrier(CLK_LOCAL_MEM_FENCE);", "", "data race"),
        ("a guard is missing", "if (8 * gj + a < 21 && 8 * gi + b < 37)", "if (true)", "Invalid"),
        ("local memory is too small", "tile[72]", "tile[40]", "Invalid"),
        ("an element is not staged", "a < 37 && 8", "a < 36 && 8", "Uninitialized"),
    ],
)
def test_mutants_are_found(oclgrind: str, what: str, old: str, new: str, complaint: str) -> None:
    case = transpose(37, 21)
    source = program_source(case.program)
    assert old in source.text, what
    changed = replace(source, text=source.text.replace(old, new))
    report = check_source(changed, interface_of(case.program), case.arguments)
    assert any(complaint in str(finding) for finding in report.findings), f"{what}: {report.findings}"
    assert "Kernel: transpose" in report.findings[0].details


def test_a_missing_barrier_of_the_tree_is_found(oclgrind: str) -> None:
    case = tree_sum(100)
    source = program_source(case.program)
    first, barrier, rest = source.text.rpartition("  barrier(CLK_LOCAL_MEM_FENCE);\n")
    report = check_source(replace(source, text=first + rest), interface_of(case.program), case.arguments)
    assert barrier
    assert any("data race" in finding.kind for finding in report.findings)


def test_uninitialised_reads_are_looked_for_where_that_works(oclgrind: str) -> None:
    halves, plain = CASES["halves"](), CASES["16 lanes of 50 f32"]()
    assert "--uninitialized" not in check(halves.program, halves.arguments).options
    assert "--uninitialized" in check(plain.program, plain.arguments).options


def test_results_come_back(oclgrind: str) -> None:
    case = transpose(3, 5)
    np.testing.assert_array_equal(check(case.program, case.arguments).results, case.expected[0])
