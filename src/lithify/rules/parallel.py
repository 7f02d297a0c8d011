"""Levels: which part of the machine runs a loop."""

from __future__ import annotations

from lithify.rewrite.rule import rule

map_level = rule(
    "map-level",
    "map@a f xs -> map[level]@a f xs",
    parameters="level",
    when=["level may enclose f"],
    law="A level says who runs the iterations, not what they compute.",
)

map_relevel = rule(
    "map-relevel",
    "map[old]@a f xs -> map[level]@a f xs",
    parameters="old level",
    when=["level may enclose f"],
    law="map-level for a loop that has another level.",
)

reduce_level = rule(
    "reduce-level",
    "reduce@a f z xs -> reduce[level, memory]@a f z xs",
    parameters="level",
    defaults={"memory": None},
    when=["sequential level"],
    law="A reduction runs in order; its accumulator has a memory.",
)

scan_level = rule(
    "scan-level",
    "scan@a f z xs -> scan[level, memory]@a f z xs",
    parameters="level",
    defaults={"memory": None},
    when=["sequential level"],
    law="A scan runs in order; its accumulator has a memory.",
)
