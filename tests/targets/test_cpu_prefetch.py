"""What the cpu target asks memory for ahead of time: streams that are read once, and rows read side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.kernel.walk import statements
from lithify.lang.levels import LevelKind
from lithify.machine import host
from lithify.program.module import parse
from lithify.targets.cpu import CpuTarget, engine, policy, prefetch
from lithify.targets.cpu.prefetch import Prefetch, plan
from tests.targets.handmade import random


@pytest.fixture(autouse=True)
def small_arrays_count_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "STREAMED_BYTES", 1 << 12)
    monkeypatch.setattr(prefetch, "_LEAST_OF_ROWS", 1 << 10)


def kernels(text: str, *arguments: object) -> ir.Program:
    return parse(f"f = {text}")["f"].kernels(*arguments)


def prefetches(program: ir.Program) -> list[Prefetch]:
    return [each for kernel in program.kernels for found in plan(kernel).values() for each in found]


def test_what_is_read_once_is_asked_for_far_ahead_() -> None:
    x = random(1 << 16)
    found = prefetches(kernels("reduce (+) 0", x))
    assert found
    assert {p.ahead for p in found} == {prefetch._FAR}


@pytest.mark.parametrize(
    ("processor", "cache", "locality"),
    [
        ("znver5", 1 << 10, 0),
        ("znver5", 1 << 20, 0),
        ("sapphirerapids", 1 << 10, 2),
        ("sapphirerapids", 1 << 20, 3),
        ("generic", 1 << 10, 2),
    ],
)
def test_into_which_caches_depends_on_the_processor_and_its_last_cache(
    processor: str, cache: int, locality: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the caches, a stream is 2.5 times slower than it could be on processors that are not made for it."""
    monkeypatch.setattr(engine, "host", lambda: ("", processor, "", ""))
    monkeypatch.setattr(prefetch, "last_cache", lambda _: cache)
    assert {p.locality for p in prefetches(kernels("reduce (+) 0", random(1 << 16)))} == {locality}


def test_every_line_of_an_iteration_is_asked_for_once() -> None:
    x = random(1 << 16)
    program = kernels("reduce (+) 0", x)
    (found,) = [f for kernel in program.kernels for f in plan(kernel).values()]
    starts = sorted(p.index.offset for p in found)
    assert starts == list(range(starts[0], starts[0] + 16 * len(starts), 16))  # 16 elements of 4 bytes are a line


def test_rows_of_a_stencil_are_asked_for_nearby_and_kept() -> None:
    image = random(80 * 1024).reshape(80, 1024)
    text = "λ img . map (λ rows . map (λ w . w[0] + w[1] + w[2]) (transpose rows)) (slide 3 1 (pad 1 1 clamp img))"
    found = prefetches(kernels(text, image))
    assert found
    assert {(p.ahead, p.locality) for p in found} == {(prefetch._NEAR, 3)}


STAR = """λ volume . map (map (map (λ w . w[1][1][0] + w[1][0][1] + w[1][1][1] + w[1][2][1] + w[1][1][2])))
  (map (λ planes . map (λ lines . slide 3 1 (transpose (map transpose lines))) (slide 3 1 (transpose planes)))
       (slide 3 1 volume))"""


@pytest.mark.parametrize("shape", [(20, 60, 450), (9, 40, 322), (30, 33, 407)])
def test_of_short_rows_those_that_nobody_has_read_are_asked_for(shape: tuple[int, int, int]) -> None:
    """Those in the next plane: the others were read a plane before."""
    volume = random(int(np.prod(shape))).reshape(shape)
    program = kernels(STAR, volume)
    plane, row = shape[1] * shape[2], shape[2]
    asked = 0
    for kernel in program.kernels:
        for site in prefetch._sites(kernel.body, ()):
            found = plan(kernel).get(id(site.loop), ())
            planes = {stream.index.offset // plane for stream in site.streams}
            if len(planes) == 3 and len(site.around) == 2:
                last = {s.index for s in site.streams if s.index.offset // plane == max(planes)}
                assert {p.index for p in found} == last
                assert {p.ahead % (4 * row) for p in found} == {0}
                asked += len(found)
    assert asked
    got, v = CpuTarget(threads=2).compile(program)(volume), volume.astype(np.float64)
    expected = v[1:-1, 1:-1] + v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:]
    np.testing.assert_allclose(got, expected[:, :, 1:-1], atol=1e-5)


def test_planes_for_which_there_is_no_room_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "_ROWS_SHARE", 1e-9)
    found = prefetches(kernels(STAR, random(20 * 60 * 130).reshape(20, 60, 130)))
    assert len({p.index.offset for p in found}) >= 5


def test_what_an_iteration_before_has_read() -> None:
    steps = ((0, 7), (1000, 20), (10, 50))  # nothing moves, planes of 1000, of rows of 10
    for distance, before in (
        (10, True),
        (1000, True),
        (990, True),
        (1490, True),
        (1500, False),
        (20, False),
        (0, False),
    ):
        assert prefetch._met_before(distance, steps, 4, 1000) == before, distance
    assert not prefetch._met_before(1000, steps, 4, 999)
    assert not prefetch._met_before(10, ((10, 1),), 4, 1000)  # there is no iteration before


ROWS = "map (λ row . reduce (+) 0 (map (λ x . x / reduce max 0 row) row))"


@pytest.mark.parametrize("shape", [(64, 2048), (100, 1024), (8, 16384)])
def test_each_reader_of_a_row_asks_for_its_share_of_the_next_one(shape: tuple[int, int]) -> None:
    (kernel,) = kernels(ROWS, random(shape[0] * shape[1]).reshape(shape)).kernels
    extents = {id(site.loop): site.loop for site in prefetch._sites(kernel.body, ())}
    asked = []
    for loop, found in plan(kernel).items():
        variable, extent = extents[loop].variable, extents[loop].extent.constant
        assert extent is not None
        for each in found:
            assert each.ahead % (4 * shape[1]) == 0
            assert each.ahead >= prefetch._FAR
            asked += [each.index.offset + i * (each.index.coefficient(variable) or 0) for i in range(extent)]
    assert len(plan(kernel)) == 2
    assert sorted(asked) == list(range(0, shape[1], 16))


def test_rows_for_which_there_is_no_room_are_left_to_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "_ROWS_SHARE", 1e-6)
    assert not prefetches(kernels(ROWS, random(64 * 2048).reshape(64, 2048)))


def test_parallel_loops_ask_as_well() -> None:
    """What a thread's iterations read in straight code, as the squares of a scan."""
    x = random(1 << 18)
    program = kernels("scan (+) 0", x)
    loops = [(plan(kernel), s) for kernel in program.kernels for s in statements(kernel.body) if isinstance(s, ir.Loop)]
    assert any(loop.level.kind is LevelKind.THREADS and id(loop) in asking for asking, loop in loops)
    assert "@llvm.prefetch" in CpuTarget().source(program)
    np.testing.assert_allclose(CpuTarget(threads=2).compile(program)(x), np.cumsum(x, dtype=np.float64), atol=1e-2)


def test_what_all_iterations_read_is_left_to_the_caches() -> None:
    again = "λ A x . map (λ a . reduce (+) 0 (map (λ y . y * a) x)) A"  # x in every iteration
    names = {p.buffer.name for p in prefetches(kernels(again, random(64), random(1 << 14)))}
    assert "x" not in names


COLUMNS = "λ A x . map (λ col . reduce (+) 0 (map (*) (zip col x))) (transpose A)"


@pytest.mark.parametrize("shape", [(512, 1024), (300, 4000), (4096, 512)])
def test_down_columns_the_parts_of_some_rows_on_are_asked_for(shape: tuple[int, int]) -> None:
    a, x = random(shape[0] * shape[1]).reshape(shape), random(shape[0])
    program = kernels(COLUMNS, a, x)
    asked = 0
    for kernel in program.kernels:
        for found in plan(kernel).values():
            starts = sorted(p.index.offset - found[0].index.offset for p in found)
            assert starts == list(range(starts[0], starts[0] + 16 * len(starts), 16))  # each line of a part once
            assert {p.ahead for p in found} == {max(1, prefetch._BELOW // (64 * len(found))) * 4 * shape[1]}
            asked += len(found)
    assert asked
    np.testing.assert_allclose(CpuTarget(threads=2).compile(program)(a, x), x.astype(np.float64) @ a, atol=1e-3)


def test_small_arrays_and_short_loops_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not prefetches(kernels("reduce (+) 0", random(512)))
    monkeypatch.setattr(policy, "STREAMED_BYTES", 1 << 30)
    assert not prefetches(kernels("reduce (+) 0", random(1 << 16)))


@pytest.mark.parametrize("columns", [257, 1000, 1024, 4096])
def test_results_of_rows_are_the_same_up_to_the_end_of_the_array(columns: int) -> None:
    x = random(33 * columns).reshape(33, columns)
    program = kernels(ROWS, x)
    expected = (x.astype(np.float64) / x.max(1, keepdims=True)).sum(1)
    np.testing.assert_allclose(CpuTarget(threads=2).compile(program)(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [(1 << 15) + 1, 1 << 16, 100_003])
def test_results_are_the_same_up_to_the_end_of_the_array(n: int) -> None:
    x, y = random(n), random(n)[::-1].copy()
    program = kernels("λ xs ys . map (λ (x, y) . x + y) (zip xs ys)", x, y)
    assert "@llvm.prefetch" in CpuTarget().source(program)
    np.testing.assert_array_equal(CpuTarget(threads=2).compile(program)(x, y), x + y)


@pytest.mark.parametrize("k", [512, 515])
@pytest.mark.parametrize("rows", [6, 4])
def test_what_all_threads_packed_is_asked_for_further_ahead(k: int, rows: int) -> None:
    a, b = random(k * 96).reshape(k, 96), random(k * 256).reshape(k, 256)
    text = "f a b = map (λ row . map (λ col . reduce (+) 0 (map (*) (zip row col))) (transpose b)) (transpose a)"
    lanes = host().vector_width(32)
    tile = f"mPerBlock=96,nPerBlock={lanes},kPerBlock={k},mPerThread={rows},nPerThread={lanes}"
    packed = parse(text)["f"].tuned_by(f"outer=n,parallel=outer,{tile},packA=heap,packB=thread,instruction=none")
    found = [p for p in prefetches(packed.kernels(a, b)) if p.buffer.role == "temporary"]
    assert {(p.ahead, p.locality) for p in found} == {(prefetch._FROM_OTHERS * rows * 4, 3)}
    np.testing.assert_allclose(packed(a, b), a.T.astype(np.float64) @ b, rtol=1e-3, atol=1e-3)


def test_a_panel_of_ones_own_is_asked_for_some_iterations_ahead() -> None:
    a, b = random(96 * 512).reshape(96, 512), random(512 * 1024).reshape(512, 1024)
    product = parse("f a b = map (λ row . map (λ col . reduce (+) 0 (map (*) (zip row col))) (transpose b)) a")["f"]
    tile = "mPerBlock=96,nPerBlock=64,kPerBlock=512,mPerThread=6,nPerThread=64"
    packed = product.tuned_by(f"outer=n,parallel=outer,{tile},packA=none,packB=thread,instruction=none")
    found = [p for p in prefetches(packed.kernels(a, b)) if p.buffer.role in prefetch.OWN_ROLES]
    assert {(p.ahead, p.locality) for p in found} == {(prefetch._ITERATIONS_AHEAD * 64 * 4, 3)}
    np.testing.assert_allclose(packed(a, b), a.astype(np.float64) @ b, rtol=1e-3, atol=1e-3)


PRODUCT = "λ a b . map (λ row . map (λ col . reduce (+) 0 (map (*) (zip row col))) (transpose b)) a"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("terms", [999, 1000, 1024])
def test_of_a_left_operand_the_lines_that_are_read_next_are_asked_for(terms: int, dtype: type) -> None:
    """Once each, by every loop over the sum: those of its rows, some iterations on, and where the next rows begin."""
    a, b = random(60 * terms).reshape(60, terms).astype(dtype), random(terms * 512).reshape(terms, 512).astype(dtype)
    lanes = host().vector_width(8 * a.itemsize)
    product = parse(f"f = {PRODUCT}")["f"].tuned_by(
        f"outer=n,parallel=outer,mPerBlock=60,nPerBlock={lanes},kPerBlock={terms},mPerThread=4,nPerThread={lanes},"
        "packA=none,packB=thread,instruction=none"
    )
    loops = 0
    for kernel in product.kernels(a, b).kernels:
        asked = plan(kernel)
        for site in prefetch._sites(kernel.body, ()):
            found = [p for p in asked.get(id(site.loop), ()) if p.every > 1]
            if not found:
                continue
            loops += 1
            (walk,) = site.walks
            line = prefetch._LINE // a.itemsize
            start = {loop.variable: 0 for loop in site.around}
            around = [loop.variable for loop in site.around if loop.extent.constant != 1]
            following = start | {around[-1]: 1}

            def places(values: dict[Any, int], walk: Any = walk, loop: ir.Loop = site.loop) -> list[list[int]]:
                return [[p.evaluate(values | {loop.variable: k}) for k in range(terms)] for p in walk.places]

            ahead = prefetch._NEAR // a.itemsize
            wanted = [
                (row + then)[ahead : ahead + terms] for row, then in zip(places(start), places(following), strict=True)
            ]
            got = [[p.index.evaluate(start | {site.loop.variable: k}) for k in range(terms)] for p in found]
            assert got == wanted
            assert {p.every for p in found} == {line}
    assert loops
    np.testing.assert_allclose(product(a, b), a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


def test_a_left_operand_in_the_caches_is_left_to_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "STREAMED_BYTES", 1 << 30)
    a, b = random(60 * 100).reshape(60, 100), random(100 * 64).reshape(100, 64)
    assert {p.every for p in prefetches(kernels(PRODUCT, a, b))} <= {1}
