"""`python -m lithify`: the command, where it is not on the path."""

from __future__ import annotations

from lithify.cli.main import main

main()
