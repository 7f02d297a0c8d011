"""What exploring found for a program, as calls are lowered by it: looked up, and followed again.

Apart from exploring itself (`lithify.program.explore`), which calls do not need.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from lithify.explore.record import Record
from lithify.explore.records import RECORDS, Records
from lithify.lang.digest import digest
from lithify.lang.errors import LithifyError
from lithify.lowering.families import recognise
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Parameters, Problem
from lithify.program.derivations import replay

if TYPE_CHECKING:
    from lithify.program.specialise import Specialisation
    from lithify.rewrite import Derivation

FAMILY = "rewriting"


def is_rewriting(text: str) -> bool:
    """Whether a text says a way to rewrite a program (`lithify.explore.phases.Plan`): tuning parameters are others."""
    return ";" in text


def check_parameters(text: str) -> None:
    """Raise RewriteFailed for a text that says neither tuning parameters nor a way to rewrite a program."""
    if is_rewriting(text):
        from lithify.explore.phases import Plan

        Plan.parse(text)
    else:
        Parameters.parse(text)


def problem_of(specialisation: Specialisation) -> Problem:
    """What records of a program's rewritings are kept under: its types, and a digest of what it says."""
    elaborated = specialisation.elaborated
    types = " -> ".join([*(str(t) for _, t in elaborated.parameters), str(elaborated.type)])
    line = f"{FAMILY} {specialisation.source.name} : {types} #{digest(name_loops(elaborated.term))[:10]}"
    sizes = {name: size.constant for name, size in elaborated.sizes.items() if size.constant is not None}
    return Problem(FAMILY, line, sizes, {})


def winner_of(specialisation: Specialisation, records: Records = RECORDS) -> tuple[Record, Derivation] | None:
    """What exploring a program found, and its derivation, where a call is to be lowered by it; None where it is not.

    It is for exactly this program and device, faster than the default, and than what tuning found for it; and its
    derivation still leads where it led. Never raises: records that cannot be read are as good as none.
    """
    with suppress(LithifyError):
        term, device = specialisation.elaborated.term, specialisation.device.model.fingerprint
        record = records.find(problem_of(specialisation).line, device)
        if record is None or not is_rewriting(record.parameters) or not record.derivation:
            return None
        family = recognise(name_loops(term))
        tuned = None if family is None else records.find(family[1].line, device)
        if tuned is not None and tuned.seconds <= record.seconds:
            return None
        return record, replay(record.derivation, term)
    return None
