"""Random well-typed terms over integers, grown from the type that is wanted."""

from __future__ import annotations

from random import Random

from lithify.arith import maximum
from lithify.lang import build as b
from lithify.lang.index_functions import operand_variable, reverse, stride
from lithify.lang.levels import LOCAL, SEQ, VEC
from lithify.lang.operators import OPERATORS, Operator, Typing
from lithify.lang.scalars import bool_, i8, i32, u8
from lithify.lang.term import Term, abstract, apply
from lithify.lang.types import Array, Index, Tuple, Type, array

PAIR = Tuple(i32, i8)
LARGEST = Operator(
    "larger_pair", 2, Typing.DEFINED,
    definition=abstract(PAIR, lambda a: abstract(PAIR, lambda c: b.select(
        b.op("ge", b.proj(0, a), b.proj(0, c)), a, c))),
)  # fmt: skip


def random_type(r: Random, depth: int = 2) -> Type:
    kind = r.randrange(5) if depth else 0
    if kind >= 3:
        return Array(r.choice([0, 1, 2, 3, 4]), random_type(r, depth - 1))
    if kind == 2:
        first, second = random_type(r, depth - 1), random_type(r, depth - 1)
        return Tuple(Array(3, first), Array(3, second)) if r.random() < 0.3 else Tuple(first, second)
    return r.choice([i32, i32, i8, u8])


class Grower:
    """Grows terms; `inputs` are the free variables made on the way."""

    def __init__(self, r: Random) -> None:
        self.r = r
        self.inputs: dict[str, Type] = {}

    def grow(self, type_: Type, depth: int, scope: tuple[Term, ...] = ()) -> Term:
        """A term of the type, over the variables in scope."""
        known = [v for v in scope if v.type is type_]
        if known and self.r.random() < 0.4:
            return self.r.choice(known)
        if depth <= 0:
            return self.leaf(type_)
        for _ in range(8):
            found = self.node(type_, depth - 1, scope)
            if found is not None:
                return found
        return self.leaf(type_)

    def leaf(self, type_: Type) -> Term:
        if isinstance(type_, Index):
            return b.const(self.r.randrange(type_.size.constant or 1), type_)
        if type_ is bool_:
            return b.const(self.r.random() < 0.5, bool_)
        if self.r.random() < 0.3:
            if isinstance(type_, Tuple):
                return b.tuple_(*[self.leaf(item) for item in type_.items])
            if not isinstance(type_, Array):
                return b.const(self.r.randrange(-3, 4) if type_ is not u8 else self.r.randrange(5), type_)
        name = f"x{self.r.randrange(3)}_{type_}"
        self.inputs[name] = type_
        return b.param(name, type_)

    def node(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term | None:
        general = (self.projection, self.let, self.element, self.reduction, self.pipe, self.iteration, self.stored)
        if isinstance(type_, Array):
            method = self.r.choice((self.array, self.array, self.array, *general))
        elif isinstance(type_, Tuple):
            method = self.r.choice((self.tuple, self.tuple, *general))
        elif isinstance(type_, Index):
            return self.index(type_, depth, scope)
        else:
            method = self.r.choice((self.scalar, self.scalar, *general))
        return method(type_, depth, scope)

    def function(self, parameter: Type, result: Type, depth: int, scope: tuple[Term, ...]) -> Term:
        return abstract(parameter, lambda x: self.grow(result, depth, (*scope, x)))

    def function2(self, first: Type, second: Type, result: Type, depth: int, scope: tuple[Term, ...]) -> Term:
        return abstract(first, lambda a: self.function(second, result, depth, (*scope, a)))

    def index(self, type_: Index, depth: int, scope: tuple[Term, ...]) -> Term | None:
        """Computed from two others."""
        known = [v for v in scope if isinstance(v.type, Index)]
        if type_.size.constant == 0 or not known:
            return None
        operands = tuple([self.r.choice(known) for _ in range(2)])
        i, j = (operand_variable(k, o.type.size) for k, o in enumerate(operands))  # type: ignore[attr-defined]
        low, high = self.r.randrange(4), self.r.randrange(1, 4)
        formula = self.r.choice([i * high + j + low, i * j + low, (i + low) // high + j, maximum(i - low, j), i])
        return b.index(formula % type_.size, operands, type_)

    # ---- any type ----

    def projection(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term:
        return b.proj(1, self.grow(Tuple(random_type(self.r, 1), type_), depth, scope))

    def let(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term:
        value = self.grow(random_type(self.r), depth, scope)
        return b.let(value, self.function(value.type, type_, depth, scope))

    def element(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term:
        n = self.r.choice([1, 2, 3])
        xs = self.grow(Array(n, type_), depth, scope)
        return b.at(xs, self.grow(Index(n), depth, scope))

    def reduction(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term | None:
        xs = self.grow(Array(self.r.choice([0, 1, 2, 3]), random_type(self.r, 1)), depth, scope)
        f = self.function2(type_, b.element_type(xs), type_, depth, scope)
        if type_ in (i32, i8, u8) and self.r.random() < 0.5:
            element = self.function(b.element_type(xs), type_, depth, scope)
            operator = self.r.choice(["add", "mul", "min", "max", "xor", "sub"])
            name = self.r.choice(["f", None])
            return b.reduce_(
                lambda acc, x: b.op(operator, acc, b.at(b.map_(element, b.array_literal(x)), 0)),
                self.grow(type_, depth, scope), xs, name=name,
            )  # fmt: skip
        return b.reduce_(f, self.grow(type_, depth, scope), xs, self.r.choice([None, SEQ]))

    def pipe(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term | None:
        xs = self.grow(Array(self.r.choice([0, 1, 2]), random_type(self.r, 1)), depth, scope)
        tile = random_type(self.r, 1)
        load = self.function(b.element_type(xs), tile, depth, scope)
        f = self.function2(type_, tile, type_, depth, scope)
        return b.pipe(f, load, self.grow(type_, depth, scope), xs, slots=2)

    def iteration(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term | None:
        return b.iterate(
            self.r.choice([0, 1, 3]), self.function(type_, type_, depth, scope), self.grow(type_, depth, scope)
        )

    def stored(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term:
        return b.to(LOCAL, self.grow(type_, depth, scope))

    # ---- scalars and tuples ----

    def scalar(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term:
        if type_ is bool_:
            of = self.r.choice([i32, i8, u8])
            return b.op(
                self.r.choice(["eq", "ne", "lt", "le", "gt", "ge"]),
                self.grow(of, depth, scope), self.grow(of, depth, scope),
            )  # fmt: skip
        if type_ is i32 and self.r.random() < 0.2:
            return b.convert(i32, self.grow(self.r.choice([i8, u8, bool_, Index(3), Index(7)]), depth, scope))
        if self.r.random() < 0.2:
            return b.select(self.grow(bool_, depth, scope), *[self.grow(type_, depth, scope) for _ in range(2)])
        if self.r.random() < 0.2:
            return b.op(
                self.r.choice(["abs", "neg", "not"]) if type_ is not u8 else "not", self.grow(type_, depth, scope)
            )
        operator = self.r.choice(["add", "sub", "mul", "min", "max", "and", "or", "xor"])
        return b.op(operator, self.grow(type_, depth, scope), self.grow(type_, depth, scope))

    def tuple(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term:
        assert isinstance(type_, Tuple)
        if type_ is PAIR and self.r.random() < 0.5:
            return b.op(LARGEST, self.grow(PAIR, depth, scope), self.grow(PAIR, depth, scope))
        first, second = type_.items
        if isinstance(first, Array) and isinstance(second, Array) and first.size is second.size:
            if self.r.random() < 0.7:
                return b.unzip(self.grow(Array(first.size, Tuple(first.element, second.element)), depth, scope))
        return b.tuple_(*[self.grow(item, depth, scope) for item in type_.items])

    # ---- arrays ----

    def array(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term | None:
        assert isinstance(type_, Array)
        makers = (self.map, self.map, self.generate, self.literal, self.part, self.padded, self.joined, self.nested,
                  self.concatenated, self.scanned, self.moved, self.zipped, self.scattered)  # fmt: skip
        return self.r.choice(makers)(type_, depth, scope)

    def map(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term:
        xs = self.grow(Array(type_.size, random_type(self.r, 1)), depth, scope)
        f = self.function(b.element_type(xs), type_.element, depth, scope)
        return b.map_(f, xs, self.r.choice([None, SEQ, VEC]), self.r.choice([None, "m"]))

    def generate(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term:
        computed = type_.element is i32 and type_.size.constant and self.r.random() < 0.5
        element = Index(7) if computed else type_.element
        f = self.function(Index(type_.size), element, depth + computed, scope)
        return b.generate(type_.size, lambda i: b.convert(i32, apply(f, i)) if computed else apply(f, i))

    def literal(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term | None:
        n = type_.size.constant
        return b.array_literal(*[self.grow(type_.element, depth, scope) for _ in range(n)]) if n else None

    def part(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term:
        extra = self.r.randrange(3)
        longer = self.grow(Array(type_.size + extra, type_.element), depth, scope)
        return b.take(type_.size, longer) if self.r.random() < 0.5 else b.drop(extra, longer)

    def padded(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term | None:
        n = type_.size.constant
        assert n is not None
        if not n:
            return None
        inner = self.r.randrange(1, n + 1)
        left = self.r.randrange(n - inner + 1)
        xs = self.grow(Array(inner, type_.element), depth, scope)
        mode = self.r.choice(["fill", "clamp", "mirror", "wrap"])
        if mode == "fill":
            return b.pad(left, n - inner - left, self.grow(type_.element, depth, scope), xs)
        return b.pad_mode(mode, left, n - inner - left, xs)

    def joined(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term:
        n = type_.size.constant
        assert n is not None
        inner = self.r.choice([d for d in range(1, n + 1) if n % d == 0] or [2])
        return b.join(self.grow(array(n // inner, inner, type_.element), depth, scope))

    def nested(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term | None:
        if not isinstance(type_.element, Array):
            return b.replicate(type_.size, self.grow(type_.element, depth, scope))
        n, m, element = type_.size.constant, type_.element.size.constant, type_.element.element
        assert n is not None
        assert m is not None
        choice = self.r.choice([0, 0, 1, 2, 2, 3])
        if choice == 0 and m:
            return b.split(m, self.grow(Array(n * m, element), depth, scope))
        if choice == 1:
            return b.transpose(self.grow(array(m, n, element), depth, scope))
        if choice == 2 and n:
            step = self.r.randrange(1, 3)
            return b.slide(m, step, self.grow(Array((n - 1) * step + m, element), depth, scope))
        return b.replicate(n, self.grow(type_.element, depth, scope))

    def concatenated(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term:
        n = type_.size.constant
        assert n is not None
        first = self.r.randrange(n + 1)
        return b.concat(*[self.grow(Array(k, type_.element), depth, scope) for k in (first, n - first)])

    def scanned(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term | None:
        xs = self.grow(Array(type_.size, random_type(self.r, 1)), depth, scope)
        if type_.element in (i32, i8, u8) and b.element_type(xs) is type_.element:
            return b.scan(b.add, self.grow(type_.element, depth, scope), xs)
        f = self.function2(type_.element, b.element_type(xs), type_.element, depth, scope)
        return b.scan(f, self.grow(type_.element, depth, scope), xs)

    def moved(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term | None:
        n = type_.size.constant
        if not n:
            return None
        if self.r.random() < 0.5:
            s = self.r.choice([d for d in range(1, n + 1) if n % d == 0])
            return b.reindex(self.r.choice([reverse(n), stride(s, n)]), self.grow(type_, depth, scope))
        source = self.r.randrange(1, 4)
        ids = self.grow(array(n, Index(source)), depth, scope)
        return b.gather(ids, self.grow(Array(source, type_.element), depth, scope))

    def zipped(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term | None:
        if not isinstance(type_.element, Tuple):
            return None
        return b.zip_(*[self.grow(Array(type_.size, item), depth, scope) for item in type_.element.items])

    def scattered(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term | None:
        n = type_.size.constant
        if not n:
            return None
        if type_.element in (i32, i8, u8) and self.r.random() < 0.5:
            count = self.r.randrange(4)
            mode = OPERATORS[self.r.choice(["add", "max", "mul"])]
            ids = self.grow(array(count, Index(n)), depth, scope)
            return b.scatter(mode, ids, self.grow(Array(count, type_.element), depth, scope))
        ids = b.reindex(reverse(n), b.generate(n, lambda i: i))
        return b.scatter("permutation", ids, self.grow(type_, depth, scope))
