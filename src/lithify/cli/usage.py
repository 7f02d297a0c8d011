"""Command lines that cannot be read: what was wrong, and the spelling that is near."""

from __future__ import annotations

import re
from typing import Any

from lithify.cli.console import show_error
from lithify.lang.spelling import choices, meant


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
        elif (operator := _operator_with(option)) and any(
            not p.opts[0].startswith("-") for p in context.command.params
        ):
            return f"{path} has no option {option}", f'a problem is one word: {path} "{operator} {option} .."'
        return f"{path} has no option {option}", meant(option, known) or listed
    if context is not None and command is not None:
        known = list(context.command.list_commands(context))
        return f"{path} has no command {command[1]}", choices(command[1], known, "the commands are")
    first, *rest = error.format_message().splitlines() or [""]
    return "\n".join([first[:1].lower() + first[1:].rstrip("."), *rest]), help_


def _operator_with(option: str) -> str | None:
    """The operator whose problem lines have such a flag: they belong between quotes. None where no operator's do."""
    from lithify.explore.problems import OPERATORS

    name = option.lstrip("-")
    found = (o.name for o in OPERATORS.values() if any(name in (f.name, *f.aliases) for f in o.flags))
    return next(found, None)
