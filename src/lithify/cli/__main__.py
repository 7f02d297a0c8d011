"""`python -m lithify.cli`: the command, where it is not installed."""

from __future__ import annotations

from lithify.cli.main import main

main()
