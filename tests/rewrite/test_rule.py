"""Rules as data: parameters, explanations, and the checks that no rule escapes."""

from __future__ import annotations

import pytest

from lithify.lang.build import add, const, map_, param, reduce_
from lithify.lang.errors import RewriteFailed
from lithify.lang.levels import PAR, SEQ, Level
from lithify.lang.scalars import f32
from lithify.lang.types import Array, array
from lithify.machine import GENERIC_GPU
from lithify.rewrite import Context, rule
from lithify.rewrite.conditions import read_condition
from lithify.rewrite.rule import same_type
from lithify.rules.algorithmic import split_join
from lithify.rules.parallel import map_level, nest
from lithify.rules.reduction import blocked_reduce

XS = param("xs", array(6, f32))
DOUBLE = map_(lambda x: add(x, x), XS, name="m")


def test_parameters() -> None:
    assert split_join(4).name == "split-join(4)"
    assert split_join(4, inner="lane").name == "split-join(4, lane)"
    assert split_join(4) == split_join(n=4)
    assert split_join(4) != split_join(2)
    for bad in (
        lambda: split_join(),
        lambda: split_join(1, 2, 3, 4),
        lambda: split_join(m=3),
        lambda: split_join(1, n=2),
    ):
        with pytest.raises(RewriteFailed, match=r"rule split-join\(n, outer=block, inner=tile\): "):
            bad()


def test_names_are_derived() -> None:
    assert "map@m.block (λx. map@m.tile" in str(split_join(3).apply(DOUBLE))
    assert "map@m.row (λx. map@m.lane" in str(split_join(3, "row", "lane").apply(DOUBLE))


def test_explain() -> None:
    total = reduce_(lambda a, x: add(a, x), const(0, f32), XS)
    assert blocked_reduce(2).explain(total) is None
    assert blocked_reduce(2).explain(DOUBLE) == "reduce expected, map found"
    assert blocked_reduce(0).explain(total) == "`n >= 1` fails: 0 >= 1 is not known to hold"
    levelled = reduce_(lambda a, x: add(a, x), const(0, f32), XS, SEQ)
    assert blocked_reduce(2).explain(levelled) == "the reduce has level seq, the rule is for none"


def test_a_rule_that_changes_the_type_is_an_error_and_not_a_failure() -> None:
    wrong = rule("drops one", "map f xs -> drop 1 (map f xs)", law="none")
    with pytest.raises(RewriteFailed, match=r"rule drops one is wrong: it changed the type 6.f32 to 5.f32"):
        wrong.apply(DOUBLE)


def test_a_rule_that_changes_nothing_fails() -> None:
    same = rule("same", "map f xs -> map f xs", law="id")
    named_away = rule("same name", "map@a f xs -> map@a f xs", law="id")
    assert named_away.explain(DOUBLE) == "it would change nothing"
    assert same.apply(DOUBLE) is map_(lambda x: add(x, x), XS)  # the name is not carried over


def test_conditions_that_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="not a condition"):
        read_condition("the moon is full")


def test_sizes_are_equal_if_provably_so() -> None:
    assert same_type(Array(4, f32), Array(4, f32))
    assert not same_type(Array(4, f32), Array(5, f32))
    assert not same_type(Array(4, f32), f32)


def test_a_level_does_not_stand_inside_itself() -> None:
    group = Level("group", 0)
    inner = map_(lambda row: map_(lambda x: add(x, x), row, group), param("A", array(2, 3, f32)))
    reason = map_level(group).explain(inner)
    assert reason == "`level may enclose f` fails: a loop at group0 stands inside, which group0 may not enclose"
    assert map_level(SEQ).explain(inner) is None


def test_levels_nest_as_the_machine_allows() -> None:
    group, item = Level("group", 0), Level("item", 0)
    inside = map_(lambda row: map_(lambda x: add(x, x), row, group), param("A", array(2, 3, f32)))
    assert map_level(item).explain(inside, Context(machine=GENERIC_GPU)) is not None
    outside = map_(lambda row: map_(lambda x: add(x, x), row, item), param("A", array(2, 3, f32)))
    assert map_level(group).explain(outside, Context(machine=GENERIC_GPU)) is None


def test_a_nest_of_levels() -> None:
    matrix = param("A", array(2, 3, f32))
    t = map_(lambda row: map_(lambda x: add(x, x), row), matrix)
    levelled = nest(PAR, SEQ).apply(t)
    assert levelled["level"] is PAR
    assert levelled.args[0].args[0]["level"] is SEQ
    with pytest.raises(RewriteFailed, match="a op where the map for seq should be"):
        nest(PAR, SEQ, SEQ).apply(t)
