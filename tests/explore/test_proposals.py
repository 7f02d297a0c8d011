"""What is measured next: each candidate once, and by the cost model soon a good one, sooner where others have shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lithify.explore import proposals
from lithify.explore.candidates import Features
from lithify.explore.proposals import Experience, ModelGuided, proposer
from lithify.explore.surrogate import Shape, Surrogate

KEYS = tuple(f"{a},{b}" for a in range(24) for b in range(24))


def features(keys: Sequence[str]) -> Features:
    """Two numbers that matter, and one that does not."""
    pairs = [tuple(map(int, key.split(","))) for key in keys]
    rows = np.array([[a, b, (7 * a + 13 * b) % 5] for a, b in pairs], float).reshape(len(keys), 3)
    return Features(rows, np.zeros(len(keys)))


def seconds(key: str, level: float = 1.0, best: tuple[int, int] = (17, 5)) -> float:
    """Fastest at `best`, slower away from it."""
    a, b = map(int, key.split(","))
    return level * float(np.exp(((a - best[0]) / 6.0) ** 2 + ((b - best[1]) / 9.0) ** 2))


def measured(search: str, count: int, experience: Sequence[Experience] = (), seed: int = 0) -> dict[str, float | None]:
    chosen, history = proposer(search, KEYS, features, seed, (), experience), dict[str, float | None]()
    while len(history) < count:
        key = next(chosen.propose(history))
        assert key not in history
        history[key] = seconds(key)
    return history


def best(history: dict[str, float | None]) -> float:
    return min(s for s in history.values() if s is not None)


@pytest.mark.parametrize("search", ["model", "random", "exhaustive"])
def test_the_default_is_first_and_nothing_comes_twice(search: str) -> None:
    assert next(iter(measured(search, 40))) == KEYS[0]


@pytest.mark.parametrize("search", ["model", "random", "exhaustive"])
def test_all_are_proposed_in_the_end(search: str) -> None:
    few = KEYS[:9]
    chosen = proposer(search, few, features, 0)
    history = dict[str, float | None]()
    while key := next(chosen.propose(history), None):
        history[key] = None if key == few[3] else seconds(key)
    assert sorted(history) == sorted(few)
    assert sorted(chosen.propose({few[0]: 1.0})) == sorted(few[1:])


def test_the_model_needs_fewer_than_chance() -> None:
    guided = [best(measured("model", 20, seed=seed)) for seed in range(3)]
    random = [best(measured("random", 20, seed=seed)) for seed in range(9)]
    assert np.median(guided) < 1.03
    assert np.median(random) > np.median(guided)


def experience() -> tuple[Experience, ...]:
    """Two other problems whose times are at other levels and whose best lies a little elsewhere."""
    random = np.random.default_rng(3)
    found = []
    for level, place in ((40.0, (16, 6)), (0.3, (18, 5))):
        keys = [KEYS[k] for k in random.permutation(len(KEYS))[:40]]
        found.append(Experience(features(keys), np.log([seconds(key, level, place) for key in keys])))
    return tuple(found)


def test_what_others_have_shown_is_known_from_the_beginning() -> None:
    history = measured("model", 4, experience())
    assert best(history) < 1.1
    assert best(measured("model", 4)) > 1.1


def test_experience_that_cannot_be_compared_is_left_out() -> None:
    other = Experience(Features(np.zeros((5, 2)), np.zeros(5)), np.zeros(5))
    assert next(proposer("model", KEYS, features, 0, (), [other]).propose({})) == KEYS[0]
    assert measured("model", 12, [other]) == measured("model", 12)


def test_candidates_without_a_result_are_avoided() -> None:
    chosen = ModelGuided(KEYS, features, 0)
    history: dict[str, float | None] = {}
    while len(history) < 40:
        key = next(chosen.propose(history))
        history[key] = None if int(key.split(",")[0]) > 11 else seconds(key)
    last = list(history.items())[20:]
    assert sum(value is None for _, value in last) < len(last) // 2


def test_nothing_right_is_no_error() -> None:
    chosen = ModelGuided(KEYS, features, 0)
    history: dict[str, float | None] = {}
    for _ in range(12):
        history[next(chosen.propose(history))] = None
    assert len(history) == 12


def test_of_many_candidates_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "_MOST_KEYS", 50)
    asked: list[int] = []

    def counted(keys: Sequence[str]) -> Features:
        asked.append(len(keys))
        return features(keys)

    chosen = ModelGuided(KEYS, counted, 0, near=[KEYS[100], "none"])
    history: dict[str, float | None] = {KEYS[333]: 2.0}
    first = [key for key, _ in zip(chosen.propose(history), range(2), strict=False)]
    assert first == [KEYS[0], KEYS[100]]
    assert 50 <= sum(asked) <= 53


# ---- the surrogate -------------------------------------------------------------------------------------------------


def test_a_smooth_function_is_predicted() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(80, 3))
    values = np.sin(rows[:, 0]) + rows[:, 1]
    groups = np.zeros(80, int)
    shape = Shape.choose(rows, values, groups, None)
    new = random.normal(size=(50, 3))
    mean, deviation = Surrogate(rows, values, groups, shape).predict(new)
    wrong = np.abs(mean - np.sin(new[:, 0]) - new[:, 1])
    assert np.median(wrong) < 0.1
    assert np.mean(wrong < 3 * deviation) > 0.9
    assert shape.lengths[2] > max(shape.lengths[:2])  # what says nothing is not looked at


def test_predictions_are_those_of_the_textbook() -> None:
    """One problem, everything given: mean and variance by the plain formulas."""
    random = np.random.default_rng(1)
    rows, new = random.normal(size=(12, 2)), random.normal(size=(5, 2))
    values = random.normal(size=12)
    shape = Shape((1.5, 0.7), noise=1e-2)

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        d = np.sqrt(5 * (((a[:, None] - b[None]) / np.array(shape.lengths)) ** 2).sum(axis=2))
        return (1 + d + d**2 / 3) * np.exp(-d) + 0.3

    inverse = np.linalg.inv(kernel(rows, rows) + shape.noise * np.eye(12))
    wanted = values.mean() + kernel(new, rows) @ inverse @ (values - values.mean())
    spread = np.sqrt(np.diag(kernel(new, new) - kernel(new, rows) @ inverse @ kernel(rows, new))) * values.std()
    fitted = Surrogate(rows, values, np.zeros(12, int), shape)
    mean, deviation = fitted.predict(new)
    np.testing.assert_allclose(mean, wanted, rtol=1e-6)
    np.testing.assert_allclose(deviation, spread, rtol=1e-6)
    gain, sure = fitted.gain(new, new[0])
    np.testing.assert_allclose(gain, mean[0] - mean, rtol=1e-6, atol=1e-9)
    assert sure[0] < 1e-5 < sure[1:].min()
