"""Derivations: a program, the rules that were applied to it, and what came out; printed, saved, replayed, checked.

A step is a rule that fired at a path. Strategies log their steps through the context, so that one call of `apply` may
add many. Replaying follows the same steps without searching: a derivation is a certificate, not a recipe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lithify.lang.errors import RewriteFailed
from lithify.lang.term import Term
from lithify.machine import DeviceModel
from lithify.rewrite.equality import difference
from lithify.rewrite.rule import AppliedRule, same_type
from lithify.rewrite.strategy import Context, Event, Failure, Path, Policy, Strategy
from lithify.rewrite.traversal import Where, at, everywhere, outermost, topdown


@dataclass(frozen=True, slots=True)
class Step:
    """A rule that fired: where, with which values of its metavariables, and both terms."""

    rule: AppliedRule
    path: Path
    before: Term
    after: Term
    bindings: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.rule.name} {places([self])}"


def same_rewrites(steps: Sequence[Step]) -> list[list[Step]]:
    """The steps in order, those that follow one another and rewrite the same term by the same rule together.

    A term that stands at several places is rewritten at each of them; for a reader that is said once.
    """
    found: list[list[Step]] = []
    for step in steps:
        last = found[-1][-1] if found else None
        if last is not None and (last.rule.name, last.before, last.after) == (step.rule.name, step.before, step.after):
            found[-1].append(step)
        else:
            found.append([step])
    return found


def numbers(first: int, same: Sequence[Step]) -> str:
    """The numbers of steps that are shown together: `3`, or `3-5`."""
    return str(first) if len(same) == 1 else f"{first}-{first + len(same) - 1}"


def places(same: Sequence[Step]) -> str:
    """Where steps that are shown together rewrite: `at 0/1`, `at 2 places: 0/1, 0/2`."""
    listed = ", ".join("/".join(map(str, step.path)) or "the root" for step in same)
    return f"at {listed}" if len(same) == 1 else f"at {len(same)} places: {listed}"


class Derivation:
    """A program on its way down: `term` is where it stands, `steps` how it came there.

    With `check`, the values before and after each step are compared on random inputs (use small sizes). `policy` says
    whether floating-point operators may be reassociated ("reassociable", as every BLAS does) or not ("exact"); with a
    `machine`, levels are nested as it allows.
    """

    def __init__(
        self,
        start: Term,
        *,
        policy: Policy = "reassociable",
        check: bool = False,
        machine: DeviceModel | None = None,
    ) -> None:
        self.start = self.term = start
        self.check = check
        self.context = Context(policy, [], machine)

    def __str__(self) -> str:
        lines, number = [], 1
        for same in same_rewrites(self.steps):
            lines.append(f"{numbers(number, same):>4}. {same[0].rule.name} {places(same)}")
            number += len(same)
        return "\n".join(lines) or "no steps"

    # -- going on

    def apply(self, strategy: Strategy) -> Derivation:
        """Apply a strategy at the root. Raises RewriteFailed; then the derivation is unchanged."""
        mark = self.context.mark()
        try:
            result = strategy.run(self.term, self.context)
            if isinstance(result, Failure):
                raise self._located(strategy.error(self.term, self.context))
            if not same_type(result.type, self.term.type):
                raise RewriteFailed(f"{strategy.name} changed the program's type {self.term.type} to {result.type}")
            if self.check:
                self.check_steps(mark)
        except Exception:
            self.context.back(mark)
            self.context.path.clear()
            raise
        self.term = result
        return self

    def once(self, strategy: Strategy, where: Where | None = None) -> Derivation:
        """Apply a strategy at the first place where it applies, or at a place (name, path, predicate)."""
        return self.apply(topdown(strategy) if where is None else at(where, strategy))

    def everywhere(self, strategy: Strategy) -> Derivation:
        """Apply a strategy once at every place where it applies."""
        return self.apply(everywhere(strategy))

    def normalize(self, strategy: Strategy) -> Derivation:
        """Apply a strategy until it applies nowhere."""
        return self.apply(outermost(strategy))

    def _located(self, error: RewriteFailed) -> RewriteFailed:
        count = len(self.steps)
        error.hint = error.hint or (f"after {count} step(s); the last was {self.steps[-1]}" if count else None)
        return error

    def check_steps(self, mark: int = 0, seed: int = 0) -> None:
        """Compare the values before and after each logged step (from a mark of the log on); raises RewriteFailed."""
        assert self.context.log is not None
        for number, event in enumerate(self.context.log[mark:]):
            wrong = difference(event.before, event.after, seed=seed + number)
            if wrong is not None:
                name = event.rule.name if event.rule else "an always-on law"
                raise RewriteFailed(
                    f"{name} is wrong: the values differ {wrong}",
                    where=f"at {'/'.join(map(str, event.path)) or 'the root'}: {event.before}  ->  {event.after}",
                )

    # -- looking back

    @property
    def steps(self) -> list[Step]:
        """The rules that fired, in order."""
        assert self.context.log is not None
        return [Step(e.rule, e.path, e.before, e.after, e.bindings) for e in self.context.log if e.rule is not None]

    def terms(self) -> Iterator[tuple[Step, Term]]:
        """Every step with the whole program after it."""
        assert self.context.log is not None
        events = self.context.log
        for position, event in enumerate(events):
            if event.rule is not None:
                yield (
                    Step(event.rule, event.path, event.before, event.after, event.bindings),
                    _result(self.start, events[: position + 1]),
                )

    def shown_terms(self) -> Iterator[tuple[str, list[Step], Term]]:
        """Steps that are shown together (`same_rewrites`) with their numbers and the whole program after them."""
        same: list[Step] = []
        number, after = 1, self.start
        for step, term in self.terms():
            if same and len(same_rewrites([same[-1], step])) > 1:
                yield numbers(number, same), same, after
                number, same = number + len(same), []
            same, after = [*same, step], term
        if same:
            yield numbers(number, same), same, after

    def names(self) -> list[str]:
        """The names of the rules that fired, in order."""
        return [step.rule.name for step in self.steps]


def follow(start: Term, steps: Sequence[tuple[AppliedRule | None, Path]], context: Context) -> Term:
    """Apply rules at paths, in order; None stands for a rebuilding at the path. Raises RewriteFailed."""
    return _follow(start, list(steps), context)


def _follow(term: Term, steps: list[tuple[AppliedRule | None, Path]], context: Context) -> Term:
    """Steps below a node are applied to its children, which are put together when a step concerns the node itself."""
    position = 0
    while position < len(steps):
        rule, path = steps[position]
        if not path:
            if rule is not None:
                result = rule.run(term, context)
                if isinstance(result, Failure):
                    raise rule.error(term, context)
                term = result
            position += 1
            continue
        below: dict[int, list[tuple[AppliedRule | None, Path]]] = {}
        while position < len(steps) and steps[position][1]:
            rule, path = steps[position]
            below.setdefault(path[0], []).append((rule, path[1:]))
            position += 1
        args = list(term.args)
        for index, inner in below.items():
            if index >= len(args):
                raise RewriteFailed(f"the derivation does not fit: {term.kind} has no child {index}")
            context.path.append(index)
            args[index] = _follow(args[index], inner, context)
            context.path.pop()
        term = context.rebuild(term, tuple(args))
    return term


def _result(start: Term, events: Sequence[Event]) -> Term:
    """The whole program after some events: what they replaced, put in place."""
    term = start
    position = 0
    while position < len(events):
        event = events[position]
        if not event.path:
            term, position = event.after, position + 1
            continue
        below: dict[int, list[Event]] = {}
        while position < len(events) and events[position].path:
            event = events[position]
            below.setdefault(event.path[0], []).append(
                Event(event.path[1:], event.before, event.after, event.rule, event.bindings)
            )
            position += 1
        args = list(term.args)
        for index, inner in below.items():
            args[index] = _result(args[index], inner)
        term = term.with_args(tuple(args))
    return term
