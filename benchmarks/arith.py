"""How long index arithmetic takes: a four-dimensional join and split, with numbers and with symbolic sizes.

Run as ``python benchmarks/arith.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lithify.arith import Expr, const, proves, size, var


def round_trip(sizes: tuple[Expr | int, ...]) -> None:
    """Join four fresh indices into one and split it again."""
    indices = [var("i", s) for s in sizes]
    linear = const(0)
    for i, s in zip(indices, sizes, strict=True):
        linear = linear * s + i
    for i, s in zip(reversed(indices), reversed(sizes), strict=True):
        if linear % s is not i:
            raise AssertionError(f"{linear} % {s} is {linear % s}, not {i}")
        linear = linear // s


def tile_bound() -> None:
    """Prove that the rows of the tiles of 14 cover n and stay below n + 13."""
    n = size("n")
    tiles = (n + 13) // 14
    row = 14 * var("tile", tiles) + var("row", 14)
    if not (proves(tiles * 14 - n) and proves(n + 12 - row)):
        raise AssertionError("the bound was not proved")


def microseconds(work: Callable[[], None], repetitions: int = 2000) -> float:
    """The best of five mean times."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repetitions):
            work()
        best = min(best, time.perf_counter() - start)
    return best / repetitions * 1e6


def main() -> None:
    """Print one line a measurement."""
    n, m, k, w = size("n"), size("m"), size("k"), size("w")
    print(f"join and split of 4 dims, numbers:  {microseconds(lambda: round_trip((6, 8, 10, 12))):7.1f} us")
    print(f"join and split of 4 dims, symbolic: {microseconds(lambda: round_trip((n, m, k, w)), 200):7.1f} us")
    print(f"bounds of a partial tiling:         {microseconds(tile_bound, 200):7.1f} us")


if __name__ == "__main__":
    main()
