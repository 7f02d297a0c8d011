"""How good is what was derived? The least work, the least time it can take here, the time it takes, the steps."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lithify.lang.types import Type
from lithify.program.arguments import flatten, is_type
from lithify.program.work import Work, bound_of, work_of

if TYPE_CHECKING:
    from lithify.lang.module import Elaborated
    from lithify.machine import Bound, DeviceModel
    from lithify.machine.roofline import Peak
    from lithify.program.specialise import Specialisation

_SECONDS, _MOST, _LEAST = 0.3, 200, 7
_MOST_RUNS = 12


@dataclass(frozen=True)
class Explanation:
    """What a program does on a device, for arguments of some types.

    `work` is the least that the program as written has to move and compute, `bound` the least time that this takes by
    the roofline of `model` (its rates are measured where they can be; `estimated` says that the one that binds is not);
    `seconds` is the median of the measured runs (NaN where types were given, and nothing was run). `steps` are the
    rules of the derivation in order, `notes` what to bear in mind, `kernels` how many launches there are.
    """

    name: str
    device: str
    parameters: tuple[tuple[str, Type], ...]
    result: Type
    work: Work
    model: DeviceModel
    bound: Bound
    seconds: float
    steps: tuple[str, ...]
    notes: tuple[str, ...]
    kernels: int

    @property
    def share(self) -> float:
        """The share of the bound that is reached: 1 is the bound itself; NaN where nothing was measured."""
        return self.bound.share(self.seconds)

    @property
    def binds(self) -> str:
        """The resource that binds, in words."""
        return {"heap": "memory bandwidth"}.get(self.bound.resource, _resource(self.bound.resource))

    @property
    def estimated(self) -> bool:
        """Whether the rate of what binds is an estimate: then so are the bound and the share of it."""
        return self._peak is not None and self._peak.source == "estimated"

    @property
    def _peak(self) -> Peak | None:
        """The rate of what binds; None where a call's cost does."""
        peaks = (*self.model.bandwidths, *self.model.arithmetic)
        return next((peak for peak in peaks if peak.of == self.bound.resource), None)

    def rows(self) -> list[tuple[str, str]]:
        """What there is to say, as pairs of a title and a text."""
        operations = ", ".join(f"{_amount(n)} {name}" for name, n in self.work.operations.items()) or "none"
        peak = ""
        if self._peak is not None:
            unit = "B" if self._peak.of == "heap" else ""
            peak = f", {_amount(self._peak.rate)}{unit}/s {self._peak.source}"
        return [
            ("program", f"{self.name} : {' -> '.join([*(str(t) for _, t in self.parameters), str(self.result)])}"),
            ("device", self.device),
            ("moves at least", f"{_amount(self.work.read)}B read, {_amount(self.work.written)}B written"),
            ("operations", operations),
            *[(f"least time by {_resource(of)}", duration(seconds)) for of, seconds in self.bound.each],
            ("least time", f"{duration(self.bound.seconds)}: {self.binds} binds{peak}"),
            *self._times(),
            ("derivation", f"{len(self.steps)} step(s): {summary(self.steps)}" if self.steps else "no steps"),
            *[("note", note) for note in self.notes],
        ]

    def _times(self) -> list[tuple[str, str]]:
        kernels = f"{self.kernels} kernel{'s' if self.kernels != 1 else ''}"
        if math.isnan(self.seconds):
            return [("time", f"not measured, and no share of the bound: types were given, no values; {kernels}")]
        # queues of devices have clocks of their own; elsewhere it is the time of the call
        on_device = " on the device, without what the call costs beside them" if self.model.api == "opencl" else ""
        why = why_above(self.share, self.bound.resource)
        if why and on_device and self.bound.resource == "launch":
            why = "; the bound is the cost of a call, which the time is without"
        return [
            ("time", f"{duration(self.seconds)} in {kernels}{on_device}"),
            (
                "share of the bound",
                f"{self.share:.0%}, {_amount(self.work.bytes / self.seconds)}B/s{why}",
            ),
        ]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(title) for title, _ in rows)
        return "\n".join(f"{title:{width}}  {text}" for title, text in rows)


def explain(specialisation: Specialisation, program: Elaborated, arguments: Sequence[Any]) -> Explanation:
    """Measure a program on the given arguments and relate the time to the machine's bound.

    Where one of them is only a type, nothing runs, and the time is left out. `program` is the program for the
    arguments' sizes (the specialisation may be one for any sizes).
    """
    from lithify.program.bandwidth import measured

    lowered = specialisation.lowered
    work = work_of(program.term, [type_ for _, type_ in program.parameters])
    device = measured(specialisation.device)
    bound = bound_of(work, lowered.term, device.model)
    return Explanation(
        specialisation.source.name,
        str(device),
        program.parameters,
        program.type,
        work,
        device.model,
        bound,
        math.nan if any(map(is_type, flatten(arguments))) else statistics.median(timings(specialisation, arguments)),
        tuple(lowered.derivation.names()),
        (*_about_caches(work, bound, device.model), *_about_types(work, device.model)),
        len(specialisation.kernels.kernels),
    )


def _about_caches(work: Work, bound: Bound, model: DeviceModel) -> list[str]:
    """Where the memory's bandwidth binds, but the data may not come from there."""
    from lithify.machine.host import host

    caches = model.caches
    if not caches and model.kind == "cpu":  # OpenCL does not say them, and its CPUs are this one
        caches = host().caches
    largest = max([cache.bytes for cache in caches], default=0)
    if bound.resource != "heap" or work.bytes > largest // 2:
        return []
    return ["everything fits into the caches, which are faster than the memory that the bound is of"]


def _about_types(work: Work, model: DeviceModel) -> list[str]:
    """Arithmetic that the bound leaves out."""
    known = {peak.of for peak in model.arithmetic}
    unknown = [name for name in work.operations if name not in known]
    return [f"the device's rate of {', '.join(unknown)} arithmetic is not known: the bound is without it"] * bool(
        unknown
    )


def timings(specialisation: Specialisation, arguments: Sequence[Any]) -> list[float]:
    """Seconds of some runs on the arguments; as many as about a third of a second holds."""
    executable = specialisation.compiled.executable
    flat = flatten(arguments)
    once = min(executable.time(flat, 3))
    return executable.time(flat, max(_LEAST, min(_MOST, int(_SECONDS / max(once, 1e-9)))))


def summary(steps: Sequence[str]) -> str:
    """The steps, a run of the same one said once: `map-fusion x 3, split-join(16)`.

    Of many steps only the rules are said, each with how often it was applied.
    """
    runs: list[tuple[str, int]] = []
    for step in steps:
        if runs and runs[-1][0] == step:
            runs[-1] = step, runs[-1][1] + 1
        else:
            runs.append((step, 1))
    if len(runs) > _MOST_RUNS:
        runs = list(Counter(step.partition("(")[0] for step in steps).items())
    return ", ".join(name if count == 1 else f"{name} x {count}" for name, count in runs)


def _resource(name: str) -> str:
    """A resource of the bound in words."""
    return {"heap": "bytes", "launch": "the cost of a call"}.get(name, f"{name} arithmetic")


def why_above(share: float, resource: str | None = None) -> str:
    """What can explain a share of more than the whole bound, as it is shown; nothing for others.

    `resource` is what binds, where it is known: only bytes may come from elsewhere than the bound takes them from.
    """
    if not round(share, 2) > 1:
        return ""
    caches = "data come from caches, or " if resource in ("heap", None) else ""
    return f"; more than the bound allows: {caches}the machine was slower when it was measured"


def duration(seconds: float) -> str:
    """A time with a fitting unit."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _amount(number: float) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {prefix}"
    return f"{number:.3g} "
