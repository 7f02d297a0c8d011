"""Command lines that cannot be read: what was wrong, and the spelling that is near."""

from __future__ import annotations

import difflib
import re
from typing import Any

from lithify.cli.console import show_error

_NEAR = 0.55  # difflib's ratio from which a spelling is suggested
_MOST = 3


def near(word: str, known: list[str]) -> str | None:
    """`did you mean a or b?` for the known spellings that are near; None where none is."""
    by_case = {each.lower(): each for each in known}
    close = [by_case[each] for each in difflib.get_close_matches(word.lower(), by_case, _MOST, _NEAR)]
    return f"did you mean {' or '.join(close)}?" if close else None


def show_usage(error: Any) -> None:
    """Print what typer raised (click's UsageError, or typer's own copy of it); the help where nothing was asked for."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        message, hint = explain_usage(error)
        show_error(message, None, hint)


def explain_usage(error: Any) -> tuple[str, str]:
    """The message and the hint for an error of that kind."""
    context = error.ctx
    path = context.command_path if context is not None else "lithify"
    help_ = f"`{path} -h` shows how it is used"
    option = getattr(error, "option_name", None)
    command = re.match(r"No such command '(.*?)'", error.message or "")
    if context is not None and option is not None and error.message.startswith("No such option"):
        known = [name for p in context.command.params for name in (*p.opts, *p.secondary_opts) if name.startswith("-")]
        listed = f"its options are {', '.join(n for n in known if n.startswith('--'))}" if known else help_
        if hasattr(context.command, "commands"):
            listed = f"options follow the command: {path} COMMAND {option} .."
        return f"{path} has no option {option}", near(option, known) or listed
    if context is not None and command is not None:
        known = list(context.command.list_commands(context))
        listed = f"the commands are {', '.join(known)}"
        return f"{path} has no command {command[1]}", near(command[1], known) or listed
    first, *rest = error.format_message().splitlines() or [""]
    return "\n".join([first[:1].lower() + first[1:].rstrip("."), *rest]), help_
