"""Threads and processes around the cpu target: forks, thread counts, what an import costs, a second process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.lang.errors import LithifyError
from lithify.lang.levels import OUT, PAR
from lithify.lang.scalars import f32
from lithify.targets.c import find_compiler
from lithify.targets.cpu import CpuTarget
from lithify.targets.cpu.executable import CpuExecutable
from lithify.targets.cpu.pool import Pool
from tests.targets.handmade import buffer, index, lanes, loop, op, program, random

ROOT = Path(__file__).resolve().parents[2]
N = 1 << 19


def negation() -> ir.Program:
    a, c = buffer("a", N), buffer("c", N, role="output", memory=OUT)
    p, lane = index("p", N // 16), index("l", 16)
    at = (p * 16 + lane,)
    return program([a], [c], loop(p, N // 16, lanes(lane, 16, ir.Store(c, at, op("neg", ir.Load(a, at)))), level=PAR))


def python(code: str, **environment: str) -> str:
    """What a new interpreter prints; fails with its errors."""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_forked_process_makes_its_own_threads() -> None:
    """In an interpreter of its own: a forked test process would run pytest's exit handlers."""
    assert (
        python(
            "import os, warnings\n"
            "warnings.simplefilter('ignore')\n"
            "import numpy as np\n"
            "from lithify.targets.cpu import CpuTarget\n"
            "from tests.targets.test_cpu_processes import negation, N\n"
            "run = CpuTarget(2).compile(negation())\n"
            "x = np.ones(N, np.float32)\n"
            "for _ in range(3):\n"
            "    assert (run(x) == -1).all()\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    for _ in range(20):\n"
            "        assert (run(x) == -1).all()\n"
            "    os._exit(7)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
            "assert (run(x) == -1).all()\n"
        )
        == "7"
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("forks", [1, 2])
def test_a_forked_process_does_not_wait_for_the_threads_of_openmp(forks: int) -> None:
    assert python(_FORKED.format(device="c", forks=forks)).split() == ["right"] * (forks + 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.parametrize("used", [False, True])
def test_a_forked_process_is_told_that_opencl_is_lost(opencl_device: Any, used: bool) -> None:
    code = _FORKED.format(device="opencl:0", forks=1)
    printed = python(code if used else code.replace("x = np.ones(1000003, np.float32); p(x)", "x = np.ones(9)"))
    assert "does not work in a fork" in printed
    assert printed.endswith("right")


_FORKED = """
import os, warnings
warnings.simplefilter("ignore")
import numpy as np
import lithify as lf
p = lf.parse("double xs = map (* 2) xs")["double"].on("{device}")
x = np.ones(1000003, np.float32); p(x)
child = True
for _ in range({forks}):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        break
try:
    assert (p(x) == 2).all() and (p(x[:7]) == 2).all()
    print("right", flush=True)
except lf.LithifyError as error:
    print(error, flush=True)
if not child:
    os._exit(0)
"""


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_any_number_of_threads(threads: int) -> None:
    x = random(N)
    run = CpuTarget(threads).compile(negation())
    for _ in range(5):
        np.testing.assert_array_equal(run(x), -x)


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("pieces", [1, 3, 8])
def test_shares_of_any_range(threads: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges shorter than the number of threads, and those that do not divide by it: every element once."""
    monkeypatch.setattr("lithify.targets.cpu.policy.LEAST_WORK", 0)
    monkeypatch.setattr("lithify.targets.cpu.policy.PIECES", pieces)
    monkeypatch.setattr("lithify.targets.cpu.policy.PIECE_WORK", 1)
    for n in (2, 3, 5, 8, 13, 22, 57):
        a, c = buffer("a", n), buffer("c", n, role="output", memory=OUT)
        r, p, q = index("r", 50), index("p", n), index("q", n)
        copy = loop(p, n, ir.Store(c, (p,), ir.Load(a, (p,))))
        add = ir.Store(c, (q,), op("add", ir.Load(c, (q,)), ir.Constant(1.0, f32)))
        run = CpuTarget(threads).compile(program([a], [c], copy, loop(r, 50, loop(q, n, add, level=PAR))))
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(run(x), x + 50)


def test_many_short_parallel_loops() -> None:
    """The pool is woken 20 000 times; a lost wake-up would hang here, a lost piece would leave a wrong element."""
    n, rounds = 64, 20000
    a, c = buffer("a", n), buffer("c", n, role="output", memory=OUT)
    r, p, q = index("r", rounds), index("p", n), index("q", n)
    body = (
        loop(p, n, ir.Store(c, (p,), ir.Load(a, (p,)))),
        loop(r, rounds, loop(q, n, ir.Store(c, (q,), op("add", ir.Load(c, (q,)), ir.Constant(1.0, f32))), level=PAR)),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lithify.targets.cpu.policy.LEAST_WORK", 0)
        run = CpuTarget(2).compile(program([a], [c], *body))
        x = np.zeros(n, np.float32)
        np.testing.assert_array_equal(run(x), np.full(n, rounds, np.float32))


@pytest.mark.parametrize("spin", [0, 20_000, 100_000])
@pytest.mark.parametrize("threads", [2, 3, 5])
def test_loops_with_and_without_pauses(spin: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that sleep, that are about to, that look for work and that come too late: every element once."""
    monkeypatch.setattr("lithify.targets.cpu.policy.LEAST_WORK", 0)
    monkeypatch.setattr("lithify.targets.cpu.policy.SPIN_NANOSECONDS", spin)
    n = 64
    a, c, p = buffer("a", n), buffer("c", n, role="output", memory=OUT), index("p", n)
    add = ir.Store(c, (p,), op("add", ir.Load(a, (p,)), ir.Constant(1.0, f32)))
    target = CpuTarget(1)
    pool = Pool(threads, target._runtime())
    compiled = target.compile(program([a], [c], loop(p, n, add, level=PAR)))
    run = CpuExecutable.deserialize(compiled.serialize(), lambda: pool)
    x = np.zeros(n, np.float32)
    for k in range(600):
        x[:] = k
        np.testing.assert_array_equal(run(x), np.full(n, k + 1, np.float32))
        if k % 7 == 0:
            time.sleep((k % 5) * 3e-5)
    pool.close()
    np.testing.assert_array_equal(run(x), x + 1)


def test_idle_workers_sleep() -> None:
    """Nothing uses a processor some time after the last loop."""
    x = random(N)
    run = CpuTarget(2).compile(negation())
    for _ in range(5):
        run(x)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


def test_a_busy_pool_does_not_stop_other_callers() -> None:
    x = random(N)
    run = CpuTarget(2).compile(negation())
    failures: list[BaseException] = []

    def call() -> None:
        try:
            for _ in range(30):
                np.testing.assert_array_equal(run(x), -x)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_callers_own_placement_is_respected() -> None:
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs and threads that can be placed")
    x = random(N)
    run = CpuTarget(2).compile(negation())
    before = os.sched_getaffinity(0)
    last = {max(before)}
    os.sched_setaffinity(0, last)
    try:
        np.testing.assert_array_equal(run(x), -x)
        assert os.sched_getaffinity(0) == last
    finally:
        os.sched_setaffinity(0, before)


def test_the_environment_sets_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITHIFY_THREADS", "3")
    assert CpuTarget().threads == 3
    assert CpuTarget(1).threads == 1
    for text in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv("LITHIFY_THREADS", text)
        with pytest.raises(LithifyError, match=f"LITHIFY_THREADS is '{text}'"):
            CpuTarget()
    with pytest.raises(LithifyError, match="0 threads asked for"):
        CpuTarget(0)


def test_importing_the_target_does_not_load_the_compiler() -> None:
    assert (
        python(
            "import sys, lithify.targets.cpu\n"
            "print([m for m in sys.modules if m.split('.')[0] in ('llvmlite', 'rich')])"
        )
        == "[]"
    )


def test_a_second_process_runs_what_a_first_compiled(tmp_path: Path) -> None:
    """The bytes alone are enough: the second process neither emits nor optimises text."""
    x = random(N)
    (tmp_path / "negation").write_bytes(CpuTarget(2).compile(negation()).serialize())
    np.save(tmp_path / "x.npy", x)
    python(
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from unittest.mock import patch\n"
        "from lithify.targets.cpu import CpuTarget, engine\n"
        f"here = Path({str(tmp_path)!r})\n"
        "x = np.load(here / 'x.npy')\n"
        "run = CpuTarget(1).load((here / 'negation').read_bytes())\n"
        "with patch.object(engine, 'compile_text', side_effect=AssertionError('compiled')):\n"
        "    assert (run(x) == -x).all()\n"
        "assert 'lithify.kernel.translate' not in sys.modules\n"
    )


@pytest.mark.parametrize("damage", [b"", b"\0" * 64, b"\xff" * 64])
def test_bytes_of_something_else_are_refused(damage: bytes) -> None:
    with pytest.raises(LithifyError, match="no compiled kernel"):
        CpuTarget(1).load(damage)


def test_a_kernel_cut_short_is_refused() -> None:
    data = CpuTarget(1).compile(negation()).serialize()
    with pytest.raises(LithifyError, match="cut short"):
        CpuTarget(1).load(data[:-1])
