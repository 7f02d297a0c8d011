"""Room for deep recursion: used where it is needed, given back afterwards, and not without end."""

from __future__ import annotations

import sys
import threading

import pytest

from lithify.lang.depth import deeply


def down(n: int) -> int:
    return 0 if n == 0 else 1 + down(n - 1)


def through_c(n: int) -> int:
    """Recursion that also uses the stack of C at every step."""
    return 0 if n == 0 else 1 + max(map(through_c, [n - 1]))


def test_what_needs_no_room_runs_where_it_is_called() -> None:
    assert deeply(threading.current_thread) is threading.current_thread()


@pytest.mark.parametrize("function", [down, through_c])
def test_deep_recursion(function: object) -> None:
    before = sys.getrecursionlimit(), threading.stack_size()
    assert deeply(function, 10_000) == 10_000  # type: ignore[arg-type]
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


@pytest.mark.parametrize("function", [down, through_c])
def test_recursion_without_end(function: object) -> None:
    with pytest.raises(RecursionError):
        deeply(function, -1)  # type: ignore[arg-type]
    assert deeply(down, 5000) == 5000


def test_inside_one_another() -> None:
    assert deeply(lambda: deeply(down, 5000) + down(5000)) == 10_000


def test_errors_come_back() -> None:
    def fail() -> None:
        down(5000)
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        deeply(fail)


def test_several_threads_at_once() -> None:
    results: list[int] = []
    threads = [threading.Thread(target=lambda n=n: results.append(deeply(down, n))) for n in range(3000, 3008)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == list(range(3000, 3008))
