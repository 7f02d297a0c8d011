"""Which parameters a program is lowered by: those that were measured for its problem, or for the nearest one.

Nothing is measured here. First the record of exactly this problem on this device; else that of the nearest problem of
the same family, types and device for which its parameters are valid and look no worse than the default (a block that
was the whole of a size is not here), if it is near enough and was clearly faster than the default there; else the first
choice of a cost model that was fitted to the device's measurements, if it is sure; else the default, which is what no
parameters mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from lithify.explore.candidates import features_of, valid_in
from lithify.explore.experience import size_distance
from lithify.explore.record import Record
from lithify.explore.records import RECORDS, Records
from lithify.lang.errors import LithifyError
from lithify.lang.term import Term
from lithify.lowering.families import FAMILIES, recognise
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Family, Parameters, Problem, Space
from lithify.machine import DeviceModel

_FARTHEST = 2.0  # sum over the sizes of |log2 of their ratio|: twice as large in two sizes, four times in one
_CLEARLY = 1.05  # times faster than the default, to be believed of another problem
_ROUGHLY = 0.02  # of the estimate's logarithm: no difference


def chosen(
    term: Term, model: DeviceModel, *, records: Records = RECORDS, families: tuple[Family, ...] = FAMILIES
) -> Parameters | None:
    """The parameters for a program on a device; None for the default.

    Never raises: records that cannot be read are as good as none.
    """
    with suppress(LithifyError):
        found = recognise(name_loops(term), families)
        space = None if found is None else found[0].space(found[1], model)
        if found is None or space is None:
            return None
        problem = found[1]
        exact = records.find(problem.line, model.fingerprint)
        if exact is not None and (parameters := valid_in(space, exact.parameters)) is not None:
            return parameters
        for record in near(problem, model.fingerprint, records):
            parameters = valid_in(space, record.parameters)
            if parameters is not None and _fits(found[0], problem, model, space, parameters):
                return parameters if (record.gain or 0.0) > _CLEARLY else None
        from lithify.explore.prediction import first_choice  # a model to be imported, where nothing else is known

        return first_choice(found[0], problem, model, space, records)
    return None


def _fits(family: Family, problem: Problem, model: DeviceModel, space: Space, parameters: Parameters) -> bool:
    """Do parameters of another problem take no longer than the default here, by the family's rough estimate?"""
    given, default = features_of(family, problem, model, space, [str(parameters), str(space.default)]).rough
    return bool(given <= default + _ROUGHLY)


def near(problem: Problem, device: str, records: Records = RECORDS) -> Iterator[Record]:
    """The records of other problems of the family that are near, the nearest first."""
    by_distance = [(distance(problem, r), r.problem, r) for r in records.of_family(problem.family, device)]
    for apart, line, record in sorted(by_distance, key=lambda entry: entry[:2]):
        if apart <= _FARTHEST and line != problem.line:
            yield record


def distance(problem: Problem, record: Record) -> float:
    """How far a record's problem is: the sum of |log2| of the ratios of sizes; infinite where it is another kind.

    Problems of a kind have the same scalars and lie alike in memory; what is done with the results may differ.
    """
    if dict(problem.scalars) != dict(record.scalars) or problem.sizes.keys() != record.sizes.keys():
        return float("inf")
    may_differ = {f"-{name}" for name in problem.sizes} | {"-epilogue"}
    if _flags(problem.line, may_differ) != _flags(record.problem, may_differ):
        return float("inf")
    if any((size < 1) != (record.sizes[name] < 1) for name, size in problem.sizes.items()):
        return float("inf")
    return size_distance(problem, record)


def _flags(line: str, but: set[str]) -> dict[str, str]:
    """The flags of a problem's line and their values, but some."""
    words = line.split()[1:]
    return {name: value for name, value in zip(words[::2], words[1::2], strict=False) if name not in but}
