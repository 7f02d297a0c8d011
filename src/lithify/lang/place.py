"""Where in the user's Python code something is built: what errors of the front end point to."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from lithify.arith import ArithError
from lithify.lang.errors import LithifyError, TypeMismatch


def located(make: Callable[[], Any]) -> Any:
    """Run what builds a term; an error gets the line of the user's code."""
    try:
        return make()
    except ArithError as error:  # a size of 0 or less where there cannot be one
        raise TypeMismatch(str(error), where=place()) from error
    except LithifyError as error:
        if error.where is None:
            error.located(place())
        raise


_NOT_THE_USERS = (
    "lithify",
    "numpy",
    "functools",
    "contextlib",
)  # the libraries' frames lie between those of the front end


def place() -> str:
    """File and line of the innermost frame that is not the front end's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USERS:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}, in {frame.f_code.co_name}"
