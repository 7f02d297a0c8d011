"""The time that results take in register tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.lowering.gemm.cpu_machine import Machine
from lithify.lowering.gemm.cpu_tile import Results, register_tiles

MACHINE = Machine(16, 64, 32, 2, 48 << 10, 2 << 20, 64 << 20, None)
NEAR = Results(96, 96, 64, far=False, near=True, packed=True)


def test_parts_of_tiles_take_what_they_compute() -> None:
    """One column more than whole tiles costs one vector of them, not a tile; the same is true of rows."""
    tile = (8, 48)
    whole, more = NEAR.time(tile, MACHINE), replace(NEAR, columns=97).time(tile, MACHINE)
    assert whole < more < whole * (1 + 1 / 3)
    assert more == replace(NEAR, columns=112).time(tile, MACHINE)
    assert whole < replace(NEAR, rows=97).time(tile, MACHINE) < replace(NEAR, rows=104).time(tile, MACHINE)


@pytest.mark.parametrize("terms", [1, 8, 64, 1024])
def test_it_takes_no_less_time_than_multiply_adds_do(terms: int) -> None:
    for tile in register_tiles(96, 96, MACHINE):
        results = replace(NEAR, terms=terms)
        assert results.time(tile, MACHINE) >= 96 * 96 * terms / MACHINE.lanes / 2


def test_what_comes_from_afar_takes_longer() -> None:
    tile = (4, 64)
    near = NEAR.time(tile, MACHINE)
    assert near < replace(NEAR, far=True).time(tile, MACHINE)
    second = replace(NEAR, near=False)
    assert near < second.time(tile, MACHINE) < replace(second, packed=False).time(tile, MACHINE)


def test_tiles_fit_the_registers() -> None:
    for rows, columns in register_tiles(1000, 1000, MACHINE):
        vectors = columns // MACHINE.lanes
        assert rows * vectors + vectors + 1 <= MACHINE.registers


@pytest.mark.parametrize("lanes", [16, 8])
def test_panels_from_the_second_cache_are_read_by_wide_tiles(lanes: int) -> None:
    """Of f32 as of f64, whose elements of a column take twice the bytes: narrow ones lost 11 % of 1024 cubed there."""
    machine = replace(MACHINE, lanes=lanes)
    results = Results(2052, 2048, 2048, far=True, near=False, packed=True)
    tiles = register_tiles(2052, 2048, machine)
    assert min(tiles, key=lambda tile: results.time(tile, machine)) == (6, 4 * lanes)
