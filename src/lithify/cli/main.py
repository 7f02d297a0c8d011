"""The entry point: runs the command, and is the one place where errors become messages and exit codes.

0: done. 1: something of ours broke, or a check found a difference. 2: bad input. 130: interrupted.
"""

from __future__ import annotations

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
    from lithify.cli.console import show_error
    from lithify.lang.errors import LithifyError

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack λ
    try:
        code = app(arguments, standalone_mode=False, prog_name="lithify")
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except LithifyError as error:
        if _debugging():
            raise
        show_error(error.message, error.where, error.hint)
        return BAD_INPUT
    except MemoryError as error:
        if _debugging():
            raise
        show_error(f"there is not enough memory: {error}", None, "make the arguments smaller")
        return BAD_INPUT
    except RecursionError:
        if _debugging():
            raise
        show_error("the program is nested too deeply", None, "write the repetition as a map, reduce or iterate")
        return BAD_INPUT
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except _usage_error() as error:
        from lithify.cli.usage import show_usage

        show_usage(error)
        return BAD_INPUT
    except Exception as error:  # a defect of ours: say so in one line, the traceback on request only
        if _debugging():
            raise
        show_error(
            f"this is a defect of lithify: {type(error).__name__}: {error}",
            None,
            "set LITHIFY_DEBUG=1 for the traceback, and report it together with the command and its files",
        )
        return BROKEN


def _usage_error() -> Any:
    """The base of what typer raises for a command line that it cannot read: click's, or typer's own copy of it."""
    import typer

    return next(base for base in typer.BadParameter.__mro__ if base.__name__ == "UsageError")


def _debugging() -> bool:
    return os.environ.get("LITHIFY_DEBUG", "") not in ("", "0")
