"""Surface syntax to text: the inverse of the parser, indented when long."""

from __future__ import annotations

import math

from lithify.lang.syntax import (
    PARTS,
    Application,
    ArrayLiteral,
    ArrayType,
    Attributed,
    Compose,
    Conditional,
    Declaration,
    Expression,
    FunctionType,
    Indexing,
    IndexType,
    Infix,
    Lambda,
    Let,
    Name,
    NamePattern,
    Number,
    OperatorSyntax,
    ParameterPattern,
    Projection,
    Section,
    TupleExpression,
    TupleType,
    TypeName,
    TypeSyntax,
)

_POWER = {
    "||": 2, "&&": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "<<": 5, ">>>": 5,
    "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "^": 9,
}  # fmt: skip
_ANYTHING, _LOOSEST, _COMPOSE, _APPLICATION, _ATOM = -1, 0, 10, 11, 12


def unparse(expression: Expression, width: int = 100, indent: int = 0) -> str:
    """The text of an expression; lines are broken where they would be longer than `width`."""
    return _Layout(width).render(expression, _ANYTHING, indent)


def unparse_type(type_: TypeSyntax) -> str:
    """The text of a type."""
    if isinstance(type_, TypeName):
        return type_.name
    if isinstance(type_, ArrayType):
        size = unparse(type_.size)
        element = unparse_type(type_.element)
        if isinstance(type_.element, FunctionType):
            element = f"({element})"
        return f"{size}.{element}" if isinstance(type_.size, Name | Number) else f"({size}).{element}"
    if isinstance(type_, IndexType):
        return f"idx[{unparse(type_.size)}]"
    if isinstance(type_, TupleType):
        return "(" + ", ".join(map(unparse_type, type_.items)) + ")"
    left = unparse_type(type_.parameter)
    return (
        f"({left}) -> " + unparse_type(type_.result)
        if isinstance(type_.parameter, FunctionType)
        else (f"{left} -> {unparse_type(type_.result)}")
    )


def unparse_declaration(declaration: Declaration, width: int = 100) -> str:
    """The text of a definition or an operator."""
    if isinstance(declaration, OperatorSyntax):
        layout = _Layout(width)
        parts = ["operator", declaration.name, layout.render(declaration.definition, _ATOM, 2), *declaration.properties]
        for name in PARTS:
            part: Expression | None = getattr(declaration, name)
            if part is not None:
                parts += [name, layout.render(part, _ATOM, 2)]
        return " ".join(parts)
    head = "" if declaration.annotation is None else f"{declaration.name} : {unparse_type(declaration.annotation)}\n"
    return f"{head}{declaration.name} = {unparse(declaration.value, width, 2)}"


def pattern_text(pattern: ParameterPattern) -> str:
    """The text of a parameter pattern."""
    if isinstance(pattern, NamePattern):
        if pattern.annotation is None:
            return pattern.name
        return f"({pattern.name} : {unparse_type(pattern.annotation)})"
    return "(" + ", ".join(map(pattern_text, pattern.items)) + ")"


def _number(value: int | float | complex) -> str:
    if isinstance(value, complex):
        return repr(value.imag) + "j"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 and math.copysign(1, value) > 0:
        return str(int(value))
    return repr(value)


def _negative(value: int | float | complex) -> bool:
    return not isinstance(value, complex) and (math.copysign(1, value) < 0)


class _Layout:
    def __init__(self, width: int) -> None:
        self.width = width
        self.flat: dict[int, str] = {}  # by identity: sub-expressions are measured once

    def render(self, e: Expression, power: int, indent: int) -> str:
        """The text of `e` in a place that binds with `power`, its first line starting at column `indent`."""
        flat = self.one_line(e)
        strength = _strength(e)
        if strength <= power:
            if indent + len(flat) + 2 <= self.width:
                return f"({flat})"
            return f"({self.broken(e, indent + 1)})" if not isinstance(e, Lambda) else self.lambda_(e, indent)
        return flat if indent + len(flat) <= self.width else self.broken(e, indent)

    def one_line(self, e: Expression) -> str:
        found = self.flat.get(id(e))
        if found is None:
            found = self.flat[id(e)] = self._one_line(e)
        return found

    def _one_line(self, e: Expression) -> str:
        def part(child: Expression, power: int) -> str:
            text = self.one_line(child)
            return f"({text})" if _strength(child) <= power else text

        if isinstance(e, Name):
            return e.name
        if isinstance(e, Number):
            return _number(e.value)
        if isinstance(e, Attributed):
            return _attributed(e)
        if isinstance(e, Lambda):
            return f"{_binder(e)} {part(e.body, _ANYTHING)}"
        if isinstance(e, Application):
            if e.call:
                return part(e.function, _APPLICATION) + "(" + ", ".join(part(a, _ANYTHING) for a in e.arguments) + ")"
            return " ".join([part(e.function, _APPLICATION), *[part(a, _APPLICATION) for a in e.arguments]])
        if isinstance(e, Compose):
            return f"{part(e.outer, _COMPOSE)} . {part(e.inner, _COMPOSE - 1)}"
        if isinstance(e, Infix):
            left, right = _sides(e.symbol)
            return f"{part(e.left, left)} {e.symbol} {part(e.right, right)}"
        if isinstance(e, Section):
            parts = [
                None if e.left is None else part(e.left, _LOOSEST),
                e.symbol,
                None if e.right is None else part(e.right, _LOOSEST),
            ]
            return "(" + " ".join(p for p in parts if p is not None) + ")"
        if isinstance(e, Let):
            return f"let {pattern_text(e.pattern)} = {part(e.value, _ANYTHING)} in {part(e.body, _ANYTHING)}"
        if isinstance(e, Conditional):
            condition, then, otherwise = (part(p, _ANYTHING) for p in (e.condition, e.then, e.otherwise))
            return f"if {condition} then {then} else {otherwise}"
        if isinstance(e, TupleExpression):
            return "(" + ", ".join(part(item, _ANYTHING) for item in e.items) + ")"
        if isinstance(e, ArrayLiteral):
            return "[" + ", ".join(part(item, _ANYTHING) for item in e.items) + "]"
        if isinstance(e, Projection):
            return f"{part(e.value, _behind(e.value))}.{e.component}"
        if isinstance(e, Indexing):
            return f"{part(e.array, _behind(e.array))}[{part(e.index, _ANYTHING)}]"
        return f"({part(e.value, _ANYTHING)} : {unparse_type(e.type)})"

    # ---- several lines -----------------------------------------------------------------------------------------------

    def broken(self, e: Expression, indent: int) -> str:
        line = "\n" + " " * indent
        if isinstance(e, Lambda):
            return f"{_binder(e)}{line}  {self.render(e.body, _ANYTHING, indent + 2)}"
        if isinstance(e, Application) and not e.call:
            return self.application(e, indent)
        if isinstance(e, Application):
            inside = f",{line}  ".join(self.render(a, _ANYTHING, indent + 2) for a in e.arguments)
            return f"{self.render(e.function, _APPLICATION, indent)}({line}  {inside}{line})"
        if isinstance(e, Compose):
            outer = self.render(e.outer, _COMPOSE, indent)
            return f"{outer} .{line}{self.render(e.inner, _COMPOSE - 1, indent)}"
        if isinstance(e, Infix):
            left, right = _sides(e.symbol)
            return f"{self.render(e.left, left, indent)} {e.symbol}{line}{self.render(e.right, right, indent)}"
        if isinstance(e, Let):
            value = self.render(e.value, _ANYTHING, indent + 2)
            body = self.render(e.body, _ANYTHING, indent)
            return f"let {pattern_text(e.pattern)} ={line}  {value}{line}in{line}{body}"
        if isinstance(e, Conditional):
            parts = [self.render(part, _ANYTHING, indent + 5) for part in (e.condition, e.then, e.otherwise)]
            return f"if   {parts[0]}{line}then {parts[1]}{line}else {parts[2]}"
        if isinstance(e, TupleExpression | ArrayLiteral):
            opening, closing = "()" if isinstance(e, TupleExpression) else "[]"
            return opening + f",{line} ".join(self.render(item, _ANYTHING, indent + 1) for item in e.items) + closing
        return self.one_line(e)

    def application(self, e: Application, indent: int) -> str:
        text = self.render(e.function, _APPLICATION, indent)
        line = "\n" + " " * indent
        for argument in e.arguments:
            flat = self.one_line(argument)
            column = len(text) - text.rfind("\n") - 1 + (0 if "\n" in text else indent)
            if column + len(flat) + 3 <= self.width:
                text += " " + (f"({flat})" if _strength(argument) <= _APPLICATION else flat)
            elif isinstance(argument, Lambda):
                text += " " + self.lambda_(argument, indent)
            else:
                text += f"{line}  " + self.render(argument, _APPLICATION, indent + 2)
        return text

    def lambda_(self, e: Lambda, indent: int) -> str:
        """A bracketed function over several lines, as the slides print it."""
        line = "\n" + " " * indent
        return f"({_binder(e)}{line}  {self.render(e.body, _ANYTHING, indent + 2)}{line})"


def _sides(symbol: str) -> tuple[int, int]:
    power = _POWER[symbol]
    if symbol == "^":
        return power, power - 1
    return (power, power) if power == 4 else (power - 1, power)


def _behind(e: Expression) -> int:
    """How tightly what is written behind an expression binds; `0.1` would be a number."""
    return _ATOM if isinstance(e, Number) else _APPLICATION


def _strength(e: Expression) -> int:
    """How tightly the outermost construct of an expression binds."""
    if isinstance(e, Number):
        return _LOOSEST if _negative(e.value) else _ATOM
    if isinstance(e, Lambda | Let | Conditional):
        return _LOOSEST
    if isinstance(e, Infix):
        return _POWER[e.symbol]
    if isinstance(e, Compose):
        return _COMPOSE
    if isinstance(e, Application):
        return _ATOM if e.call else _APPLICATION
    return _ATOM


def _binder(e: Lambda) -> str:
    return "λ" + " ".join(map(pattern_text, e.parameters)) + "."


def _attributed(e: Attributed) -> str:
    attributes = "[" + ", ".join(e.attributes) + "]" if e.attributes else ""
    return e.name + attributes + ("" if e.label is None else f"@{e.label}")
