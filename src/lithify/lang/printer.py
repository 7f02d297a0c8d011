"""Core terms to surface syntax and text, such that reading the text gives back the same term.

Literals are written bare where the reader finds their type from the context, and with it otherwise (`f32 0`). Bound
variables get names that are free where they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from lithify.arith import Expr
from lithify.lang.build import constant_value, filled, length
from lithify.lang.coerce import as_term
from lithify.lang.elaborate import Elaborator
from lithify.lang.errors import TypeMismatch
from lithify.lang.index_functions import IndexFormula, IndexFunction, operand_variable, reverse, stride
from lithify.lang.operators import OPERATORS, Operator, Typing
from lithify.lang.parser import parse_expression
from lithify.lang.positions import Position
from lithify.lang.scalars import SCALARS, Scalar, bool_
from lithify.lang.syntax import (
    Annotation,
    Application,
    ArrayLiteral,
    ArrayType,
    Attributed,
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
    Projection,
    Section,
    TupleExpression,
    TupleType,
    TypeName,
    TypeSyntax,
)
from lithify.lang.term import Term, below_parameters, subterms
from lithify.lang.types import Array, Function, Index, Tuple, Type, sizes_in
from lithify.lang.unparse import unparse

_ONE_LINE = 1 << 30
_RESERVED = frozenset({"i", "let", "in", "if", "then", "else", "true", "false", "inf", "nan", *OPERATORS, *SCALARS})


def show(term: Term, width: int = 100) -> str:
    """The text of a term, broken into indented lines where it is longer than `width`."""
    return unparse(to_syntax(term), width)


def show_program(term: Term, parameters: list[tuple[str, Type]], width: int = 100) -> str:
    """The text of a term under its annotated parameters: a complete program."""
    patterns = tuple(NamePattern(name, type_syntax(type_)) for name, type_ in parameters)
    body = to_syntax(term)
    return unparse(Lambda(patterns, body) if patterns else body, width)


def to_syntax(term: Term) -> Expression:
    """The surface syntax of a term (dangling indices are written `?0`, which cannot be read)."""
    return _Printer(term).expression(term, ())


@lru_cache(maxsize=4096)
def size_syntax(size: Expr) -> Expression:
    """The surface syntax of a size."""
    return parse_expression(str(size))


def type_syntax(type_: Type) -> TypeSyntax:
    """The surface syntax of a type."""
    if isinstance(type_, Array):
        return ArrayType(size_syntax(type_.size), type_syntax(type_.element))
    if isinstance(type_, Index):
        return IndexType(size_syntax(type_.size))
    if isinstance(type_, Tuple):
        return TupleType(tuple(type_syntax(item) for item in type_.items))
    if isinstance(type_, Function):
        return FunctionType(type_syntax(type_.parameter), type_syntax(type_.result))
    return TypeName(str(type_))


Scope = tuple[str, ...]  # the names of the enclosing lambdas, innermost first


class _Printer:
    def __init__(self, term: Term) -> None:
        self.taken = term.parameters | _RESERVED | {str(v) for size in _sizes(term) for v in size.variables()}

    # ---- names -------------------------------------------------------------------------------------------------------

    def fresh(self, base: str, scope: Scope) -> str:
        name, count = base, 0
        while name in self.taken or name in scope:
            count += 1
            name = f"{base}{count}"
        return name

    def function(self, f: Term, scope: Scope, *bases: str) -> Expression:
        """A lambda, as a section where it is one."""
        section = _section_of(f)
        if section is not None:
            return section
        names: list[str] = []
        body = f
        for base in bases:
            if body.kind != "lambda":
                break
            name = self.fresh(base, scope)
            names.append(name)
            scope = (name, *scope)
            body = body.args[0]
        return Lambda(tuple(map(NamePattern, names)), self.expression(body, scope))

    # ---- expressions -------------------------------------------------------------------------------------------------

    def expression(self, t: Term, scope: Scope, bare: bool = False) -> Expression:
        """The syntax of `t`; with `bare`, a literal's type is known from where it stands."""
        printer = _BY_KIND.get(t.kind)
        if printer is not None:
            return printer(self, t, scope)
        if t.kind == "const":
            return self.constant(t, bare)
        if t.kind == "index":
            return self.index(t, scope, bare)
        if t.kind == "lambda":
            return self.function(t, scope, *_bases(t))
        sizes = [size_syntax(a) if isinstance(a, Expr) else Number(a) for a in t.attrs]
        return _apply(Name(t.kind), *sizes, *[self.argument(a, scope) for a in t.args])

    def argument(self, t: Term, scope: Scope) -> Expression:
        return self.function(t, scope, *_bases(t)) if t.kind == "lambda" else self.expression(t, scope)

    def constant(self, t: Term, bare: bool) -> Expression:
        value = constant_value(t)
        if isinstance(t.type, Index):
            number: Expression = size_syntax(value) if isinstance(value, Expr) else Number(value)
            return number if bare else Annotation(number, type_syntax(t.type))
        if t.type is bool_:
            return Name("true" if value else "false")
        if isinstance(value, complex):
            literal: Expression = TupleExpression((Number(value.real), Number(value.imag)))
            return _apply(Name(str(t.type)), literal)
        return Number(value) if bare else _apply(Name(str(t.type)), Number(value))

    def variable(self, t: Term, scope: Scope) -> Expression:
        index = t.attrs[0]
        return Name(scope[index]) if index < len(scope) else Name(f"?{index - len(scope)}")

    def operation(self, t: Term, scope: Scope) -> Expression:
        operator: Operator = t.attrs[0]
        bare = [False] * len(t.args)
        if operator.typing in (Typing.SAME, Typing.COMPARE, Typing.SELECT):
            typed = [i for i, a in enumerate(t.args) if i > 0 or operator.typing is not Typing.SELECT]
            known = [i for i in typed if not _is_literal(t.args[i])] or typed[:1]
            bare = [i in typed and i not in known for i in range(len(t.args))]
        operands = [self.expression(a, scope, b) for a, b in zip(t.args, bare, strict=True)]
        if operator.symbol is not None:
            return Infix(operator.symbol, *operands)
        return _apply(Name(operator.name), *operands)

    def reduction(self, t: Term, scope: Scope) -> Expression:
        level, memory, name = t.attrs
        attributes = [] if level is None and memory is None else ["-" if level is None else str(level)]
        attributes += [] if memory is None else [str(memory)]
        function, initial, xs = t.args
        assert isinstance(xs.type, Array)
        return _apply(
            _head(t.kind, attributes, name),
            self.function(function, scope, "acc", "x"),
            self.expression(initial, scope, bare=initial.type is xs.type.element),
            self.expression(xs, scope),
        )

    def map(self, t: Term, scope: Scope) -> Expression:
        level, name = t.attrs
        head = _head("map", [] if level is None else [str(level)], name)
        return _apply(head, self.function(t.args[0], scope, "x"), self.expression(t.args[1], scope))

    def pipe(self, t: Term, scope: Scope) -> Expression:
        slots, lag, roles, name = t.attrs
        attributes = [str(slots), str(lag), *([] if roles is None else [str(roles)])]
        return _apply(
            _head("pipe", attributes, name),
            self.function(t.args[0], scope, "acc", "tile"),
            self.function(t.args[1], scope, "x"),
            *[self.expression(a, scope) for a in t.args[2:]],
        )

    def let(self, t: Term, scope: Scope) -> Expression:
        name = self.fresh("x", scope)
        body = self.expression(t.args[1].args[0], (name, *scope))
        return Let(NamePattern(name), self.expression(t.args[0], scope), body)

    def index(self, t: Term, scope: Scope, bare: bool = False) -> Expression:
        """The formula with its operands in it; with `bare`, its type is known from where it stands."""
        formula: IndexFormula = t.attrs[0]
        names = [str(operand_variable(k, extent)) for k, extent in enumerate(formula.extents)]
        read = size_syntax(formula.expression)
        written = _replaced(read, {n: self.expression(a, scope) for n, a in zip(names, t.args, strict=True)})
        if isinstance(t.type, Scalar):
            return _apply(Name(str(t.type)), written)
        try:
            value = Elaborator().value(read, dict(zip(names, map(Position.of, t.args), strict=True)))
            bare = bare or as_term(value) is t
        except TypeMismatch:
            pass  # it is no index by itself
        return written if bare else Annotation(written, type_syntax(t.type))

    def at(self, t: Term, scope: Scope) -> Expression:
        xs, index = t.args
        known = isinstance(index.type, Index) and index.type.size is length(xs)
        return Indexing(self.expression(xs, scope), self.expression(index, scope, bare=known))

    def array(self, t: Term, scope: Scope) -> Expression:
        known = [i for i, a in enumerate(t.args) if not _is_literal(a)] or [0]
        return ArrayLiteral(tuple(self.expression(a, scope, i not in known) for i, a in enumerate(t.args)))

    def attributed(self, t: Term, scope: Scope) -> Expression:
        if t.kind == "launch":
            attributes = [unparse(_apply(Name(""), *map(size_syntax, sizes)), _ONE_LINE).strip() for sizes in t.attrs]
        else:
            attribute = t.attrs[0]
            attributes = [attribute.name if t.kind == "instr" or isinstance(attribute, Operator) else str(attribute)]
        operands = tuple(self.expression(a, scope) for a in t.args)
        head = Attributed(t.kind, tuple(attributes))
        return Application(head, operands, call=t.kind == "instr")

    def pad(self, t: Term, scope: Scope) -> Expression:
        left, right, mode = t.attrs
        xs = t.args[0]
        how: Expression = Name(mode)
        if mode == "fill":
            fill = t.args[1]
            scalar = _spread(fill, xs.type.element)  # type: ignore[attr-defined]
            how = _apply(
                Name("fill"), self.expression(scalar if scalar is not None else fill, scope, scalar is not None)
            )
        return _apply(Name("pad"), size_syntax(left), size_syntax(right), how, self.expression(xs, scope))

    def variadic(self, t: Term, scope: Scope) -> Expression:
        arguments = tuple(self.expression(a, scope) for a in t.args)
        return Application(Name(t.kind), arguments, call=len(arguments) != 2)

    def reindex(self, t: Term, scope: Scope) -> Expression:
        function: IndexFunction = t.attrs[0]
        xs = self.expression(t.args[0], scope)
        known = _known_index_function(function)
        if known is not None:
            return _apply(Name("reverse"), xs) if known == Name("reverse") else _apply(Name("reorder"), known, xs)
        formulas = [str(function.forward)] + ([] if function.inverse is None else [str(function.inverse)])
        attributes = (f'"{function.name}"', str(function.extent), *formulas)
        return _apply(Attributed("reindex", attributes), xs)


_Method = Callable[[_Printer, Term, Scope], Expression]
_BY_KIND: dict[str, _Method] = {
    "param": lambda _self, t, _scope: Name(t.attrs[0]),
    "bound": _Printer.variable,
    "op": _Printer.operation,
    "tuple": lambda self, t, scope: TupleExpression(tuple(self.expression(a, scope) for a in t.args)),
    "proj": lambda self, t, scope: Projection(self.expression(t.args[0], scope), t.attrs[0]),
    "let": _Printer.let,
    "array": _Printer.array,
    "at": _Printer.at,
    "map": _Printer.map,
    "reduce": _Printer.reduction,
    "scan": _Printer.reduction,
    "pipe": _Printer.pipe,
    "to": _Printer.attributed,
    "instr": _Printer.attributed,
    "launch": _Printer.attributed,
    "scatter": _Printer.attributed,
    "pad": _Printer.pad,
    "zip": _Printer.variadic,
    "concat": _Printer.variadic,
    "reindex": _Printer.reindex,
}


def _replaced(e: Expression, names: dict[str, Expression]) -> Expression:
    """A size's expression with others for some names."""
    if isinstance(e, Name):
        return names.get(e.name, e)
    if isinstance(e, Infix):
        return Infix(e.symbol, _replaced(e.left, names), _replaced(e.right, names))
    if isinstance(e, Application):
        return Application(e.function, tuple([_replaced(a, names) for a in e.arguments]), e.call)
    return e


def _apply(function: Expression, *arguments: Expression) -> Expression:
    return Application(function, arguments)


def _head(kind: str, attributes: list[str], label: str | None) -> Expression:
    return Attributed(kind, tuple(attributes), label) if attributes or label is not None else Name(kind)


def _bases(t: Term) -> tuple[str, ...]:
    """Names for the parameters of a lambda: `i` is kept for indices."""
    bases = []
    while t.kind == "lambda":
        bases.append("j" if isinstance(t.attrs[0], Index) else "x")
        t = t.args[0]
    return tuple(bases)


def _is_literal(t: Term) -> bool:
    return t.kind == "const" and t.type is not bool_ and not isinstance(constant_value(t), complex)


def _section_of(f: Term) -> Expression | None:
    """`(+)` for λa b. a + b and for λp. p.0 + p.1; `abs` for λx. abs x."""
    body, arity = below_parameters(f)
    if body.kind != "op":
        return None
    operator: Operator = body.attrs[0]
    by_parameters = [_is_bound(a, arity - 1 - i) for i, a in enumerate(body.args)]
    of_tuple = (
        arity == 1
        and isinstance(f.attrs[0], Tuple)
        and len(f.attrs[0].items) == len(body.args) > 1
        and all(a.kind == "proj" and a.attrs[0] == i and _is_bound(a.args[0], 0) for i, a in enumerate(body.args))
    )
    if not of_tuple and not (arity == len(body.args) and all(by_parameters)):
        return None
    return Name(operator.name) if operator.symbol is None else Section(operator.symbol)


def _is_bound(t: Term, index: int) -> bool:
    return t.kind == "bound" and t.attrs[0] == index


def _spread(fill: Term, type_: Type) -> Term | None:
    """The scalar of which `fill` is made, if it is the same one everywhere."""
    scalar = fill
    while scalar.kind in ("replicate", "tuple"):
        scalar = scalar.args[0]
    return scalar if isinstance(scalar.type, Scalar) and filled(type_, scalar) is fill else None


def _known_index_function(function: IndexFunction) -> Expression | None:
    """`reverse` and `stride s`, when the function is what the reader makes of that."""
    word, _, argument = function.name.partition(" ")
    if function.extent is function.source and function == reverse(function.extent):
        return Name("reverse")
    if word == "stride" and argument:
        for size in _factors(argument):
            if function == stride(size, function.extent):
                return _apply(Name("stride"), size_syntax(size))
    return None


def _factors(text: str) -> list[int]:
    return [int(text)] if text.isdigit() else []


def _sizes(term: Term) -> list[Expr]:
    found: list[Expr] = []
    for t in subterms(term):
        found.extend(sizes_in(t.type))
        found.extend(a for a in t.attrs if isinstance(a, Expr))
    return found


__all__ = ["show", "show_program", "size_syntax", "to_syntax", "type_syntax"]
