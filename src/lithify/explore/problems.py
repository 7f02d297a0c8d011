"""Problems as the field writes them, in one line of flags, and the programs that they stand for.

    gemm -t f32 -transA false -transB true -g 1 -m 384 -n 2304 -k 768

Flags are `-key value`, `--key value` or `-key=value`, in any order; a line that starts with a flag is a `gemm`. (The
spelling is rocMLIR's; `convolution` drivers write theirs alike.) An operator is a row of a table: its flags, and how
their values become a program.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lithify.lang.errors import ParseError

Value = int | bool | str

_TYPES = {
    "f64": "f64", "fp64": "f64", "double": "f64", "f32": "f32", "fp32": "f32", "float": "f32", "f16": "f16",
    "fp16": "f16", "half": "f16", "bf16": "bf16", "bfloat16": "bf16", "i8": "i8", "int8": "i8", "i32": "i32",
    "int32": "i32", "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
_BOOLS = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
# What sums are made in, where that is not the operands' type; results are of it too, unless -out_datatype says else.
_SUMMED = {"f16": "f32", "bf16": "f32", "i8": "i32"}
_RESULT = {"i8": "i32"}
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class NamedProgram:
    """A program as a text: the definition `name`, its parameters' types written."""

    text: str
    name: str


@dataclass(frozen=True)
class _Flag:
    """A flag: other spellings, what reads its value, and its value where it is not written (None: it must be)."""

    name: str
    aliases: tuple[str, ...]
    read: Callable[[str], Value | None]
    expects: str
    default: Value | None = None


@dataclass(frozen=True)
class _Operator:
    """An operator: its flags in the order of the normalised line, and the program for their values."""

    name: str
    flags: tuple[_Flag, ...]
    program: Callable[[Mapping[str, Value]], str]


def is_problem(text: str) -> bool:
    """Whether a text is meant as a problem line, rather than as the name of a program."""
    words = text.split()
    return len(words) > 1 and (words[0] in OPERATORS or words[0].startswith("-"))


def read_problem(line: str) -> NamedProgram:
    """The program that a problem line stands for. Raises ParseError with the place of what is wrong."""
    words = [(m.group(), m.start()) for m in _WORD.finditer(line)]
    if not words:
        raise ParseError(
            "the problem line is empty", hint="gemm -t f32 -transA false -transB false -g 1 -m .. -n .. -k .."
        )
    first = words[0][0]
    operator = OPERATORS.get("gemm" if first.startswith("-") else first)
    if operator is None:
        raise _error(line, 0, f"there is no operator `{first}`", f"there are {', '.join(OPERATORS)}")
    values = _read_flags(operator, line, words[0 if first.startswith("-") else 1 :])
    for flag in operator.flags:
        if flag.name not in values:
            if flag.default is None:
                needed = " ".join(f"-{f.name} .." for f in operator.flags if f.default is None)
                raise _error(line, len(line), f"-{flag.name} is missing", f"{operator.name} needs {needed}")
            values[flag.name] = flag.default
    return NamedProgram(f"{operator.name} = {operator.program(values)}\n", operator.name)


def _read_flags(operator: _Operator, line: str, words: list[tuple[str, int]]) -> dict[str, Value]:
    spellings = {s: flag for flag in operator.flags for s in (flag.name, *flag.aliases)}
    values: dict[str, Value] = {}
    position = 0
    while position < len(words):
        word, at = words[position]
        if not word.startswith("-"):
            raise _error(line, at, f"`{word}` is no flag", "write -key value")
        key, equals, value = word.lstrip("-").partition("=")
        flag = spellings.get(key)
        if flag is None:
            close = difflib.get_close_matches(key, spellings, 2)
            known = f"did you mean -{' or -'.join(close)}?" if close else f"it has -{', -'.join(spellings)}"
            raise _error(line, at, f"{operator.name} has no flag -{key}", known)
        if flag.name in values:
            raise _error(line, at, f"-{flag.name} is given twice", None)
        place = at + len(word) - len(value)
        if not equals:
            position += 1
            if position == len(words):
                raise _error(line, len(line), f"-{key} has no value", f"it takes {flag.expects}")
            value, place = words[position]
        read = flag.read(value)
        if read is None:
            raise _error(line, place, f"`{value}` is no value of -{key}", f"it takes {flag.expects}")
        values[flag.name] = read
        position += 1
    return values


def _error(line: str, at: int, message: str, hint: str | None) -> ParseError:
    return ParseError(message, where=f"{line}\n{' ' * at}^", hint=hint)


# ---- values ----------------------------------------------------------------------------------------------------------


def _size(text: str) -> int | None:
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _size_flag(name: str, *aliases: str, default: int | None = None) -> _Flag:
    return _Flag(name, aliases, _size, "a whole number above 0", default)


def _bool_flag(name: str, *aliases: str) -> _Flag:
    return _Flag(name, aliases, lambda text: _BOOLS.get(text.lower()), "true or false", False)


def _type_flag(name: str, *aliases: str, default: str | None = None) -> _Flag:
    known = ", ".join(dict.fromkeys(_TYPES.values()))
    return _Flag(name, aliases, lambda text: _TYPES.get(text.lower()), f"a type: {known}", default)


# ---- operators -------------------------------------------------------------------------------------------------------


def _gemm(values: Mapping[str, Value]) -> str:
    """g products op(A) op(B): A is m x k or, transposed, k x m; B is k x n or n x k."""
    g, m, n, k = (values[name] for name in "gmnk")
    operand = str(values["t"])
    summed = _SUMMED.get(operand, operand)
    result = str(values["out_datatype"] or _RESULT.get(operand, operand))
    x, y = ("x", "y") if operand == summed else (f"{summed} x", f"{summed} y")
    dot = f"reduce (+) 0 (map (λ (x, y) . {x} * {y}) (zip rowA colB))"
    dot = dot if result == summed else f"{result} ({dot})"
    a, shape_a = ("(transpose a)", f"{k}.{m}") if values["transA"] else ("a", f"{m}.{k}")
    b, shape_b = ("b", f"{n}.{k}") if values["transB"] else ("(transpose b)", f"{k}.{n}")
    product = f"map (λ rowA . map (λ colB . {dot}) {b}) {a}"
    if g == 1:
        return f"λ (a : {shape_a}.{operand}) (b : {shape_b}.{operand}) . {product}"
    arrays = f"(as : {g}.{shape_a}.{operand}) (bs : {g}.{shape_b}.{operand})"
    return f"λ {arrays} . map (λ (a, b) . {product}) (zip as bs)"


OPERATORS = {
    operator.name: operator
    for operator in (
        _Operator(
            "gemm",
            (
                _type_flag("t", "type", "dtype", "datatype"),
                _type_flag("out_datatype", "out_dtype", default=""),
                _bool_flag("transA", "transa", "ta"),
                _bool_flag("transB", "transb", "tb"),
                _size_flag("g", "groups", "batch", default=1),
                _size_flag("m", "gemmM", "gemm_m"),
                _size_flag("n", "gemmN", "gemm_n"),
                _size_flag("k", "gemmK", "gemm_k"),
            ),
            _gemm,
        ),
    )
}
