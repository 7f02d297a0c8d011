"""Interrupts that Python would swallow are seen."""

from __future__ import annotations

import signal
import sys
import weakref
from collections.abc import Iterator

import pytest

from lithify.explore.interrupts import Interrupts


@pytest.fixture(autouse=True)
def pythons_own_handler() -> Iterator[None]:
    """A shell's jobs in the background begin with interrupts ignored, and so does what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Finalised:
    """One that is interrupted when it goes."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


class Key:
    """One that is interrupted when a weak dictionary, which it is the hash of, forgets it."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        if sys._getframe(1).f_code.co_name == "remove":
            signal.raise_signal(signal.SIGINT)
        return 1


class Value:
    """What a weak dictionary holds."""


@pytest.mark.parametrize("weak", [False, True], ids=["finaliser", "weak reference"])
def test_an_interrupt_that_would_be_lost_is_seen(monkeypatch: pytest.MonkeyPatch, weak: bool) -> None:
    lost: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: lost.append(error.exc_type))
    known: weakref.WeakValueDictionary[Key, Value] = weakref.WeakValueDictionary()
    with Interrupts() as interrupts:
        value: Value | Finalised = Value() if weak else Finalised()
        if isinstance(value, Value):
            known[Key()] = value
        assert not interrupts.seen
        del value
        assert interrupts.seen
    assert lost == []  # nothing is reported


def test_an_interrupt_is_raised_as_ever() -> None:
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert interrupts.seen
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_others_stay() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
        assert not interrupts.seen
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
