"""The entry point: runs the command, and is the one place where errors become messages and exit codes.

0: done. 1: something of ours broke, or a check found a difference. 2: bad input. 130: interrupted.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

BROKEN, BAD_INPUT, INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command with the given arguments (the process's if none are given) and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str]) -> int:
    """Run the command; its exit code."""
    import typer

    from lithify.cli.app import app
    from lithify.lang.errors import LithifyError

    _open_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack λ
    try:
        code = app(arguments, standalone_mode=False, prog_name="lithify")
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except SystemExit as exit_:  # typer and rich, where nobody reads what they write any more
        if isinstance(exit_.__context__, BrokenPipeError):
            return _unread()
        raise
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except LithifyError as error:
        if _debugging():
            raise
        _show(error.message, error.where, error.hint)
        return BAD_INPUT
    except MemoryError as error:
        if _debugging():
            raise
        _show(f"there is not enough memory: {error}", None, "make the arguments smaller")
        return BAD_INPUT
    except RecursionError:
        if _debugging():
            raise
        _show("the program is nested too deeply", None, "write the repetition as a map, reduce or iterate")
        return BAD_INPUT
    except BrokenPipeError:
        return _unread()
    except OSError as error:
        if _debugging():
            raise
        _discard_output()
        _show(f"{error.filename or 'the output'}: {error.strerror or error}", None, None)
        return BAD_INPUT
    except _usage_error() as error:
        from lithify.cli.usage import show_usage

        show_usage(error)
        return BAD_INPUT
    except Exception as error:  # a defect of ours: say so in one line, the traceback on request only
        if _debugging():
            raise
        _show(
            f"this is a defect of lithify: {type(error).__name__}: {error}",
            None,
            "set LITHIFY_DEBUG=1 for the traceback, and report it together with the command and its files",
        )
        return BROKEN


def _open_streams() -> None:
    """Whoever starts a command may have closed its output: then it says nothing."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _unread() -> int:
    """The exit code where whoever read the output has seen enough."""
    _discard_output()
    return 0


def _discard_output() -> None:
    """Forget what was not written yet: Python would try again when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show(message: str, where: str | None, hint: str | None) -> None:
    from lithify.cli.console import show_error

    with contextlib.suppress(OSError):  # it cannot even be said
        show_error(message, where, hint)


def _usage_error() -> Any:
    """The base of what typer raises for a command line that it cannot read: click's, or typer's own copy of it."""
    import typer

    return next(base for base in typer.BadParameter.__mro__ if base.__name__ == "UsageError")


def _debugging() -> bool:
    return os.environ.get("LITHIFY_DEBUG", "") not in ("", "0")
