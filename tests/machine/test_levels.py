"""Which levels a machine has, and which may stand inside which."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.machine import (
    GENERIC_CPU,
    GENERIC_GPU,
    H200_CUDA,
    H200_OPENCL,
    DeviceModel,
    LevelError,
    LevelSpec,
    host,
    reason_against,
)

MODELS = (host(), GENERIC_CPU, GENERIC_GPU, H200_OPENCL, H200_CUDA)


def parse(model: DeviceModel, text: str) -> LevelSpec:
    name = text.rstrip("0123456789")
    return model.level(name, int(text[len(name) :]) if len(name) < len(text) else None)


def refusals(nest: list[LevelSpec]) -> list[str]:
    """Why maps at these levels, outermost first, cannot stand inside one another."""
    reasons = (reason_against(outer, inner) for outer, inner in itertools.combinations(nest, 2))
    return [reason for reason in reasons if reason is not None]


@pytest.mark.parametrize(
    ("model", "nest"),
    [
        (host(), "par seq vec unroll"),
        (host(), "seq seq unroll unroll vec"),
        (host(), "par inline"),
        (H200_OPENCL, "group1 group0 item1 item0 unroll seq unroll"),
        (H200_OPENCL, "group seq item unroll vec"),
        (H200_OPENCL, "global1 global0 seq vec"),
        (H200_OPENCL, "group warp lane seq"),
        (H200_CUDA, "group cluster warpgroup unroll warp lane vec"),
        (GENERIC_GPU, "group0 item0 vec seq"),
    ],
)
def test_legal_nests(model: DeviceModel, nest: str) -> None:
    levels = [parse(model, text) for text in nest.split()]
    assert refusals(levels) == []
    assert all(model.may_nest(a, b) for a, b in itertools.combinations(levels, 2))


@pytest.mark.parametrize(
    ("model", "nest", "message"),
    [
        (host(), "par par", "map[par] cannot stand inside map[par]"),
        (host(), "seq par", "around it may stand: nothing"),
        (host(), "vec seq vec", "map[vec] cannot stand inside map[vec]"),
        (H200_OPENCL, "item0 group0", "map[group0] cannot stand inside map[item0]"),
        (H200_OPENCL, "seq group0", "map[group0] cannot stand inside map[seq]"),
        (H200_OPENCL, "group0 group0", "same hardware index twice"),
        (H200_OPENCL, "item0 seq item0", "same hardware index twice"),
        (H200_OPENCL, "item item0", "same hardware index twice"),
        (H200_OPENCL, "warp item", "map[item] cannot stand inside map[warp]"),
        (H200_OPENCL, "vec item0", "map[item0] cannot stand inside map[vec]"),
        (H200_OPENCL, "global0 group0", "map[group0] cannot stand inside map[global0]"),
        (H200_CUDA, "cluster group", "map[group] cannot stand inside map[cluster]"),
    ],
)
def test_illegal_nests(model: DeviceModel, nest: str, message: str) -> None:
    levels = [parse(model, text) for text in nest.split()]
    assert message in refusals(levels)[0]
    assert not all(model.may_nest(a, b) for a, b in itertools.combinations(levels, 2))


@pytest.mark.parametrize("missing", ["group0", "item", "lane"])
def test_a_level_that_the_machine_lacks(missing: str) -> None:
    level = parse(H200_CUDA, missing)
    with pytest.raises(LevelError, match=f"no level {missing}; it has seq, unroll"):
        host().level(level.name, level.dim)
    assert not host().has_level(level)
    assert not host().may_nest(host().level("par"), level)


def test_cluster_levels_are_the_cuda_models_own() -> None:
    assert H200_CUDA.level("cluster").extent == 8
    with pytest.raises(LevelError, match="no level cluster"):
        H200_OPENCL.level("cluster")


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_linear_and_dimensional_levels(model: DeviceModel) -> None:
    launch = {spec.name for spec in model.levels if spec.kind == "launch"}
    assert all(model.level(name).dim is None for name in launch)
    assert len({(spec.name, spec.dim) for spec in model.levels}) == len(model.levels)


@given(st.data())
def test_no_legal_nest_uses_an_index_twice(data: st.DataObject) -> None:
    """Greedy random nests: what is accepted names every level of the launch once, and vec once."""
    model = data.draw(st.sampled_from(MODELS))
    nest: list[LevelSpec] = []
    for level in data.draw(st.lists(st.sampled_from(model.levels), max_size=12)):
        if all(model.may_nest(outer, level) for outer in nest):
            nest.append(level)
    hardware = [level for level in nest if level.kind != "sequential"]
    assert len(set(hardware)) == len(hardware)
    names = [level.name for level in hardware]
    assert not {"item", "warp"} <= set(names)
    assert not {"item", "lane"} <= set(names)
    if "group" in names and "item" in names:
        assert names.index("group") < names.index("item")


def test_levels_of_the_language_can_be_asked_about() -> None:
    from lithify.lang.levels import PAR, SEQ, VEC, Level

    assert host().may_nest(PAR, SEQ)
    assert host().may_nest(SEQ, VEC)
    assert H200_CUDA.may_nest(Level("group", 0), Level("item", 0))
    assert not H200_CUDA.may_nest(Level("item", 0), Level("group", 0))
