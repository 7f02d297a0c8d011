"""The frame that a compiled program is called with: an array of 8-byte slots.

Apart from the emission, so that a process that only loads compiled programs need not import that.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.targets.base import Dim

POOL, DISPATCH, FIRST = 0, 1, 2  # the slots before those of the program


@dataclass(frozen=True, slots=True)
class Layout:
    """How the frame is filled at a call.

    `parameters` and `results` are slots of addresses (for scalar parameters: of the value itself). `sizes` are slots
    of the symbolic sizes. `shared` are (slot, bytes) of memory that a call allocates once, `threads` (slot, bytes) of
    memory that each thread needs, whose size goes to the slot after it. `work` says how much there is to do in
    parallel loops, `short` whether everything together is soon done.
    """

    slots: int
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    sizes: tuple[int, ...]
    shared: tuple[tuple[int, Dim], ...]
    threads: tuple[tuple[int, Dim], ...]
    work: Dim
    short: bool
