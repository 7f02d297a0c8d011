"""A kernel program as text that explains itself: used in errors, in the documentation and in golden tests."""

from __future__ import annotations

from collections.abc import Iterator

from lithify.arith import Expr, Variable
from lithify.kernel import ir


def show(program: ir.Program) -> str:
    """The whole program: its buffers, then each kernel with its launch and its statements."""
    lines = [f"program {program.name}"]
    if program.sizes:
        lines.append(f"  sizes {', '.join(v.name for v in program.sizes)}")
    for title, buffers in (
        ("parameter", program.parameters),
        ("result", program.results),
        ("temporary", program.temporaries),
    ):
        lines += [f"  {title} {declaration(buffer)}" for buffer in buffers]
    for kernel in program.kernels:
        lines += [f"  {line}" for line in show_kernel(kernel).splitlines()]
    return "\n".join(lines) + "\n"


def show_kernel(kernel: ir.Kernel) -> str:
    """One kernel as text."""
    launch = ""
    if kernel.grid or kernel.group:
        launch = f" grid ({', '.join(map(str, kernel.grid))}) group ({', '.join(map(str, kernel.group))})"
    lines = [f"kernel {kernel.name}{launch}"]
    if kernel.hardware:
        lines.append("  indices " + ", ".join(f"{v.name} = {level}" for level, v in kernel.hardware.items()))
    lines += [f"  {declaration(buffer)} in {buffer.memory}" for buffer in kernel.scratch]
    lines += [f"  {line}" for line in block_lines(kernel.body)]
    return "\n".join(lines) + "\n"


def declaration(buffer: ir.Buffer) -> str:
    """`a : 4.8.f32`."""
    return f"{buffer.name} : " + ".".join([*map(_factor, buffer.shape), str(buffer.scalar)])


def _factor(size: Expr) -> str:
    text = str(size)
    return text if text.replace("_", "").isalnum() else f"({text})"


def block_lines(block: ir.Block) -> Iterator[str]:
    """The statements of a block, one or more lines each."""
    for statement in block:
        yield from _statement(statement)


def _nested(block: ir.Block) -> Iterator[str]:
    for line in block_lines(block):
        yield f"  {line}"


def _statement(s: ir.Statement) -> Iterator[str]:
    match s:
        case ir.Store(buffer, index, value, guard):
            yield f"{_element(buffer, index)} := {show_value(value)}{_where(guard)}"
        case ir.AtomicUpdate(operator, buffer, index, value, guard):
            yield f"{_element(buffer, index)} := atomic {operator.name} {show_value(value)}{_where(guard)}"
        case ir.Loop(variable, extent, level, body, name):
            yield f"for[{level}] {variable.name} < {extent}" + _named(name, variable)
            yield from _nested(body)
        case ir.Lanes(variable, width, body, name):
            yield f"lanes {variable.name} < {width}" + _named(name, variable)
            yield from _nested(body)
        case ir.If(guard, body, otherwise):
            yield f"if {_conditions(guard)}"
            yield from _nested(body)
            if otherwise:
                yield "else"
                yield from _nested(otherwise)
        case ir.Instruction(row, result, operands, _, _):
            a, b, c = map(show_value, operands)
            yield f"{show_value(result)} := {row.name} {a} {b} {c}"
        case ir.LastGroup(buffer, index, groups, body):
            yield f"last of {groups} groups at {_element(buffer, index)}"
            yield from _nested(body)
        case ir.Barrier(scope, memory):
            yield f"barrier {scope} ({', '.join(memory)})"
        case ir.Async(body):
            yield "async"
            yield from _nested(body)
        case ir.Commit():
            yield "commit"
        case ir.Wait(pending):
            yield f"wait {pending}"


def _named(name: str | None, variable: Variable) -> str:
    return f"  -- {name}" if name and name != variable.name else ""


def show_value(value: ir.Value) -> str:
    """A value as an expression."""
    match value:
        case ir.Constant(constant, scalar):
            return f"{constant}:{scalar}"
        case ir.IndexValue(index, scalar):
            return f"{scalar}({index})"
        case ir.Load(buffer, index, guard, fill):
            if not guard:
                return _element(buffer, index)
            return f"({_element(buffer, index)}{_where(guard)} else {'any' if fill is None else show_value(fill)})"
        case ir.Apply(operator, operands, _):
            return f"{operator.name}({', '.join(map(show_value, operands))})"
        case ir.Choose(guard, then, otherwise):
            return f"({show_value(then)}{_where(guard)} else {show_value(otherwise)})"


def _element(buffer: ir.Buffer, index: ir.Index) -> str:
    return f"{buffer.name}[{', '.join(map(str, index))}]"


def _conditions(guard: ir.Guard) -> str:
    return " and ".join(f"{condition} >= 0" for condition in guard)


def _where(guard: ir.Guard) -> str:
    return f" if {_conditions(guard)}" if guard else ""
