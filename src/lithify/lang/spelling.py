"""What to say where something is named that there is not: the spellings that are near, and all that there is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_NEAR = 0.6  # difflib's ratio from which a spelling is suggested
_MOST = 24  # names that a message lists


def near(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known spellings that are near, best first; capitals do not matter."""
    by_case = {each.lower(): each for each in known}
    close = difflib.get_close_matches(word.lower(), by_case, 2 * most, _NEAR)
    close.sort(key=lambda each: sorted(each) != sorted(word.lower()))  # exchanged letters are the likeliest slip
    return [by_case[each] for each in close[:most]]


def meant(word: str, known: Iterable[str]) -> str | None:
    """`did you mean a or b?`; None where nothing is near."""
    close = near(word, known)
    return f"did you mean {' or '.join(close)}?" if close else None


def choices(word: str, known: Iterable[str], are: str = "there are", elsewhere: str | None = None) -> str:
    """The spellings that are near, and what there is: `did you mean cpu? there are cpu, opencl, c`.

    Of very many names only the near ones are said, or `elsewhere`, which tells where to find the list.
    """
    known = list(known)
    listed = f"{are} {', '.join(known) or 'none'}" if len(known) <= _MOST or elsewhere is None else elsewhere
    close = meant(word, known)
    return f"{close} {listed}" if close else listed
