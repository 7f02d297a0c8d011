"""Statements and whole kernel bodies as C text."""

from __future__ import annotations

from dataclasses import replace

from lithify.arith import Expr
from lithify.kernel.ir import (
    Async,
    AtomicUpdate,
    Barrier,
    Block,
    Commit,
    If,
    Kernel,
    Lanes,
    LastGroup,
    Loop,
    Statement,
    Store,
    Value,
    Wait,
)
from lithify.lang.errors import LithifyError
from lithify.lang.levels import PAR
from lithify.targets.cdialect.atomics import atomic_lines
from lithify.targets.cdialect.blocks import readable_block
from lithify.targets.cdialect.declarations import Declarations, Parameters
from lithify.targets.cdialect.dialect import Dialect, computed
from lithify.targets.cdialect.lanes import LaneSplitter, Leaf
from lithify.targets.cdialect.names import KEYWORDS, Names
from lithify.targets.cdialect.registers import Place
from lithify.targets.cdialect.text import Text
from lithify.targets.cdialect.values import ValuePrinter, shared_values, store_text
from lithify.targets.cdialect.vector_values import can_be_vector
from lithify.targets.cdialect.vectors import VectorPrinter

INDENT = "  "


class KernelPrinter:
    """Writes the body of one kernel: declarations, then statements.

    After `body()`, `values.auxiliaries` names the functions of the preamble that it calls.
    """

    def __init__(
        self, kernel: Kernel, parameters: Parameters, dialect: Dialect, size_bits: int, alignment: int = 1
    ) -> None:
        self.dialect = dialect
        self.values = ValuePrinter(dialect, size_bits)
        self.names = Names(KEYWORDS | dialect.reserved)
        self._lines: list[str] = []
        self._depth = 1
        self._parallel = 0  # parallel loops entered
        splitter = LaneSplitter(self._lane_width)
        body = splitter.block(kernel.body)
        self.kernel = replace(kernel, body=body, scratch=(*kernel.scratch, *splitter.scratch))
        for buffer in parameters.buffers:
            known = max(buffer.alignment, alignment)
            block = readable_block(kernel, buffer, known, buffer in parameters.written, dialect)
            name = self.names.fresh(buffer.name)
            volatile = buffer in parameters.handed_over
            place = Place(name, buffer, known, stored=buffer.role != "scalar", block=block, volatile=volatile)
            self.values.places[buffer] = place
        self.size_types = {v: self.values.indices.declare(v, self.names.fresh(v.name)) for v in parameters.sizes}
        self._declarations = Declarations(self.kernel, self.values, self.names, self.line)

    @property
    def workspace_bytes(self) -> Expr:
        """The bytes of workspace that the kernel needs for each thread."""
        return self._declarations.workspace_bytes

    def body(self) -> list[str]:
        """The lines of the function's body."""
        self._declarations.at_the_top()
        self._block(self.kernel.body)
        return self._lines

    def _lane_width(self, statement: Leaf, width: int) -> int:
        """In how many lanes at a time a statement is written."""
        vectors = self.dialect.vectors
        if vectors is None:
            return width
        if not can_be_vector(statement, self.dialect):
            return 1
        return next((w for w in vectors.widths if width % w == 0), 1)

    # ---- lines ------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """One line; braces indent."""
        if text.startswith("}"):
            self._depth -= 1
        self._lines.append(text if text.startswith("#") else INDENT * self._depth + text)
        if text.split("//")[0].rstrip().endswith("{"):
            self._depth += 1

    # ---- statements -------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for statement in block:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Store() | AtomicUpdate():
                self._leaf(statement)
            case Lanes():
                self._lanes(statement)
            case Loop():
                self._loop(statement)
            case If():
                self._if(statement)
            case Barrier():
                self._barrier(statement)
            case LastGroup():
                self._last_group(statement)
            case Async():  # landing at once is one of the orders that an asynchronous copy may take
                self._block(statement.body)
            case Commit() | Wait():
                pass

    def _leaf(self, statement: Leaf) -> None:
        shared = shared_values(statement.value)
        if statement.guard:
            self.line(f"if ({self.values.indices.conditions(statement.guard).text}) {{")
        elif shared:
            self.line("{")
        kept = [self._keep(value) for value in shared]
        if isinstance(statement, Store):
            self.line(self._store(statement))
        else:
            self._atomic(statement)
        for value, name in zip(shared, kept, strict=True):
            del self.values.named[id(value)]
            self.names.release(name)
        if statement.guard or shared:
            self.line("}")

    def _keep(self, value: Value) -> str:
        """A variable for a value that occurs more than once."""
        name = self.names.fresh("shared")
        self.line(f"const {self.dialect.types[computed(value.scalar)]} {name} = {self.values.value(value).text};")
        self.values.named[id(value)] = Text(name)
        return name

    def _store(self, statement: Store) -> str:
        place = self.values.places[statement.buffer]
        position = statement.position
        value = self.values.value(statement.value)
        if place.cells is not None:
            assert position.constant is not None
            return self._assign_cell(place, position.constant, value)
        return store_text(self.values, place, self.values.indices.text(position), value)

    def _assign_cell(self, place: Place, position: int, value: Text) -> str:
        assert place.cells is not None
        _, _, width = place.cells[position]
        if width > 1 and place.buffer.scalar.name == "bool":
            value = Text(f"({value.text}) ? -1 : 0")
        return f"{self.values.component(place, position)} = {value.text};"

    def _atomic(self, statement: AtomicUpdate) -> None:
        place = self.values.places[statement.buffer]
        for text in atomic_lines(self.values, place, statement):
            self.line(text)

    def _lanes(self, statement: Lanes) -> None:
        (leaf,) = statement.body
        if self.dialect.vectors is not None:
            assert isinstance(leaf, Store)
            for text in VectorPrinter(self.values, self.names, statement.variable, statement.width).store(leaf):
                self.line(text)
            return
        name = self.names.fresh(statement.variable.name)
        type_ = self.values.indices.declare(statement.variable, name)
        if self.dialect.lane_pragma:
            self.line(self.dialect.lane_pragma)
        self.line(f"for ({type_} {name} = 0; {name} < {statement.width}; ++{name}) {{")
        self._statement(leaf)
        self.line("}")
        self.names.release(name)

    def _loop(self, statement: Loop) -> None:
        extent = self.values.indices.text(statement.extent)
        name = self.names.fresh(statement.variable.name)
        type_ = self.values.indices.declare(statement.variable, name, statement.extent)
        parallel = statement.level == PAR and not self._parallel
        if parallel and self.dialect.parallel_pragma:
            self.line(self.dialect.parallel_pragma)
        comment = f"  // {statement.name}" if statement.name and statement.name != name else ""
        self.line(f"for ({type_} {name} = 0; {name} < {extent.text}; ++{name}) {{{comment}")
        if parallel:
            self._declarations.in_parallel_loop(statement)
        self._parallel += parallel
        self._block(statement.body)
        self._parallel -= parallel
        self.line("}")
        self.names.release(name)

    def _if(self, statement: If) -> None:
        self.line(f"if ({self.values.indices.conditions(statement.guard).text}) {{")
        self._block(statement.body)
        if statement.otherwise:
            self.line("} else {")
            self._block(statement.otherwise)
        self.line("}")

    def _last_group(self, statement: LastGroup) -> None:
        forms = self.dialect.last_group
        if forms is None:
            raise LithifyError(f"{self.dialect.name} cannot tell which of several groups is the last")
        item = self.dialect.hardware["item"]
        first = [f"{item.format(dim=dim)} == 0" for dim, extent in enumerate(self.kernel.group) if extent.constant != 1]
        self.values.auxiliaries.add(forms.auxiliary)
        for line in forms.lines:
            self.line(
                line.format(
                    flag=self._declarations.flag,
                    first=" && ".join(first) or "true",
                    counter=self.values.places[statement.buffer].name,
                    index=self.values.indices.text(statement.position).text,
                    groups=self.values.indices.text(statement.groups).text,
                )
            )
        self._block(statement.body)
        self.line("}")

    def _barrier(self, statement: Barrier) -> None:
        form = self.dialect.barriers.get(statement.scope)
        if form is None:
            raise LithifyError(f"{self.dialect.name} has no barrier for a {statement.scope}")
        fences = dict.fromkeys(self.dialect.fences[memory] for memory in statement.memory)
        self.line(form.format(fences=" | ".join(fences)))
