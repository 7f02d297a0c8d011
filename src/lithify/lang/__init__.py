"""The language: types, terms, patterns, scalar operators, text syntax and the Python front end's term builders."""

from lithify.lang.elaborate import elaborate, elaborate_term
from lithify.lang.errors import LithifyError, ParseError, TypeMismatch, UnboundSize
from lithify.lang.module import Definition, Elaborated, Module, read_file, read_text
from lithify.lang.parser import parse, parse_expression, parse_type
from lithify.lang.printer import show, show_program, to_syntax
from lithify.lang.term import Term
from lithify.lang.types import Array, Index, Tuple, Type, array
from lithify.lang.unparse import unparse

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
    "elaborate",
    "elaborate_term",
    "parse",
    "parse_expression",
    "parse_type",
    "read_file",
    "read_text",
    "show",
    "show_program",
    "to_syntax",
    "unparse",
]
