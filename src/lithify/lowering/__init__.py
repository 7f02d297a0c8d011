"""Lowering: strategies that take a program down to one that says, for every loop, who runs it and where it writes."""

from __future__ import annotations

from lithify.lowering.default import Lowered, lower
from lithify.lowering.strategies import strategies

__all__ = ["Lowered", "lower", "strategies"]
