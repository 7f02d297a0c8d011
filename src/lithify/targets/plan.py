"""What is launched for a call, as data: kernels in order, with what each takes and how many work-items run it.

Made from a kernel program once; an executable that was loaded from disk has only this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lithify.arith import Expr
from lithify.kernel.ir import Buffer, Kernel, Program
from lithify.targets.base import Dim, size_text


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One kernel: the name of its function, what it takes, and the extents of its launch.

    `arguments` are positions in the list parameters + results + temporaries; `sizes` are the names of the symbolic
    sizes that follow them, `size_bits` their widths.
    """

    name: str
    arguments: tuple[int, ...]
    sizes: tuple[str, ...]
    size_bits: tuple[int, ...]
    grid: tuple[Dim, ...]
    group: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """All kernels of a program, and the bytes of each buffer that lives from one of them to the next.

    `counters` are those of them, by position, that hold zeros when a call begins, and again when it ends.
    `alignments` are those that the code relies on, of parameters and results; `limits` over the sizes must not exceed
    2^31 - 1, otherwise the index arithmetic of the code overflows.
    """

    kernels: tuple[KernelLaunch, ...]
    temporaries: tuple[Dim, ...]
    alignments: tuple[int, ...]
    limits: tuple[Dim, ...]
    counters: tuple[int, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """The plan as lists, strings and ints."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> LaunchPlan:
        """The inverse of `as_data`."""
        kernels = tuple(
            KernelLaunch(k["name"], *(tuple(k[f]) for f in ("arguments", "sizes", "size_bits", "grid", "group")))
            for k in data["kernels"]
        )
        return LaunchPlan(kernels, *(tuple(data[f]) for f in ("temporaries", "alignments", "limits", "counters")))


def kernel_launch(
    program: Program, kernel: Kernel, name: str, buffers: tuple[Buffer, ...], sizes: Mapping[str, int]
) -> KernelLaunch:
    """The launch of a kernel whose function takes `buffers` and then `sizes` (widths in bits by name)."""
    order = {b: i for i, b in enumerate((*program.parameters, *program.results, *program.temporaries))}
    return KernelLaunch(
        name,
        tuple(order[b] for b in buffers),
        tuple(sizes),
        tuple(sizes.values()),
        tuple(size_text(e) for e in kernel.grid),
        tuple(size_text(e) for e in kernel.group),
    )


def launch_plan(
    program: Program, kernels: Sequence[KernelLaunch], alignment: int, limits: Iterable[Expr]
) -> LaunchPlan:
    """The plan of a program, given the launches of its kernels; `alignment` is what they take every buffer to have."""
    return LaunchPlan(
        tuple(kernels),
        tuple(size_text(b.bytes) for b in program.temporaries),
        tuple(max(b.alignment, alignment) for b in (*program.parameters, *program.results)),
        tuple(sorted(size_text(e) for e in limits)),
        tuple(k for k, b in enumerate(program.temporaries) if b.role == "counter"),
    )
