"""Matrix multiplication on CPUs: blocks for threads, panels packed for the caches, a tile of vectors in registers.

    for blocks of rows (or columns), over the threads
      for blocks of columns (or rows)
        for panels of nPerThread columns, for tiles of mPerThread rows
          the register tile: for k: a column of the left operand times a row of the right one

(K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008; here without blocks of k.)
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.levels import HEAP, PAR, PRIVATE, SEQ, THREAD, UNROLL, VEC, Memory
from lithify.lang.scalars import SCALARS
from lithify.lang.term import subterms
from lithify.lowering.gemm.operands import chosen, dot_products, instructions, prepare, unpacked, wants_packing
from lithify.lowering.gemm.problem import Product
from lithify.lowering.gemm.register import NARROW, accumulated, block_sums, interchange, outer_products, split, staged
from lithify.lowering.tuning import Parameters, Problem, Space, Value
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation, at, repeat, topdown, try_
from lithify.rules.algorithmic import flatten, let_atom
from lithify.rules.layout import layout_out
from lithify.rules.memory import hoist, hoist_expanded
from lithify.rules.parallel import map_level

_MEMORIES: dict[str, Memory] = {"thread": THREAD, "heap": HEAP}


# ---- the space ---------------------------------------------------------------------------------------------------

# Vectors side by side in a register tile: a power of two, so that they are one loop over lanes.
_WIDEST_TILE = 4
# Rows of a register tile beyond this many are tried in steps of two.
_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28)
# Terms of the sum that a block adds up.
_SUMMED = (16, 32, 64, 128, 256, 512, 1024, 2048)


@dataclass(frozen=True)
class _Machine:
    """What the choices depend on: lanes of a vector, vector registers, threads, bytes of the two inner caches.

    A complex number is two numbers, in two registers.
    """

    lanes: int
    vector_bytes: int
    registers: int
    threads: int
    first_cache: int
    second_cache: int

    @staticmethod
    def of(problem: Problem, model: DeviceModel) -> _Machine:
        caches = {c.level: c.bytes // c.shared_by for c in model.caches}
        first = caches.get(1, 32 << 10)
        sum_ = SCALARS[problem.scalars["acc"]]
        parts = 2 if sum_.is_complex else 1
        return _Machine(
            model.vector_width(sum_.bits // parts),
            model.vector_bytes,
            model.registers.per_item // parts,
            model.cores,
            first,
            caches.get(2, 8 * first),
        )


def space(problem: Problem, model: DeviceModel) -> Space:
    """All parameters for a problem: the register tile, blocks, which operand is packed where, which loop is spread."""
    machine = _Machine.of(problem, model)
    sizes = problem.sizes
    vectors = [machine.lanes << p for p in range(_WIDEST_TILE.bit_length()) if 1 << p <= _WIDEST_TILE]
    rows = [r for r in _ROWS if r < 2 * sizes["m"]]
    columns = [c for c in vectors if c < 2 * sizes["n"]] or [machine.lanes]
    choices: dict[str, tuple[Value, ...]] = {
        "outer": ("m", "n"),
        "parallel": ("all", "batch") if sizes["g"] > 1 else ("outer",),
        "mPerBlock": tuple(sorted({b for r in rows for b in _multiples(r, sizes["m"])})),
        "nPerBlock": tuple(sorted({b for c in columns for b in _multiples(c, sizes["n"])})),
        "kPerBlock": tuple(sorted({*(b for b in _SUMMED if b < sizes["k"]), sizes["k"]})),
        "mPerThread": tuple(rows),
        "nPerThread": tuple(columns),
        "packA": ("none", "thread", "heap"),
        "packB": ("none", "thread", "heap"),
        "instruction": (*[row.name for row in dot_products(problem, model)], "none"),
    }

    def against(p: Parameters) -> str | None:
        return _against(p, sizes["k"], machine) or unpacked(p, problem)

    return Space(choices, _default(problem, machine, str(choices["instruction"][0])), against)


def _multiples(tile: int, size: int) -> list[int]:
    """Multiples of a tile, in powers of two, up to the first that covers the size, and the one that just does."""
    whole = -(-size // tile) * tile
    found = [tile]
    while found[-1] * 2 < whole:
        found.append(found[-1] * 2)
    return [*found, whole]


def _against(p: Parameters, k: int, machine: _Machine) -> str | None:
    """Why a set of parameters is invalid."""
    if p.number("kPerBlock") < k and "heap" in (p["packA"], p["packB"]):
        return "kPerBlock: a block of the sum packs its operands itself, not on the heap"
    inner = "B" if p["outer"] == "m" else "A"
    if p["parallel"] == "all" and p[f"pack{inner}"] == "heap":
        return f"pack{inner}=heap: what is packed for all blocks would be packed once for each, parallel=all"
    rows, vectors = p.number("mPerThread"), -(-p.number("nPerThread") // machine.lanes)
    needed = rows * vectors + vectors + 1
    if needed > machine.registers:
        return f"registers: {rows} x {vectors} + {vectors} + 1 = {needed} vectors of {machine.registers}"
    for dim in "mn":
        block, tile = p.number(f"{dim}PerBlock"), p.number(f"{dim}PerThread")
        if block % tile:
            return f"{dim}PerThread={tile} does not divide {dim}PerBlock={block}"
    return None


def _default(problem: Problem, machine: _Machine, instruction: str) -> Parameters:
    """The choice where nothing was measured.

    * The register tile loads least for its multiply-adds, counting the part of tiles that lies outside of the matrix.
    * Where the right operand stays in the second cache and lies along its rows, nothing is packed. Otherwise its
      columns go in blocks that do stay there, packed by the thread that needs them.
    * Operands that an instruction or a conversion wants packed are.
    """
    m, n, k = (problem.sizes[d] for d in "mnk")
    element = SCALARS[problem.scalars["acc" if instruction == "none" else "b"]].bytes
    rows, columns = _register_tile(m, n, k, machine)
    half = machine.second_cache // 2
    along_rows = "-transB false" in problem.line
    batch = problem.sizes["g"] >= 2 * machine.threads
    pack_a, must_pack_b = wants_packing(problem, instruction)
    fits = n * k * element <= half and along_rows and not must_pack_b
    if fits or m <= 2 * rows:
        outer = "m" if m >= 2 * rows * machine.threads or batch else "n"
        blocks = (_share(m, rows, 4 * machine.threads, m), _share(n, columns, 4 * machine.threads, n))
        m_block, n_block = (blocks[0], _up(n, columns)) if outer == "m" else (_up(m, rows), blocks[1])
        pack_b = "none" if along_rows and not must_pack_b else "thread"
    else:
        outer = "n"
        n_block = _share(n, columns, 4 * machine.threads, max(columns, half // (k * element)))
        m_block = _up(m, rows)
        pack_b = "thread"
    return Parameters(
        {
            "outer": outer,
            "parallel": "outer" if problem.sizes["g"] == 1 else "batch" if batch else "all",
            "mPerBlock": m_block,
            "nPerBlock": n_block,
            "kPerBlock": k,
            "mPerThread": rows,
            "nPerThread": columns,
            "packA": "thread" if pack_a else "none",
            "packB": pack_b,
            "instruction": instruction,
        }
    )


def _register_tile(m: int, n: int, k: int, machine: _Machine) -> tuple[int, int]:
    """Rows and columns of the register tile that takes least time for the whole result."""
    tiles = [
        (rows, vectors * machine.lanes)
        for vectors in (1, 2, 4)
        for rows in range(1, min((machine.registers - 1) // vectors - 1, m) + 1)
    ]
    return min(tiles, key=lambda tile: _tile_time(m, n, k, tile, machine))


def _tile_time(m: int, n: int, k: int, tile: tuple[int, int], machine: _Machine) -> float:
    """Cycles for the whole result in tiles, the parts of tiles outside of it included.

    In a cycle two multiply-adds start, which take four; two loads do, of which a broadcast is one; and 32 bytes come
    from the second cache. A tile's accumulators are set and stored besides.
    """
    rows, columns = tile
    vectors = columns // machine.lanes
    element = machine.vector_bytes / machine.lanes
    step = max(rows * vectors / 2, (rows + vectors) / 2, 4.0, (rows + columns) * element / 32)
    return -(-m // rows) * -(-n // columns) * (k * step + 2 * rows * vectors + 20)


def _share(size: int, tile: int, pieces: int, most: int) -> int:
    """A multiple of the tile, at most `most`, that cuts a size in about so many equal pieces."""
    block = max(tile, min(most, -(-size // pieces)) // tile * tile)
    return min(block, _up(size, tile))


def _up(size: int, tile: int) -> int:
    return -(-size // tile) * tile


# ---- the derivation ----------------------------------------------------------------------------------------------


def derive(derivation: Derivation, product: Product, parameters: Parameters) -> None:
    """Take a product in normal form down to loops with levels and packed operands."""
    loops = product.loops
    m, n = loops.m, loops.n
    prepared, row_of_table = prepare(derivation, product, parameters), chosen(parameters)
    k = prepared.reduction
    number = parameters.number
    blocks = {m: number("mPerBlock"), n: number("nPerBlock")}
    by_rows = parameters["outer"] == "m"
    outer, inner = (m, n) if by_rows else (n, m)

    if not by_rows:
        derivation.apply(interchange(m))
    derivation.apply(split(outer, blocks[outer]) >> interchange(f"{outer}.tile"))
    tile = {outer: f"{outer}.tile", inner: inner}
    blocked = [*loops.batch, f"{outer}.block"]
    if parameters["parallel"] == "all":
        while len(blocked) > 1:
            batch = blocked[-2]
            derivation.apply(try_(at(batch, layout_out)) >> at(batch, flatten) >> NARROW)
            del blocked[-1]
    if blocks[inner] < product.length(inner):
        derivation.apply(split(inner, blocks[inner]))
        tile[inner] = f"{inner}.tile"
        blocked.append(f"{inner}.block")
    rows, columns = tile[m], tile[n]
    if not by_rows:
        derivation.apply(interchange(rows))
    within = blocked
    if number("kPerBlock") < product.sizes["k"]:
        derivation.apply(interchange(columns) >> block_sums(k, rows, columns, number("kPerBlock"), THREAD))
        derivation.apply(interchange(rows))
        k, within = f"{k}.tile", []
    derivation.apply(split(columns, number("nPerThread")) >> interchange(f"{columns}.tile"))
    derivation.apply(split(rows, number("mPerThread")))
    row, column = f"{rows}.tile", f"{columns}.tile"
    derivation.apply(outer_products(row, column))

    tiles = [f"{columns}.block", f"{rows}.block"]
    around = [*blocked, *tiles]
    spread = around[0]
    left = 1 if product.swapped else 0
    for name, operand, levels in (("packA", left, (SEQ, UNROLL)), ("packB", 1 - left, (SEQ, VEC))):
        memory = _MEMORIES.get(str(parameters[name]))
        if memory is not None:
            derivation.apply(staged(k, operand, memory, (*levels, *prepared.group)))
            _move_out(derivation, memory, around if memory is HEAP else [*within[1:], *tiles])
    if row_of_table is not None:
        derivation.apply(instructions(k, column, row_of_table))
    derivation.apply(accumulated(k, row, column, PRIVATE, VEC, read=prepared.epilogue))
    for loop in around:
        derivation.apply(at(loop, map_level(PAR if loop == spread else SEQ)))


def _move_out(derivation: Derivation, memory: Memory, loops: list[str]) -> None:
    """A packed tile out of loops (outermost first): all tiles that a loop needs are packed before it.

    What is on the heap is packed by all threads.
    """
    for loop in reversed(loops):
        derivation.apply(try_(at(loop, hoist(memory))) >> try_(at(loop, hoist_expanded(memory))) >> NARROW)
    derivation.apply(repeat(topdown(let_atom)))
    level = PAR if memory is HEAP else SEQ
    for loop in loops:
        name = f"{loop}.staged"
        if any((t.kind, t.attrs) == ("map", (None, name)) for t in subterms(derivation.term)):
            derivation.apply(at(name, map_level(level)))
            level = SEQ
