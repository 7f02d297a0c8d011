"""The default lowering: every choice that a program leaves open is answered, outermost first, by a rule.

A strategist is a device's way to answer. It never changes what a program already says: the levels and memories that a
user gives are kept, and only what is missing is filled in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from lithify.lang.errors import RewriteFailed
from lithify.lang.term import Term
from lithify.lowering.needs import Need, Path, needs
from lithify.rewrite import Derivation, Strategy, at
from lithify.rules.memory import drop_store

# More steps than any program of sensible size needs: a strategist that goes on for ever is a defect of ours.
_STEP_LIMIT = 5_000


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer: a strategy, and where to apply it (a path from the root of the program)."""

    path: Path
    strategy: Strategy


class Strategist(ABC):
    """Answers the needs of a program, one at a time."""

    def settle(self, derivation: Derivation) -> Derivation:
        """Answer needs until none is left. Raises RewriteFailed where an answer does not apply."""
        for _ in range(_STEP_LIMIT):
            need = next(needs(derivation.term), None)
            if need is None:
                return derivation
            choice = self.answer(need, derivation.term)
            derivation.apply(at(choice.path, choice.strategy))
        raise RewriteFailed(
            f"the default lowering did not come to an end after {_STEP_LIMIT} steps",
            hint="say more in the program: levels for its loops, memories for its arrays",
        )

    def answer(self, need: Need, program: Term) -> Choice:
        """The choice for a need."""
        answer: Choice = getattr(self, need.lack.name.lower())(need, program)
        return answer

    @abstractmethod
    def level(self, need: Need, program: Term) -> Choice:
        """For a map that writes and has no level."""

    @abstractmethod
    def reduction(self, need: Need, program: Term) -> Choice:
        """For a reduction or scan without a level."""

    @abstractmethod
    def copy(self, need: Need, program: Term) -> Choice:
        """For an array that is a result as it stands."""

    @abstractmethod
    def memory(self, need: Need, program: Term) -> Choice:
        """For a computed array that is read and has no memory."""

    @abstractmethod
    def binding(self, need: Need, program: Term) -> Choice:
        """For an array that is bound by let and neither a view nor in a memory."""

    @abstractmethod
    def sharing(self, need: Need, program: Term) -> Choice:
        """For a function that uses a computed element several times."""

    def result(self, need: Need, program: Term) -> Choice:
        """For memory of the whole device where the result is written anyway: the slides' toGlobal at the result."""
        return Choice(need.path, drop_store)

    @abstractmethod
    def iteration(self, need: Need, program: Term) -> Choice:
        """For an iteration that is not expanded."""
