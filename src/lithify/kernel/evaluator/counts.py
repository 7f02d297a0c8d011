"""What a kernel did, in numbers: the features of cost models and the figures of `explain`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from lithify.kernel import ir
from lithify.kernel.evaluator.active import Integers


@dataclass(slots=True)
class Counts:
    """Totals over all kernels of a run.

    An access by a warp (a thread on a CPU) is one execution of a load or store by its work-items together. `lines` are
    the distinct cache lines that such accesses to the heap touched, so lines / accesses is 1 where a warp reads one
    line. `bank_cycles` counts for each access to local memory the most distinct words that it needs of one bank, so
    bank_cycles / bank_accesses is 1 without conflicts. Splatted elements count once a thread.
    """

    warp: int = 32
    line_bytes: int = 128
    banks: int = 32
    bank_bytes: int = 4
    bytes_read: Counter[str] = field(default_factory=Counter)
    bytes_written: Counter[str] = field(default_factory=Counter)
    accesses: int = 0
    lines: int = 0
    bank_accesses: int = 0
    bank_cycles: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    barriers: int = 0
    asynchronous_bytes: int = 0
    private_elements: int = 0
    local_bytes: int = 0
    kernels: int = 0

    def access(
        self, buffer: ir.Buffer, elements: Integers, threads: Integers, items: int, *, write: bool, lanes: bool
    ) -> None:
        """Count one access: addresses by entry, and the entries' threads (numbered through all groups of `items`)."""
        size = buffer.scalar.bytes
        if lanes:
            threads, elements = np.unique(np.stack([threads, elements]), axis=1)
        (self.bytes_written if write else self.bytes_read)[buffer.memory.name] += len(elements) * size
        if buffer.memory.of_one_item or not len(elements):
            return
        width = self.warp if items > 1 else 1
        groups, item = np.divmod(threads, items)
        warps = groups * -(-items // width) + item // width
        if buffer.memory.name == "local":
            words = np.unique(np.stack([warps, elements * size // self.bank_bytes]), axis=1)
            _, per_bank = np.unique(np.stack([words[0], words[1] % self.banks]), axis=1, return_counts=True)
            pairs = np.unique(np.stack([words[0], words[1] % self.banks]), axis=1)
            starts = np.flatnonzero(np.concatenate([[True], pairs[0][1:] != pairs[0][:-1]]))
            self.bank_accesses += len(starts)
            self.bank_cycles += int(np.maximum.reduceat(per_bank, starts).sum())
        else:
            touched = np.unique(np.stack([warps, elements * size // self.line_bytes]), axis=1)
            self.accesses += len(np.unique(touched[0]))
            self.lines += touched.shape[1]
