"""Random instances of rules, made from their left sides: the metavariables are generated, not searched for."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lithify.arith import ArithError, Expr, as_expr
from lithify.lang.algebra import neutral_of
from lithify.lang.build import length, proj, tuple_
from lithify.lang.errors import LithifyError
from lithify.lang.levels import HEAP, LOCAL, PAR, PRIVATE, SEQ, UNROLL
from lithify.lang.term import Term, abstract, apply, make
from lithify.lang.types import Array, Function, Index, Tuple, Type
from lithify.rewrite.metaterms import Applied, Bound, Formula, Lambda, MapName, Meta, Node
from lithify.rewrite.rule import AppliedRule, Declaration, Rule
from lithify.rewrite.strategy import Context, Failure
from tests.generators import Terms

LEVELS = (SEQ, UNROLL, PAR)


@dataclass(frozen=True)
class Want:
    """What is wanted of a subterm: its whole type, or at least so many dimensions, a length, an element type."""

    type: Type | None = None
    dims: int = 0
    length: Expr | int | None = None
    element: Type | None = None

    def of_array(self) -> Want:
        """The same, of an array."""
        return self if self.type is not None else replace(self, dims=max(1, self.dims))

    @property
    def known_length(self) -> Expr | int | None:
        """The length, if it is wanted."""
        return self.type.size if isinstance(self.type, Array) else self.length

    @property
    def known_element(self) -> Type | None:
        """The element type, if it is wanted."""
        return self.type.element if isinstance(self.type, Array) else self.element


# Where the right side asks more of a metavariable than the left side shows.
HINTS: dict[tuple[str, str], Callable[[Instance], Want]] = {
    ("stage-transposed", "xs"): lambda i: Want(dims=3),
    ("stage-element-transposed", "xs"): lambda i: Want(dims=3),
    ("copy-third", "X"): lambda i: Want(dims=3),
    ("interleaved", "X"): lambda i: Want(
        type=Array(i.terms.size(), Array(i.terms.size(), Array(i.bindings["n"] * i.terms.size(), i.terms.scalar)))
    ),
    ("zip-join", "Y"): lambda i: Want(type=i.bindings["X"].type),
    ("separate-convolution", "u"): lambda i: Want(dims=1, element=i.terms.scalar),
    ("separate-convolution", "v"): lambda i: Want(dims=1, element=i.terms.scalar),
    ("separate-convolution", "X"): lambda i: Want(
        type=Array(length(i.bindings["u"]), Array(length(i.bindings["v"]), i.terms.scalar))
    ),
}


class Unfit(Exception):
    """This try gives no well-typed instance."""


class Instance:
    """One try to make an instance of a rule's left side."""

    def __init__(self, rule: Rule, rng: random.Random) -> None:
        assert isinstance(rule.body, Declaration)
        self.rule, self.rng, self.terms = rule, rng, Terms(rng)
        self.bindings: dict[str, Any] = {}
        for parameter in rule.parameters:
            self.bindings[parameter] = self.parameter(parameter)
        self.algebra()

    def parameter(self, name: str) -> Any:
        """A value of a rule's parameter, by its name."""
        if name in self.rule.defaults:
            return self.rule.defaults[name]
        if name in ("level", "old", "rest", "rounds", "rows", "columns", "item") or (
            name in ("outer", "inner") and self.rule.name == "split-loop"
        ):
            in_order = self.rule.name.startswith(("reduce", "scan", "accumulate"))
            return self.rng.choice((SEQ, UNROLL) if in_order else LEVELS)
        if name in ("memory", "first", "second"):
            return self.rng.choice((LOCAL, HEAP, PRIVATE))
        if name == "across" or (name == "levels" and "across" in self.rule.parameters):  # of a matrix
            return self.rng.choice((SEQ, UNROLL)), self.rng.choice((SEQ, UNROLL))
        if name in ("levels", "left", "right", "copy_in", "copy_out"):
            return tuple(self.rng.choice((SEQ, UNROLL)) for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3))))
        if name == "g":
            return self.terms.index_function(self.terms.size())
        return self.rng.choice((1, 1, 2, 2, 3, 4, 5))

    def algebra(self) -> None:
        """Choose the combining functions whose algebra the rule asks for, and their neutral elements."""
        for word in [c.split() for c in self.rule.conditions]:
            if word[0] in ("associative", "commutative", "idempotent", "neutral"):
                self.bindings.setdefault(word[-1], self.terms.combining(self.terms.atom))
            if word[0] == "neutral":
                self.bindings[word[1]] = neutral_of(self.bindings[word[2]])
            if word[0] == "ignored" and self.rng.random() < 0.5:
                self.bindings[word[2]] = self.terms.combining(self.terms.atom)

    def make(self) -> tuple[AppliedRule, Term]:
        """The rule with parameters, and a term of its left side's form; raises Unfit or a lithify error."""
        left = self.rule.body.left  # type: ignore[union-attr]
        term = self.build(left, {}, Want())
        return self.rule(**{p: self.bindings[p] for p in self.rule.parameters}), term

    # -- building

    def build(self, node: Node, scope: dict[str, Term], want: Want) -> Term:
        """A term of the form of a node, over the variables in scope."""
        if isinstance(node, Bound):
            return scope[node.name]
        if isinstance(node, Meta):
            return self.meta(node, scope, want)
        assert isinstance(node, Applied)
        method = getattr(self, "make_" + node.pattern.name, None)
        if method is None:
            raise NotImplementedError(f"no instances of {node.pattern.name} on a left side")
        result: Term = method(node, scope, want)
        return result

    def meta(self, node: Meta, scope: dict[str, Term], want: Want) -> Term:
        """The value of a metavariable that stands for a value."""
        arguments = [self.build(a, scope, Want()) for a in node.arguments]
        if node.name not in self.bindings:
            hint = HINTS.get((self.rule.name, node.name))
            type_ = self.wanted_type(want if hint is None else hint(self))
            types = [a.type for a in arguments]
            self.bindings[node.name] = self.terms.function(types, type_) if types else self.terms.term(type_)
        return apply(self.bindings[node.name], *arguments)

    def wanted_type(self, want: Want) -> Type:
        """A type that fits."""
        if want.type is not None:
            return want.type
        if want.dims == 0 and want.element is None and want.length is None:
            return self.terms.value_type() if self.rng.random() < 0.5 else self.terms.type()
        if want.length is not None and as_expr(want.length).lo < 0:
            raise Unfit
        dims = max(want.dims, 1)
        element = want.element
        if element is None:
            element = self.terms.value_type() if dims == 1 and self.rng.random() < 0.4 else self.terms.type(dims - 1)
        return Array(self.terms.size() if want.length is None else want.length, element)

    def function(self, node: Node, parameters: list[Type], result: Want, scope: dict[str, Term]) -> Term:
        """A function term of the parameters, of the form of a node."""
        if isinstance(node, Lambda):
            return self.lambdas(node.names, node.body, parameters, result, scope)
        assert isinstance(node, Meta), node
        arguments = [self.build(a, scope, Want()) for a in node.arguments]
        if node.name not in self.bindings:
            types = [a.type for a in arguments] + parameters
            self.bindings[node.name] = self.terms.function(types, self.wanted_type(result))
        return apply(self.bindings[node.name], *arguments)

    def lambdas(
        self, names: tuple[str, ...], body: Node, parameters: list[Type], result: Want, scope: dict[str, Term]
    ) -> Term:
        if not names:
            return self.build(body, scope, result)
        first, rest = parameters[0], parameters[1:]
        return abstract(first, lambda x: self.lambdas(names[1:], body, rest, result, {**scope, names[0]: x}))

    def attribute(self, attribute: Formula | MapName, choose: Any = None) -> Any:
        """The value of an attribute; a metavariable that has none yet gets `choose()`."""
        if isinstance(attribute, MapName):
            return self.rng.choice((None, "m", "n")) if attribute.variable else None
        if attribute.name is not None:
            if attribute.name not in self.bindings:
                self.bindings[attribute.name] = choose()
            return self.bindings[attribute.name]
        return attribute.evaluate(self.bindings)

    def level(self) -> Any:
        return self.rng.choice((None, SEQ, UNROLL, PAR))

    def loop(self, node: Applied) -> tuple[Any, ...]:
        """The attributes of a map, reduce or scan."""
        named = dict(zip(node.pattern.attributes, node.attributes, strict=True))
        choices = {"level": self.level, "memory": lambda: self.rng.choice((None, PRIVATE))}
        return tuple(self.attribute(a, choices.get(n)) for n, a in named.items())

    def node(self, node: Applied, attributes: tuple[Any, ...], *children: Term) -> Term:
        return make(node.pattern, attributes, children)

    # -- patterns

    def make_map(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        f, xs = node.children
        array = self.build(xs, scope, Want(dims=1 + demand(f, 0), length=want.known_length))
        element = element_of(array)
        inner = Want(type=want.known_element, dims=max(0, want.dims - 1))
        return self.node(node, self.loop(node), self.function(f, [element], inner, scope), array)

    def make_reduce(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        f, z, xs = node.children
        known = self.bindings.get(f.name) if isinstance(f, Meta) else None
        accumulator, element = want.type, None
        if isinstance(known, Term) and not (isinstance(f, Meta) and f.arguments):
            assert isinstance(known.type, Function)
            assert isinstance(known.type.result, Function)
            accumulator, element = known.type.parameter, known.type.result.parameter
        array = self.build(xs, scope, Want(dims=1 + demand(f, 1), element=element))
        start = self.build(z, scope, Want(type=accumulator or self.terms.value_type()))
        function = self.function(f, [start.type, element_of(array)], Want(type=start.type), scope)
        return self.node(node, self.loop(node), function, start, array)

    make_scan = make_reduce

    def make_pipe(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        f, load, z, xs = node.children
        array = self.build(xs, scope, Want(dims=1))
        start = self.build(z, scope, want if want.type is not None else Want(dims=self.rng.choice((0, 1, 2))))
        loader = self.function(load, [element_of(array)], Want(), scope)
        assert isinstance(loader.type, Function)
        function = self.function(f, [start.type, loader.type.result], Want(type=start.type), scope)
        named = dict(zip(node.pattern.attributes, node.attributes, strict=True))
        choices = {"slots": lambda: self.rng.choice((1, 2, 3)), "lag": lambda: 0, "roles": lambda: None}
        attributes = tuple(self.attribute(a, choices.get(n)) for n, a in named.items())
        return self.node(node, attributes, function, loader, start, array)

    def make_iterate(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        f, x = node.children
        start = self.build(x, scope, want)
        count = self.attribute(node.attributes[0], lambda: as_expr(self.rng.randrange(4)))
        return self.node(node, (count,), self.function(f, [start.type], Want(type=start.type), scope), start)

    def make_generate(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        size = self.attribute(node.attributes[0], lambda: as_expr(want.known_length or self.terms.size()))
        return self.node(node, (size,), self.function(node.children[0], [Index(size)], Want(), scope))

    def make_let(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        value = self.build(node.children[0], scope, Want())
        return self.node(node, (), value, self.function(node.children[1], [value.type], want, scope))

    def make_to(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        memory = self.attribute(node.attributes[0], lambda: self.rng.choice((LOCAL, HEAP, PRIVATE)))
        return self.node(node, (memory,), self.build(node.children[0], scope, want))

    def make_tuple(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        return tuple_(*[self.build(c, scope, Want()) for c in node.children])

    def make_proj(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        component = node.attributes[0].evaluate({})  # type: ignore[union-attr]
        return proj(component, self.build(node.children[0], scope, Want()))

    def make_op(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        wanted = Want(type=self.terms.scalar)
        return self.node(node, self.evaluated(node), *[self.build(c, scope, wanted) for c in node.children])

    def evaluated(self, node: Applied) -> tuple[Any, ...]:
        return tuple(self.attribute(a) for a in node.attributes)

    def make_split(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        size = as_expr(self.attribute(node.attributes[0], lambda: as_expr(self.rng.choice((1, 2, 3)))))
        rows = self.terms.size(most=4) if want.known_length is None else want.known_length
        array = self.build(node.children[0], scope, Want(dims=max(1, want.dims - 1), length=size * rows))
        return self.node(node, (size,), array)

    def make_join(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        return self.node(node, (), self.build(node.children[0], scope, Want(dims=max(2, want.dims + 1))))

    def make_transpose(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        return self.node(node, (), self.build(node.children[0], scope, Want(dims=max(2, want.dims))))

    def make_take(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        size = as_expr(self.attribute(node.attributes[0], lambda: as_expr(self.terms.size(most=4))))
        extra = self.rng.choice((0, 0, 1, 2))
        array = self.build(node.children[0], scope, Want(dims=max(1, want.dims), length=size + extra))
        return self.node(node, (size,), array)

    def make_drop(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        size = as_expr(self.attribute(node.attributes[0], lambda: as_expr(self.rng.randrange(3))))
        rest = self.terms.size(most=4) if want.known_length is None else want.known_length
        array = self.build(node.children[0], scope, Want(dims=max(1, want.dims), length=size + rest))
        return self.node(node, (size,), array)

    def make_slide(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        size = as_expr(self.attribute(node.attributes[0], lambda: as_expr(self.rng.choice((1, 2, 3)))))
        step = as_expr(self.attribute(node.attributes[1], lambda: as_expr(self.rng.choice((1, 1, 2, 3)))))
        windows = self.rng.choice((1, 2, 3, 4, 6)) if want.known_length is None else want.known_length
        room = self.rng.randrange(int(step.constant or 1)) if self.rng.random() < 0.5 else 0
        wanted = Want(dims=max(1, want.dims - 1), length=size + step * (as_expr(windows) - 1) + room)
        return self.node(node, (size, step), self.build(node.children[0], scope, wanted))

    def make_pad(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        left = as_expr(self.attribute(node.attributes[0], lambda: as_expr(self.rng.randrange(3))))
        right = as_expr(self.attribute(node.attributes[1], lambda: as_expr(self.rng.randrange(3))))
        mode = self.attribute(node.attributes[2], lambda: self.rng.choice(("clamp", "mirror", "wrap")))
        array = self.build(node.children[0], scope, Want(dims=max(1, want.dims), length=self.terms.size(least=2)))
        fill = [self.build(c, scope, Want(type=element_of(array))) for c in node.children[1:]]
        return self.node(node, (left, right, mode), array, *fill)

    def make_zip(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        first = self.build(node.children[0], scope, Want(dims=1, length=want.known_length))
        rest = [self.build(c, scope, Want(dims=1, length=length(first))) for c in node.children[1:]]
        return self.node(node, (), first, *rest)

    def make_unzip(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        pair = Tuple(self.terms.atom, self.terms.value_type())
        return self.node(node, (), self.build(node.children[0], scope, Want(dims=1, element=pair)))

    def make_concat(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        first = self.build(node.children[0], scope, Want(dims=max(1, want.dims)))
        second = self.build(node.children[1], scope, Want(dims=1, element=element_of(first)))
        return self.node(node, (), first, second)

    def make_replicate(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        size = self.attribute(node.attributes[0], lambda: as_expr(want.known_length or self.terms.size()))
        return self.node(node, (as_expr(size),), self.build(node.children[0], scope, Want(dims=max(0, want.dims - 1))))

    def make_reindex(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        n = self.terms.size() if want.known_length is None else int(as_expr(want.known_length).constant or 0)
        function = self.attribute(node.attributes[0], lambda: self.terms.index_function(n))
        array = self.build(node.children[0], scope, Want(dims=max(1, want.dims), length=function.source))
        return self.node(node, (function,), array)

    def make_gather(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        return self.node(node, (), *self.reordered(node, scope))

    def reordered(self, node: Applied, scope: dict[str, Term]) -> tuple[Term, Term]:
        """Indices and an array for gather and scatter."""
        ids, xs = node.children
        array = self.build(xs, scope, Want(dims=1, length=self.terms.size(least=1)))
        n = int(length(array).constant or 0)
        if isinstance(ids, Meta) and ids.name not in self.bindings:
            if n == 0:
                raise Unfit
            self.bindings[ids.name] = self.terms.permutation(n)
        return self.build(ids, scope, Want()), array

    def make_scatter(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        return self.node(node, self.evaluated(node), *self.reordered(node, scope))

    def make_at(self, node: Applied, scope: dict[str, Term], want: Want) -> Term:
        array = self.build(node.children[0], scope, Want(dims=1, length=self.terms.size(least=1)))
        return self.node(node, (), array, self.build(node.children[1], scope, Want(type=Index(length(array)))))


def element_of(array: Term) -> Type:
    """The element type of an array."""
    if not isinstance(array.type, Array):
        raise Unfit
    return array.type.element


_DEMANDS = {
    "map": (0, 1), "reduce": (0, 0, 1), "scan": (0, 0, 1), "split": (1,), "join": (2,), "transpose": (2,), "take": (1,),
    "drop": (1,), "slide": (1,), "pad": (1,), "zip": (1, 1), "replicate": (0,), "reindex": (1,),
}  # fmt: skip


def demand(function: Node, parameter: int) -> int:
    """How many dimensions a parameter of a function must have for the function's body."""
    if not isinstance(function, Lambda) or parameter >= len(function.names):
        return 0
    return _demand(function.body, function.names[parameter], 0)


def _demand(node: Node, name: str, here: int) -> int:
    if isinstance(node, Bound):
        return here if node.name == name else 0
    if isinstance(node, Lambda):
        return _demand(node.body, name, 0)
    if isinstance(node, Applied):
        needs = _DEMANDS.get(node.pattern.name, (0,) * len(node.children))
        result = 0
        for place, child in enumerate(node.children):
            need = needs[place] if place < len(needs) else 0
            if node.pattern.name in ("map", "reduce") and place == len(node.children) - 1:
                need = 1 + demand(node.children[0], 0 if node.pattern.name == "map" else 1)
            result = max(result, _demand(child, name, need))
        return result
    return 0


def candidates(rule: Rule, rng: random.Random, tries: int = 400) -> Iterator[tuple[AppliedRule, Term]]:
    """Rules with parameters, and terms of their left sides' forms, from so many tries."""
    for _ in range(tries):
        try:
            yield Instance(rule, rng).make()
        except (Unfit, LithifyError, ArithError):
            continue


def instance(rule: Rule, rng: random.Random) -> tuple[AppliedRule, Term, Term] | None:
    """The rule with parameters, a term where it fires, and the result; None if none was found."""
    for applied, term in candidates(rule, rng):
        result = applied.run(term, Context())
        if not isinstance(result, Failure):
            return applied, term, result
    return None
