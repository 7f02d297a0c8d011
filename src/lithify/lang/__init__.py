"""The language: types, terms, patterns, scalar operators, text syntax and the Python front end's term builders.

Each name is imported when it is first used: a program that was compiled before needs neither reader nor printer.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lithify.lang.elaborate import elaborate_term
    from lithify.lang.errors import LithifyError, ParseError, TypeMismatch, UnboundSize
    from lithify.lang.module import Definition, Elaborated, Module, read_file, read_text
    from lithify.lang.parser import parse, parse_expression, parse_type
    from lithify.lang.printer import show, show_program, to_syntax
    from lithify.lang.term import Term
    from lithify.lang.types import Array, Index, Tuple, Type, array

_HOME = {
    "Array": "types",
    "Definition": "module",
    "Elaborated": "module",
    "Index": "types",
    "LithifyError": "errors",
    "Module": "module",
    "ParseError": "errors",
    "Term": "term",
    "Tuple": "types",
    "Type": "types",
    "TypeMismatch": "errors",
    "UnboundSize": "errors",
    "array": "types",
    "elaborate_term": "elaborate",
    "parse": "parser",
    "parse_expression": "parser",
    "parse_type": "parser",
    "read_file": "module",
    "read_text": "module",
    "show": "printer",
    "show_program": "printer",
    "to_syntax": "printer",
}

__all__ = [
    "Array",
    "Definition",
    "Elaborated",
    "Index",
    "LithifyError",
    "Module",
    "ParseError",
    "Term",
    "Tuple",
    "Type",
    "TypeMismatch",
    "UnboundSize",
    "array",
    "elaborate_term",
    "parse",
    "parse_expression",
    "parse_type",
    "read_file",
    "read_text",
    "show",
    "show_program",
    "to_syntax",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lithify.lang' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"lithify.lang.{_HOME[name]}"), name)
    return value
