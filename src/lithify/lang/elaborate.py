"""Surface syntax to core terms, by evaluation: an expression means a value (`lithify.lang.values`) in an environment.

Definitions, lambdas and compositions are functions over values and leave no trace; what remains are core terms, fully
applied and typed. A free name is a size parameter where a size is needed, and an error elsewhere.
"""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from lithify.arith import ArithError, Expr, as_expr, size
from lithify.lang import prelude
from lithify.lang.annotations import TypeReader
from lithify.lang.attributes import attributes_of
from lithify.lang.coerce import as_term, call, call_with_element, components, let
from lithify.lang.depth import deeply, too_deep
from lithify.lang.errors import LithifyError, TypeMismatch, UnboundSize
from lithify.lang.notation import builtin, names
from lithify.lang.operate import operate, operator_function
from lithify.lang.operators import BY_SYMBOL, OPERATORS, Operator
from lithify.lang.positions import is_index
from lithify.lang.primitives import array_literal, at, projection
from lithify.lang.syntax import (
    Annotation,
    Application,
    ArrayLiteral,
    Attributed,
    Compose,
    Conditional,
    Expression,
    Indexing,
    IndexType,
    Infix,
    Lambda,
    Let,
    Name,
    NamePattern,
    Number,
    ParameterPattern,
    Projection,
    Section,
    Span,
    TupleExpression,
)
from lithify.lang.term import Term
from lithify.lang.types import Function
from lithify.lang.unparse import unparse
from lithify.lang.values import FreeName, FunctionValue, Numeral, Resolve, TupleValue, Value, describe

Environment = Mapping[str, Value]
Scope = MutableMapping[str, Value]


def elaborate(
    expression: Expression,
    environment: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, int | Expr] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Value:
    """The value of an expression.

    The environment binds names to terms, sizes (Expr or int), other values, or Python functions from terms to a term.
    `attributes` binds names of levels and memories in `map[..]`, and the first parts of labels in `map@..`. Free names
    in size position are size variables. Raises ParseError for unknown names and TypeMismatch, located in the text.
    """
    scope: Scope = {name: as_value(value) for name, value in (environment or {}).items()}
    try:
        return deeply(lambda: Elaborator(sizes, attributes).value(expression, scope))
    except RecursionError:
        raise too_deep() from None


def elaborate_term(
    expression: Expression,
    environment: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, int | Expr] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Term:
    """The term of an expression that is no function; numbers without a context get their default type."""
    return as_term(elaborate(expression, environment, sizes=sizes, attributes=attributes))


def as_value(value: Any) -> Value:
    """A Python object as a value: terms and values as they are, numbers and sizes, functions from terms to a term."""
    if isinstance(value, Term) and isinstance(value.type, Function):
        from lithify.lang.coerce import function_of_term

        return function_of_term(value)
    if isinstance(value, int | float | complex | Expr) and not isinstance(value, bool):
        return Numeral(value)
    if callable(value) and not isinstance(value, FunctionValue):
        return python_function(value)
    return value  # type: ignore[no-any-return]


def python_function(function: Callable[..., Term]) -> FunctionValue:
    """A Python function from terms to a term, curried; its arity is the number of its positional parameters."""
    parameters = inspect.signature(function).parameters.values()
    arity = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)
    name = getattr(function, "__name__", "function")
    return FunctionValue(name, arity, lambda *arguments: function(*[as_term(a) for a in arguments]))


class Sizes:
    """Size parameters: those that are known, by whom, and those that were needed and are not.

    `outside` tells the sizes of a program that this one is used in: they are known too, but not to annotations.
    """

    def __init__(
        self, given: Mapping[str, int | Expr] | None = None, outside: Callable[[str], Expr | None] | None = None
    ) -> None:
        self.outside = outside
        self.known: dict[str, Numeral] = {
            name: Numeral(as_expr(value), f"{name} = {value} was given") for name, value in (given or {}).items()
        }
        self.unbound: dict[str, Span] = {}

    def resolve(self, name: FreeName) -> Expr:
        """The size of a free name: a size variable, noted as unbound, when nothing is known of it."""
        if name.name not in self.known:
            found = None if self.outside is None else self.outside(name.name)
            if found is not None:
                return found
            self.unbound.setdefault(name.name, name.span)
        return self.symbolic(name)

    def symbolic(self, name: FreeName) -> Expr:
        """The size of a free name: a size variable when nothing is known of it."""
        found = self.known.get(name.name)
        return size(name.name) if found is None else found.as_size()

    def error(self) -> UnboundSize:
        """The error that lists the unbound sizes."""
        listed = ", ".join(self.unbound)
        plural = "s are" if len(self.unbound) > 1 else " is"
        places = [str(span) for span in self.unbound.values() if span.shown]
        return UnboundSize(
            f"the size{plural} not known: {listed}",
            names=tuple(self.unbound),
            where="\n".join(places) or None,
            hint=f"give sizes={{{', '.join(f'{name!r}: ..' for name in self.unbound)}}} or "
            + " ".join(f"--size {name}=.." for name in self.unbound)
            + ", or name it in the type of a parameter",
        )


class Elaborator:
    """Evaluates expressions; one for each elaboration of a program, for it collects the sizes."""

    def __init__(
        self,
        sizes: Mapping[str, int | Expr] | None = None,
        attributes: Mapping[str, Any] | None = None,
        outside: Callable[[str], Expr | None] | None = None,
    ) -> None:
        self.sizes = Sizes(sizes, outside)
        self.attributes = attributes or {}
        self.entering = False  # the next function entered is the program: its parameters' sizes are the program's

    def value(self, e: Expression, scope: Scope) -> Value:
        """The value of an expression; errors without a place get the expression's."""
        try:
            return _EVALUATE[type(e)](self, e, scope)
        except LithifyError as error:
            raise error.located(str(e.span)) from error.__cause__
        except ArithError as error:  # a size of 0 or less where there cannot be one
            raise TypeMismatch(str(error), where=str(e.span)) from error

    def types(self, scope: Scope) -> TypeReader:
        """Reads type annotations in a scope."""
        return TypeReader(scope, lambda e: self.size(e, scope), self.sizes.resolve)

    def size(self, e: Expression, scope: Scope, resolve: Resolve | None = None) -> Expr:
        """The value of an expression in size position; `resolve` gives meaning to free names."""
        value = self.value(e, scope)
        if not isinstance(value, Numeral):
            raise TypeMismatch(f"a size expected, {describe(value)} given", where=str(e.span))
        return value.as_size(resolve or self.sizes.resolve)

    # ---- names and literals ------------------------------------------------------------------------------------------

    def name(self, e: Name, scope: Scope) -> Value:
        found = scope.get(e.name)
        if found is None:
            found = self.sizes.known.get(e.name)
        if found is None:
            found = builtin(e.name, self.sizes.resolve)
        if found is None:
            found = prelude.value_of(e.name, self)
        if found is None:
            return Numeral(FreeName(e.name, e.span, (*scope, *names(), *prelude.definitions())))
        return found.at(e.span) if isinstance(found, FunctionValue) and e.span.shown else found

    def section(self, e: Section, scope: Scope) -> Value:
        function = operator_function(BY_SYMBOL[e.symbol], self.sizes.resolve).at(e.span)
        if e.left is not None:
            return function(self.value(e.left, scope))
        if e.right is not None:
            right = self.value(e.right, scope)
            return FunctionValue(
                f"({e.symbol} ..)", 1, lambda left: self.operate(BY_SYMBOL[e.symbol], left, right), (), e.span
            )
        return function

    # ---- functions ---------------------------------------------------------------------------------------------------

    def lambda_(self, e: Lambda, scope: Scope) -> Value:
        parameters, body = list(e.parameters), e.body
        while isinstance(body, Lambda):
            parameters.extend(body.parameters)
            body = body.body

        def run(*arguments: Value) -> Value:
            entered, self.entering = self.entering, False
            inner: Scope = ChainMap(dict(self.sizes.known) if entered else {}, scope)
            for pattern, argument in zip(parameters, arguments, strict=True):
                self.bind(pattern, argument, inner)
            if entered:
                self.keep_sizes(inner)
            return self.value(body, inner)

        return FunctionValue("the function", len(parameters), run, (), e.span)

    def keep_sizes(self, scope: Scope) -> None:
        """Make the sizes that a program's parameters bound known everywhere in it."""
        assert isinstance(scope, ChainMap)
        for name, value in scope.maps[0].items():
            if isinstance(value, Numeral) and value.origin is not None:
                self.sizes.known[name] = value

    def bind(self, pattern: ParameterPattern, value: Value, scope: Scope) -> None:
        """Bind the names of a pattern, and the sizes that its annotations name."""
        if isinstance(pattern, NamePattern):
            if pattern.annotation is not None:
                value = self.types(scope).annotated(value, pattern.annotation, pattern.name)
            scope[pattern.name] = value
            return
        items = components(value)
        if isinstance(value, Numeral):
            items = (value,) * len(pattern.items)
        if len(items) != len(pattern.items):
            raise TypeMismatch(
                f"a tuple of {len(pattern.items)} expected, {describe(value)} given", where=str(pattern.span)
            )
        for item, part in zip(pattern.items, items, strict=True):
            self.bind(item, part, scope)

    def application(self, e: Application, scope: Scope) -> Value:
        result = self.value(e.function, scope)
        arguments = [self.value(a, scope) for a in e.arguments]
        if e.call and len(arguments) > 1 and isinstance(result, FunctionValue) and result.arity == 1:
            arguments = [TupleValue(tuple(arguments))]
        for position, argument in enumerate(arguments):
            if isinstance(result, FunctionValue):
                result = call(result.at(e.span) if e.span.shown else result, argument)
            elif isinstance(result, Term) and isinstance(result.type, Function):
                result = call(result, argument)
            else:
                raise _no_function(e, position, result, argument)
        return result

    def compose(self, e: Compose, scope: Scope) -> Value:
        outer, inner = self.value(e.outer, scope), self.value(e.inner, scope)
        if not isinstance(inner, FunctionValue):
            return call_with_element(outer, inner)
        if not isinstance(outer, FunctionValue):
            what = describe(outer)
            outer_text, inner_text = unparse(e.outer, 10**6), unparse(e.inner, 10**6)
            raise TypeMismatch(
                f"`.` composes functions, and `{outer_text}` is no function but {what}",
                hint=f"to apply a function, write `{inner_text} {outer_text}`",
            )
        f, g = outer, inner
        return FunctionValue("the composition", 1, lambda x: call_with_element(f, call(g, x)))

    def let(self, e: Let, scope: Scope) -> Value:
        value = self.value(e.value, scope)

        def body(bound: Value) -> Value:
            inner: Scope = ChainMap({}, scope)
            self.bind(e.pattern, bound, inner)
            return self.value(e.body, inner)

        return let(value, body)

    # ---- the rest ----------------------------------------------------------------------------------------------------

    def infix(self, e: Infix, scope: Scope) -> Value:
        return self.operate(BY_SYMBOL[e.symbol], self.value(e.left, scope), self.value(e.right, scope))

    def operate(self, operator: Operator, *operands: Value) -> Value:
        return operate(operator, *operands, resolve=self.sizes.resolve)

    def conditional(self, e: Conditional, scope: Scope) -> Value:
        parts = [self.value(part, scope) for part in (e.condition, e.then, e.otherwise)]
        return self.operate(OPERATORS["select"], *parts)

    def annotation(self, e: Annotation, scope: Scope) -> Value:
        value, types = self.value(e.value, scope), self.types(scope)
        if isinstance(e.type, IndexType) and is_index(value):
            value = as_term(value, types.type(e.type))
        return types.annotated(value, e.type, "the value")

    def attributed(self, e: Attributed, scope: Scope) -> Value:
        return attributes_of(e, self.attributes, lambda part: self.size(part, scope), scope).at(e.span)


def _no_function(e: Application, position: int, result: Value, argument: Value) -> TypeMismatch:
    what, given = describe(result), describe(argument)
    text = unparse(e.arguments[position], 10**6)
    if position == 0:
        return TypeMismatch(
            f"`{unparse(e.function, 10**6)}` is no function but {what}: it cannot be applied to `{text}` ({given})",
            hint="is an operator missing between them?",
        )
    done = unparse(Application(e.function, e.arguments[:position]), 10**6)
    return TypeMismatch(f"too many arguments: `{done}` is {what}, it cannot be applied to `{text}` ({given})")


_EVALUATE: dict[type, Callable[[Elaborator, Any, Scope], Value]] = {
    Name: Elaborator.name,
    Number: lambda _self, e, _scope: Numeral(e.value),
    Attributed: Elaborator.attributed,
    Lambda: Elaborator.lambda_,
    Application: Elaborator.application,
    Compose: Elaborator.compose,
    Infix: Elaborator.infix,
    Section: Elaborator.section,
    Let: Elaborator.let,
    Conditional: Elaborator.conditional,
    TupleExpression: lambda self, e, scope: TupleValue(tuple(self.value(item, scope) for item in e.items)),
    ArrayLiteral: lambda self, e, scope: array_literal(self.value(item, scope) for item in e.items),
    Projection: lambda self, e, scope: projection(self.value(e.value, scope), e.component),
    Indexing: lambda self, e, scope: at(self.value(e.array, scope), self.value(e.index, scope), self.sizes.resolve),
    Annotation: Elaborator.annotation,
}
