"""Every error message of the reader, as a user sees it: the cases and their messages are in `errors.txt`.

`python -m tests.lang.test_errors` writes the messages anew; read the difference before committing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from lithify.lang import LithifyError, Type, parse_type, read_text
from lithify.lang.annotations import TypeReader

CASES = Path(__file__).with_name("errors.txt")


@dataclass(frozen=True)
class Case:
    """`program`'s last definition, elaborated for `arguments` (types, or none where it must not come to that)."""

    title: str
    arguments: str
    program: str
    message: str

    def text(self, message: str) -> str:
        return f"=== {self.title}\n--- {self.arguments}\n{self.program}\n>>>\n{message}\n"


def read_cases() -> list[Case]:
    cases = []
    for block in CASES.read_text(encoding="utf-8").split("=== ")[1:]:
        head, message = block.split("\n>>>\n")
        title, arguments, program = head.split("\n", 2)
        cases.append(Case(title, arguments.removeprefix("--- "), program, message.rstrip("\n")))
    return cases


def message_of(case: Case) -> str:
    """Kind and text of the error."""
    sizes = dict(entry.split("=") for entry in case.arguments.split() if "=" in entry)
    try:
        module = read_text(case.program, "program.lift")
        types = [type_of(text) for text in case.arguments.split() if "=" not in text]
        program = module[list(module)[-1]].elaborate(types, {name: int(value) for name, value in sizes.items()})
    except LithifyError as error:
        return f"{type(error).__name__}: {error}"
    return f"no error: {program.term}"


def type_of(text: str) -> Type:
    def size(e: object) -> object:
        return e.value  # type: ignore[attr-defined]

    return TypeReader({}, size).type(parse_type(text))  # type: ignore[arg-type]


@pytest.mark.parametrize("case", read_cases(), ids=lambda case: case.title)
def test_message(case: Case) -> None:
    assert message_of(case) == case.message


def test_messages_can_be_used() -> None:
    """There are many cases; each message has a first line that says something, most have a place and a caret."""
    cases = read_cases()
    assert len({case.title for case in cases}) == len(cases) >= 60
    for case in cases:
        first = case.message.splitlines()[0]
        assert not first.startswith("no error")
        assert "Traceback" not in case.message
        assert "lithify" not in case.message
        assert "program.lift, line " in case.message, case.title
        assert "^" in case.message, case.title


if __name__ == "__main__":
    CASES.write_text("\n".join(case.text(message_of(case)) for case in read_cases()), encoding="utf-8")
