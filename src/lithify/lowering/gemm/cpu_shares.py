"""Sizes cut into shares that consist of whole tiles."""

from __future__ import annotations

# How many times as many pieces as wished there may be, so that threads end at about the same time.
_MORE = 4


def up(size: int, tile: int) -> int:
    """The size in whole tiles."""
    return -(-size // tile) * tile


def even(size: int, most: int) -> int:
    """Equal parts of at most `most`."""
    return -(-size // -(-size // most))


def part(size: int, tile: int, parts: int) -> int:
    """The largest of equal parts that consist of whole tiles."""
    return min(size, -(-size // (tile * parts)) * tile)


def share(size: int, tile: int, pieces: int, most: int, threads: int) -> int:
    """A multiple of the tile, at most `most`, that cuts a size in about so many pieces, so that threads end together.

    `threads`: those that share out the pieces; 1 where no others do.
    """
    tiles, limit = -(-size // tile), max(1, most // tile)
    least = max(-(-tiles // limit), min(tiles, pieces))

    def cost(count: int) -> tuple[int, int, int]:
        each = -(-tiles // count)
        return _in_turn(-(-tiles // each), threads) * each, count * each - tiles, count

    count = min(range(least, min(tiles, _MORE * least) + 1), key=cost)
    return -(-tiles // count) * tile


def _in_turn(pieces: int, threads: int) -> int:
    """Pieces, and those that could be done while threads wait for the last ones."""
    return -(-pieces // threads) * threads
