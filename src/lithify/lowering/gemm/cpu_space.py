"""The parameters of matrix multiplication on CPUs: which there are, and what is against a set."""

from __future__ import annotations

from lithify.lang.scalars import SCALARS
from lithify.lowering.gemm.cpu_case import along_rows, in_parts
from lithify.lowering.gemm.cpu_default import default
from lithify.lowering.gemm.cpu_machine import Machine
from lithify.lowering.gemm.cpu_shares import up
from lithify.lowering.gemm.cpu_tile import TILES_OF_RESULTS, VECTORS
from lithify.lowering.gemm.operands import chosen, dot_products, unpacked
from lithify.lowering.tuning import Parameters, Problem, Space, Value
from lithify.machine import DeviceModel

# Rows of a register tile that are tried.
_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28)
# And where tile registers hold the results.
_ROWS_OF_TILES = (16, 32, 64)
# Terms of the sum that are tried.
_SUMMED = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def pays(problem: Problem, model: DeviceModel) -> bool:
    """Is the problem more than a matrix times a vector?

    One row times a matrix that the second cache does not hold is for this family too: some rows of the matrix at a time
    are read as they lie in memory. Others are what the default lowering does best.
    """
    m, n, k = (problem.sizes[d] for d in "mnk")
    if min(m, n) > 1:
        return True
    alike = len(set(problem.scalars.values())) == 1
    held = Machine.of(problem, model).room
    return m == 1 < n and alike and along_rows(problem, "B") and n * k * SCALARS[problem.scalars["b"]].bytes > held


def space(problem: Problem, model: DeviceModel) -> Space:
    """All parameters for a problem: the register tile, blocks, which operand is packed where, which loop is spread."""
    machine, sizes = Machine.of(problem, model), problem.sizes
    rows = [r for r in _ROWS if r < 2 * sizes["m"]]
    columns = [c for v in VECTORS if (c := v * machine.lanes) < 2 * sizes["n"]] or [machine.lanes]
    found = dot_products(problem, model)
    instructions = (*[row.name for row in found], "none")
    if any(row.line for row in found):
        rows = sorted({*rows, *[r for r in _ROWS_OF_TILES if r < 2 * sizes["m"]]})
    choices: dict[str, tuple[Value, ...]] = {
        "outer": ("m", "n"),
        "parallel": ("all", "batch") if sizes["g"] > 1 else ("outer",),
        "mPerBlock": tuple(sorted({b for r in rows for b in _multiples(r, sizes["m"])})),
        "nPerBlock": tuple(sorted({b for c in columns for b in _multiples(c, sizes["n"])})),
        "kPerBlock": (*[b for b in _SUMMED if b < sizes["k"]], sizes["k"]),
        "mPerThread": tuple(rows),
        "nPerThread": tuple(columns),
        "packA": ("none", "thread", "heap"),
        "packB": ("none", "thread", "heap"),
        "instruction": instructions,
    }
    if in_parts(problem, machine):
        choices["splitK"] = (1, machine.threads)

    def against(p: Parameters) -> str | None:
        return _against(p, problem, machine) or unpacked(p, problem) or _too_much(p, problem, machine)

    return Space(choices, _kept(default(problem, machine, instructions[0]), problem, machine), against)


def _multiples(tile: int, size: int) -> list[int]:
    """Multiples of a tile, in powers of two, up to the first that covers the size, and the one that just does."""
    whole = up(size, tile)
    found = [tile]
    while found[-1] * 2 < whole:
        found.append(found[-1] * 2)
    return [*found, whole]


def _against(p: Parameters, problem: Problem, machine: Machine) -> str | None:
    """Why a set of parameters is invalid."""
    parts, k, row = int(p.get("splitK", 1)), problem.sizes["k"], chosen(p)
    if k % parts:
        return f"splitK={parts} does not divide {k}"
    k //= parts
    if p.number("kPerBlock") < k:
        if "-whole" in problem.line and k % p.number("kPerBlock"):
            return f"kPerBlock={p['kPerBlock']} does not divide {k}, and nothing is known that fills up the last block"
        if "heap" in (p["packA"], p["packB"]):
            return "kPerBlock: a block of the sum packs its operands itself, not on the heap"
        if row is not None:
            terms = up(k, row.shape[2])
            if p.number("kPerBlock") % row.shape[2]:
                return f"kPerBlock={p['kPerBlock']} is not a multiple of the {row.shape[2]} terms of {row.name}"
            if terms % p.number("kPerBlock"):
                return f"kPerBlock={p['kPerBlock']}: equal blocks are wanted for {row.name}, of {terms} terms"
    inner = "B" if p["outer"] == "m" else "A"
    if p["parallel"] == "all" and p[f"pack{inner}"] == "heap":
        return f"pack{inner}=heap: what is packed for all blocks would be packed once for each, parallel=all"
    columns = p.number("nPerThread")
    if row is not None and columns % row.shape[1]:
        return f"nPerThread={columns}: {row.name} computes {row.shape[1]} columns at once"
    too_many = _registers(p, machine)
    if too_many:
        return too_many
    for dim in "mn":
        block, tile = p.number(f"{dim}PerBlock"), p.number(f"{dim}PerThread")
        if block % tile:
            return f"{dim}PerThread={tile} does not divide {dim}PerBlock={block}"
    return None


def _registers(p: Parameters, machine: Machine) -> str | None:
    """Why a set of parameters is invalid: the register tile."""
    rows, columns, row = p.number("mPerThread"), p.number("nPerThread"), chosen(p)
    if row is not None and row.line:
        m, n, _ = row.shape
        if rows % m:
            return f"mPerThread={rows} is not a multiple of {row.name}'s {m}"
        needed = rows // m * (columns // n)
        return f"registers: {needed} tiles of {TILES_OF_RESULTS}" if needed > TILES_OF_RESULTS else None
    vectors = -(-columns // machine.lanes)
    needed = rows * vectors + vectors + 1
    if needed > machine.registers:
        return f"registers: {rows} x {vectors} + {vectors} + 1 = {needed} vectors of {machine.registers}"
    return None


def _too_much(p: Parameters, problem: Problem, machine: Machine) -> str | None:
    """Why a set of parameters is invalid: what a thread keeps is more than it may."""
    if machine.own_bytes is None:
        return None
    element, m, n, k = SCALARS[problem.scalars["acc"]].bytes, *(p.number(f"{d}PerBlock") for d in "mnk")
    outer_m = p["outer"] == "m"
    whole_m, whole_n = (m, problem.sizes["n"]) if outer_m else (problem.sizes["m"], n)
    blocked = k < problem.sizes["k"]
    kept = {
        "packA": (m if blocked else whole_m) * k if p["packA"] == "thread" else 0,
        "packB": (n if blocked else whole_n) * k if p["packB"] == "thread" else 0,
        "kPerBlock": m * n if blocked else 0,
    }
    needed = sum(kept.values()) * element
    if needed <= machine.own_bytes:
        return None
    parts = ", ".join(f"{name} keeps {size * element}" for name, size in kept.items() if size)
    return f"{parts}: {needed} bytes of local memory, there are {machine.own_bytes}"


def _kept(default: Parameters, problem: Problem, machine: Machine) -> Parameters:
    """The default, with operands packed on the heap where a thread may not keep them."""
    if _too_much(default, problem, machine) is None:
        return default
    k, on_heap = problem.sizes["k"], [name for name in ("packA", "packB") if default[name] == "thread"]
    outer = "n" if "packB" in on_heap else "m"
    # what is packed on the heap inside of the loop that is spread would be packed once for each of its blocks
    parallel = "batch" if len(on_heap) == 2 and problem.sizes["g"] > 1 else default["parallel"]
    return default.updated(**dict.fromkeys(on_heap, "heap"), kPerBlock=k, outer=outer, parallel=parallel)
