"""Processes that do one thing at a time for a search, and may hang or crash without taking it along.

Two kinds. A *forked* worker has everything that its parent has; it must not touch a device that the parent has opened.
A *launched* worker is a fresh Python that gets what it works with in its first message; it opens devices of its own.
Both answer requests over a connection until it is closed, and ignore the interrupts of the terminal: the parent decides
what becomes of them.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import IO, Any, Protocol

from lithify.lang.errors import LithifyError

Serve = Callable[[Any], Any]
_LEAST_TIMEOUT = 0.001


class WorkerFailed(LithifyError):
    """The request was answered by an error: the message is its first line."""


class WorkerCrashed(LithifyError):
    """The process ended before it answered."""


class WorkerTimedOut(LithifyError):
    """The process did not answer in time and was ended."""


class _Process(Protocol):
    def kill(self) -> None: ...


class Worker:
    """A process that answers requests. After an answer that is none (crash, time-out) it is gone."""

    def __init__(
        self, process: _Process, connection: Connection, ended: Callable[[], int | None], log: IO[bytes] | None
    ) -> None:
        self._process, self.connection, self._ended, self._log = process, connection, ended, log

    @staticmethod
    def forked(serve: Serve) -> Worker:
        """A copy of this process that answers by `serve`. Only where the system can fork."""
        here, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_serve_fork, args=(here, there, serve), daemon=True)
        process.start()
        there.close()

        def ended() -> int | None:
            process.join()
            return process.exitcode

        return Worker(process, here, ended, None)

    @staticmethod
    def launched(make: Callable[..., Serve], *arguments: Any) -> Worker:
        """A fresh process that answers by `make(*arguments)`; both have to be picklable."""
        here, there = multiprocessing.Pipe()
        start = "from lithify.explore import worker; worker.main"
        code = f"import sys; sys.path[:] = {sys.path!r}; {start}({there.fileno()})"
        log = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the worker)
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
        )  # fmt: skip
        there.close()
        worker = Worker(process, here, process.wait, log)
        worker.send((make, arguments))
        return worker

    def send(self, request: Any) -> None:
        """Ask; `receive` gives the answer."""
        with contextlib.suppress(OSError):  # it crashed meanwhile, which `receive` says
            self.connection.send_bytes(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))

    def receive(self, timeout: float) -> Any:
        """The answer to the oldest request, waited for at most `timeout` seconds.

        Raises WorkerFailed with the error that answers it; WorkerTimedOut, WorkerCrashed where there will be none.
        """
        try:
            if not self.connection.poll(max(timeout, _LEAST_TIMEOUT)):
                self.close()
                raise WorkerTimedOut(f"no answer within {timeout:.3g} s")
            right, value = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise WorkerCrashed(self._epitaph()) from None
        if not right:
            raise WorkerFailed(value)
        return value

    def ask(self, request: Any, timeout: float) -> Any:
        """Send a request and receive its answer."""
        self.send(request)
        return self.receive(timeout)

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._ended()
        self.connection.close()
        if self._log is not None:
            self._log.close()

    def _epitaph(self) -> str:
        """What is known of the end of a process that ended by itself."""
        code = self._ended()
        said = ""
        if self._log is not None:
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").strip().splitlines()
            said = f": {lines[-1][:200]}" if lines else ""
        self.close()
        if code is not None and code < 0:
            try:
                return f"ended by {signal.Signals(-code).name}{said}"
            except ValueError:
                return f"ended by signal {-code}{said}"
        return f"ended with exit code {code}{said}"


def _serve_fork(here: Connection, there: Connection, serve: Serve) -> None:
    here.close()
    gc.freeze()  # what the parent has stays: collections need not walk it, which would copy every page of it
    _answer(there, serve)


def main(descriptor: int) -> None:
    """What a launched process runs."""
    connection = Connection(descriptor)
    make, arguments = pickle.loads(connection.recv_bytes())
    served: list[Serve] = []

    def serve(request: Any) -> Any:
        if not served:  # what goes wrong in the making is the answer to the first request
            served.append(make(*arguments))
        return served[0](request)

    _answer(connection, serve)


def _answer(connection: Connection, serve: Serve) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            request = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)  # nobody asks any more
        try:
            answer = (True, serve(request))
        except LithifyError as error:
            answer = (False, error.message)
        except RecursionError:
            answer = (False, "the program is nested too deeply")
        except Exception as error:
            answer = (False, f"{type(error).__name__}: {error}")
        connection.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
