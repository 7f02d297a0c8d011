"""Rules as data: one declaration gives the matcher, the page of documentation and the property test.

    split_join = rule("split-join", "map f xs -> join (map (map f) (split n xs))", parameters="n",
                      when=["n | length xs"], law="..")

declares a rule in the notation of `lithify.rewrite.notation`. What cannot be said there is a Python function, which
says in its docstring why (`code_rule`). A rule with parameters becomes a strategy when it is called: `split_join(32)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from lithify.arith import ArithError, proves_equal
from lithify.lang.errors import RewriteFailed, TypeMismatch
from lithify.lang.patterns import PATTERNS, Pattern
from lithify.lang.term import Term
from lithify.lang.types import Array, Function, Index, Tuple, Type
from lithify.rewrite.conditions import Condition, read_condition
from lithify.rewrite.matching import Bindings, Mismatch, match
from lithify.rewrite.metaterms import Applied, Node
from lithify.rewrite.notation import read_rule
from lithify.rewrite.strategy import Context, Failure, Path, Strategy
from lithify.rewrite.template import build

_CONDITIONS_REACHED: Final = 1000


class Refused(Exception):
    """Raised by the code of a rule: the term has the form, but a condition does not hold."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A rule in the notation: both sides and the conditions."""

    text: str
    left: Node
    right: Node
    conditions: tuple[Condition, ...]

    @property
    def roots(self) -> tuple[Pattern, ...]:
        return (self.left.pattern,) if isinstance(self.left, Applied) else ()

    def rewrite(self, term: Term, bindings: Bindings, context: Context) -> Term | None:
        """The new term, or None; fills the bindings."""
        if not match(self.left, term, bindings):
            return None
        try:
            for condition in self.conditions:
                if condition.check(bindings, context) is not None:
                    return None
            return build(self.right, bindings)
        except (TypeMismatch, ArithError):
            return None

    def explain(self, term: Term, bindings: Bindings, context: Context) -> tuple[int, str]:
        """How near the rule came to firing on a term where it does not, and what stopped it."""
        mismatch = Mismatch()
        if not match(self.left, term, bindings, mismatch):
            return mismatch.depth, mismatch.reason
        for condition in self.conditions:
            try:
                wrong = condition.check(bindings, context)
            except (TypeMismatch, ArithError) as error:
                wrong = str(error)
            if wrong is not None:
                return _CONDITIONS_REACHED, f"`{condition.text}` fails: {wrong}"
        try:
            build(self.right, bindings)
        except (TypeMismatch, ArithError) as error:
            return _CONDITIONS_REACHED, f"the result has no type: {error}"
        return _CONDITIONS_REACHED, "it would change nothing"


@dataclass(frozen=True, slots=True)
class Code:
    """A rule written in Python: a function of the term and the parameters that gives the new term, or None."""

    text: str
    function: Callable[..., Term | None]
    kinds: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()

    @property
    def roots(self) -> tuple[Pattern, ...]:
        return tuple(PATTERNS[kind] for kind in self.kinds)

    def rewrite(self, term: Term, bindings: Bindings, context: Context) -> Term | None:
        """The new term, or None."""
        try:
            return self.function(term, context, **bindings)
        except (Refused, TypeMismatch, ArithError):
            return None

    def explain(self, term: Term, bindings: Bindings, context: Context) -> tuple[int, str]:
        """How near the rule came to firing on a term where it does not, and what stopped it."""
        try:
            result = self.function(term, context, **bindings)
        except (Refused, TypeMismatch, ArithError) as error:
            return _CONDITIONS_REACHED, str(error)
        return 1, "the term does not have its form" if result is None else "it would change nothing"


@dataclass(frozen=True, slots=True)
class Example:
    """A program, in the language's text, on which the rule fires with these parameters; shown before and after."""

    program: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Rule(Strategy):
    """A law with a direction. Callable with its parameters; a strategy once they are given.

    `law` says in words why both sides are equal. `parameters` are names, those with a default may be left out.
    """

    name: str
    body: Declaration | Code
    law: str
    parameters: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    family: str = ""

    def __call__(self, *given: Any, **named: Any) -> AppliedRule:
        """The rule with its parameters; raises RewriteFailed when they do not fit."""
        if len(given) > len(self.parameters):
            raise self._bad_parameters(f"{len(given)} given")
        arguments = dict(zip(self.parameters, given, strict=False))
        for name, value in named.items():
            if name not in self.parameters or name in arguments:
                raise self._bad_parameters(f"{name} given")
            arguments[name] = value
        missing = [p for p in self.parameters if p not in arguments and p not in self.defaults]
        if missing:
            raise self._bad_parameters(f"{', '.join(missing)} missing")
        given_or_default = {**self.defaults, **arguments}
        return AppliedRule(self, {p: given_or_default[p] for p in self.parameters})

    def _bad_parameters(self, what: str) -> RewriteFailed:
        known = ", ".join(f"{p}={self.defaults[p]}" if p in self.defaults else p for p in self.parameters)
        return RewriteFailed(f"rule {self.name}({known}): {what}")

    @cached_property
    def plain(self) -> AppliedRule:
        """The rule with its defaults; raises RewriteFailed when it has parameters without one."""
        return self()

    def run(self, term: Term, context: Context) -> Term | Failure:
        return self.plain.run(term, context)

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        return self.plain.diagnose(term, context)

    def nearness(self, term: Term, context: Context) -> tuple[int, str]:
        """How near the rule came to firing (a number that only serves to compare) and what stopped it."""
        return self.plain.nearness(term, context)

    def explain(self, term: Term, context: Context | None = None) -> str | None:
        """Why the rule does not fire on the term; None if it does."""
        return self.plain.explain(term, context)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The side conditions."""
        return tuple(c.text for c in self.body.conditions)

    @property
    def text(self) -> str:
        """The rule in its notation."""
        return self.body.text


class AppliedRule(Strategy):
    """A rule with the values of its parameters: the strategy that applies it at the root of a term."""

    __slots__ = ("_failure", "_hash", "_rewrite", "_roots", "arguments", "name", "rule")

    def __init__(self, rule: Rule, arguments: dict[str, Any]) -> None:
        self.rule, self.arguments = rule, arguments
        shown = ", ".join(_shown(v) for p, v in arguments.items() if p not in rule.defaults or v != rule.defaults[p])
        self.name = f"{rule.name}({shown})" if shown else rule.name
        self._roots = rule.body.roots
        self._rewrite = rule.body.rewrite
        self._failure = Failure(self)
        self._hash = hash((rule.name, self.name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AppliedRule) and other.rule is self.rule and other.arguments == self.arguments

    def __hash__(self) -> int:
        return self._hash

    def __call__(self, *given: Any, **named: Any) -> AppliedRule:
        return self.rule(*given, **named)

    def run(self, term: Term, context: Context) -> Term | Failure:
        if self._roots and term.pattern not in self._roots:
            return self._failure
        bindings = dict(self.arguments)
        result = self._rewrite(term, bindings, context)
        if result is None or result is term:
            return self._failure
        if result.type is not term.type and not same_type(result.type, term.type):
            raise RewriteFailed(
                f"rule {self.name} is wrong: it changed the type {term.type} to {result.type}", where=f"on {term}"
            )
        context.record(term, result, self, bindings)
        return result

    def nearness(self, term: Term, context: Context) -> tuple[int, str]:
        """How near the rule came to firing (a number that only serves to compare) and what stopped it."""
        if self._roots and term.pattern not in self._roots:
            return 0, f"{' or '.join(p.name for p in self._roots)} expected, {term.kind} found"
        near, reason = self.rule.body.explain(term, dict(self.arguments), context)
        return near + 1, reason

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        return (), self.nearness(term, context)[1]

    def explain(self, term: Term, context: Context | None = None) -> str | None:
        """Why the rule does not fire on the term; None if it does."""
        context = context or Context()
        silent = Context(context.policy, machine=context.machine)
        return None if self.run(term, silent) else self.nearness(term, silent)[1]


def _shown(value: Any) -> str:
    return f"({', '.join(map(_shown, value))})" if isinstance(value, tuple) else str(value)


def same_type(a: Type, b: Type) -> bool:
    """Are the types equal, with sizes that are provably equal?"""
    if a is b:
        return True
    if isinstance(a, Array) and isinstance(b, Array):
        return proves_equal(a.size, b.size) and same_type(a.element, b.element)
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return len(a.items) == len(b.items) and all(map(same_type, a.items, b.items))
    if isinstance(a, Function) and isinstance(b, Function):
        return same_type(a.parameter, b.parameter) and same_type(a.result, b.result)
    return isinstance(a, Index) and isinstance(b, Index) and proves_equal(a.size, b.size)


# ---- declaring -----------------------------------------------------------------------------------------------------


def _prose(text: str) -> str:
    return " ".join(text.split())


def _parameters(text: str, defaults: dict[str, Any]) -> tuple[str, ...]:
    return (*text.split(), *[name for name in defaults if name not in text.split()])


def rule(
    name: str,
    text: str,
    *,
    law: str,
    parameters: str = "",
    when: Iterable[str] = (),
    defaults: dict[str, Any] | None = None,
    examples: Iterable[Example] = (),
) -> Rule:
    """Declare a rule in the notation. `parameters` are names; those in `defaults` may be left out."""
    left, right = read_rule(text)
    declaration = Declaration(" ".join(text.split()), left, right, tuple(map(read_condition, when)))
    return Rule(
        name, declaration, _prose(law), _parameters(parameters, defaults or {}), defaults or {}, tuple(examples)
    )


def code_rule(
    name: str,
    text: str,
    *,
    kinds: str,
    law: str,
    parameters: str = "",
    when: Iterable[str] = (),
    defaults: dict[str, Any] | None = None,
    examples: Iterable[Example] = (),
) -> Callable[[Callable[..., Term | None]], Rule]:
    """Declare a rule whose work a Python function does: `f(term, context, **parameters)` gives the new term or None.

    `kinds` are the patterns at the root; `text` shows the law; `when` names the conditions that the code checks.
    """

    def declare(function: Callable[..., Term | None]) -> Rule:
        stated = tuple(Condition(text, lambda _b, _c: None) for text in when)
        body = Code(" ".join(text.split()), function, tuple(kinds.split()), stated)
        return Rule(name, body, _prose(law), _parameters(parameters, defaults or {}), defaults or {}, tuple(examples))

    return declare
