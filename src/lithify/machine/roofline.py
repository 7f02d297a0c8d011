"""Peaks of a machine, and the least time that a given amount of work can take on it.

The bound is the roofline of Williams, Waterman and Patterson (CACM 2009) with one roof for each memory and each kind
of arithmetic, plus the time that a launch takes however little it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lithify.machine.model import DeviceModel

Source = Literal["measured", "data sheet", "estimated"]


@dataclass(frozen=True, slots=True)
class Peak:
    """A highest rate: of a memory (`of` is its name, bytes a second) or of a scalar type (operations a second)."""

    of: str
    rate: float
    source: Source

    def __str__(self) -> str:
        for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
            if self.rate >= factor:
                return f"{self.of} {self.rate / factor:.4g} {prefix}/s ({self.source})"
        return f"{self.of} {self.rate:.4g}/s ({self.source})"


@dataclass(frozen=True, slots=True)
class Bound:
    """The least time of a piece of work.

    `seconds` includes the launch; `resource` is what binds ("heap", "f32", ..., "launch"); `each` gives the seconds
    that every resource needs by itself, the most first.
    """

    seconds: float
    resource: str
    each: tuple[tuple[str, float], ...]

    def share(self, seconds: float) -> float:
        """Which share of the bound a measured time reaches: 1 is the bound itself."""
        return self.seconds / seconds


def roofline(bytes: float | Mapping[str, float], operations: float | Mapping[str, float], device: DeviceModel) -> Bound:
    """The least time on `device` for moving `bytes` and doing `operations`.

    `bytes`: moved to and from the heap, or by name of memory. `operations`: scalar operations (a fused
    multiply-add counts as two) in f32, or by name of type. Amounts of 0 may be left out.

    Raises LookupError where the device's peak for a memory or type is not known.
    """
    moved = bytes if isinstance(bytes, Mapping) else {"heap": bytes}
    done = operations if isinstance(operations, Mapping) else {"f32": operations}
    each = {name: amount / device.bandwidth(name).rate for name, amount in moved.items() if amount}
    each |= {name: amount / device.arithmetic_peak(name).rate for name, amount in done.items() if amount}
    work = max(each.values(), default=0.0)
    each["launch"] = device.launch_seconds
    ordered = tuple(sorted(each.items(), key=lambda item: -item[1]))
    return Bound(device.launch_seconds + work, ordered[0][0], ordered)
