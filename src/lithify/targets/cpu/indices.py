"""Index normal forms and conditions of the kernel language in LLVM IR.

Inside `Lanes` an index is a vector where it depends on the lane.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lithify.arith import Atom, Expr, Floor, Loaded, Min, Variable, Xor
from lithify.kernel import ir
from lithify.kernel.walk import index_accesses
from lithify.lang.errors import Rejected
from lithify.lang.scalars import Scalar, i64
from lithify.targets.cpu.builder import Builder, Module, Value
from lithify.targets.cpu.conversion import Parts


class IndexEmitter(Builder):
    """Prints indices and conditions into one function; `variables` holds the loop variables and sizes in scope."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.variables: dict[Variable, Value] = {}
        self.lane: Variable | None = None
        self.width = 0
        self.mask: Value | None = None  # of the enclosing Ifs whose guards depend on the lane
        self._indices: dict[Expr, Value] = {}

    def bind(self, values: Mapping[Variable, Value]) -> None:
        """Variables in scope from here on."""
        self.variables.update(values)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is forgotten at the end: it does not dominate what follows."""
        saved = dict(self._indices)
        try:
            yield
        finally:
            self._indices = saved

    @contextmanager
    def lanes(self, variable: Variable, width: int) -> Iterator[None]:
        """Inside, `variable` is the lane."""
        if self.lane is not None:
            raise Rejected("a map[vec] inside a map[vec]", hint="make one of them seq or unroll")
        with self.scope():
            self.lane, self.width = variable, width
            try:
                yield
            finally:
                self.lane, self.width = None, 0

    def branch(self, condition: Value, then: Callable[[], None], otherwise: Callable[[], None] | None) -> None:
        """Print what runs where a scalar i1 holds, and what runs elsewhere."""
        label = self.fresh("if")
        target = f"{label}.else" if otherwise else f"{label}.end"
        self.line(f"br i1 {condition.text}, label %{label}, label %{target}")
        for name, body in ((label, then), (target, otherwise)):
            if body is None:
                continue
            self.start(name)
            with self.scope():
                body()
            self.line(f"br label %{label}.end")
        self.start(f"{label}.end")

    # ---- indices -----------------------------------------------------------------------------------------------

    def depends_on_lane(self, *forms: Expr) -> bool:
        """Whether any of the forms has different values in different lanes."""
        return self.lane is not None and any(self.lane in form.variables() for form in forms)

    def index(self, form: Expr) -> Value:
        """A form as an i64; a vector where it depends on the lane."""
        found = self._indices.get(form)
        if found is not None:
            return found
        total: Value | None = None
        for monomial, coefficient in form.terms:
            term = self._atom(monomial[0])
            for atom in monomial[1:]:
                term = self._integer("mul nsw", term, self._atom(atom))
            if coefficient != 1:
                term = self._integer("mul nsw", term, term.like(coefficient))
            total = term if total is None else self._integer("add nsw", total, term)
        if total is None:
            return self.constant("i64", form.offset)
        if form.offset:
            total = self._integer("add nsw", total, total.like(form.offset))
        self._remember(form, total)
        return total

    def _remember(self, form: Expr, value: Value) -> None:
        """For later uses, unless it is read from memory that may be written before them."""
        if all(buffer.role == "input" for buffer, _ in index_accesses((form,))):
            self._indices[form] = value

    def _integer(self, operation: str, a: Value, b: Value) -> Value:
        return self.binary(operation, a, b)

    def _atom(self, atom: Atom) -> Value:
        found = self._indices.get(atom.expr)
        if found is None:
            found = self._compute_atom(atom)
            self._remember(atom.expr, found)
        return found

    def _compute_atom(self, atom: Atom) -> Value:
        if isinstance(atom, Variable):
            if atom is self.lane:
                return self.vector("i64", range(self.width))
            return self.variables[atom]
        if isinstance(atom, Floor):
            return self._floor(atom)
        if isinstance(atom, Min):
            a, b = self.index(atom.left), self.index(atom.right)
            return a.compare("lt", b).choose(a, b)
        if isinstance(atom, Xor):
            return self.index(atom.left) ^ self.index(atom.right)
        if isinstance(atom, Loaded):
            if not isinstance(atom.buffer, ir.Buffer):
                raise AssertionError(f"{atom} is loaded from {atom.buffer!r}, which is no buffer of the kernel")
            return self.value(ir.Load(atom.buffer, atom.index), i64)[0]
        raise AssertionError(f"{atom} is no atom that the CPU knows")

    def _floor(self, atom: Floor) -> Value:
        numerator, divisor = self.index(atom.numerator), self.index(atom.divisor)
        if atom.numerator.lo >= 0:
            return self.binary("udiv", numerator, divisor)
        constant = atom.divisor.constant
        if constant is not None and constant & (constant - 1) == 0:
            return numerator.ashr(constant.bit_length() - 1)
        quotient = self.binary("sdiv", numerator, divisor)
        rest = numerator - quotient * divisor
        return rest.compare("lt", 0).choose(quotient - 1, quotient)

    @abstractmethod
    def value(self, value: ir.Value, target: Scalar | None = None) -> Parts:
        """The parts of a value, converted to `target` if that is given."""

    # ---- guards ------------------------------------------------------------------------------------------------

    def guard(self, conditions: ir.Guard) -> tuple[Value | None, Value | None]:
        """The conjunction of the conditions: what is the same in all lanes, and what is not (i1, vector of i1)."""
        scalar: Value | None = None
        vector: Value | None = None
        for form in conditions:
            if self.depends_on_lane(form):
                one = self._lane_condition(form)
                vector = one if vector is None else vector & one
            else:
                one = self.index(form).compare("ge", 0)
                scalar = one if scalar is None else scalar & one
        return scalar, vector

    def _lane_condition(self, form: Expr) -> Value:
        assert self.lane is not None
        stride = form.coefficient(self.lane)
        if stride not in (1, -1):
            return self.index(form).compare("ge", 0)
        # lane <= base or lane >= -base, compared in 32 bits, which is half the work
        base = self.index(form - self.lane.expr * stride)
        limit = self.constant("i64", self.width)
        base = self.intrinsic("smax", self.intrinsic("smin", base, limit), self.constant("i64", -self.width - 1))
        short = base.cast("trunc", "i32")
        numbers = self.vector("i32", range(self.width))
        return numbers.compare("le", short) if stride < 0 else numbers.compare("ge", -short)

    def lane_mask(self, conditions: ir.Guard) -> Value | None:
        """The conditions and the enclosing masks as one vector of i1; None where everything holds."""
        scalar, vector = self.guard(conditions)
        parts = [v.splat(self.width) for v in (self.mask, vector, scalar) if v is not None]
        if not parts:
            return None
        result = parts[0]
        for part in parts[1:]:
            result = result & part
        return result

    def condition(self, conditions: ir.Guard) -> Value | None:
        """The conjunction of the conditions as one i1, a vector where they differ from lane to lane; None if empty."""
        scalar, vector = self.guard(conditions)
        if scalar is None or vector is None:
            return vector if scalar is None else scalar
        return vector & scalar
