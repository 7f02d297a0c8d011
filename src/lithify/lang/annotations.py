"""Type annotations: read as types, and unified with the types of arguments to bind the sizes that they name."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from lithify.arith import Expr, proves_equal
from lithify.lang.coerce import as_term
from lithify.lang.errors import LithifyError, ParseError, TypeMismatch
from lithify.lang.scalars import SCALARS, Scalar
from lithify.lang.spelling import choices
from lithify.lang.syntax import (
    ArrayType,
    Expression,
    FunctionType,
    IndexType,
    Name,
    TupleType,
    TypeName,
    TypeSyntax,
)
from lithify.lang.types import Array, Function, Index, Tuple, Type, dimensions_hint
from lithify.lang.unparse import unparse, unparse_type
from lithify.lang.values import LiteralArray, Numeral, Resolve, TupleValue, Value, describe

# In an annotation: whatever type the argument has there, as in `xs : n._`.
ANY = "_"
TO_CONVERT = "nothing is converted unasked: `f32 x` and the like do it in a program, array.astype(..) for an argument"


class TypeReader:
    """Reads annotations in a scope; sizes that nothing binds yet are bound there by unification."""

    def __init__(
        self,
        scope: MutableMapping[str, Value],
        size: Callable[[Expression], Expr],
        resolve: Resolve | None = None,
    ) -> None:
        self.scope, self.size, self.resolve = scope, size, resolve

    def type(self, syntax: TypeSyntax) -> Type:
        """The type that is written."""
        if isinstance(syntax, TypeName):
            return self.scalar(syntax)
        if isinstance(syntax, ArrayType):
            return Array(self.size(syntax.size), self.type(syntax.element))
        if isinstance(syntax, IndexType):
            return Index(self.size(syntax.size))
        if isinstance(syntax, TupleType):
            return Tuple(*map(self.type, syntax.items))
        return Function(self.type(syntax.parameter), self.type(syntax.result))

    def scalar(self, syntax: TypeName) -> Scalar:
        """A scalar type by name."""
        found = SCALARS.get(syntax.name)
        if found is None and syntax.name == ANY:
            raise ParseError(
                f"the type `{ANY}` is left open, and nothing here says which it is",
                where=str(syntax.span),
                hint="give the types of the arguments, or write the type",
            )
        if found is None:
            hint = choices(syntax.name, SCALARS, "scalar types are")
            raise ParseError(f"unknown type `{syntax.name}`", where=str(syntax.span), hint=hint)
        return found

    def annotated(self, value: Value, syntax: TypeSyntax, what: str) -> Value:
        """The value as one of the written type; raises TypeMismatch with both types at the annotation."""
        if isinstance(syntax, FunctionType):
            return value
        try:
            typed = isinstance(value, Numeral | LiteralArray)
            typed |= isinstance(value, TupleValue) and isinstance(syntax, TupleType)
            type_ = self.type(syntax) if typed else self.scalar_of(syntax)
            if isinstance(value, Numeral) and isinstance(type_, Index):
                value = Numeral(value.as_size(self.resolve))
            term = as_term(value, type_)
            self.unify(syntax, term.type, f"{what} : {term.type}")
        except LithifyError as error:
            raise error.located(str(syntax.span)) from None
        return term

    def scalar_of(self, syntax: TypeSyntax) -> Type | None:
        """The scalar type, where the annotation is one: an array of one is its element there."""
        return self.scalar(syntax) if isinstance(syntax, TypeName) and syntax.name != ANY else None

    def unify(self, syntax: TypeSyntax, type_: Type, origin: str) -> None:
        """Bind the sizes that the annotation names so that it is the type; raises TypeMismatch."""
        hint = None if _is_open(syntax) else dimensions_hint(_rank(syntax), type_)
        if hint is not None:
            raise TypeMismatch(f"{unparse_type(syntax)} expected, {type_} given ({origin})", hint=hint)
        self._unify(syntax, type_, origin)

    def _unify(self, syntax: TypeSyntax, type_: Type, origin: str) -> None:
        if isinstance(syntax, TypeName) and syntax.name == ANY:
            return
        if isinstance(syntax, ArrayType) and isinstance(type_, Array):
            self.unify_size(syntax.size, type_.size, origin)
            self._unify(syntax.element, type_.element, origin)
        elif isinstance(syntax, IndexType) and isinstance(type_, Index):
            self.unify_size(syntax.size, type_.size, origin)
        elif isinstance(syntax, TupleType) and isinstance(type_, Tuple) and len(syntax.items) == len(type_.items):
            for part, item in zip(syntax.items, type_.items, strict=True):
                self.unify(part, item, origin)
        elif not (isinstance(syntax, TypeName) and self.scalar(syntax) is type_):
            hint = TO_CONVERT if isinstance(syntax, TypeName) and isinstance(type_, Scalar) else None
            raise TypeMismatch(f"{unparse_type(syntax)} expected, {type_} given ({origin})", hint=hint)

    def unify_size(self, syntax: Expression, given: Expr, origin: str) -> None:
        """Bind a size's name, or compare; both sources are named when two disagree."""
        bound = self.scope.get(syntax.name) if isinstance(syntax, Name) else None
        if isinstance(syntax, Name):
            if bound is None:
                self.scope[syntax.name] = Numeral(given, origin)
                return
            if not isinstance(bound, Numeral):
                raise TypeMismatch(f"`{syntax.name}` is no size but {describe(bound)}")
        known = self.size(syntax)
        if proves_equal(known, given):
            return
        first = bound.origin if isinstance(bound, Numeral) else None
        name = unparse(syntax)
        raise TypeMismatch(f"two values of size {name}: {known}{f' ({first})' if first else ''} and {given} ({origin})")


def _rank(syntax: TypeSyntax) -> int:
    return 1 + _rank(syntax.element) if isinstance(syntax, ArrayType) else 0


def _is_open(syntax: TypeSyntax) -> bool:
    """Whether an array's elements are left open, as in `n._`: they may be arrays."""
    while isinstance(syntax, ArrayType):
        syntax = syntax.element
    return isinstance(syntax, TypeName) and syntax.name == ANY
