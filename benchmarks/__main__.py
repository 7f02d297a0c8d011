"""Run benchmarks:  python -m benchmarks [NAME ...] [--quick] [--device NAME] [--program NAME]

Without names, all of them, one process each, so that no benchmark inherits another's threads and caches. Exit
status: the number of benchmarks that failed.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

from benchmarks import harness

HERE = Path(__file__).resolve().parent


def benchmark_names() -> list[str]:
    """The modules below `benchmarks` that define `main`, as dotted names (`baseline.reduction_printed`)."""
    names = []
    for path in sorted(HERE.rglob("*.py")):
        if not path.name.startswith("__") and "\ndef main(quick: bool)" in path.read_text(encoding="utf-8"):
            names.append(".".join(path.relative_to(HERE).with_suffix("").parts))
    return names


def main() -> int:
    known = benchmark_names()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure and record.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="small sizes; records nothing")
    parser.add_argument(
        "--device", action="append", metavar="NAME", help="cpu, opencl:0, ..: for benchmarks of several devices"
    )
    parser.add_argument(
        "--program", action="append", metavar="NAME", help="rows of cpu_programs, which are not recorded"
    )
    options = parser.parse_args()
    if options.program and options.names != ["cpu_programs"]:
        parser.error("--program is for cpu_programs alone")
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if len(options.names) == 1:
        harness.ONLY[:] = options.device or []
        harness.PROGRAMS[:] = options.program or []
        importlib.import_module(f"benchmarks.{options.names[0]}").main(options.quick)
        return 0
    failures = 0
    for name in options.names or known:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", "benchmarks", name] + ["--quick"] * options.quick
        command += [word for device in options.device or [] for word in ("--device", device)]
        failures += subprocess.run(command, cwd=HERE.parent, check=False).returncode != 0
    return failures


if __name__ == "__main__":
    sys.exit(main())
