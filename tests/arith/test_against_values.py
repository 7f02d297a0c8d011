"""Normal forms against the values of the operations they stand for, at every point of small spaces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.arith import proves, proves_divisible, proves_equal
from tests.arith.reference import concrete_space, pairs, symbolic_space

SPACES = {
    "powers of two": concrete_space((8, 4, 16)),
    "odd": concrete_space((3, 7, 5, 2)),
    "size one": concrete_space((1, 6, 1, 9)),
    "symbolic": symbolic_space(),
}


@pytest.fixture(params=SPACES, scope="module")
def space(request):
    return SPACES[request.param]


@given(data=st.data())
def test_values_and_bounds(space, data):
    e, values = data.draw(pairs(space))
    got = np.broadcast_to(e.evaluate(space.environment()), values.shape)
    np.testing.assert_array_equal(got, values)
    assert e.lo <= values.min()
    assert values.max() <= e.hi


@given(data=st.data())
def test_nothing_false_is_proved(space, data):
    e, values = data.draw(pairs(space))
    shift = data.draw(st.integers(-3, 3)) - int(values.min())  # near the truth, on both sides
    if proves(e + shift):
        assert values.min() + shift >= 0
    for d in (2, 3, 4, 8):
        if proves_divisible(e, d):
            assert not np.any(values % d)
    if e.alignment:
        assert not np.any(values % e.alignment)


@given(data=st.data())
def test_nothing_false_is_proved_from_facts(space, data):
    e, values = data.draw(pairs(space, depth=3))
    facts, holds = [], np.ones(space.points, bool)
    for _ in range(data.draw(st.integers(1, 2))):
        fact, known = data.draw(pairs(space, depth=2))
        facts.append(fact)
        holds &= known >= 0
    if proves(e, facts):
        assert np.all(values[holds] >= 0)


@given(data=st.data())
def test_equality_is_one_way(space, data):
    a, x = data.draw(pairs(space, depth=3))
    b, y = data.draw(pairs(space, depth=3))
    if a is b or proves_equal(a, b):
        np.testing.assert_array_equal(x, y)


@given(data=st.data())
def test_substitution_is_evaluation_in_steps(space, data):
    e, values = data.draw(pairs(space))
    variables = [v for v in space.names if v.terms]
    point = data.draw(st.integers(0, space.points - 1))
    env = {v: int(a[point]) for v, a in space.environment().items()}
    chosen = [v for v in variables if data.draw(st.booleans())]
    rest = {v: env[v] for v in variables}
    partly = e.substitute({v: env[v] for v in chosen})
    assert not any(v in partly.variables() for v in chosen)
    assert partly.evaluate(rest) == values[point]
