"""Values of wrong types, given to everything that is public: a message that names what was wrong, or a right answer.

A table of entries is met by a table of values. Whatever Python or a library beneath would raise (AttributeError,
KeyError, a RecursionError, ..) is a fault here; only a call with too many or too few arguments is Python's to refuse.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lithify as lf


class Odd:
    """Something that nothing knows."""


PROGRAMS = """
scal (a : f32) (xs : n.f32) = map (λ x . x * a) xs
total xs = sum xs
blocks (xs : n.f32) = map sum (split b xs)
taken (xs : n.f32) (ids : m.idx[n]) = gather ids xs
product (a : n.m.f32) (b : m.k.f32) = map (λ row . map (λ col . dot row col) (transpose b)) a
"""
MODULE = lf.parse(PROGRAMS)
XS = np.arange(4, dtype=np.float32)

VALUES: dict[str, Any] = {
    "None": None,
    "a text": "hello world",
    "an empty text": "",
    "a text of NumPy": np.str_("a"),
    "a surrogate": "\udc80",
    "a zero byte": "a\0b",
    "bytes": b"ab",
    "a path": pathlib.Path("no_such.lift"),
    "a float": 2.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "a negative number": -3,
    "a huge number": 10**40,
    "a bool": True,
    "a complex number": 1j,
    "a list": [1.0, 2.0],
    "a list of texts": ["a", "b"],
    "an empty list": [],
    "an empty tuple": (),
    "a tuple": (1, (None,)),
    "a dict": {"a": 1},
    "a set": {1},
    "a range": range(3),
    "a generator": (i for i in ()),
    "a slice": slice(1),
    "Ellipsis": ...,
    "a memoryview": memoryview(b"abc"),
    "an object": Odd(),
    "a class": Odd,
    "a type of Python's": int,
    "a function": lambda x: x,
    "a function of nothing": lambda: 0,
    "a scalar type": lf.f32,
    "an array type": lf.Array[3, lf.f32],
    "a size": lf.size("n"),
    "an operator": lf.add,
    "a device": lf.device("cpu"),
    "a program": MODULE["total"],
    "a module": MODULE,
    "NumPy's float": np.float32(2),
    "NumPy's int": np.int64(3),
    "an array of no dimensions": np.array(2.0, np.float32),
    "an array": np.arange(3, dtype=np.float32),
    "an empty array": np.zeros(0, np.float32),
    "objects": np.array([1, "a", None], object),
    "texts": np.array(["a", "b"]),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "a record": np.zeros(2, [("a", "f4")]),
    "long doubles": np.zeros(2, np.longdouble),
    "a long double": np.longdouble(2),
    "the other byte order": np.arange(3, dtype=">f4"),
    "a masked array": np.ma.array([1.0, 2.0], dtype=np.float32),
    "a matrix": np.matrix([[1.0, 2.0]]),
}

_product = MODULE["product"].by(None)
MATRIX = np.ones((4, 4), np.float32)


def _returning(value: Any) -> Any:
    return lf.program(lambda xs: value)(XS)


def _annotated(value: Any, name: str) -> Any:
    def function(xs: Any) -> Any:
        return xs

    function.__annotations__ = {name: value}
    return lf.program(function)(XS)


def _operator(**declared: Any) -> Any:
    plus = lf.operator(lambda a, b: a + b, **declared)
    return lf.program(lambda xs: lf.reduce(plus, 0, xs))(XS)


# What is called, and what its message must say, of all values that it refuses.
ENTRIES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "device": (lf.device, "device"),
    "library": (lf.library, "librar|ships"),
    "load": (lf.load, "path|cannot be read"),
    "parse": (lf.parse, "text|definition|character"),
    "parse's name": (lambda v: lf.parse("f xs = g xs", name=v), "name"),
    "program": (lf.program, "function"),
    "program that returns it": (_returning, "."),
    "annotation": (lambda v: _annotated(v, "xs"), "annotation|expected|two values"),
    "annotation of the result": (lambda v: _annotated(v, "return"), "annotation|expected|two values"),
    "Program": (lf.Program, "is no program"),
    "Module": (lf.Module, "module"),
    "module[]": (lambda v: MODULE[v], "defines no"),
    "size": (lf.size, "size"),
    "sizes": (lf.sizes, "size"),
    "Array, element": (lambda v: lf.Array[3, v], "element"),
    "Array, size": (lambda v: lf.Array[v, lf.f32], "size"),
    "operator": (lf.operator, "operator|function"),
    "operator, associative": (lambda v: _operator(associative=v), "associative"),
    "operator, commutative": (lambda v: _operator(commutative=v), "commutative"),
    "operator, idempotent": (lambda v: _operator(idempotent=v), "idempotent"),
    "operator, neutral": (lambda v: _operator(neutral=v), "neutral|value|mask|literal"),
    "operator, name": (lambda v: _operator(name=v), "operator"),
    "convert": (lambda v: lf.convert(v, 1.0), "scalar type"),
    "to": (lambda v: lf.to(v, 1.0), "memor"),
    "let": (lambda v: lf.let(1.0, v), "let|function|argument|in a program|takes an array"),
    "level": (lambda v: lf.program(lambda xs: lf.map(lf.id, xs, level=v)).term(XS), "level"),
    "loop's name": (lambda v: lf.program(lambda xs: lf.map(lf.id, xs, name=v)).term(XS), "name"),
    "memory": (lambda v: lf.program(lambda xs: lf.reduce(lf.add, 0, xs, memory=v)).term(XS), "memory"),
    "mode": (lambda v: lf.program(lambda xs: lf.scatter(xs, xs, mode=v)).term(XS), "."),
    "argument": (MODULE["total"], "xs|reduce"),
    "argument of the type's methods": (MODULE["total"].types, "xs|reduce|type"),
    "argument by name": (lambda v: MODULE["total"](xs=v), "xs|reduce"),
    "scalar argument": (lambda v: MODULE["scal"](v, XS), r"\ba\b"),
    "index argument": (lambda v: MODULE["taken"](XS, v), "ids|idx"),
    "sizes=": (lambda v: MODULE["blocks"](XS, sizes=v), "size"),
    "sizes, value": (lambda v: MODULE["blocks"](XS, sizes={"b": v}), r"\bb\b|divi"),
    "sizes, value, types": (lambda v: MODULE["blocks"].types("4.f32", sizes={"b": v}), r"\bb\b|divi"),
    "sizes, name": (lambda v: MODULE["blocks"](XS, sizes={v: 2} if v.__hash__ else {"!": 2}), "size"),
    "out": (lambda v: MODULE["scal"](2.0, XS, out=v), "out"),
    "on": (MODULE["scal"].on, "device"),
    "by": (MODULE["scal"].by, "strategy"),
    "tuned_by": (MODULE["scal"].tuned_by, "parameter"),
    "source's target": (lambda v: MODULE["scal"].source(2.0, XS, target=v), "target"),
    "tune's budget": (lambda v: _product.tune(MATRIX, MATRIX, budget=v), "budget"),
    "tune's search": (lambda v: _product.tune(MATRIX, MATRIX, search=v), "search"),
    "tune's seed": (lambda v: _product.tune(MATRIX, MATRIX, seed=v, budget="x"), "seed|budget"),
    "tune's on_progress": (lambda v: _product.tune(MATRIX, MATRIX, on_progress=v, search="x"), "on_progress|search"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_values_of_wrong_types_are_refused_by_name(entry: str) -> None:
    call, named = ENTRIES[entry]
    for label, value in VALUES.items():
        message = _refusal(lambda value=value: call(value))
        assert message is None or re.search(named, message), f"{label}: {message}"
        assert len(message or "") < 1_000, label


def _refusal(call: Callable[[], Any]) -> str | None:
    try:
        call()
    except lf.LithifyError as error:
        return str(error)
    return None


_FUNCTIONS = sorted(set(dir(lf)) - {name for name in dir(lf) if isinstance(getattr(lf, name), type)}
                    - {"TYPE_CHECKING", "annotations", "importlib", "Any"})  # fmt: skip


@pytest.mark.parametrize("name", [n for n in _FUNCTIONS if not n.startswith("_") and callable(getattr(lf, n))])
def test_every_function_takes_wrong_values_or_refuses_them(name: str) -> None:
    """Alone and with arguments that would be right, while a program is built and outside of it."""
    function = getattr(lf, name)
    for value in VALUES.values():
        for build in (lambda xs, v=value: function(v), lambda xs, v=value: function(v, xs),
                      lambda xs, v=value: function(xs, v), lambda xs, v=value: function(v, v, xs)):  # fmt: skip
            _refused_or_done(lambda build=build: build(XS))
            _refused_or_done(lambda build=build: lf.program(lambda xs: build(xs)).term(XS))


def _refused_or_done(call: Callable[[], Any]) -> None:
    """A TypeError is Python's where it speaks of the arguments that a function takes: nothing inside has run."""
    with contextlib.suppress(lf.LithifyError):
        try:
            call()
        except TypeError as error:
            if not re.search(r"positional argument|unexpected keyword", str(error)):
                raise


def test_strategies_and_parameters_are_refused_when_they_are_given() -> None:
    for program in (MODULE["total"], lf.program(lambda xs: lf.sum(xs))):
        with pytest.raises(lf.RewriteFailed, match="no strategy named reduction-9\nhint: did you mean reduction-"):
            program.by("reduction-9")
        with pytest.raises(lf.RewriteFailed, match="'32' is no tuning parameter"):
            program.tuned_by("32")
    assert MODULE["product"].by("tiled(n=32, m=32, k=8)").strategy == "tiled(n=32, m=32, k=8)"


def test_sizes_that_a_program_does_not_have_are_refused() -> None:
    """Those of another program of the same text are not its own; those of what it uses are."""
    with pytest.raises(lf.TypeMismatch, match="`scal` has no size b"):
        MODULE["scal"](2.0, XS, sizes={"b": 2})
    uses = lf.parse("parts xs = split b xs\ncut : n.f32 -> _\nother xs = xs\ncut xs = map sum (parts xs)")
    assert uses["cut"](XS, sizes={"b": 2}).tolist() == [1, 5]
    assert uses["cut"](XS, sizes={"b": 2, "n": 4}).tolist() == [1, 5]
    with pytest.raises(lf.TypeMismatch, match="`other` has no size b"):
        uses["other"](XS, sizes={"b": 2})
    b = lf.size("b")
    cut = lf.program(lambda xs: xs >> lf.split(b) >> lf.map(lf.sum))
    assert cut(XS, sizes={"b": 2}).tolist() == [1, 5]
    with pytest.raises(lf.TypeMismatch, match="has no size c\nhint: its sizes are b"):
        cut(XS, sizes={"b": 2, "c": 2})
    assert lf.program(lambda xs: uses["parts"](xs)).term(XS, sizes={"b": 2}).type == lf.Array[2, 2, lf.f32]


def test_sizes_of_numpys_integers_are_sizes() -> None:
    assert MODULE["blocks"](XS, sizes={"b": np.int64(2)}).tolist() == [1, 5]
    assert str(lf.Array[np.int32(3), lf.f32]) == "3.f32"


def test_programs_of_other_callables() -> None:
    def scaled(a: float, xs: Any) -> Any:
        return lf.map(lambda x: x * a, xs)

    twice = lf.program(functools.partial(scaled, 2))
    assert twice(XS).tolist() == [0, 2, 4, 6]
    assert twice.name == "scaled"
    for function in (lambda *xs: xs, lambda **xs: xs, lambda xs, *, k: xs, lf.sum):
        with pytest.raises(lf.TypeMismatch, match="any number of arguments, or comes by name alone"):
            lf.program(function)(XS)


def test_constants_are_what_they_say() -> None:
    for constant in (np.array([1, 2, 3, 4], ">f4"), np.matrix([1, 2, 3, 4], np.float32).A1):
        np.testing.assert_array_equal(_plus(constant), [1, 3, 5, 7])
    with pytest.raises(lf.TypeMismatch, match="its mask would be lost"):
        _plus(np.ma.array([1, 2, 3, 4], mask=[True, False, False, False], dtype=np.float32))
    rows = lf.program(lambda xs: lf.map(lambda row: lf.sum(row) + xs[0], np.matrix([[1.0, 2], [3, 4]], np.float32)))
    np.testing.assert_array_equal(rows(XS), [3, 7])


def test_what_errors_say_to_write_can_be_written() -> None:
    changed = lf.program(lambda xs: lf.generate(4, lambda i: lf.select(i == 2, 9, xs[i])))
    assert changed(XS).tolist() == [0, 1, 9, 3]
    chosen = lf.program(lambda xs: lf.let([5, 6, 7], lambda table: lf.generate(2, lambda i: table[i + 1])))
    assert chosen(XS).tolist() == [6, 7]


def _plus(constant: Any) -> Any:
    def plus(xs: Any) -> Any:
        return xs + constant

    return lf.program(plus)(XS)


def test_outputs_that_cannot_be_filled() -> None:
    read_only = np.empty(4, np.float32)
    read_only.flags.writeable = False
    for out, reason in (
        (read_only, "read-only"),
        (np.broadcast_to(np.float32(0), 4), "read-only|share memory"),
        (np.empty(4, ">f4"), "out is"),
        (np.ma.zeros(4, np.float32), "masked"),
        ("a text", "out is the text 'a text', not an array"),
    ):
        with pytest.raises(lf.LaunchError, match=reason):
            MODULE["scal"](2.0, XS, out=out)
    backwards = np.full(4, np.nan, np.float32)[::-1]
    assert MODULE["scal"](2.0, XS, out=backwards) is backwards
    assert backwards.tolist() == [0, 2, 4, 6]


def test_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert float(MODULE["total"](torch.ones(3, requires_grad=True))) == 3  # without a gradient, as .detach() is
    for tensor in (torch.ones(3, device="meta"), torch.ones(3).to_sparse(), torch.quantize_per_tensor(
            torch.ones(3), 1.0, 0, torch.qint8)):  # fmt: skip
        with pytest.raises(lf.LaunchError, match="argument xs"):
            MODULE["total"](tensor)


@pytest.mark.parametrize("name", sorted(name for name in lf.__all__ if name[:1].isupper() and "Device" not in name))
def test_exported_errors_are_one_family_with_a_meaning(name: str) -> None:
    exported = getattr(lf, name)
    if name not in ("Module", "Program"):
        assert issubclass(exported, lf.LithifyError)
        assert exported.__doc__
