"""Builders: processes that take candidates from their keys to code, several at a time while nothing is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from multiprocessing.connection import wait

from lithify.explore.candidates import Candidates
from lithify.explore.worker import Worker, WorkerCrashed, WorkerFailed, WorkerTimedOut
from lithify.kernel.translate import translate
from lithify.lang.depth import deeply
from lithify.lang.errors import RewriteFailed
from lithify.rewrite.record import save
from lithify.targets.base import Target


@dataclass(frozen=True)
class Built:
    """A candidate's code as `Target.finish` takes it, or why there is none (`data` is None).

    `state` says how it ended: built, failed, crashed or timeout. `derivation` is the saved form ("" where a step has
    none).
    """

    key: str
    state: str
    data: bytes | None = None
    derivation: str = ""
    detail: str = ""


def build(candidates: Candidates, target: Target, key: str) -> Built:
    """Lower, translate and compile one candidate. Raises LithifyError."""
    lowered = deeply(candidates.lower, key)
    program = deeply(translate, lowered.term, candidates.parameters, name="candidate", device=candidates.model)
    data = deeply(target.prepare, program)
    try:
        derivation = save(lowered.derivation)
    except RewriteFailed:  # a parameter of a rule that has no text
        derivation = ""
    return Built(key, "built", data, derivation)


class Builders:
    """As many processes as there are CPUs (`count`), each with all candidates, forked when first needed."""

    def __init__(self, candidates: Candidates, target: Target, timeout: float, count: int | None = None) -> None:
        self._candidates, self._target, self._timeout = candidates, target, timeout
        self.count = count or len(os.sched_getaffinity(0))
        self._idle: list[Worker] = []

    def build(self, keys: Sequence[str], until: float = inf, always: str | None = None) -> Iterator[Built]:
        """Build the keys, in the order in which they are done.

        What is not done at a time (of `time.monotonic`) is given up and left out, but for the key `always`.
        """
        waiting, running = list(reversed(keys)), dict[Worker, tuple[str, float]]()
        try:
            while waiting or running:
                needed = always in waiting or always in [key for key, _ in running.values()]
                stop = inf if needed else until
                if time.monotonic() >= stop:
                    return
                while waiting and len(running) < self.count:
                    worker, key = self._worker(), waiting.pop()
                    worker.send(key)
                    running[worker] = key, time.monotonic() + self._timeout
                next_end = min(stop, *[end for _, end in running.values()])
                wait([worker.connection for worker in running], max(0.0, next_end - time.monotonic()))
                for worker, (key, end) in list(running.items()):
                    if worker.connection.poll() or time.monotonic() >= end:
                        del running[worker]
                        yield self._receive(worker, key)
        finally:
            for worker in running:  # the caller has enough
                worker.close()

    def close(self) -> None:
        """End the processes."""
        while self._idle:
            self._idle.pop().close()

    def _receive(self, worker: Worker, key: str) -> Built:
        try:
            built: Built = worker.receive(0.0)
        except WorkerFailed as error:
            built = Built(key, "failed", detail=error.message)
        except WorkerCrashed as error:
            return Built(key, "crashed", detail=f"while it was compiled: {error.message}")
        except WorkerTimedOut:
            return Built(key, "timeout", detail=f"not compiled within {self._timeout:.3g} s")
        self._idle.append(worker)
        return built

    def _worker(self) -> Worker:
        if self._idle:
            return self._idle.pop()
        candidates, target = self._candidates, self._target
        return Worker.forked(lambda key: build(candidates, target, key))
