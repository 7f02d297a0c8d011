"""Index normal forms and conditions as C expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from lithify.arith import Atom, Expr, Floor, Loaded, Min, Variable, Xor, const, proves
from lithify.kernel.ir import Guard
from lithify.targets.cdialect.dialect import Dialect
from lithify.targets.cdialect.text import BITS, LOGIC, PLUS, PRIMARY, QUOTIENT, RELATION, TIMES, UNARY, Text
from lithify.targets.cdialect.width import Widths

LoadIndex = Callable[[Loaded], Text]


class IndexPrinter:
    """Writes index forms over the variables that have a name.

    Every form is written in signed 32-bit arithmetic where no intermediate value can leave it, else in 64-bit.
    `size_bits` is the width that is taken for forms whose range depends on sizes; `widths.assumed` says when it is
    enough.
    """

    def __init__(self, dialect: Dialect, size_bits: int, auxiliaries: set[str], load: LoadIndex) -> None:
        self.dialect = dialect
        self.widths = Widths(size_bits)
        self.names: dict[Variable, str] = {}
        self.declared_bits: dict[Variable, int] = {}
        self._auxiliaries = auxiliaries
        self._load = load

    def bits(self, forms: Iterable[Expr]) -> int:
        """The width in which the forms can be evaluated."""
        return max((self.widths.bits(e) for e in forms), default=32)

    def declare(self, variable: Variable, name: str, extent: Expr | None = None) -> str:
        """Give a variable its name; returns the type to declare it with. A loop counts up to its extent."""
        forms = [form for form in (variable.last or variable.expr, extent) if form is not None]
        bits = self.bits(forms)
        self.names[variable], self.declared_bits[variable] = name, bits
        return self.dialect.index_types[bits]

    def text(self, e: Expr, bits: int | None = None) -> Text:
        """The form as an expression, of the width that it needs or of the width given."""
        return self._sum(e, self.bits([e]) if bits is None else bits)

    # ---- sums and products ------------------------------------------------------------------------------------

    def _sum(self, e: Expr, bits: int) -> Text:
        parts, rest = self._remainders(e, bits)
        terms = [(c < 0, self._monomial(abs(c), m, bits)) for m, c in rest.terms]
        terms = [(c < 0, self._scaled(abs(c), t)) for c, t in parts] + terms
        if rest.offset or not terms:
            terms.append((rest.offset < 0, Text(str(abs(rest.offset)))))
        terms.sort(key=lambda term: term[0])  # positive ones first
        if len(terms) == 1:
            negative, only = terms[0]
            return Text(f"-{only.within(PRIMARY)}", UNARY) if negative else only
        first = f"-{terms[0][1].within(PRIMARY)}" if terms[0][0] else terms[0][1].within(PLUS)
        others = [f"{'-' if negative else '+'} {term.within(QUOTIENT)}" for negative, term in terms[1:]]
        return Text(" ".join([first, *others]), PLUS)

    def _monomial(self, coefficient: int, monomial: tuple[Atom, ...], bits: int) -> Text:
        factors = [self._atom(atom, bits) for atom in monomial]
        product = factors[0]
        for factor in factors[1:]:
            product = Text(f"{product.within(TIMES)} * {factor.within(UNARY)}", TIMES)
        return self._scaled(coefficient, product)

    def _scaled(self, coefficient: int, product: Text) -> Text:
        if coefficient == 1:
            return product
        return Text(f"{coefficient} * {product.within(TIMES)}", TIMES)

    def _remainders(self, e: Expr, bits: int) -> tuple[list[tuple[int, Text]], Expr]:
        """The parts k (x - c floor(x / c)) of a sum, written `k * (x % c)`, and what is left of it."""
        parts: list[tuple[int, Text]] = []
        for monomial, coefficient in e.terms:
            atom = monomial[0]
            if len(monomial) > 1 or not isinstance(atom, Floor) or atom.divisor.constant is None:
                continue
            for c in _divisors(abs(coefficient)):
                k = -coefficient // c
                if c == 1 or atom.divisor.constant % c:
                    continue
                x = atom.numerator // (atom.divisor.constant // c)
                if not proves(x) or x // c is not atom.expr:
                    continue
                rest = e - (x - atom.expr * c) * k
                if len(rest.terms) == len(e.terms) - 1 - len(x.terms):
                    inner = self._sum(x, bits)
                    parts.append((k, Text(f"{inner.within(TIMES)} % {c}", QUOTIENT)))
                    more, rest = self._remainders(rest, bits)
                    return parts + more, rest
        return parts, e

    # ---- atoms ------------------------------------------------------------------------------------------------

    def _atom(self, atom: Atom, bits: int) -> Text:
        if isinstance(atom, Variable):
            name = self.names[atom]
            if self.declared_bits[atom] < bits:
                return Text(f"({self.dialect.index_types[bits]}){name}", UNARY)
            return Text(name)
        if isinstance(atom, Floor):
            return self._floor(atom.numerator, atom.divisor, bits)
        if isinstance(atom, Xor):
            left, right = self._sum(atom.left, bits), self._sum(atom.right, bits)
            return Text(f"{left.within(UNARY)} ^ {right.within(UNARY)}", BITS)
        if isinstance(atom, Min):
            self._auxiliaries.add(f"min_i{bits}")
            return Text(f"min_i{bits}({self._sum(atom.left, bits).text}, {self._sum(atom.right, bits).text})")
        assert isinstance(atom, Loaded)
        value = self._load(atom)
        return Text(f"({self.dialect.index_types[bits]}){value.within(UNARY)}", UNARY)

    def _floor(self, numerator: Expr, divisor: Expr, bits: int) -> Text:
        """C's division truncates, so it is floor(n / d) for n >= 0 only; other numerators are moved up first."""
        d = divisor.constant
        by = self._sum(divisor, bits).within(UNARY)
        if proves(numerator):
            return Text(f"{self._sum(numerator, bits).within(TIMES)} / {by}", QUOTIENT)
        if d is not None and not math.isinf(numerator.lo):
            k = -(int(numerator.lo) // d)
            moved = self._sum(numerator + k * d, bits)
            return Text(f"{moved.within(TIMES)} / {by} - {k}", PLUS)
        self._auxiliaries.add(f"floor_i{bits}")
        return Text(f"floor_i{bits}({self._sum(numerator, bits).text}, {self._sum(divisor, bits).text})")

    # ---- conditions -------------------------------------------------------------------------------------------

    def conditions(self, guard: Guard) -> Text:
        """All forms of the guard >= 0. 0 <= e <= c is one unsigned comparison."""
        if any(e.hi < 0 for e in guard):  # compilers warn of comparisons that cannot fail or cannot hold
            return Text("false")
        left = [e for e in guard if e.lo < 0]
        texts: list[Text] = []
        while left:
            e = left.pop(0)
            partner = next((other for other in left if _fixed(e + other)), None)
            if partner is None:
                texts.append(self._condition(e))
            else:
                left.remove(partner)
                texts.append(self._between(e, e + partner))
        if not texts:
            return Text("true")
        if len(texts) == 1:
            return texts[0]
        return Text(" && ".join(t.within(RELATION) for t in texts), LOGIC)

    def _condition(self, e: Expr) -> Text:
        bits = self.bits([e])
        positive, negative = const(0), const(0)
        for monomial, c in e.terms:
            term = _term(monomial, c)
            if c > 0:
                positive = positive + term
            else:
                negative = negative - term
        k = e.offset
        if not negative.terms:  # p >= -k
            return self._comparison(positive, ">=", const(-k), bits)
        if not positive.terms:  # n <= k, written n < k + 1
            return self._comparison(negative, "<", const(k + 1), bits)
        if k == -1:
            return self._comparison(negative, "<", positive, bits)
        if k >= 0:
            return self._comparison(negative, "<=", positive + k, bits)
        return self._comparison(negative - k, "<=", positive, bits)

    def _comparison(self, left: Expr, symbol: str, right: Expr, bits: int) -> Text:
        bits = max(bits, self.bits([left, right]))
        a, b = self._sum(left, bits), self._sum(right, bits)
        return Text(f"{a.within(PLUS)} {symbol} {b.within(PLUS)}", RELATION)

    def _between(self, e: Expr, last: Expr) -> Text:
        """0 <= e <= last, for last >= 0: a negative e is a large unsigned number."""
        bits = self.bits([e, last + 1])
        type_ = self.dialect.unsigned_index_types[bits]
        value = self._sum(e, bits)
        if last.constant is not None:
            limit = f"{last.constant + 1}u"
        else:
            limit = f"({type_}){self._sum(last + 1, bits).within(PRIMARY)}"
        return Text(f"({type_}){value.within(PRIMARY)} < {limit}", RELATION)


def _fixed(e: Expr) -> bool:
    """Whether the form is known to be >= 0 and does not change while the kernel runs."""
    return proves(e) and all(v.last is None for v in e.variables())


def _term(monomial: tuple[Atom, ...], coefficient: int) -> Expr:
    product = const(coefficient)
    for atom in monomial:
        product = product * atom.expr
    return product


def _divisors(n: int) -> list[int]:
    """The divisors of n, largest first."""
    small = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0] if n < 1 << 40 else [1]
    return sorted({*small, *(n // d for d in small)}, reverse=True)
