"""The command `lithify`."""

from lithify.cli.main import main

__all__ = ["main"]
