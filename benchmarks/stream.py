"""The machine's own streaming bandwidth: the bound that memory-bound programs are measured against.

Reads, copies and triads (a = b + s c; McCalpin's STREAM) over arrays that no cache holds, by one and by all
threads. Twice: with NumPy, as a user would, and with the plainest vector loops that LLVM can be given.
The bound is the better of the two. Bytes are counted as STREAM counts them: what the program reads and
writes, without the lines that the cache fetches before it overwrites them. Threads are pinned: a woken worker
otherwise shares the core of its waker for tens of milliseconds.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from benchmarks.harness import Row, compare, cpu_name, record, table, usable_cores
from lithify.lowering.facts import last_cache
from lithify.machine import DeviceModel, host

# The share of the memory that one array may take: those of a benchmark that are there at the same time take half.
_ARRAY_SHARE = 1 / 16
# What a machine that does not tell of its memory is taken to have.
_MEMORY = 8 << 30
_LANES = 16
_UNROLL = 4
_BLOCK = _LANES * _UNROLL

# bytes a program moves per element
BYTES = {"read": 4, "copy": 8, "triad": 12}

_FUNCTION = """
declare float @llvm.vector.reduce.fadd.v16f32(float, <16 x float>)

define void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %from, i64 %to) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ %from, %entry ], [ %next, %loop ]
{phis}
{body}
  %next = add i64 %i, {block}
  %more = icmp slt i64 %next, %to
  br i1 %more, label %loop, label %done
done:
{end}
  ret void
}}
"""


def _vectors(name: str, array: str) -> list[str]:
    """Loads of one block's vectors of `array` into %{name}0, %{name}1, ..."""
    lines = []
    for k in range(_UNROLL):
        lines += [
            f"  %{name}i{k} = add i64 %i, {k * _LANES}",
            f"  %{name}p{k} = getelementptr float, ptr %{array}, i64 %{name}i{k}",
            f"  %{name}{k} = load <16 x float>, ptr %{name}p{k}, align 64",
        ]
    return lines


def _stores(value: str, hint: str = "") -> list[str]:
    lines = []
    for k in range(_UNROLL):
        lines += [
            f"  %ai{k} = add i64 %i, {k * _LANES}",
            f"  %ap{k} = getelementptr float, ptr %a, i64 %ai{k}",
            f"  store <16 x float> {value.format(k=k)}, ptr %ap{k}, align 64{hint}",
        ]
    return lines


def _module() -> str:
    """LLVM text of the three loops; each handles the block-aligned range [from, to)."""
    v16 = f"<{_LANES} x float>"
    steps = range(_UNROLL)
    sums = [f"  %s{k} = phi {v16} [ zeroinitializer, %entry ], [ %t{k}, %loop ]" for k in steps]
    adds = [f"  %t{k} = fadd {v16} %s{k}, %b{k}" for k in steps]
    total = [f"  %u0 = fadd {v16} %t0, zeroinitializer"]
    total += [f"  %u{k} = fadd {v16} %u{k - 1}, %t{k}" for k in steps[1:]]
    total += [
        f"  %sum = call reassoc float @llvm.vector.reduce.fadd.v16f32(float 0.0, {v16} %u{_UNROLL - 1})",
        "  store float %sum, ptr %a",
    ]
    scale = "<" + ", ".join(["float 3.0"] * _LANES) + ">"
    triad = [*_vectors("b", "b"), *_vectors("c", "c")]
    triad += [f"  %m{k} = fmul contract {v16} %c{k}, {scale}" for k in steps]
    triad += [f"  %r{k} = fadd contract {v16} %b{k}, %m{k}" for k in steps]
    parts: dict[str, tuple[list[str], list[str], list[str]]] = {
        "read": (sums, [*_vectors("b", "b"), *adds], total),
        "copy": ([], [*_vectors("b", "b"), *_stores("%b{k}")], []),
        "copy_past": ([], [*_vectors("b", "b"), *_stores("%b{k}", ", !nontemporal !0")], []),
        "triad": ([], [*triad, *_stores("%r{k}")], []),
        "triad_past": ([], [*triad, *_stores("%r{k}", ", !nontemporal !0")], []),
    }
    declaration, function = _FUNCTION.strip().split("\n\n", 1)
    texts = [declaration]
    for name, lines in parts.items():
        phis, body, end = ("\n".join(part) for part in lines)
        texts.append(function.format(name=name, phis=phis, body=body, end=end, block=_BLOCK))
    return "\n\n".join([*texts, "!0 = !{i32 1}"])


@cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_module()), machine)
    engine.finalize_object()
    return engine


def llvm_loop(name: str) -> Callable[..., None]:
    """A compiled loop (read, copy, triad, copy_past, triad_past) as a function of three addresses, from and to.

    A call releases the interpreter's lock.
    """
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)
    return kind(_engine().get_function_address(name))


def aligned(elements: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A float32 array of ones that begins at a multiple of 64 bytes."""
    raw = np.empty(elements + 16, dtype=np.float32)
    skip = (-raw.ctypes.data // 4) % 16
    array = raw[skip : skip + elements]
    array[:] = 1
    return array


def _numpy_part(name: str, a: Any, b: Any, c: Any, low: int, high: int) -> None:
    """One thread's share of a NumPy stream; the triad's pieces stay in the cache between its two steps."""
    if name == "read":
        np.add.reduce(b[low:high])
    elif name == "copy":
        np.copyto(a[low:high], b[low:high])
    else:
        piece = 1 << 14
        for start in range(low, high, piece):
            part = slice(start, min(start + piece, high))
            np.multiply(c[part], np.float32(3), out=a[part])
            np.add(a[part], b[part], out=a[part])


def beyond_caches(model: DeviceModel) -> int:
    """Elements of float32 arrays that are streamed from memory: the least power of two of which the last cache holds
    half at most, or, where memory is short, the greatest that it has room for.
    """
    room = int((model.memory("heap").bytes or _MEMORY) * _ARRAY_SHARE)
    needed, possible = -(-2 * last_cache(model) // 4), room // 4
    return int(min(1 << (needed - 1).bit_length(), 1 << (possible.bit_length() - 1)))


@contextmanager
def pinned_pool() -> Iterator[ThreadPoolExecutor]:
    """A pool with a worker on each usable core but the first, on which the caller stays meanwhile."""
    if not hasattr(os, "sched_setaffinity"):
        with ThreadPoolExecutor(max(1, usable_cores() - 1)) as pool:
            yield pool
        return
    before = os.sched_getaffinity(0)
    cores = sorted(before)
    free = iter(cores[1:] or cores)
    with ThreadPoolExecutor(max(1, len(cores) - 1), initializer=lambda: os.sched_setaffinity(0, {next(free)})) as pool:
        os.sched_setaffinity(0, cores[:1])
        try:
            yield pool
        finally:
            os.sched_setaffinity(0, before)


def bandwidths(elements: int, *, rounds: int = 9) -> list[dict[str, Any]]:
    """Rows (kind, by, threads, ms, spread, GB/s): each kind of stream, by NumPy and LLVM, on 1 and all
    cores."""
    arrays = [aligned(elements) for _ in range(3)]
    most = usable_cores()
    rows = []
    with pinned_pool() as pool:
        for kind, per_element in BYTES.items():
            runs = {
                (by, threads): partial(_run_all, pool, parts)
                for threads in sorted({1, most})
                for by, parts in jobs(kind, arrays, threads).items()
            }
            timings = compare({f"{by} {threads}": run for (by, threads), run in runs.items()}, rounds=rounds)
            for (by, threads), timing in zip(runs, timings.values(), strict=True):
                row = timing.row(bytes=per_element * elements)
                del row["name"]
                rows.append({"kind": kind, "by": by, "threads": threads, **row})
    return rows


def jobs(kind: str, arrays: list[Any], threads: int) -> dict[str, list[Callable[[], None]]]:
    """The calls that the threads make, one each, over parts of equal length; what writes also past the caches."""
    a, b, c = arrays
    blocks = len(a) // _BLOCK
    ranges = list(itertools.pairwise(blocks * t // threads * _BLOCK for t in range(threads + 1)))
    loops = {"LLVM": llvm_loop(kind)} | ({"LLVM past the caches": llvm_loop(f"{kind}_past")} if kind != "read" else {})
    # a reader leaves its sum in `a`, each thread in a cache line of its own
    places = [a.ctypes.data + (64 * t if kind == "read" else 0) for t in range(threads)]
    compiled: dict[str, list[Callable[[], None]]] = {
        by: [
            partial(loop, place, b.ctypes.data, c.ctypes.data, low, high)
            for place, (low, high) in zip(places, ranges, strict=True)
        ]
        for by, loop in loops.items()
    }
    return compiled | {"NumPy": [partial(_numpy_part, kind, a, b, c, low, high) for low, high in ranges]}


def _run_all(pool: ThreadPoolExecutor, parts: list[Callable[[], None]]) -> None:
    others = [pool.submit(part) for part in parts[1:]]
    parts[0]()
    for other in others:
        other.result()


def best(rows: list[dict[str, Any]], kind: str) -> float:
    """The most bytes a second that any of the measured streams of this kind reached."""
    return float(max(row["GB/s"] for row in rows if row["kind"] == kind)) * 1e9


def main(quick: bool) -> None:
    elements = beyond_caches(host())
    rows = bandwidths(1 << 20, rounds=3) if quick else bandwidths(elements)
    shown: list[Row] = list(rows)
    print(table(shown))
    if not quick:
        record("stream", shown, device=cpu_name(), note=f"float32, {elements} elements an array.")
