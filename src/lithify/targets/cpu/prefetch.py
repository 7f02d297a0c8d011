"""What loops through large arrays ask memory for ahead of time.

The processor itself looks ahead along one stream, but not far enough to keep memory busy from two cores, and it loses
track where a stencil walks through many rows at the same time. Seven kinds of stream are helped (`_asked_for` tells
the first five apart, in this order; `plan` those that are read by the element):

* a panel of our own that is larger than the first cache, read again and again: lines of some iterations later are asked
  for, so that what the second cache gives does not hold up the arithmetic;
* an array of which one loop reads several rows: the next lines of each row are asked for, to stay; where rows are
  short, the rows of the next iteration of the loop around, but for those that were read before;
* an array that is larger than the cores' caches and read once: its lines are asked for far ahead, and need not stay in
  a cache, as nothing will read them again (into which caches they go is up to the processor: see `policy`);
* an array that is larger than the caches and read down its columns, a part of a row in each iteration: the same parts
  of some rows on are asked for (they are too short, and too far apart, for the processor to look ahead);
* an array that is larger than the caches and read row by row, each row by several loops: each of them asks for its
  share of the next row, into the core's own cache, so that memory is not idle while rows come from there;
* an array that is larger than the caches, of which a loop reads several rows, one element of each in an iteration (the
  left operand of a product): the next lines of each row are asked for, and near their end those of the next rows;
* what all threads packed together and a loop reads by the element: the first time, most of it comes from other cores'
  caches, which takes longer than the processor looks ahead.

An address beyond the end of an array does no harm: such a request is dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lithify.arith import Expr
from lithify.kernel import ir
from lithify.lowering.access import loads, mentions_data
from lithify.lowering.facts import core_cache, last_cache
from lithify.machine import host
from lithify.targets.cpu import engine, policy
from lithify.targets.cpu.analysis import SHARED_ROLES

# A line of memory; how far ahead one is asked for in a stream, and in each of several rows. Measured on Zen 5, where
# 192 to 512 and 2048 to 8192 bytes are within a few percent of these, and on Sapphire Rapids, where 1024 to 8192 are.
_LINE = 64
_FAR = 4_096
_NEAR = 256
# How many bytes a loop down the columns reads before it comes to the rows that it asks for. Measured on Sapphire Rapids
# on matrices of 1 GiB, by parts of 1 KiB: 8 rows ahead gain 12 %, 2 to 16 rows 8 to 10; 64 MiB in a cache gain nothing.
_BELOW = 8_192
_ALL_CACHES = 3
_OWN_CACHES = 2
# Of the cache nearest to a core but one, the share that the rows on their way may take.
_ROWS_SHARE = 1 / 4
# Arrays of which several rows are read, from this size on: a few times what is nearest to a core.
_LEAST_OF_ROWS = 4 << 20
# Of panels from this size on: most of a first cache. Measured on Sapphire Rapids: 4 and 8 gain up to 9 % of a product's
# rate, 16 less.
_LEAST_OF_PANEL = 32 << 10
_ITERATIONS_AHEAD = 8
# Of what other cores have just written, which comes from their caches: measured on Emerald Rapids by products of 1024
# cubed and 4096 x 512 x 1024, whose left operand is packed by all: 20 to 80 gain as much within 2 %, 10 half of it.
_FROM_OTHERS = 40
# Iterations, where their number is not known before the call.
_ANY = 1 << 62
# Loops of fewer iterations end before what they asked for arrives; longer steps than this are no walk along a row.
_LEAST_ITERATIONS = 16
_LONGEST_STEP = 1_024
# Rows of fewer bytes than this are short. What is no further ahead than that is asked into the first cache, too. (On
# Sapphire Rapids volumes of 128 to 512 elements a row gain 7 to 30 %, and lose up to 12 where more goes there.)
_SHORT = 2_048
_CLOSE = 8_192
# Memory of the call's own.
OWN_ROLES = frozenset({"temporary", "scratch"})


@dataclass(frozen=True, slots=True)
class Prefetch:
    """One line to ask for in an iteration of a loop: `ahead` bytes after the element `index` of a buffer.

    `locality`: into which caches, in LLVM's numbers: 0 past them, 2 from the second on, 3 all. `every`: it is asked for
    in one of so many iterations only, as a line has elements for as many.
    """

    buffer: ir.Buffer
    index: Expr
    ahead: int
    locality: int
    every: int = 1


# The prefetches of each loop, by its identity.
Plan = Mapping[int, tuple[Prefetch, ...]]


@dataclass(frozen=True, slots=True)
class _Stream:
    """What one loop reads in steps: the first element of an iteration, and the elements until that of the next."""

    buffer: ir.Buffer
    index: Expr
    step: int
    iterations: int  # 0 where their number is not known before the call
    once: bool  # no loop around reads the same elements again
    steps: tuple[
        tuple[int, int], ...
    ]  # of each loop around: the elements until its next iteration, and how many it has
    width: int  # elements that an iteration reads side by side, where they are fewer than a step; else the step
    row: Expr  # the first element of the first iteration
    next_row: int  # the elements until the row of the next iteration of the loop around; 0 where that is none
    long: bool  # whether it goes on for long enough, from one row to the next included

    @property
    def goes_down(self) -> bool:
        """Whether each lane walks down a column, so that an iteration reads a part of a row."""
        return self.width < self.step


@dataclass(frozen=True, slots=True)
class _Walk:
    """What a loop reads of an array by the element: some in an iteration, in the next those that lie a step further on.

    A step of 1: an element of each of several rows.
    """

    buffer: ir.Buffer
    step: int
    places: tuple[Expr, ...]  # of the elements of an iteration


@dataclass(frozen=True, slots=True)
class _Site:
    loop: ir.Loop
    around: tuple[ir.Loop, ...]  # the outermost first
    streams: tuple[_Stream, ...]
    walks: tuple[_Walk, ...]

    @property
    def outermost(self) -> ir.Loop:
        return self.around[0] if self.around else self.loop


def plan(kernel: ir.Kernel) -> Plan:
    """The prefetches of a kernel's innermost loops."""
    sites = list(_sites(kernel.body, ()))
    readers: dict[tuple[ir.Buffer, int], list[tuple[_Site, _Stream]]] = {}
    for site in sites:
        for stream in site.streams:
            readers.setdefault((stream.buffer, id(site.outermost)), []).append((site, stream))
    found: dict[int, tuple[Prefetch, ...]] = {}
    for site in sites:
        rows = Counter(stream.buffer for stream in site.streams)
        lines: list[Prefetch] = []
        for stream in site.streams:
            lines += _asked_for(stream, site, rows[stream.buffer], readers[stream.buffer, id(site.outermost)])
        for walk in site.walks:
            lines += _next_of_each(walk, site) if walk.step == 1 else _packed_by_all(walk, site)
        if lines:
            found[id(site.loop)] = tuple(lines)
    return found


def _asked_for(stream: _Stream, site: _Site, rows: int, readers: list[tuple[_Site, _Stream]]) -> Iterable[Prefetch]:
    """What a loop asks for along one of its streams, by the kind of stream.

    `rows`: how many streams of the loop read the array; `readers`: all that reads it in the outermost loop.
    """
    each = stream.buffer.scalar.bytes * stream.step
    if stream.buffer.role in OWN_ROLES and not stream.once and each * stream.iterations >= _LEAST_OF_PANEL:
        return _lines(stream, _ITERATIONS_AHEAD * each, _ALL_CACHES)
    size = _bytes(stream.buffer)
    if rows > 1 and size >= _LEAST_OF_ROWS and not stream.goes_down:
        return _next_lines(stream, site)
    if size < policy.STREAMED_BYTES or not (stream.once and stream.long):
        return ()
    if stream.goes_down:
        rows_ahead = max(1, _BELOW // (stream.buffer.scalar.bytes * stream.width))
        return _lines(stream, rows_ahead * each, _OWN_CACHES)
    if len(readers) == 1:
        return _lines(stream, _FAR, stream_locality(engine.host()[1], size <= last_cache(host())))
    return _share_of_next_row(stream, readers) if _read_the_same_rows(readers) else ()


def _next_lines(stream: _Stream, site: _Site) -> Iterable[Prefetch]:
    """Of a row that is read with others: the lines some iterations on, or those of the next row in its place."""
    each = stream.buffer.scalar.bytes
    ahead = stream.next_row * each
    if 0 < stream.step * stream.iterations * each < _SHORT and ahead > 0:
        caches = _ALL_CACHES if ahead <= _CLOSE else _OWN_CACHES
        return _lines(stream, ahead, caches) if _is_new(stream, site) else ()
    return _lines(stream, _NEAR, _ALL_CACHES) if _is_long(site.loop) else ()


def _next_of_each(walk: _Walk, site: _Site) -> Iterator[Prefetch]:
    """The lines of each row some iterations on; near its end, of the row that the loop around comes to next in its
    place.
    """
    each, extent = walk.buffer.scalar.bytes, site.loop.extent.constant
    around = [loop for loop in site.around if loop.extent.constant != 1]
    if not around or extent is None or _bytes(walk.buffer) < policy.STREAMED_BYTES:
        return
    ahead = _NEAR // each
    beyond = (site.loop.variable.expr + ahead) // extent
    for place in walk.places:
        next_row = place.coefficient(around[-1].variable)
        if next_row:
            index = place + ahead + beyond * (next_row - extent)
            yield Prefetch(walk.buffer, index, 0, _ALL_CACHES, every=_LINE // each)


def _packed_by_all(walk: _Walk, site: _Site) -> Iterator[Prefetch]:
    """What all threads packed together, where elements that follow one another are read in one iteration after another:
    that of some iterations on.
    """
    first = min(walk.places, key=lambda place: place.offset)
    side_by_side = {(place - first).constant for place in walk.places} == set(range(walk.step))
    if walk.buffer.role == "temporary" and side_by_side and _is_long(site.loop):
        yield Prefetch(walk.buffer, first, _FROM_OTHERS * walk.step * walk.buffer.scalar.bytes, _ALL_CACHES)


def _is_new(stream: _Stream, site: _Site) -> bool:
    """Has no other stream of the loop read the same so shortly before that it is in the core's caches still?"""
    room = int(_ROWS_SHARE * core_cache(host())) // stream.buffer.scalar.bytes
    ahead = [(t.index - stream.index).constant for t in site.streams if t.buffer is stream.buffer]
    line = _LINE // stream.buffer.scalar.bytes
    return not any(d is not None and _met_before(d, stream.steps, line, room) for d in ahead)


def _met_before(distance: int, steps: tuple[tuple[int, int], ...], line: int, room: int) -> bool:
    """Is what lies so many elements further on in the next iteration of a loop around, whatever those inside it are at?

    `steps`: those of the loops around, and their iterations; less than `line` does not matter; `room`: the longest step
    after which a cache still knows.
    """
    for number, (step, iterations) in enumerate(steps):
        rest = distance - step
        for inner, most in steps[number + 1 :]:
            times = round(rest / inner) if inner else 0
            rest -= inner * times if abs(times) < most else 0
        if 0 < step <= room and iterations > 1 and abs(rest) < line:
            return True
    return False


def _read_the_same_rows(readers: list[tuple[_Site, _Stream]]) -> bool:
    """Do different loops, one after another in an iteration of the loop around them, read the same row?"""
    site, stream = readers[0]
    same = all(s.around == site.around and t.row is stream.row for s, t in readers)
    return same and len({id(s.loop) for s, _ in readers}) == len(readers) and stream.next_row > 0


def _share_of_next_row(stream: _Stream, readers: list[tuple[_Site, _Stream]]) -> Iterator[Prefetch]:
    """The lines of the next row that one of its readers asks for: of what those before it leave, as many as each after
    it.

    None where extents are not known, and where the core's caches have no room for rows on their way.
    """
    each = stream.buffer.scalar.bytes
    row = stream.next_row * each
    ahead = -(-2 * _FAR // row) * row
    if ahead > _ROWS_SHARE * core_cache(host()):
        return
    first, total = 0, -(-row // _LINE)
    for left, (site, other) in zip(range(len(readers), 0, -1), readers, strict=True):
        extent = site.loop.extent.constant
        if extent is None:
            return
        lines = -(-(total - first) // (left * extent))
        if other is stream:
            start = stream.row + (first * _LINE // each) + site.loop.variable.expr * (lines * _LINE // each)
            for line in range(lines):
                yield Prefetch(stream.buffer, start + line * (_LINE // each), ahead, _OWN_CACHES)
        first = min(total, first + lines * extent)


def stream_locality(processor: str, cached: bool) -> int:
    """Into which caches a processor, by its name in LLVM, is asked for what is read once; `cached`: of an array that
    the last cache has room for.
    """
    return next(where[cached] for start, where in policy.STREAM_LOCALITY.items() if processor.startswith(start))


def _lines(stream: _Stream, ahead: int, locality: int) -> Iterator[Prefetch]:
    each = stream.buffer.scalar.bytes
    for start in range(0, stream.width, _LINE // each):
        yield Prefetch(stream.buffer, stream.index + start, ahead, locality)


def _bytes(buffer: ir.Buffer) -> int:
    """The size of a buffer; 0 where it is not known before the call."""
    return buffer.bytes.constant or 0


def _sites(block: ir.Block, around: tuple[ir.Loop, ...], lanes: ir.Lanes | None = None) -> Iterator[_Site]:
    """The innermost loops; `lanes`: those in which the block stands."""
    for statement in block:
        if isinstance(statement, ir.Loop):
            inner = list(_sites(statement.body, (*around, statement), lanes))
            yield from inner
            if not any(isinstance(s, ir.Loop) for s in _inside(statement.body)) and statement.extent.constant != 1:
                streams, walks = tuple(_streams(statement, around, lanes)), tuple(_walks(statement, lanes))
                yield _Site(statement, around, streams, walks)
        elif isinstance(statement, ir.If):
            yield from _sites(statement.body, around, lanes)
            yield from _sites(statement.otherwise, around, lanes)
        elif isinstance(statement, ir.Lanes):
            yield from _sites(statement.body, around, statement)
        elif isinstance(statement, ir.Async):
            yield from _sites(statement.body, around, lanes)


def _inside(block: ir.Block) -> Iterator[ir.Statement]:
    """All statements of a block but those that say what instructions mean."""
    for statement in block:
        yield statement
        if isinstance(statement, ir.Loop | ir.Lanes | ir.Async):
            yield from _inside(statement.body)
        elif isinstance(statement, ir.If):
            yield from _inside(statement.body)
            yield from _inside(statement.otherwise)


def _is_long(loop: ir.Loop) -> bool:
    extent = loop.extent.constant
    return extent is None or extent >= _LEAST_ITERATIONS


def _streams(loop: ir.Loop, around: tuple[ir.Loop, ...], outside: ir.Lanes | None) -> Iterator[_Stream]:
    """The arrays in memory that a loop walks through vector by vector, each place of an iteration once.

    `outside`: the lanes in which the loop itself stands, each of which then goes down a column.
    """
    moving = {each.variable for each in around if each.extent.constant != 1}
    met: set[tuple[ir.Buffer, Expr]] = set()
    for load, lanes in _vector_loads(loop.body, outside):
        buffer = load.buffer
        if buffer.role not in SHARED_ROLES | OWN_ROLES or buffer.scalar.is_complex:
            continue
        position = load.position
        step = position.coefficient(loop.variable)
        if position.coefficient(lanes.variable) != 1 or step is None or mentions_data(position):
            continue
        each = buffer.scalar.bytes
        width = lanes.width if lanes is outside else step
        if not _LINE <= width * each <= min(step * each, _LONGEST_STEP):
            continue
        base = position - lanes.variable.expr
        # neighbours of a line count as that line
        offset = (base.offset + _LINE // (2 * each)) // width * width
        first = base - base.offset + offset
        if (buffer, first) not in met:
            met.add((buffer, first))
            row = first - loop.variable.expr * step
            iterations = loop.extent.constant or 0
            next_row = row.coefficient(around[-1].variable) if around else 0
            goes_on = iterations > 0 and next_row == step * iterations
            once, long = moving <= base.variables(), goes_on or _is_long(loop)
            steps = tuple((first.coefficient(o.variable) or 0, o.extent.constant or _ANY) for o in around)
            yield _Stream(buffer, first, step, iterations, once, steps, width, row, next_row or 0, long)


def _walks(loop: ir.Loop, outside: ir.Lanes | None) -> Iterator[_Walk]:
    """The arrays in memory of which a loop reads some elements in each iteration, the same ones for all lanes."""
    met: dict[tuple[ir.Buffer, int], dict[Expr, None]] = {}
    for load, lanes in _vector_loads(loop.body, outside):
        position = load.position
        if load.buffer.role not in SHARED_ROLES or load.buffer.scalar.is_complex or mentions_data(position):
            continue
        step = position.coefficient(loop.variable)
        if position.coefficient(lanes.variable) == 0 and step:
            met.setdefault((load.buffer, step), {})[position] = None
    return (_Walk(buffer, step, tuple(places)) for (buffer, step), places in met.items() if len(places) > 1)


def _vector_loads(block: ir.Block, lanes: ir.Lanes | None) -> Iterator[tuple[ir.Load, ir.Lanes]]:
    for statement in block:
        if isinstance(statement, ir.Lanes):
            yield from _vector_loads(statement.body, statement)
        elif isinstance(statement, ir.If):
            yield from _vector_loads(statement.body, lanes)
            yield from _vector_loads(statement.otherwise, lanes)
        elif isinstance(statement, ir.Store | ir.AtomicUpdate) and lanes is not None:
            for load in loads(statement.value):
                yield load, lanes
