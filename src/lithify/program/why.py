"""Why a kernel is faster than another: what each does, counted, and where they differ.

The winner is what a program is lowered by (what was given or measured, else the default); its rivals are the default
and the next best that was measured. Their kernels are derived again and counted (`lithify.kernel.census`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

from lithify.explore.phases import DEFAULT, lower_by
from lithify.kernel.census import Census, census
from lithify.kernel.translate import translate
from lithify.lang.depth import deeply
from lithify.lang.errors import LithifyError
from lithify.lowering import lower
from lithify.lowering.families import recognise
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Parameters
from lithify.program.explored import is_rewriting, problem_of

if TYPE_CHECKING:
    from lithify.explore.record import Measured
    from lithify.explore.records import Records
    from lithify.program.specialise import Specialisation

# A count that differs by less says nothing.
_CLEAR = 1.1
# Rarer things do not decide: at most one in so many of the most frequent.
_RARE = 1_000


@dataclass(frozen=True)
class Rival:
    """A way to compute the program: `role` is winner, default or next best; `parameters` are "" for no tuning."""

    role: str
    parameters: str
    seconds: float | None
    census: Census


@dataclass(frozen=True)
class Difference:
    """What two ways do differently often: `more` times as much as the other."""

    what: str
    mine: float
    other: float

    @property
    def ratio(self) -> float:
        """How many times as much as the other; above 1 for more, infinite where the other has none."""
        return self.mine / self.other if self.other else float("inf")

    def __str__(self) -> str:
        if not self.other:
            return f"{self.what}: {_count(self.mine)} (none)"
        if not self.mine:
            return f"{self.what}: none ({_count(self.other)})"
        times = max(self.ratio, 1 / self.ratio)
        word = "more" if self.ratio > 1 else "fewer"
        return f"{self.what}: {_count(self.mine)}, {times:.3g} x {word} than {_count(self.other)}"


def rivals(specialisation: Specialisation, records: Records | None = None) -> list[Rival]:
    """The winner first, then the default and the next best where there are such."""
    from lithify.explore.records import RECORDS

    term, model = specialisation.elaborated.term, specialisation.device.model
    history = _history(specialisation, records or RECORDS)
    times = {m.candidate: m.seconds for m in history if m.seconds is not None}
    found = [Rival("winner", specialisation.chosen, times.get(specialisation.chosen), _census(specialisation))]
    recognised = recognise(name_loops(term))
    space = None if recognised is None else recognised[0].space(recognised[1], model)
    explored = is_rewriting(specialisation.chosen)
    if (space is None and not explored) or specialisation.strategy is not None:
        return found
    default = DEFAULT if explored or space is None else str(space.default)
    winner = specialisation.chosen or default
    found[0] = Rival("winner", winner, times.get(winner), found[0].census)
    others = [("default", default)] if default != winner else []
    ordered = sorted((s, key) for key, s in times.items() if key not in (winner, default))
    others += [("next best", key) for _, key in ordered[:1]]
    for role, key in others:
        try:
            if explored:
                lowered = deeply(lower_by, key, term, model)
            else:
                lowered = deeply(lower, term, model, parameters=Parameters.parse(key))
            program = translate(lowered.term, specialisation.elaborated.parameters, device=model)
        except LithifyError:  # measured by another version
            continue
        found.append(Rival(role, key, times.get(key), census(program)))
    return found


def _census(specialisation: Specialisation) -> Census:
    return census(specialisation.kernels)


def _history(specialisation: Specialisation, records: Records) -> list[Measured]:
    from lithify.targets.cache import package_digest

    if is_rewriting(specialisation.chosen):
        line = problem_of(specialisation).line
    else:
        recognised = recognise(name_loops(specialisation.elaborated.term))
        if recognised is None:
            return []
        line = recognised[1].line
    device = specialisation.device
    build = f"{package_digest()} {device.target.fingerprint()}"
    return list(records.measurements(line, device.model.fingerprint, build))


def differences(winner: Census, other: Census) -> list[Difference]:
    """Where two ways clearly differ, the largest ratio first."""
    found = [d for d in _compared(winner, other) if d.mine != d.other and not 1 / _CLEAR <= d.ratio <= _CLEAR]
    return sorted(found, key=lambda d: -abs(log2(max(d.ratio, 1e-9))) if d.other else -64.0)


def _compared(winner: Census, other: Census) -> Iterator[Difference]:
    most = max([*winner.counts.values(), *other.counts.values()], default=0)
    for what in dict.fromkeys([*winner.counts, *other.counts]):
        mine, theirs = winner.counts[what], other.counts[what]
        if max(mine, theirs) * _RARE >= most:
            yield Difference(what, mine, theirs)
    moved = max([*winner.bytes.values(), *other.bytes.values()], default=0)
    for what in dict.fromkeys([*winner.bytes, *other.bytes]):
        mine, theirs = winner.bytes[what], other.bytes[what]
        if max(mine, theirs) * _RARE >= moved:
            yield Difference(f"bytes, {what}", mine, theirs)
    for memory in dict.fromkeys([*winner.held, *other.held]):
        yield Difference(f"bytes held in {memory} memory", winner.held[memory], other.held[memory])
    yield Difference("iterations in parallel", winner.parallel, other.parallel)
    yield Difference("kernels", winner.kernels, other.kernels)


def _count(number: float) -> str:
    for factor, prefix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= factor:
            return f"{number / factor:.3g}{prefix}"
    return f"{number:.3g}"
