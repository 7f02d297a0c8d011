"""Tuning from nothing: how soon a search has a kernel near the best, and what finding its record costs a call.

Each problem is searched for a short time in a new file of records; then the search goes on for longer, which stands for
the final best. "near" is when the first candidate within 5 % of that was measured, everything before it counted: the
filtering of the space, the reference, processes, compilers. "look-up" is what a later process spends on finding out by
which parameters to lower, before its first call: the second time (the first one compiles anyhow), with records and
without.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lithify as lf
from benchmarks.harness import Row, cpu_name, record, table
from lithify.explore.problems import read_problem
from lithify.explore.records import Records
from lithify.program import Program, parse
from lithify.program.tune import candidates_of, tune

SOURCE = Path(lf.__file__).resolve().parent.parent
PROBLEMS = (
    "gemm -t f32 -transA false -transB false -g 1 -m 1024 -n 1024 -k 1024",
    "gemm -t f32 -transA false -transB true -g 1 -m 384 -n 2304 -k 768",
)
SHORT, LONG, NEAR = 10.0, 26.0, 1.05
_CHILD = """
import json, sys, time
import numpy, llvmlite.binding
import lithify as lf
import lithify.machine.host, lithify.program, lithify.targets.cpu
text, name, types = json.loads(sys.argv[1])
specialisation = lf.parse(text)[name].specialise(*types)
specialisation.device
start = time.perf_counter()
chosen = specialisation.chosen
seconds = time.perf_counter() - start
specialisation.compiled
print(json.dumps([chosen, seconds]))
"""


def look_up(problem: str, folder: str, records: str, rounds: int) -> tuple[str, float]:
    """The parameters that another process lowers by, and seconds (median) of finding them, after a first process."""
    named = read_problem(problem)
    types = [str(type_) for type_ in parse(named.text)[named.name].types()[0]]
    environment = os.environ | {"LITHIFY_CACHE": folder, "LITHIFY_RECORDS": records, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", _CHILD, json.dumps([named.text, named.name, types])]
    seconds, chosen = [], ""
    for _ in range(1 + rounds):
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        chosen, took = json.loads(done.stdout)
        seconds.append(took)
    return chosen, statistics.median(seconds[1:])


def row_of(problem: str, short: float, long: float, rounds: int) -> Row:
    """Search shortly, then for longer, then look the record up from other processes."""
    named = read_problem(problem)
    program: Program = parse(named.text)[named.name]
    types = program.types()[0]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "records.sqlite")
        records = Records(Path(path))
        start = time.perf_counter()
        candidates_of(program.specialise(*types)).filtered()
        filtering = time.perf_counter() - start
        first = tune(program, types, budget=f"{short}s", records=records)
        final = tune(program, types, budget=f"{long}s", records=records)
        assert first.record is not None
        assert final.record is not None
        best = min(m.seconds for m in final.measurements if m.seconds is not None)
        near, spent = float("nan"), 0.0
        for m in final.measurements:
            spent += m.cost
            if m.seconds is not None and m.seconds <= NEAR * best:
                near = spent
                break
        records.close()
        chosen, found = look_up(problem, folder, path, rounds)
        _, nothing = look_up(problem, folder, str(Path(folder) / "none.sqlite"), rounds)
    return {
        "problem": problem,
        "sets": first.total,
        "valid": first.valid,
        "filtering s": round(filtering, 2),
        f"measured in {short:g} s": len(first.measurements),
        "whole search s": round(first.seconds, 1),
        "near s": round(near, 1),
        "best ms": round(first.record.seconds * 1e3, 3),
        f"best ms after {long:g} s": round(final.record.seconds * 1e3, 3),
        "default ms": None if final.record.default_seconds is None else round(final.record.default_seconds * 1e3, 3),
        "not right": sum(m.state != "right" for m in final.measurements),
        "found by another process": chosen == final.record.parameters,
        "look-up ms": round(found * 1e3, 3),
        "without records ms": round(nothing * 1e3, 3),
    }


def main(quick: bool) -> None:
    """Measure, print, and record unless `quick`."""
    rows = [row_of(problem, *((2.0, 3.0, 1) if quick else (SHORT, LONG, 5))) for problem in PROBLEMS]
    print(table(rows))
    if not quick:
        record("tuning", rows, device=cpu_name(), note=f'"near" is within 5 % of the best after {LONG:g} s.')
