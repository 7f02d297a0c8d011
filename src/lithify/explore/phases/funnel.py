"""What each phase made, what each filter dropped, and how many went on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

_NUMBER = re.compile(r"\d+(\.\d+)?")
_LONGEST = 90


@dataclass
class Stage:
    """One phase: `came_in` of `what_in`, of which it made `made` of `what`; `dropped` counts by filter or reason."""

    name: str
    what_in: str
    came_in: int
    what: str
    made: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def went_on(self) -> int:
        """How many no filter dropped."""
        return self.made - sum(self.dropped.values())

    def drop(self, reason: str, count: int = 1) -> None:
        """Count what is dropped. Reasons that differ in numbers only are one."""
        if count:
            self.dropped[reason] += count

    def lines(self) -> list[str]:
        """What is printed."""
        found = [f"{self.name}: {self.came_in:,} {self.what_in} -> {self.made:,} {self.what} ({self.seconds:.1f} s)"]
        found += [f"    - {count:>9,}  {reason}" for reason, count in self.dropped.most_common()]
        found.append(f"    = {self.went_on:>9,}  go on")
        return found

    def to_json(self) -> dict[str, object]:
        """For records: everything that is printed."""
        return {
            "name": self.name,
            "what_in": self.what_in,
            "came_in": self.came_in,
            "what": self.what,
            "made": self.made,
            "dropped": dict(self.dropped.most_common()),
            "went_on": self.went_on,
            "seconds": round(self.seconds, 2),
        }


@dataclass
class Funnel:
    """The phases in order. `interrupted`: what there is was found before somebody stopped it."""

    stages: list[Stage] = field(default_factory=list)
    interrupted: bool = False

    def __str__(self) -> str:
        text = "\n".join(line for stage in self.stages for line in stage.lines())
        return f"{text}\n(interrupted: the rest was not enumerated)" if self.interrupted else text

    def to_json(self) -> dict[str, object]:
        """For records."""
        return {"interrupted": self.interrupted, "stages": [stage.to_json() for stage in self.stages]}

    @staticmethod
    def from_json(record: Mapping[str, object]) -> Funnel:
        """Read what `to_json` gives."""
        stages = []
        for each in record["stages"]:  # type: ignore[attr-defined]
            numbers = {n: each[n] for n in ("name", "what_in", "came_in", "what", "made", "seconds")}
            stages.append(Stage(**numbers, dropped=Counter(each["dropped"])))
        return Funnel(stages, bool(record["interrupted"]))


def reason(message: str) -> str:
    """An error's first line without its numbers, so that the same reason is counted as one."""
    line = message.splitlines()[0] if message else "unknown"
    return _NUMBER.sub("#", line)[:_LONGEST]
