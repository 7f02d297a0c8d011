"""Many small questions answered by several processes, each within a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any, TypeVar

from lithify.explore.worker import Worker, WorkerCrashed, WorkerFailed, WorkerTimedOut
from lithify.lang.errors import LithifyError

_Question = TypeVar("_Question")


def answers(
    serve: Callable[[Any], Any], questions: Sequence[_Question], timeout: float, count: int | None = None
) -> Iterator[tuple[int, Any | LithifyError]]:
    """The number of each question and its answer, in the order in which they are done.

    What is raised, takes longer than `timeout` seconds or crashes is the answer as an error. The processes are forked:
    they know what the caller knows.
    """
    idle: list[Worker] = []
    running: dict[Worker, tuple[int, float]] = {}
    waiting = list(reversed(range(len(questions))))
    limit = count or len(os.sched_getaffinity(0))
    try:
        while waiting or running:
            while waiting and len(running) < limit:
                worker, number = idle.pop() if idle else Worker.forked(serve), waiting.pop()
                worker.send(questions[number])
                running[worker] = number, time.monotonic() + timeout
            soonest = min(end for _, end in running.values())
            wait([worker.connection for worker in running], max(0.0, soonest - time.monotonic()))
            for worker, (number, end) in list(running.items()):
                if worker.connection.poll() or time.monotonic() >= end:
                    del running[worker]
                    try:
                        answer = worker.receive(0.0)
                    except (WorkerCrashed, WorkerTimedOut) as error:
                        yield number, error
                        continue
                    except WorkerFailed as error:
                        answer = error
                    idle.append(worker)
                    yield number, answer
    finally:
        for worker in [*idle, *running]:
            worker.close()
