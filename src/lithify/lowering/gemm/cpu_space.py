"""The parameters of matrix multiplication on CPUs: which there are, what is against a set, what to take unmeasured."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.scalars import SCALARS
from lithify.lowering.gemm.operands import NONE, chosen, dot_products, unpacked, wants_packing
from lithify.lowering.tuning import Parameters, Problem, Space, Value
from lithify.machine import DeviceModel, InstructionRow
from lithify.machine import instruction as instruction_of

# Vectors side by side in a register tile.
_VECTORS = (1, 2, 3, 4)
# Rows of a register tile that are tried.
_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28)
# And where tile registers hold the results: there are eight, half of them for what is multiplied.
_ROWS_OF_TILES = (16, 32, 64)
_TILES_OF_RESULTS = 4
# How long it takes to load a tile from the second cache, in instructions: measured on Sapphire Rapids, where they take
# 16 cycles.
_LOAD = 1.4
# How many packed panels the second cache could hold, where nothing was measured; fewer terms behind OpenCL where the
# elements of the left operand that they take lie pages apart: they share a few lines of the first cache.
_PANELS, _SUM_OF_ONE_SET, _PAGE = 4, 256, 4096
# Terms of the sum, and panels, for which a thread packs both operands.
_TERMS_OF_BOTH, _PANELS_OF_BOTH = 512, 8
# Rows of the left operand that are read again and again while a block of a sum is added up.
_ROWS_OF_BLOCK = 1100
# Of few rows: how many times a block's sums fit the second cache, and the rows of the right operand read at a time.
_SUMS, _ROWS_AT_ONCE = 8, 32
# Products of at most so many multiply-adds take so little time on a matrix unit that each thread gets one piece; from
# so many tiles of columns on, the left operand is read often.
_SMALL, _OFTEN = 1 << 26, 8
# Terms of the sum that are tried.
_SUMMED = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)


@dataclass(frozen=True)
class _Machine:
    """What the choices depend on: lanes and bytes of a vector, vector registers, threads, bytes of the second cache.

    `own_bytes` is what a thread may keep for itself (behind OpenCL the local memory); None for no limit.

    A complex number is two numbers, in two registers.
    """

    lanes: int
    vector_bytes: int
    registers: int
    threads: int
    second_cache: int
    own_bytes: int | None

    @staticmethod
    def of(problem: Problem, model: DeviceModel) -> _Machine:
        caches = {c.level: c.bytes // c.shared_by for c in model.caches}
        sum_ = SCALARS[problem.scalars["acc"]]
        parts = 2 if sum_.is_complex else 1
        own = None if model.has_memory("thread") else model.memory("local").bytes
        first = caches.get(1, 32 << 10)
        return _Machine(
            lanes=model.vector_width(sum_.bits // parts),
            vector_bytes=model.vector_bytes,
            registers=model.registers.per_item // parts,
            threads=model.cores,
            second_cache=caches.get(2, 8 * first) if own is None else own,
            own_bytes=own,
        )


def pays(problem: Problem, model: DeviceModel) -> bool:
    """Is the problem more than a matrix times a vector?

    One row times a matrix that the second cache does not hold is for this family too: some rows of the matrix at a time
    are read as they lie in memory. Others are what the default lowering does best.
    """
    m, n, k = (problem.sizes[d] for d in "mnk")
    if min(m, n) > 1:
        return True
    alike = len(set(problem.scalars.values())) == 1
    held = _Machine.of(problem, model).second_cache
    return m == 1 < n and alike and _along_rows(problem, "B") and n * k * SCALARS[problem.scalars["b"]].bytes > held


def space(problem: Problem, model: DeviceModel) -> Space:
    """All parameters for a problem: the register tile, blocks, which operand is packed where, which loop is spread."""
    machine, sizes = _Machine.of(problem, model), problem.sizes
    rows = [r for r in _ROWS if r < 2 * sizes["m"]]
    columns = [c for v in _VECTORS if (c := v * machine.lanes) < 2 * sizes["n"]] or [machine.lanes]
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

    def against(p: Parameters) -> str | None:
        return _against(p, problem, machine) or unpacked(p, problem) or _too_much(p, problem, machine)

    return Space(choices, _default(problem, machine, instructions[0]), against)


def _multiples(tile: int, size: int) -> list[int]:
    """Multiples of a tile, in powers of two, up to the first that covers the size, and the one that just does."""
    whole = _up(size, tile)
    found = [tile]
    while found[-1] * 2 < whole:
        found.append(found[-1] * 2)
    return [*found, whole]


def _against(p: Parameters, problem: Problem, machine: _Machine) -> str | None:
    """Why a set of parameters is invalid."""
    k, row = problem.sizes["k"], chosen(p)
    if p.number("kPerBlock") < k:
        if "-whole" in problem.line and k % p.number("kPerBlock"):
            return f"kPerBlock={p['kPerBlock']} does not divide {k}, and nothing is known that fills up the last block"
        if "heap" in (p["packA"], p["packB"]):
            return "kPerBlock: a block of the sum packs its operands itself, not on the heap"
        if row is not None:
            terms = _up(k, row.shape[2])
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


def _registers(p: Parameters, machine: _Machine) -> str | None:
    """Why a set of parameters is invalid: the register tile."""
    rows, columns, row = p.number("mPerThread"), p.number("nPerThread"), chosen(p)
    if row is not None and row.line:
        m, n, _ = row.shape
        if rows % m:
            return f"mPerThread={rows} is not a multiple of {row.name}'s {m}"
        needed = rows // m * (columns // n)
        return f"registers: {needed} tiles of {_TILES_OF_RESULTS}" if needed > _TILES_OF_RESULTS else None
    vectors = -(-columns // machine.lanes)
    needed = rows * vectors + vectors + 1
    if needed > machine.registers:
        return f"registers: {rows} x {vectors} + {vectors} + 1 = {needed} vectors of {machine.registers}"
    return None


def _too_much(p: Parameters, problem: Problem, machine: _Machine) -> str | None:
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


# ---- the choice where nothing was measured -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Blocks:
    """Which loop is outside, the blocks, and where operands are packed."""

    outer: str
    m: int
    n: int
    k: int
    pack_a: str
    pack_b: str


def _default(problem: Problem, machine: _Machine, instruction: str) -> Parameters:
    """The register tile that takes least time, and the blocks that keep what is read again in the second cache."""
    pack_a, pack_b = wants_packing(problem, instruction)
    stored = SCALARS[problem.scalars["acc" if instruction == "none" else "b"]].bytes
    sizes = problem.sizes
    once = sizes["m"] <= _once(machine) and sizes["n"] * sizes["k"] * stored > machine.second_cache // 2
    row = None if instruction == NONE else instruction_of(instruction)
    if row is not None and row.line:
        rows, columns = _tiles(sizes["m"], sizes["n"], row)
        pack_a = pack_a or sizes["m"] % rows > 0 or _read_often(problem, columns, machine)
    else:
        rows, columns = _register_tile(sizes["m"], sizes["n"], sizes["k"], machine, widest=once)
    by_batch = sizes["g"] >= 2 * machine.threads
    wide = by_batch or sizes["n"] >= 2 * machine.threads * columns
    if pack_a or pack_b:
        blocks = _packed(problem, rows, columns, stored, machine, pack_a, pack_b, instruction)
    elif once:
        blocks = _read_once(problem, rows, columns, machine)
    else:
        blocks = _read_again(problem, rows, columns, machine, wide=wide or sizes["m"] <= 2 * rows)
    chosen = Parameters(
        {
            "outer": blocks.outer,
            "parallel": "outer" if sizes["g"] == 1 else "batch" if by_batch else "all",
            "mPerBlock": blocks.m,
            "nPerBlock": blocks.n,
            "kPerBlock": sizes["k"] if "-whole" in problem.line else blocks.k,
            "mPerThread": rows,
            "nPerThread": columns,
            "packA": blocks.pack_a,
            "packB": blocks.pack_b,
            "instruction": instruction,
        }
    )
    if _too_much(chosen, problem, machine) is None:
        return chosen
    on_heap = {name: "heap" for name in ("packA", "packB") if chosen[name] == "thread"}
    if len(on_heap) == 2 and sizes["g"] > 1:
        on_heap["parallel"] = "batch"
    return chosen.updated(**on_heap, kPerBlock=sizes["k"], outer="n" if "packB" in on_heap else "m")


def _once(machine: _Machine) -> int:
    """So few rows that the right operand is read but once or twice: memory is what limits such products."""
    return machine.registers // 2


def _along_rows(problem: Problem, operand: str) -> bool:
    """Do the elements that a tile takes of an operand at once follow one another in memory?"""
    return f"-trans{operand} {'true' if operand == 'A' else 'false'}" in problem.line


def _read_once(problem: Problem, rows: int, columns: int, machine: _Machine) -> _Blocks:
    """The right operand is read along its rows, far at a time where they lie as a tile takes them.

    The sums of a block stay in the second cache meanwhile, beside what is read. Where the operand lies across, one
    panel at a time is packed, of as many terms as stay there.
    """
    m, n, k = (problem.sizes[d] for d in "mnk")
    element = SCALARS[problem.scalars["acc"]].bytes
    if not _along_rows(problem, "B"):
        return _Blocks(
            "n", _up(m, rows), columns, _even(k, machine.second_cache // (2 * columns * element)), "none", "thread"
        )
    held = machine.second_cache // _SUMS // (m * element)
    n_block = _share(n, columns, machine.threads, max(columns, held))
    return _Blocks("n", _up(m, rows), n_block, _even(k, _ROWS_AT_ONCE), "none", "none")


def _read_again(problem: Problem, rows: int, columns: int, machine: _Machine, *, wide: bool) -> _Blocks:
    """A block of the right operand that stays in the second cache while all rows pass by.

    It is packed by the thread that needs it, unless all of the operand stays there as it lies in memory.
    """
    m, n, k = (problem.sizes[d] for d in "mnk")
    element, half = SCALARS[problem.scalars["acc"]].bytes, machine.second_cache // 2
    pieces = 4 * machine.threads
    panel = machine.second_cache // _PANELS
    if n * k * element <= half and _along_rows(problem, "B"):
        if wide and m < pieces * rows:
            return _Blocks("n", _up(m, rows), _share(n, columns, pieces, n), k, "none", "none")
        by_batch = problem.sizes["g"] >= 2 * machine.threads
        if n <= columns or not wide or (n * k * element <= panel and not by_batch):
            return _Blocks("m", _share(m, rows, pieces, m), _up(n, columns), k, "none", "none")
    most_terms = max(1, panel // (columns * element))
    if machine.own_bytes is not None:
        in_one_set = _along_rows(problem, "A") and m * element % _PAGE == 0
        most_terms = min(most_terms, _SUM_OF_ONE_SET if in_one_set else most_terms, max(1, half // (columns * element)))
    k_block = k if 2 * k <= 3 * most_terms else _even(k, most_terms)
    if wide and machine.own_bytes is None:
        if _along_rows(problem, "A") and m * k * element > panel:
            return _both(problem, rows, columns, machine, k * columns * element <= half)
        m_block = _up(m, rows) if k_block == k else _share(m, rows, 1, _ROWS_OF_BLOCK)
        most = max(columns, panel // (k_block * element))
        return _Blocks("n", m_block, _share(n, columns, pieces, most), k_block, "none", "thread")
    if wide:
        most = max(columns, half // (k_block * element))
        m_block = _up(m, rows) if k_block == k else _share(m, rows, 1, max(rows, half // (2 * most * element)))
        return _Blocks("n", m_block, _share(n, columns, pieces, most), k_block, "none", "thread")
    if _along_rows(problem, "B"):  # a block of the sum is read from memory once for each block of rows
        m_block = _share(m, rows, pieces, m) if k_block == k else _share(m, rows, machine.threads, _ROWS_OF_BLOCK)
        return _Blocks("m", m_block, _up(n, columns), k_block, "none", "none")
    m_block = _share(m, rows, pieces, m)
    pack_b = "heap" if problem.sizes["g"] == 1 else "thread"
    return _Blocks("m", m_block, _up(n, columns), k, "none", pack_b)


def _both(problem: Problem, rows: int, columns: int, machine: _Machine, whole: bool) -> _Blocks:
    """Both operands packed: the left one lies across, and the lines of a tile's terms would come from far each time.

    `whole`: the whole sum at once, the left operand packed once, by all threads.
    """
    m, n, k = (problem.sizes[d] for d in "mnk")
    if whole and problem.sizes["g"] == 1:
        most = max(columns, machine.second_cache // _PANELS // (k * SCALARS[problem.scalars["acc"]].bytes))
        return _Blocks("n", _up(m, rows), _share(n, columns, 4 * machine.threads, most), k, "heap", "thread")
    n_block = _share(n, columns, machine.threads, _PANELS_OF_BOTH * columns)
    return _Blocks("n", _share(m, rows, 1, _ROWS_OF_BLOCK), n_block, _even(k, _TERMS_OF_BOTH), "thread", "thread")


def _packed(
    problem: Problem,
    rows: int,
    columns: int,
    stored: int,
    machine: _Machine,
    pack_a: bool,
    pack_b: bool,
    instruction: str,
) -> _Blocks:
    """Operands that must be packed, because an instruction or a conversion wants it."""
    m, n, k = (problem.sizes[d] for d in "mnk")
    most = max(columns, machine.second_cache // 2 // (k * stored))
    pieces = 4
    if instruction != NONE and instruction_of(instruction).line:
        pieces = 1 if m * n * k <= _SMALL else 2
    n_block = _share(n, columns, pieces * machine.threads, most)
    straight = _along_rows(problem, "B") and not pack_b
    m_block = _share(m, rows, 1, max(rows, machine.second_cache // 4 // (k * stored)))
    for_all = "heap" if problem.sizes["g"] == 1 else "thread"
    return _Blocks("n", m_block, n_block, k, for_all if pack_a else "none", "none" if straight else "thread")


def _read_often(problem: Problem, columns: int, machine: _Machine) -> bool:
    """Is a left operand that tile registers take as it lies better packed all the same?

    Its lines then begin where those of the caches do (half of the time to load one that does not is gone), and follow
    one another. That pays where they come from beyond the second cache, again and again.
    """
    m, n, k = (problem.sizes[d] for d in "mnk")
    bytes = m * k * SCALARS[problem.scalars["a"]].bytes
    return problem.sizes["g"] == 1 and n >= _OFTEN * columns and bytes > machine.second_cache // 2


def _tiles(m: int, n: int, row: InstructionRow) -> tuple[int, int]:
    """Rows and columns of the results that tile registers hold at a time: least time.

    An instruction takes less time than to load a tile from the second cache, which happens meanwhile.
    """
    of_m, of_n, _ = row.shape
    shapes = [(r, c) for r in (1, 2, 4) for c in (1, 2, 4) if r * c <= _TILES_OF_RESULTS]

    def cost(shape: tuple[int, int]) -> tuple[float, int]:
        r, c = shape
        count = -(-m // (r * of_m)) * -(-n // (c * of_n))
        return count * max(r * c, _LOAD * (r + c)), count * r * c

    r, c = min(shapes, key=cost)
    return r * of_m, c * of_n


def _register_tile(m: int, n: int, k: int, machine: _Machine, *, widest: bool) -> tuple[int, int]:
    """Rows and columns of the register tile that takes least time for the whole result.

    `widest`: as many vectors side by side as there are choices for, so that much is read from one row at a time.
    """
    vectors = [v for v in _VECTORS if v == 1 or ((v - 1) * machine.lanes < n and 2 * v < machine.registers)]
    tiles = [
        (rows, v * machine.lanes)
        for v in (vectors[-1:] if widest else vectors)
        for rows in range(1, min((machine.registers - 1) // v - 1, m) + 1)
    ]
    return min(tiles, key=lambda tile: _tile_time(m, n, k, tile, machine))


def _tile_time(m: int, n: int, k: int, tile: tuple[int, int], machine: _Machine) -> float:
    """Cycles for the whole result in tiles, the parts of tiles outside of it included.

    In a cycle two multiply-adds start, which take four; two loads do, of which a broadcast is one; and 32 bytes come
    from the second cache. Loads cost a little even where they are not what limits. A tile's accumulators are set and
    stored besides.
    """
    rows, columns = tile
    vectors = columns // machine.lanes
    element = machine.vector_bytes / machine.lanes
    step = max(rows * vectors / 2, (rows + vectors) / 2, 4.0, (rows + columns) * element / 32) + (rows + vectors) / 10
    return -(-m // rows) * -(-n // columns) * (k * step + 2 * rows * vectors + 20)


def _share(size: int, tile: int, pieces: int, most: int) -> int:
    """A multiple of the tile, at most `most`, that cuts a size in about so many pieces, as equal as they can be."""
    tiles, limit = -(-size // tile), max(1, most // tile)
    least = max(-(-tiles // limit), min(tiles, pieces))
    # of some more pieces, those that leave least of the last one empty
    count = min(range(least, min(tiles, 2 * least) + 1), key=lambda c: (-(-tiles // c) * c - tiles, c))
    return -(-tiles // count) * tile


def _even(size: int, most: int) -> int:
    """Equal parts of at most `most`."""
    return -(-size // -(-size // most))


def _up(size: int, tile: int) -> int:
    return -(-size // tile) * tile
