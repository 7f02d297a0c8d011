"""Symbolic sizes and indices: one normal form, its ranges, and proofs of >= 0 and of divisibility."""

from lithify.arith.atoms import Atom, Floor, Loaded, Min, Variable, Xor, as_variable, size, var
from lithify.arith.errors import ArithError
from lithify.arith.expr import Expr, as_expr, const
from lithify.arith.functions import ceil_div, clamp, loaded, maximum, minimum, xor
from lithify.arith.proof import proves, proves_divisible, proves_equal

__all__ = [
    "ArithError",
    "Atom",
    "Expr",
    "Floor",
    "Loaded",
    "Min",
    "Variable",
    "Xor",
    "as_expr",
    "as_variable",
    "ceil_div",
    "clamp",
    "const",
    "loaded",
    "maximum",
    "minimum",
    "proves",
    "proves_divisible",
    "proves_equal",
    "size",
    "var",
    "xor",
]
