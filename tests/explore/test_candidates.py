"""Spaces of parameters: what is filtered, in how many questions, and the numbers that say how candidates differ."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lithify.explore.candidates import Candidates, Effort, SpaceCandidates, valid_in
from lithify.explore.reasons import regions
from lithify.lang.build import param
from lithify.lang.scalars import f32
from lithify.lang.types import Array
from lithify.lowering.tuning import Parameters, Space
from lithify.machine import host
from tests.explore.toy import Blocks, times


def space(against) -> Space:  # type: ignore[no-untyped-def]
    choices = {"a": (1, 2, 3, 4), "b": (2, 4, 6), "c": ("x", "y", "z")}
    return Space(choices, Parameters({"a": 1, "b": 4, "c": "x"}), against)


@given(st.integers(0, 2**36 - 1), st.permutations(["a", "b", "c"]), st.integers(0, 3))
def test_the_answers_are_those_of_each_set_alone(bits: int, order: list[str], most: int) -> None:
    """An `against` of random answers, that reads parameters in some order and stops early for some values."""

    def against(p: Parameters) -> str | None:
        known = []
        for name in order[:most]:
            known.append(p[name])
            if bits >> (hash(tuple(map(str, known))) % 36) & 1:
                return f"{name} is {p[name]}"
        return None

    found = [(text, region.reason) for region in regions(space(against)) for text in region.texts()]
    assert len(found) == sum(len(region) for region in regions(space(against)))
    assert sorted(found, key=str) == sorted([(str(p), against(p)) for p in space(against)], key=str)


def test_few_questions_are_asked() -> None:
    asked: list[str] = []

    def against(p: Parameters) -> str | None:
        asked.append(str(p["a"]))
        return "odd" if p.number("a") % 2 else (f"{p['b']} too large" if p.number("b") > 4 else None)

    found = Counter[str | None]()
    for region in regions(space(against)):
        found[region.reason] += len(region)
    assert found == {"odd": 18, "6 too large": 6, None: 12}
    assert len(asked) == 11  # of 36


def test_a_parameter_that_a_space_lacks_may_be_asked_for() -> None:
    def against(p: Parameters) -> str | None:
        return "in parts" if p.get("parts", 1) != 1 or "d" in p else None

    (region,) = regions(space(against))
    assert (region.reason, len(region)) == (None, 36)


def candidates() -> SpaceCandidates:
    xs = param("xs", Array(100, f32))
    term, family = times(2.0, xs), Blocks()
    problem = family.recognise(term)
    assert problem is not None
    found = family.space(problem, host())
    assert found is not None
    return SpaceCandidates(term, (("xs", xs.type),), host(), family, problem, found)


def test_filtering_a_space() -> None:
    found = candidates().filtered()
    assert len(found.keys) == 14
    assert found.keys[0] == "block=4,order=up"
    assert len(set(found.keys)) == 14
    assert found.rejected == {"blocks of # are longer than #": 2}
    assert set(found.keys) == {key for key in candidates() if candidates().against(key) is None}
    assert found.rejected == Candidates.filtered(candidates()).rejected


def large(against) -> SpaceCandidates:  # type: ignore[no-untyped-def]
    """A hundred million sets."""
    found = candidates()
    choices = {name: tuple(range(100)) for name in "abcd"}
    found.space = Space(choices, Parameters(dict.fromkeys("abcd", 1)), against)
    return found


def test_of_a_large_space_some_sets_are_drawn() -> None:
    asked: list[str] = []

    def against(p: Parameters) -> str | None:
        asked.append(str(p))
        return f"{p['a']} is odd" if p.number("a") % 2 and str(p) != "a=1,b=1,c=1,d=1" else None

    every, known = large(against), ["a=2,b=3,c=4,d=5", "a=3,b=3,c=4,d=5", "none"]
    found = every.filtered(Effort(most=1000, sample=5000), known)
    assert len(asked) <= 5000 + len(known)
    assert not found.whole
    assert found.keys[0] == "a=1,b=1,c=1,d=1"
    assert known[0] in found.keys
    assert known[1] not in found.keys
    assert len(set(found.keys)) == len(found.keys)
    assert found.looked == 5000 + 2  # the default, and what is known
    assert abs(found.rejected["# is odd"] - 2500) < 250
    assert all(int(key[2 : key.index(",")]) % 2 == 0 for key in found.keys[1:])
    more = every.filtered(Effort(most=1000, sample=7000))
    assert more.keys[: len(found.keys) - 1] == found.keys[:-1]
    assert every.filtered(Effort(most=1000, sample=5000, seed=1), known).keys != found.keys


def test_looking_ends_with_its_time() -> None:
    """Sets that each have an answer of their own: in order what was found is kept, else some are drawn instead."""
    asked: list[int] = []

    def against(p: Parameters) -> str | None:
        return str(p)[:0] or None  # reads all

    every = large(against)
    first = every.filtered(Effort(in_order=True, go_on=lambda kept: False))
    assert not first.whole
    assert 1000 < first.looked < 3000
    assert first.keys[1] == "a=0,b=0,c=0,d=0"
    assert {key[:8] for key in first.keys[1:]} == {"a=0,b=0,"}
    drawn = every.filtered(Effort(sample=50_000, go_on=lambda kept: bool(asked.append(kept))))
    assert not drawn.whole
    assert 1000 < drawn.looked < 3000
    assert len({key[:4] for key in drawn.keys}) > 50
    assert len(asked) == 2


def test_any_collection_is_looked_at_no_longer_than_there_is_time() -> None:
    every = large(lambda p: None)
    found = Candidates.filtered(every, Effort(go_on=lambda kept: kept < 5000), ["a=9,b=9,c=9,d=9"])
    assert not found.whole
    assert 5000 <= found.looked < 8000
    assert found.keys[-1] == "a=9,b=9,c=9,d=9"


@given(st.integers(0, 40), st.integers(0, 9))
def test_sets_are_drawn_without_replacement(count: int, seed: int) -> None:
    of = space(lambda p: None)
    found = [str(each) for each in of.drawn(count, seed)]
    assert len(set(found)) == len(found) == min(count, len(of))
    assert set(found) <= {str(each) for each in of}


def test_features() -> None:
    """Of a family that knows nothing of its kernels: the parameters themselves."""
    every = candidates()
    found = every.features(list(every))
    assert found.rows.shape == (16, 3)  # one for the block, one for each order
    assert len(set(map(tuple, found.rows.tolist()))) == len(every) == 16
    assert found.rough.tolist() == [0.0] * 16


def test_valid_in_a_space() -> None:
    every = candidates()
    assert str(valid_in(every.space, "order=up,block=8")) == "block=8,order=up"
    assert valid_in(every.space, "block=256,order=up") is None  # longer than the array
    assert valid_in(every.space, "block=8") is None
    assert valid_in(every.space, "default") is None
