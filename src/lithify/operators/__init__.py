"""Operators: programs in the language, one `.lift` file a field."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def path(name: str) -> Path:
    """The file `name.lift` of this package: "blas", "rows", "layout", "image", "stencil", "science"."""
    return Path(str(files(__name__))) / f"{name}.lift"
