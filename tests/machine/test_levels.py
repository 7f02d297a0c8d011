"""Which levels a machine has, and which may stand inside which."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.machine import GENERIC_CPU, GENERIC_GPU, H200_CUDA, H200_OPENCL, DeviceModel, LevelError, LevelSpec, host

MODELS = (host(), GENERIC_CPU, GENERIC_GPU, H200_OPENCL, H200_CUDA)


def parse(model: DeviceModel, text: str) -> LevelSpec:
    name = text.rstrip("0123456789")
    return model.level(name, int(text[len(name) :]) if len(name) < len(text) else None)


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
    model.check_nest([parse(model, text) for text in nest.split()])


@pytest.mark.parametrize(
    ("model", "nest", "message"),
    [
        (host(), "par par", "par cannot stand inside par"),
        (host(), "seq par", "around it may stand: nothing"),
        (host(), "vec seq vec", "vec cannot stand inside vec"),
        (H200_OPENCL, "item0 group0", "group0 cannot stand inside item0"),
        (H200_OPENCL, "seq group0", "group0 cannot stand inside seq"),
        (H200_OPENCL, "group0 group0", "same hardware index twice"),
        (H200_OPENCL, "item0 seq item0", "same hardware index twice"),
        (H200_OPENCL, "item item0", "same hardware index twice"),
        (H200_OPENCL, "warp item", "item cannot stand inside warp"),
        (H200_OPENCL, "vec item0", "item0 cannot stand inside vec"),
        (H200_OPENCL, "global0 group0", "group0 cannot stand inside global0"),
        (H200_CUDA, "cluster group", "group cannot stand inside cluster"),
    ],
)
def test_illegal_nests(model: DeviceModel, nest: str, message: str) -> None:
    levels = [parse(model, text) for text in nest.split()]
    with pytest.raises(LevelError, match=message):
        model.check_nest(levels)
    assert not all(model.may_nest(a, b) for a, b in itertools.combinations(levels, 2))


@pytest.mark.parametrize("missing", ["group0", "item", "lane"])
def test_a_level_that_the_machine_lacks(missing: str) -> None:
    level = parse(H200_CUDA, missing)
    with pytest.raises(LevelError, match=f"no level {missing}; it has seq, unroll"):
        host().check_nest([level])
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
    """Greedy random nests: whatever check_nest accepts names every level of the launch once, and vec once."""
    model = data.draw(st.sampled_from(MODELS))
    nest: list[LevelSpec] = []
    for level in data.draw(st.lists(st.sampled_from(model.levels), max_size=12)):
        if all(model.may_nest(outer, level) for outer in nest):
            nest.append(level)
    model.check_nest(nest)
    hardware = [level for level in nest if level.kind != "sequential"]
    assert len(set(hardware)) == len(hardware)
    names = [level.name for level in hardware]
    assert not {"item", "warp"} <= set(names)
    assert not {"item", "lane"} <= set(names)
    if "group" in names and "item" in names:
        assert names.index("group") < names.index("item")


def test_levels_of_the_language_can_be_asked_about() -> None:
    from lithify.lang.levels import PAR, SEQ, VEC, Level

    host().check_nest([PAR, SEQ, VEC])
    assert H200_CUDA.may_nest(Level("group", 0), Level("item", 0))
    assert not H200_CUDA.may_nest(Level("item", 0), Level("group", 0))
