"""The four phases on the size of the paper: how many programs each makes, what each filter drops, how long it takes.

Matrix multiplication as the slides write it, 1024 x 1024 x 1024, for this CPU, for a CPU behind OpenCL and for a GPU.
(T. Remmelg et al., GPGPU 2016: 1 -> about 20,000 -> about 100 -> 8 -> 760 -> 46,000, in 2 h 40 min.) Nothing is
measured but the phases themselves.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.harness import Row, cpu_name, record, table
from lithify.explore.phases import Limit, explore
from lithify.lang.module import read_file
from lithify.lang.scalars import f32
from lithify.lang.types import array
from lithify.machine import GENERIC_CPU, GENERIC_GPU, host

SLIDES = Path(__file__).parents[1] / "examples" / "slides" / "matrix_multiplication.lift"
SIZE = 1024
RULES = 5


def main(quick: bool) -> None:
    """Run the phases for each model, and record the funnels."""
    program = read_file(SLIDES)["matMult"].elaborate([array(SIZE, SIZE, f32)] * 2)
    rows: list[Row] = []
    funnels: dict[str, object] = {}
    for model in (host(), GENERIC_CPU, GENERIC_GPU):
        start = time.perf_counter()
        found = explore(program.term, program.parameters, model, Limit(rules=2 if quick else RULES))
        seconds = time.perf_counter() - start
        print(f"{model}\n{found.funnel}\n", flush=True)
        stages = found.funnel.stages
        rows.append(
            {
                "device": str(model),
                "rewritten": stages[0].made,
                "kept": stages[0].went_on,
                "lowered": stages[1].made,
                "kept, translated": stages[1].went_on,
                "points": stages[2].made,
                "kept points": stages[2].went_on,
                "s": round(seconds, 1),
            }
        )
        funnels[str(model)] = found.funnel.to_json()
    print(table(rows))
    if not quick:
        record(
            "funnel",
            rows,
            device=cpu_name(),
            note=f"At most {RULES} macro rules; two cores.",
            more={"funnels": funnels},
        )
