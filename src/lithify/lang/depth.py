"""Room for programs that nest deeply: thousands of operations one inside the other, as generated programs have them.

What walks over terms is recursive, and Python allows some thousand calls, few of them where a user's own are below.
Where that is not enough, the work is done again in a thread that has room; programs that need none of it pay nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from lithify.lang.errors import TypeMismatch

_P = ParamSpec("_P")
_T = TypeVar("_T")

_CALLS = 60_000
_STACK_BYTES = 1 << 29  # of addresses; memory is used for what is reached
_turn = threading.Lock()  # the limits belong to the whole process: one at a time changes them


def too_deep() -> TypeMismatch:
    """The error of a program that nests more deeply than it can be followed."""
    return TypeMismatch("nested too deeply", hint="write the repetition as a map, reduce or iterate")


class _Roomy(threading.Thread):
    """A thread with a large stack that runs a function and keeps what comes of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(name="lithify-deep", daemon=True)
        self.work, self.result = work, None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:
            self.error = error


def deeply(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """function(*args, **kwargs), which may be called twice: again with more room where it recurses too deeply.

    Raises RecursionError where that is not enough either.
    """
    try:
        return function(*args, **kwargs)
    except RecursionError:
        if isinstance(threading.current_thread(), _Roomy):
            raise
    context = copy_context()  # what is known and assumed here is so there, too
    result: _T = _with_room(lambda: context.run(function, *args, **kwargs))
    return result


def _with_room(work: Callable[[], Any]) -> Any:
    with _turn:
        calls, stack = sys.getrecursionlimit(), threading.stack_size()
        sys.setrecursionlimit(max(calls, _CALLS))
        try:
            threading.stack_size(_STACK_BYTES)
            thread = _Roomy(work)
            try:
                thread.start()
            finally:
                threading.stack_size(stack)
            thread.join()
        except (RuntimeError, ValueError) as error:  # no thread with such a stack on this machine
            raise RecursionError(str(error)) from error
        finally:
            sys.setrecursionlimit(calls)
    if thread.error is not None:
        raise thread.error
    return thread.result
