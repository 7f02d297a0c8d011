"""Interrupts that Python would swallow are seen."""

from __future__ import annotations

import signal
import sys

import pytest

from lithify.explore.interrupts import Interrupts


def test_an_interrupt_in_a_finaliser_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    swallowed: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: swallowed.append(lost.exc_type))

    class Compiled:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with Interrupts() as interrupts:
        compiled = Compiled()
        assert not interrupts.seen
        del compiled
        assert interrupts.seen
    assert swallowed == []  # nothing is reported


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
