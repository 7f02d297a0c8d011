"""The specialised programs as candidates of a search, each under a text that says everything.

`macro:loops macro:loops ..;packed operands;part=length,..`: replayed on the program, it gives the kernel again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lithify.explore.candidates import ALL, Candidates, Effort, Features, Filtered
from lithify.explore.phases import parameters as points
from lithify.explore.phases.anatomy import Anatomy, Lengths
from lithify.explore.phases.funnel import Funnel
from lithify.explore.phases.macros import MACROS
from lithify.explore.phases.mapping import Mapping as MachineMapping
from lithify.explore.phases.mapping import map_to_machine
from lithify.explore.phases.parameters import Limits
from lithify.explore.phases.rewritten import Move, Moves
from lithify.explore.phases.sizes import Cuts
from lithify.lang.errors import RewriteFailed
from lithify.lang.term import Term
from lithify.lang.types import Type
from lithify.lowering import lower
from lithify.lowering.default import Lowered, loops_of, strategist_for
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Parameters
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation

DEFAULT = "default"


@dataclass(frozen=True)
class Plan:
    """A rewritten program and its mapping: everything but the lengths."""

    moves: Moves
    mapping: MachineMapping

    def __str__(self) -> str:
        return f"{' '.join(map(str, self.moves)) or '-'};{self.mapping}"

    @cached_property
    def cuts(self) -> Cuts:
        """The loops that it cuts."""
        return Cuts(self.moves)

    def key(self, lengths: Sequence[float]) -> str:
        """The text of a point."""
        values = ",".join(f"{part}={int(v)}" for part, v in zip(self.cuts.parts, lengths, strict=True))
        return f"{self};{values}"

    @staticmethod
    def parse(key: str) -> tuple[Plan, dict[str, int]]:
        """The plan and the lengths of a key. Raises RewriteFailed for any other text."""
        parts = key.split(";")
        if len(parts) != 3:
            raise RewriteFailed(f"{key!r} names no specialised program")
        moves, mapping, values = parts
        given = Parameters.parse(values)
        plan = Plan(tuple(map(Move.parse, moves.split())) if moves != "-" else (), MachineMapping.parse(mapping))
        wanted = plan.cuts.parts
        if set(given) != set(wanted):
            raise RewriteFailed(f"the lengths are {', '.join(given)}", hint=f"they should be {', '.join(wanted)}")
        return plan, {part: given.number(part) for part in given}


def derive(
    plan: Plan, values: Mapping[str, int], program: Term, model: DeviceModel, *, check: bool = False
) -> Derivation:
    """The program after its macro rules and its mapping; the device's default has not been asked yet.

    Raises RewriteFailed where a step does not apply at these lengths.
    """
    derivation = Derivation(program, check=check)
    for move in plan.moves:
        lengths = tuple(plan.cuts.tile(loop, values) for loop in move.cut)
        derivation.apply(move.rule.make(move.loops, lengths))
    map_to_machine(derivation, plan.mapping, model)
    return derivation


def finish(derivation: Derivation, model: DeviceModel) -> Lowered:
    """What is left open, by the device's default."""
    strategist_for(model)(model, loops_of(name_loops(derivation.term))).settle(derivation)
    return Lowered(derivation.term, derivation)


def lower_by(key: str, term: Term, model: DeviceModel, *, check: bool = False) -> Lowered:
    """A program lowered as a key says; with `check`, values are compared at every step (small sizes).

    Raises RewriteFailed for any other text, and where a step does not apply.
    """
    if key == DEFAULT:
        return lower(term, model, check=check)
    plan, values = Plan.parse(key)
    return finish(derive(plan, values, name_loops(term), model, check=check), model)


class PhaseCandidates(Candidates):
    """The points that the phases found, the device's default first. `funnel` says how they came about."""

    def __init__(
        self,
        term: Term,
        parameters: tuple[tuple[str, Type], ...],
        model: DeviceModel,
        funnel: Funnel,
        found: Sequence[tuple[Plan, Anatomy, Lengths]],
    ) -> None:
        self.term, self.parameters, self.model, self.funnel = term, parameters, model, funnel
        self._limits = Limits.of(model)
        self._found = found
        self._anatomies = {str(plan): anatomy for plan, anatomy, _ in found}

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """Each key's program and its row of lengths."""
        return {
            plan.key(row): (number, place)
            for number, (plan, _, lengths) in enumerate(self._found)
            for place, row in enumerate(lengths)
        }

    @cached_property
    def _numbers(self) -> list[Lengths]:
        """The features of all points, a matrix for each program."""
        return [_features(plan, anatomy, lengths) for plan, anatomy, lengths in self._found]

    def __len__(self) -> int:
        return 1 + len(self._places)

    def __iter__(self) -> Iterator[str]:
        yield DEFAULT
        yield from self._places

    def against(self, key: str) -> str | None:
        if key == DEFAULT or key in self._places:
            return None
        plan, values = Plan.parse(key)
        anatomy = self._anatomies.get(str(plan))
        if anatomy is None:
            return "not among the programs that the phases found"
        return points.against(anatomy, values, self._limits)

    def filtered(self, effort: Effort = ALL, known: Sequence[str] = ()) -> Filtered:
        """All keys: the phases have left the others out."""
        return Filtered((DEFAULT, *self._places), {})

    def lower(self, key: str, *, check: bool = False) -> Lowered:
        """The lowered program; with `check`, values are compared at every step (small sizes)."""
        return lower_by(key, self.term, self.model, check=check)

    def features(self, keys: Sequence[str]) -> Features:
        rows = np.zeros((len(keys), 1 + _FEATURES))
        for row, key in enumerate(keys):
            if key == DEFAULT:
                rows[row, 0] = 1.0
            else:
                number, place = self._places[key]
                rows[row, 1:] = self._numbers[number][place]
        return Features(rows, np.zeros(len(keys)))


def _features(plan: Plan, anatomy: Anatomy, lengths: Lengths) -> Lengths:
    """Logarithms of what each point takes, of its tiles, and which steps all of them are made of."""
    rows = lengths.shape[0]
    taken = [
        anatomy.total(anatomy.registers, lengths),
        anatomy.total(anatomy.scratch, lengths),
        anatomy.total(anatomy.straight, lengths),
        anatomy.total(anatomy.lanes, lengths),
        anatomy.product(anatomy.parallel, lengths),
        anatomy.product(anatomy.items, lengths),
    ]
    columns = [np.log2(1.0 + each) / 16 for each in taken]
    columns.append(anatomy.padding(lengths))
    logs = np.log2(lengths)
    parts = [[plan.cuts.parts.index(p) for p in own] for own in plan.cuts.roots.values()][:_ROOTS]
    none = [np.zeros(rows)] * (_ROOTS - len(parts))
    columns += [*[logs[:, own].sum(axis=1) / 10 for own in parts], *none]
    columns += [*[logs[:, own[-1]] / 5 for own in parts], *none]
    used = [float(sum(move.macro == macro for move in plan.moves)) / 2 for macro in MACROS]
    packed = [float(sum(how == wanted for _, how in plan.mapping.packed)) / 2 for wanted in ("p", "t")]
    columns += [np.full(rows, value) for value in (*used, *packed)]
    return np.stack(columns, axis=1)


_ROOTS = 4
_FEATURES = 6 + 1 + 2 * _ROOTS + len(MACROS) + 2
