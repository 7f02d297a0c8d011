"""Strategies: functions from a term to a new term or a failure, and how they are composed (Visser, Kirchner; ELEVATE).

A strategy works on one term and knows nothing of what stands around it. `run` gives the new term or a `Failure`;
`apply` is the same for users and raises RewriteFailed. `s >> t` is `seq(s, t)`, `s | t` is `first(s, t)`.

The context carries what does not belong to the term: the policy for operator algebra, the memory of what fails where,
and the log of the rules that fired (see `lithify.rewrite.derivation`). A strategy that fails leaves the log as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from lithify.lang.errors import RewriteFailed
from lithify.lang.term import Term
from lithify.machine import DeviceModel

Policy = Literal["reassociable", "exact"]
Path = tuple[int, ...]


class Failure:
    """The result of a strategy that does not apply; false, and cheap: the reason is worked out when it is asked for."""

    __slots__ = ("strategy",)

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return f"Failure({self.strategy})"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the term at a path.

    A rule fired (`rule` is set), or the term was rebuilt there over new children and the always-on laws made something
    simpler of it.
    """

    path: Path
    before: Term
    after: Term
    rule: Any = None
    bindings: dict[str, Any] = field(default_factory=dict)


class Context:
    """What strategies share during one rewriting: policy, machine, log, the path from the root, and known failures.

    With a `machine`, levels are nested as it allows; without, only what no machine allows is refused.
    """

    __slots__ = ("_failed", "log", "machine", "path", "policy")

    def __init__(
        self, policy: Policy = "reassociable", log: list[Event] | None = None, machine: DeviceModel | None = None
    ) -> None:
        self.policy: Policy = policy
        self.machine = machine
        self.log = log
        self.path: list[int] = []
        self._failed: dict[Strategy, set[int]] = {}

    def mark(self) -> int:
        """A point of the log to go back to."""
        return 0 if self.log is None else len(self.log)

    def back(self, mark: int) -> None:
        """Forget what was logged after the mark."""
        if self.log is not None:
            del self.log[mark:]

    def record(self, before: Term, after: Term, rule: Any, bindings: dict[str, Any]) -> None:
        """Log that a rule fired at the present path."""
        if self.log is not None:
            self.log.append(Event(tuple(self.path), before, after, rule, bindings))

    def rebuild(self, term: Term, args: tuple[Term, ...]) -> Term:
        """The term over new children; logs it when the always-on laws simplify the result."""
        result = term.with_args(args)
        if self.log is not None and result.args != args:
            self.log.append(Event(tuple(self.path), term, result))
        return result

    def failures(self, strategy: Strategy) -> set[int]:
        """The ids of terms in which the strategy is known to fire nowhere (terms never change, so it stays so)."""
        found = self._failed.get(strategy)
        if found is None:
            found = self._failed[strategy] = set()
        return found


class Strategy:
    """A function from a term to a new term or a failure."""

    name: str

    def run(self, term: Term, context: Context) -> Term | Failure:
        """The new term, or a Failure; then the log is unchanged."""
        raise NotImplementedError

    def apply(self, term: Term, context: Context | None = None) -> Term:
        """The new term; raises RewriteFailed with the rule, the place and what failed there."""
        result = self.run(term, context or Context())
        if isinstance(result, Failure):
            raise self.error(term, context)
        return result

    def error(self, term: Term, context: Context | None = None) -> RewriteFailed:
        """Why the strategy does not apply to the term."""
        place, reason = self.diagnose(term, context or Context())
        return RewriteFailed(
            f"{self.name} does not apply: {reason}", where=f"at {describe(place, term)}" if place is not None else None
        )

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        """Where it came closest to applying, and what stopped it there."""
        del term, context
        return None, "no reason is known"

    def rules(self) -> tuple[Strategy, ...]:
        """The strategies that this one is made of (none for a rule)."""
        return ()

    def __rshift__(self, other: Strategy) -> Strategy:
        return seq(self, other)

    def __or__(self, other: Strategy) -> Strategy:
        return first(self, other)

    def __repr__(self) -> str:
        return self.name


def loop_name(term: Term) -> str | None:
    """The name of a map, reduce, scan or pipe; None for other terms and loops without one."""
    named = term.kind in ("map", "reduce", "scan", "pipe")
    return term["name"] if named else None


def describe(path: Path, term: Term) -> str:
    """A path in words: the patterns passed on the way and the names of loops.

    The path may be one in what earlier steps made of the term: then the words end where the term does.
    """
    words = []
    for index in path:
        if index >= len(term.args):
            break
        term = term.args[index]
        if term.kind != "lambda":
            name = loop_name(term)
            words.append(f"{term.kind} {name}" if name else term.kind)
    return f"{'/'.join(map(str, path)) or 'the root'}" + (f" ({' > '.join(words)})" if words else "")


# ---- combinators ---------------------------------------------------------------------------------------------------


class Identity(Strategy):
    """`id_`: the term itself."""

    name = "id"

    def run(self, term: Term, context: Context) -> Term:
        return term


class Fail(Strategy):
    """`fail`: never applies."""

    name = "fail"

    def run(self, term: Term, context: Context) -> Failure:
        return Failure(self)

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        return (), "`fail` always fails"


id_: Final = Identity()
fail: Final = Fail()


class seq(Strategy):
    """One after the other; fails if one of them fails."""

    def __init__(self, *parts: Strategy) -> None:
        self.parts = parts
        self.name = "(" + " >> ".join(p.name for p in parts) + ")"

    def run(self, term: Term, context: Context) -> Term | Failure:
        mark = context.mark()
        for part in self.parts:
            result = part.run(term, context)
            if isinstance(result, Failure):
                context.back(mark)
                return result
            term = result
        return term

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        for part in self.parts:
            result = part.run(term, context)
            if isinstance(result, Failure):
                place, reason = part.diagnose(term, context)
                return place, f"{part.name}: {reason}" if len(self.parts) > 1 else reason
            term = result
        return None, "it applies"

    def rules(self) -> tuple[Strategy, ...]:
        return self.parts


def macro(name: str, *steps: Strategy) -> Strategy:
    """Strategies one after the other, under a name of their own."""
    return _named(seq(*steps), name)


class first(Strategy):
    """`s <+ t <+ ..`: the first of them that applies."""

    def __init__(self, *parts: Strategy) -> None:
        self.parts = parts
        self.name = "(" + " | ".join(p.name for p in parts) + ")"
        self._failure = Failure(self)

    def run(self, term: Term, context: Context) -> Term | Failure:
        for part in self.parts:
            result = part.run(term, context)
            if not isinstance(result, Failure):
                return result
        return self._failure

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        reasons = [(part, *part.diagnose(term, context)) for part in self.parts]
        return reasons[0][1], "; ".join(f"{part.name}: {reason}" for part, _, reason in reasons)

    def rules(self) -> tuple[Strategy, ...]:
        return self.parts


def try_(s: Strategy) -> Strategy:
    """s where it applies, else the term itself."""
    return _named(first(s, id_), f"try({s.name})")


class repeat(Strategy):
    """s as often as it applies, at most `limit` times; never fails.

    Raises RewriteFailed when s still applies after `limit` rounds: it would not come to an end.
    """

    def __init__(self, s: Strategy, limit: int = 10_000) -> None:
        self.part, self.limit = s, limit
        self.name = f"repeat({s.name})"

    def run(self, term: Term, context: Context) -> Term | Failure:
        for _ in range(self.limit):
            result = self.part.run(term, context)
            if isinstance(result, Failure) or result is term:
                return term
            term = result
        raise RewriteFailed(
            f"{self.name} did not come to an end after {self.limit} rounds",
            hint="the rule recreates what it matches; apply it at a place, or a given number of times",
        )

    def rules(self) -> tuple[Strategy, ...]:
        return (self.part,)


def _named(strategy: Strategy, name: str) -> Strategy:
    strategy.name = name
    return strategy
