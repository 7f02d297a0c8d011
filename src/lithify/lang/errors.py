"""The errors that a user of lithify meets: what was wrong, where, and what to do about it."""

from __future__ import annotations


class LithifyError(Exception):
    """Base of every error that lithify raises on bad input.

    `message` says what was wrong (its first line is actionable), `where` names the place (line and caret, or the
    path in the term), `hint` says what to do.
    """

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where or None
        self.hint = hint

    def located(self, where: str) -> LithifyError:
        """The same error with a place, unless it has one already (the innermost place is the most helpful).

        The place of something internal is "", which is none.
        """
        self.where = self.where or where or None
        return self

    def __str__(self) -> str:
        lines = [self.message]
        if self.where:
            lines.append(self.where)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class TypeMismatch(LithifyError):
    """A term was built from arguments whose types or sizes do not fit."""


class ParseError(LithifyError):
    """A program's text could not be read; `where` shows the line and a caret."""


class UnboundSize(LithifyError):
    """A size parameter was neither given nor inferable from the arguments' shapes; `names` lists them, if known."""

    def __init__(
        self, message: str, *, where: str | None = None, hint: str | None = None, names: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.names = names


class RewriteFailed(LithifyError):
    """A rule or strategy could not be applied; names the rule, the place and the condition that failed."""


class Rejected(LithifyError):
    """A lowered program cannot be translated to a kernel as it stands; names the place and the remedy."""


class EvaluationError(LithifyError):
    """A program or kernel did something undefined while it was executed by an evaluator."""


class LaunchError(LithifyError):
    """A call's arguments do not fit the kernel (dtype, shape, layout, device), or the device refused it."""
