"""The Python front end: programs as Python functions, and every pattern and operator as a function of the same name.

    n, m, k = lf.sizes("n m k")

    def matmul(a: lf.Array[m, k, lf.f32], b: lf.Array[k, n, lf.f32]):
        return a >> lf.map(lambda row: b >> lf.transpose >> lf.map(lambda col: lf.dot(row, col)))

    build(matmul, [array(64, 32, f32), array(32, 16, f32)])

The functions come from the declarations of the primitives (`lithify.lang.primitives`), the operators' table, and the
prelude; they are made when they are first named.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from lithify.arith import Expr, Variable, as_expr, as_variable, proves_equal
from lithify.arith import size as size_variable
from lithify.lang import build as core
from lithify.lang import prelude
from lithify.lang.annotations import TO_CONVERT
from lithify.lang.coerce import as_term, call, missing_hint
from lithify.lang.coerce import let as share
from lithify.lang.declared import Claims, OperatorCheck, as_function, declare
from lithify.lang.elaborate import Elaborator
from lithify.lang.errors import LithifyError, TypeMismatch, UnboundSize
from lithify.lang.given import kind_of, text_given
from lithify.lang.levels import Memory
from lithify.lang.module import Elaborated
from lithify.lang.operate import operate, operator_function
from lithify.lang.operators import OPERATORS, Operator, convert_to
from lithify.lang.place import located, place
from lithify.lang.primitives import PRIMITIVES, to_memory
from lithify.lang.scalars import SCALARS, Scalar
from lithify.lang.term import Term, subterms
from lithify.lang.traced import Traced, TracedFunction, resolve_nothing, to_value, traced
from lithify.lang.types import Array, Index, Tuple, Type, dimensions_hint, shape_of, sizes_in
from lithify.lang.uses import SIZES, KnownSizes, sizes_of, used
from lithify.lang.values import FunctionValue, Value, describe

# ---- what is not a primitive or an operator --------------------------------------------------------------------------


def sizes(names: str) -> tuple[Expr, ...]:
    """Size variables, a tuple of them however many they are: `n, m = sizes("n m")`. `size("n")` is one by itself.

    Raises TypeMismatch for a text that is no name.
    """
    listed = text_given(names, "the names of sizes", 'write n, m = lf.sizes("n m")', TypeMismatch)
    return tuple(size(name) for name in listed.replace(",", " ").split())


def size(name: str) -> Expr:
    """One size variable: `n = size("n")`. Raises TypeMismatch for a text that is no name."""
    text_given(name, "the name of a size", 'write n = lf.size("n")', TypeMismatch)
    if not name.isidentifier():
        raise TypeMismatch(f"{name!r} is no name of a size", where=place(), hint='write n = lf.size("n")')
    return size_variable(name)


def convert(scalar: Scalar | object, value: Any) -> Traced:
    """Conversion to a scalar type; also written `f32(x)`."""
    if not isinstance(scalar, Scalar):
        raise TypeMismatch(
            f"convert takes a scalar type, {kind_of(scalar)} is given",
            where=place(),
            hint="write lf.convert(lf.f32, x)",
        )
    return Traced(located(lambda: operate(convert_to(scalar), to_value(value))))


def to(memory: str | Memory | object, value: Any) -> Any:
    """The value (or the function's results) written to a memory: `to("local", tile)`."""
    try:
        where = Memory.parse(memory) if isinstance(memory, str) else memory
    except ValueError as error:
        raise TypeMismatch(str(error), where=place()) from None
    if not isinstance(where, Memory):
        hint = 'write lf.to("local", xs)'
        raise TypeMismatch(f"to takes the name of a memory, {kind_of(memory)} is given", where=place(), hint=hint)
    return traced(located(lambda: to_memory(where)(to_value(value))))


def let(value: Any, body: Callable[[Any], Any]) -> Any:
    """The value, computed once, for use in `body`: `let(x * x, lambda y: y + y)`."""
    if isinstance(body, Traced) or not callable(body):
        given = "a value of the program" if isinstance(body, Traced) else kind_of(body)
        hint = "write lf.let(x * x, lambda y: y + y)"
        raise TypeMismatch(f"let takes a function as its body, {given} is given", where=place(), hint=hint)
    return traced(located(lambda: share(to_value(value), lambda x: call(to_value(body), x))))


def operator(
    function: Callable[..., Any], name: str, properties: Collection[str], check: OperatorCheck, **parts: Any
) -> TracedFunction:
    """A declared operator: of a function of two operands; `parts` are its neutral, its absorbing element, its inverse.

    `check` tries out what is declared, for each type of operands when it is first used with it.
    """
    where = place()
    value = to_value(function)
    claims = Claims(properties, **{part: to_value(given) for part, given in parts.items() if given is not None})

    @cache
    def on(type_: Type) -> Operator:
        return declare(name, type_, value, claims, check=check, places=dict.fromkeys(("", *parts), where))

    return TracedFunction(as_function(name, on))


_INSTEAD = "use map, reduce, scan or iterate"


# ---- tracing a program -----------------------------------------------------------------------------------------------


def declared(function: Callable[..., Any]) -> list[Type | None]:
    """The types that the function's annotations give its parameters; None where there is no annotation."""
    return [_annotation(p.annotation, p.name) for p in _signature(function).parameters.values()]


def build(
    function: Callable[..., Any],
    arguments: Sequence[Type] | Mapping[str, Type] | None = None,
    given: Mapping[str, int | Expr] | None = None,
) -> Elaborated:
    """The program of a Python function for arguments of the given types (of its annotations, if none are given).

    `given` are sizes by name. Raises TypeMismatch where arguments do not fit the annotations, two of them disagree
    about a size, or the body does not fit together; UnboundSize for a size that neither arguments nor `given` tell.
    """
    signature = _signature(function)
    names = list(signature.parameters)
    annotations = declared(function)
    known = _Sizes(given or {})
    if arguments is None:
        missing = [n for n, a in zip(names, annotations, strict=True) if a is None]
        if missing:
            raise TypeMismatch(
                f"the type of parameter {', '.join(missing)} of {_name(function)} is not known",
                hint="annotate it, or give the arguments' types",
            )
        types = [known.in_type(a) for a in annotations if a is not None]
    else:
        types = _in_order(_name(function), names, arguments)
    for name, annotation, type_ in zip(names, annotations, types, strict=True):
        if annotation is not None:
            known.unify(annotation, type_, f"{name} : {type_}")
    tracing = KnownSizes(function, known.bound)
    try:
        with sizes_of(tracing):
            result = to_value(function(*[Traced(core.param(n, t)) for n, t in zip(names, types, strict=True)]))
            if isinstance(result, FunctionValue):
                raise _gives_function(function, result)
            term = as_term(result)
            _check_result(function, signature, term, known)
    except TypeMismatch as error:
        _check_sizes(function, tracing.missed, types, error)
        raise
    named = tracing.met | {v for a in annotations if a is not None for s in sizes_in(a) for v in s.variables()}
    unused = [name for name in known.given if as_variable(size_variable(name)) not in named]
    if unused:
        raise TypeMismatch(f"{_name(function)} has no size {', '.join(unused)}", hint=_sizes_hint(named))
    open_ = {v for value in known.given.values() for v in value.variables()}  # given as sizes that are not known
    _check_sizes(function, (tracing.missed | _size_variables(term)) - open_, types)
    return Elaborated(term, tuple(zip(names, types, strict=True)), {v.name: e for v, e in known.bound.items()})


def _sizes_hint(named: set[Variable]) -> str:
    listed = ", ".join(sorted(variable.name for variable in named))
    return f"its sizes are {listed}" if listed else "it names no sizes"


def _gives_function(function: Callable[..., Any], result: FunctionValue) -> TypeMismatch:
    return TypeMismatch(
        f"{_name(function)} returns {describe(result)}", hint=missing_hint(result) or "is an argument missing?"
    )


def value_of(function: Callable[..., Any], given: Mapping[str, int | Expr] | None = None) -> Value:
    """A Python function that is a program, as a value: to be used in another program, for what it is given there.

    `given` are sizes by name. Raises what `build` does, where the value is applied.
    """
    signature = _signature(function)
    annotations = declared(function)

    def apply(*arguments: Value) -> Value:
        user = SIZES.get()
        if user is not None and user.traces(function):
            raise TypeMismatch(f"{_name(function)} uses itself: recursion is not possible", hint=_INSTEAD)
        known = _Sizes(given or {})
        fitted = list(arguments)
        typed = [isinstance(argument, Term) for argument in arguments]
        for position in sorted(range(len(typed)), key=lambda k: not typed[k]):  # terms tell sizes that numbers need
            annotation = annotations[position]
            if annotation is not None:
                term = as_term(arguments[position], known.in_type(annotation))
                known.unify(annotation, term.type, f"{list(signature.parameters)[position]} : {term.type}")
                fitted[position] = term
        with sizes_of(KnownSizes(function, known.bound, user)):
            result = to_value(function(*map(traced, fitted)))
            if isinstance(result, FunctionValue):
                raise _gives_function(function, result)
            if signature.return_annotation is not inspect.Parameter.empty:
                result = as_term(result)
                _check_result(function, signature, result, known)
            return result

    return used(FunctionValue(_name(function), len(annotations), apply) if annotations else apply())


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    names = parameters_of(function)  # which says what is wrong with others than the annotations
    try:
        return inspect.signature(function, eval_str=True)
    except LithifyError:
        raise
    except Exception as error:  # whatever the evaluation of a text raises
        given = ", ".join(names)
        raise TypeMismatch(
            f"an annotation of {_name(function)} ({given}) cannot be evaluated: {type(error).__name__}: {error}",
            hint="define the sizes outside of functions, or do without `from __future__ import annotations`",
        ) from error


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters, which are a program's. Raises TypeMismatch for what come in no order."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise TypeMismatch(
            f"the parameters of {_name(function)} are not known to Python", hint="write a function of its own around it"
        ) from None
    for each in parameters:
        if each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            raise TypeMismatch(
                f"the parameter {each} of {_name(function)} stands for any number of arguments, or comes by name alone",
                hint="the parameters of a program are named one by one, in the order of a call",
            )
    return tuple([each.name for each in parameters])


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _annotation(annotation: Any, name: str) -> Type | None:
    if annotation is inspect.Parameter.empty or annotation is None or annotation is Any:
        return None
    if isinstance(annotation, tuple):
        parts = [_annotation(part, name) for part in annotation]
        return Tuple(*[part for part in parts if part is not None])
    if not isinstance(annotation, Type):
        raise TypeMismatch(f"the annotation of {name} is no type: {annotation!r}", hint="write lf.Array[n, lf.f32]")
    return annotation


def _in_order(function: str, names: list[str], arguments: Sequence[Type] | Mapping[str, Type]) -> list[Type]:
    if isinstance(arguments, Mapping):
        if set(arguments) != set(names):
            raise TypeMismatch(f"{function} takes {', '.join(names)}, not {', '.join(arguments)}")
        return [arguments[n] for n in names]
    if len(arguments) != len(names):
        raise TypeMismatch(f"{function} takes {len(names)} arguments ({', '.join(names)}), {len(arguments)} given")
    return list(arguments)


class _Sizes:
    """Size variables of annotations, bound by the arguments' types."""

    def __init__(self, given: Mapping[str, int | Expr]) -> None:
        self.bound: dict[Variable, Expr] = {}
        self.origins: dict[Variable, str] = {}
        self.given = {name: as_expr(value) for name, value in given.items()}
        for name, value in self.given.items():
            self.bind(as_variable(size_variable(name)), value, f"{name} = {value} was given")

    def bind(self, variable: Variable, value: Expr, origin: str) -> None:
        self.bound[variable] = value
        self.origins[variable] = origin

    def in_type(self, type_: Type) -> Type:
        """The type with the known sizes in it."""
        if isinstance(type_, Array):
            return Array(type_.size.substitute(self.bound), self.in_type(type_.element))
        if isinstance(type_, Index):
            return Index(type_.size.substitute(self.bound))
        return Tuple(*map(self.in_type, type_.items)) if isinstance(type_, Tuple) else type_

    def unify(self, annotation: Type, given: Type, origin: str) -> None:
        """Bind the annotation's sizes so that it is the given type; raises TypeMismatch with both."""
        hint = dimensions_hint(len(shape_of(annotation)[0]), given)
        if hint is not None:
            raise TypeMismatch(f"{annotation} expected, {given} given ({origin})", hint=hint)
        self._unify(annotation, given, origin)

    def _unify(self, annotation: Type, given: Type, origin: str) -> None:
        if isinstance(annotation, Array) and isinstance(given, Array):
            self.unify_size(annotation.size, given.size, origin)
            self._unify(annotation.element, given.element, origin)
        elif isinstance(annotation, Index) and isinstance(given, Index):
            self.unify_size(annotation.size, given.size, origin)
        elif isinstance(annotation, Tuple) and isinstance(given, Tuple) and len(annotation.items) == len(given.items):
            for part, item in zip(annotation.items, given.items, strict=True):
                self.unify(part, item, origin)
        elif annotation is not given:
            scalars = isinstance(annotation, Scalar) and isinstance(given, Scalar)
            hint = TO_CONVERT if scalars else None
            raise TypeMismatch(f"{annotation} expected, {given} given ({origin})", hint=hint)

    def unify_size(self, annotation: Expr, given: Expr, origin: str) -> None:
        variable = annotation.single
        if isinstance(variable, Variable) and annotation is variable.expr and variable not in self.bound:
            self.bind(variable, given, origin)
            return
        known = annotation.substitute(self.bound)
        if not proves_equal(known, given):
            first = self.origins.get(variable) if isinstance(variable, Variable) else None
            source = f" ({first})" if first else ""
            raise TypeMismatch(f"two values of size {annotation}: {known}{source} and {given} ({origin})")


def _check_result(function: Callable[..., Any], signature: inspect.Signature, term: Term, known: _Sizes) -> None:
    expected = _annotation(signature.return_annotation, "the result")
    if expected is not None:
        known.unify(expected, term.type, f"the result of {_name(function)} : {term.type}")


def _size_variables(term: Term) -> set[Variable]:
    found: set[Variable] = set()
    for t in subterms(term):
        for s in (*sizes_in(t.type), *[a for a in t.attrs if isinstance(a, Expr)]):
            found |= {v for v in s.variables() if v.kind == "size"}
    return found


def _check_sizes(
    function: Callable[..., Any], used: set[Variable], types: list[Type], cause: Exception | None = None
) -> None:
    """Sizes that the program uses must occur in the arguments' types."""
    allowed = {v for type_ in types for s in sizes_in(type_) for v in s.variables()}
    names = sorted(v.name for v in used - allowed)
    if names:
        listed = ", ".join(names)
        raise UnboundSize(
            f"the size{'s are' if len(names) > 1 else ' is'} not known: {listed} (in {_name(function)})",
            hint=f"give sizes={{{', '.join(f'{n!r}: ..' for n in names)}}}, or name it in the type of a parameter",
            names=tuple(names),
        ) from cause


# ---- the functions ---------------------------------------------------------------------------------------------------


def _python_name(name: str) -> str:
    """`partialReduce` is `partial_reduce`, `copy2D` is `copy2d`, `and` is `and_`."""
    starts = [c.isupper() and name[i - 1].islower() for i, c in enumerate(name)]
    snake = "".join(f"_{c}" if start else c for c, start in zip(name, starts, strict=True)).lower()
    return f"{snake}_" if keyword.iskeyword(snake) else snake


_NAMES: dict[str, str] = {
    _python_name(name): name
    for name in (*PRIMITIVES, *[o for o in OPERATORS if o not in SCALARS], *prelude.definitions())
}

__all__ = ["Array", "Index", "Traced", "TracedFunction", "convert", "let", "size", "sizes", "to", *_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """A pattern, an operator or a definition of the prelude."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _function(_NAMES[name])


@cache
def _function(name: str) -> TracedFunction:
    if name in PRIMITIVES:
        return TracedFunction(PRIMITIVES[name].function(resolve_nothing), name)
    if name in OPERATORS:
        return TracedFunction(operator_function(name))
    value = prelude.value_of(name, Elaborator())
    assert isinstance(value, FunctionValue)
    return TracedFunction(value)
