"""Interrupts that are not lost.

Python reports and forgets an exception that is raised in a finaliser (`__del__`, as of compiled modules) or when a weak
reference dies (as of terms that are known): there, what goes on for long has to be told in another way.
"""

from __future__ import annotations

import signal
import threading
import weakref
from types import FrameType, TracebackType

# Where the functions are that weak dictionaries and sets have called.
_CALLBACKS = frozenset(c.__init__.__code__.co_filename for c in (weakref.WeakValueDictionary, weakref.WeakSet))


class Interrupts:
    """While it is entered, `seen` tells whether there was a Ctrl-C; KeyboardInterrupt is raised as ever where it is not
    lost.

    Signals are for the main thread: in others, and where somebody else handles them, nothing is changed.
    """

    def __init__(self) -> None:
        self.seen = False
        self._installed = False

    def __enter__(self) -> Interrupts:
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._notice)
            self._installed = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _notice(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        if not _is_lost(frame):
            signal.default_int_handler(number, frame)


def _is_lost(frame: FrameType | None) -> bool:
    """Would an exception be forgotten there: below a finaliser, or when a weak reference dies?"""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename in _CALLBACKS:
            return True
        frame = frame.f_back
    return False
