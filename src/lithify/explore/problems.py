"""Problems as the field writes them, in one line of flags, and the programs that they stand for.

    gemm -t f32 -transA false -transB true -g 1 -m 384 -n 2304 -k 768

Flags are `-key value`, `--key value` or `-key=value`, in any order; a line that starts with a flag is a `gemm`. (The
spelling is rocMLIR's; `convolution` drivers write theirs alike.) An operator is a row of a table: its flags, and how
their values become a program.

Problems that tuning finds in programs are printed with the same flags, and some more (`-reduction`, `-epilogue`, ..)
that name what only the program says by a digest: such a line is read, but is no program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from lithify.lang.errors import ParseError
from lithify.lang.scalars import SCALARS, accumulator_of, result_of
from lithify.lang.spelling import choices, near

Value = int | bool | str

_TYPES = {
    **{name: name for name in SCALARS}, "fp64": "f64", "double": "f64", "fp32": "f32", "float": "f32",
    "fp16": "f16", "half": "f16", "bfloat16": "bf16", "int8": "i8", "int32": "i32",
}  # fmt: skip
_BOOLS = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
_WORD = re.compile(r"\S+")
_DIGEST = re.compile(r"[0-9a-f]{8}")
_SAYS = "a digest, as `lithify records list` shows it; what it stands for is written in a program: FILE.lift:name"


@dataclass(frozen=True)
class NamedProgram:
    """A program as a text: the definition `name`, its parameters' types written."""

    text: str
    name: str


@dataclass(frozen=True)
class _Flag:
    """A flag: other spellings, what reads its value, and its value where it is not written (None: it must be).

    `apart` says that its value is a digest of something that only a program says.
    """

    name: str
    aliases: tuple[str, ...]
    read: Callable[[str], Value | None]
    expects: str
    default: Value | None = None
    apart: bool = False


@dataclass(frozen=True)
class _Operator:
    """An operator: its flags, the program for their values, and the one line of them that problems are known by.

    What the flags are is asked when a line is read: some are known to the family's lowering alone, which takes a while
    to import.
    """

    name: str
    known_flags: Callable[[], tuple[_Flag, ...]]
    program: Callable[[Mapping[str, Value]], str]
    line: Callable[[Mapping[str, Value]], str]

    @property
    def flags(self) -> tuple[_Flag, ...]:
        return self.known_flags()


def is_problem(text: str) -> bool:
    """Whether a text is meant as a problem line, rather than as the name of a program."""
    words = text.split()
    return len(words) > 1 and (words[0] in OPERATORS or words[0].startswith("-"))


def read_problem(line: str) -> NamedProgram:
    """The program that a problem line stands for. Raises ParseError with the place of what is wrong."""
    operator, values = _read(line)
    for flag in operator.flags:
        if flag.apart and values[flag.name]:
            raise _error(
                line,
                line.index(str(values[flag.name])),
                f"what -{flag.name} {values[flag.name]} stands for is in the program that it was found in alone",
                "give that program instead: FILE.lift:name and --arg for its arguments",
            )
    return NamedProgram(f"{operator.name} = {operator.program(values)}\n", operator.name)


def normalised(line: str) -> str:
    """The line that the problem of a problem line is known by. Raises ParseError as `read_problem` does."""
    operator, values = _read(line)
    return operator.line(values)


def _read(line: str) -> tuple[_Operator, dict[str, Value]]:
    """The operator of a line, and the values of all its flags."""
    words = [(m.group(), m.start()) for m in _WORD.finditer(line)]
    if not words:
        raise ParseError(
            "the problem line is empty", hint="gemm -t f32 -transA false -transB false -g 1 -m .. -n .. -k .."
        )
    first = words[0][0]
    operator = OPERATORS.get("gemm" if first.startswith("-") else first)
    if operator is None:
        raise _error(line, 0, f"there is no operator `{first}`", choices(first, OPERATORS))
    values = _read_flags(operator, line, words[0 if first.startswith("-") else 1 :])
    for flag in operator.flags:
        if flag.name not in values:
            if flag.default is None:
                needed = " ".join(f"-{f.name} .." for f in operator.flags if f.default is None)
                raise _error(line, len(line), f"-{flag.name} is missing", f"{operator.name} needs {needed}")
            values[flag.name] = flag.default
    return operator, values


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
            names = [f"-{f.name}" for f in operator.flags if not f.apart]
            meant = dict.fromkeys(f"-{spellings[each].name}" for each in near(key, spellings, 2))
            close = f"did you mean {' or '.join(meant)}? " if meant else ""
            known = f"{close}it has {', '.join(names)}"
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


def _apart_flag(name: str) -> _Flag:
    return _Flag(name, (), lambda text: text if _DIGEST.fullmatch(text) else None, _SAYS, "", apart=True)


# ---- operators -------------------------------------------------------------------------------------------------------


@cache
def _gemm_flags() -> tuple[_Flag, ...]:
    from lithify.lowering.gemm.problem import APART

    return (
        _type_flag("t", "type", "dtype", "datatype"),
        _bool_flag("transA", "transa", "ta"),
        _bool_flag("transB", "transb", "tb"),
        _size_flag("g", "groups", "batch", default=1),
        _size_flag("m", "gemmM", "gemm_m"),
        _size_flag("n", "gemmN", "gemm_n"),
        _size_flag("k", "gemmK", "gemm_k"),
        _type_flag("b_datatype", "b_dtype", default=""),
        _type_flag("acc_datatype", "acc_dtype", default=""),
        _type_flag("out_datatype", "out_dtype", default=""),
        *map(_apart_flag, APART),
    )


def _gemm(values: Mapping[str, Value]) -> str:
    """g products op(A) op(B): A is m x k or, transposed, k x m; B is k x n or n x k."""
    g, m, n, k = (values[name] for name in "gmnk")
    types = _gemm_types(values)
    summed = types["acc"]
    x, y = (name if types[of] == summed else f"{summed} {name}" for name, of in (("x", "a"), ("y", "b")))
    dot = f"reduce (+) 0 (map (λ (x, y) . {x} * {y}) (zip rowA colB))"
    dot = dot if types["c"] == summed else f"{types['c']} ({dot})"
    a, shape_a = ("(transpose a)", f"{k}.{m}") if values["transA"] else ("a", f"{m}.{k}")
    b, shape_b = ("b", f"{n}.{k}") if values["transB"] else ("(transpose b)", f"{k}.{n}")
    product = f"map (λ rowA . map (λ colB . {dot}) {b}) {a}"
    if g == 1:
        return f"λ (a : {shape_a}.{types['a']}) (b : {shape_b}.{types['b']}) . {product}"
    arrays = f"(as : {g}.{shape_a}.{types['a']}) (bs : {g}.{shape_b}.{types['b']})"
    return f"λ {arrays} . map (λ (a, b) . {product}) (zip as bs)"


def _gemm_types(values: Mapping[str, Value]) -> dict[str, str]:
    """The types of the operands, of the sums and of the result."""
    t = str(values["t"])
    return {
        "a": t,
        "b": str(values["b_datatype"] or t),
        "acc": str(values["acc_datatype"] or accumulator_of(SCALARS[t])),
        "c": str(values["out_datatype"] or result_of(SCALARS[t])),
    }


def _gemm_line(values: Mapping[str, Value]) -> str:
    from lithify.lowering.gemm.problem import APART, line_of

    return line_of(
        _gemm_types(values),
        (bool(values["transA"]), bool(values["transB"])),
        {name: int(values[name]) for name in "gmnk"},
        {name: str(values[name]) for name in APART if values[name]},
    )


OPERATORS = {operator.name: operator for operator in (_Operator("gemm", _gemm_flags, _gemm, _gemm_line),)}
