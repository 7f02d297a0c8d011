"""The instructions that `instr[name]` may name: the tables of `machine` enter theirs here."""

from __future__ import annotations

from typing import Any

INSTRUCTIONS: dict[str, Any] = {}
