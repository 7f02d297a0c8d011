"""Tuning a program, and what its calls make of it: in this process, in another one, and where nothing was tuned."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import lithify as lf
from lithify.explore.records import RECORDS, Records
from lithify.explore.search import Outcome
from lithify.lang.errors import LithifyError, RewriteFailed
from lithify.program import Program, parse
from lithify.program.tune import tune

SOURCE = Path(__file__).resolve().parents[2] / "src"
MATMUL = """
matmul = λ a b . map (λ row . map (λ col . reduce (+) 0 (map (*) (zip row col))) (transpose b)) a
scal = λ xs . map (λ x . x * 2) xs
"""
N = 96
TYPES = (f"{N}.{N}.f32", f"{N}.{N}.f32")


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "records.sqlite"
    monkeypatch.setenv("LITHIFY_RECORDS", str(path))
    yield path
    RECORDS.close()


@pytest.fixture
def matmul() -> Program:
    return parse(MATMUL)["matmul"]


def outcome_of(program: Program, budget: str = "3", **more: object) -> Outcome:
    return program.tune(*TYPES, budget=budget, **more)  # type: ignore[arg-type]


def arrays() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    a, b = random.random((2, N, N), dtype=np.float32)
    return a, b


def test_tuned_parameters_are_used(records: Path, matmul: Program) -> None:
    a, b = arrays()
    assert matmul.specialise(a, b).chosen == ""
    outcome = outcome_of(matmul, search="random", seed=1)
    assert outcome.record is not None
    assert [m.state for m in outcome.measurements] == ["right"] * 3
    assert matmul.specialise(a, b).chosen == outcome.record.parameters
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-5)
    assert matmul.tuned_by("").specialise(a, b).chosen == ""
    assert records.exists()


def test_given_parameters(matmul: Program) -> None:
    a, b = arrays()
    default = outcome_of_default(matmul)
    given = matmul.tuned_by(default)
    assert given.specialise(a, b).chosen == default
    np.testing.assert_allclose(given(a, b), a @ b, rtol=1e-5)
    with pytest.raises(RewriteFailed, match="the parameters are speed"):
        matmul.tuned_by("speed=9")(a, b)
    with pytest.raises(RewriteFailed, match="is no tuning parameter"):
        matmul.tuned_by("fast")(a, b)


def outcome_of_default(program: Program) -> str:
    from lithify.program.tune import candidates_of

    return next(iter(candidates_of(program.specialise(*TYPES))))


def test_a_record_that_no_longer_fits_is_as_good_as_none(records: Path, matmul: Program) -> None:
    outcome_of(matmul)
    with sqlite3.connect(records) as connection:
        ((data,),) = connection.execute("SELECT data FROM records")
        changed = json.dumps(json.loads(data) | {"parameters": "of=another,version=1"})
        connection.execute("UPDATE records SET data = ?", (changed,))
    connection.close()
    a, b = arrays()
    assert matmul.specialise(a, b).chosen == ""
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-5)


SCRIPT = """
import sys
import numpy as np
import lithify as lf
matmul = lf.load("matmul.lift")["matmul"]
a = np.ones(({n}, {n}), np.float32)
assert (matmul(a, a) == {n}).all()
loaded = " ".join(sorted(name for name in sys.modules if name.startswith("lithify.")))
print(matmul.specialise(a, a).chosen)
print(loaded)
"""


def in_another_process(folder: Path) -> tuple[str, set[str]]:
    environment = os.environ | {"LITHIFY_CACHE": str(folder / "cache"), "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(n=N)], capture_output=True, text=True, check=True, cwd=folder,
        env=environment,
    )  # fmt: skip
    chosen, loaded = done.stdout.splitlines()
    return chosen, set(loaded.split())


def test_another_process_tunes_nothing(records: Path, tmp_path: Path) -> None:
    (tmp_path / "matmul.lift").write_text(MATMUL, encoding="utf-8")
    assert in_another_process(tmp_path)[0] == ""
    record = outcome_of(lf.load(tmp_path / "matmul.lift")["matmul"]).record
    assert record is not None
    assert in_another_process(tmp_path)[0] == record.parameters  # finds the record, and compiles
    chosen, loaded = in_another_process(tmp_path)  # finds what the record said, and the kernel
    assert chosen == record.parameters
    assert not {"lithify.explore.records", "lithify.explore.search", "lithify.lowering"} & loaded


def test_arguments_are_not_touched(records: Path, matmul: Program) -> None:
    a, b = arrays()
    before = a.copy(), b.copy()
    matmul.tune(a, b, budget="1")
    np.testing.assert_array_equal(a, before[0])
    np.testing.assert_array_equal(b, before[1])


def test_programs_that_nothing_is_tuned_of(records: Path) -> None:
    with pytest.raises(LithifyError, match="scal is of no family of programs that is tuned"):
        parse(MATMUL)["scal"].tune("100.f32")
    assert not records.exists()


def test_an_interrupt_is_passed_on(records: Path, matmul: Program) -> None:
    def interrupt(progress: object) -> None:
        if progress.measured == 1:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        matmul.tune(*TYPES, on_progress=interrupt)
    (record,) = Records(records).all()
    assert record.measured == 1
    assert matmul.specialise(*TYPES).chosen == record.parameters


def test_records_of_ones_own(tmp_path: Path, matmul: Program) -> None:
    own = Records(tmp_path / "own.sqlite")
    outcome = tune(matmul, TYPES, budget="1", records=own)
    assert own.all() == [outcome.record]


def test_what_is_measured_through_c_is_kept_apart() -> None:
    names = [lf.device(name).model.fingerprint for name in ("cpu", "c")]
    assert len(set(names)) == 2
