"""What a work-item keeps to itself is read by itself alone: refused by the translation, not only when it runs."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.kernel import translate_memory
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.build import add, at, let, map_, mul, proj, reduce_, take, to, transpose, zip_
from lithify.lang.errors import EvaluationError
from lithify.lang.levels import PRIVATE, SEQ, Level
from lithify.lang.term import Term
from tests.kernel.translated import ZERO, L, check, copied, flat, matrix, parameters_of, random_value, rejected, vector

GROUP, ITEM = L("group0"), L("item0")


def squares(xs: Term, level: Level) -> Term:
    return to(PRIVATE, map_(lambda e: mul(e, e), xs, level))


def total(xs: Term) -> Term:
    return reduce_(add, ZERO, xs, SEQ)


def added(xs: Term, ys: Term, level: Level) -> Term:
    return map_(lambda p: add(proj(0, p), proj(1, p)), zip_(xs, ys), level)


def by_rows(body: object, level: Level = GROUP, rows: int = 3, columns: int = 8) -> Term:
    return map_(body, matrix("x", rows, columns), level)  # type: ignore[arg-type]


WRONG = {
    # each work-item has one of the squares, and all are summed
    "one column each, the row read": by_rows(
        lambda r: let(squares(r, L("global0")), lambda s: map_(lambda e: add(e, total(s)), r, L("global0"))),
        L("global1"),
    ),
    "one item each, the row read": by_rows(
        lambda r: let(squares(r, ITEM), lambda s: map_(lambda e: add(e, total(s)), r, ITEM))
    ),
    # an initial value that is copied by the groups, read by the items of each
    "copied by groups, read by items": let(
        to(PRIVATE, copied(vector("a", 8), GROUP)), lambda s: by_rows(lambda r: added(r, s, ITEM))
    ),
    "accumulators copied by groups": let(
        to(PRIVATE, copied(vector("a", 3), GROUP)),
        lambda s: by_rows(lambda r: map_(lambda e: reduce_(add, e, s, SEQ), r, ITEM)),
    ),
    "rows written, columns read": let(
        to(PRIVATE, copied(matrix("x", 8, 8), L("global0"), SEQ)),
        lambda s: map_(lambda c: copied(c, SEQ), transpose(s), L("global0")),
    ),
    "the first writes, all read": by_rows(
        lambda r: let(squares(take(1, r), ITEM), lambda s: map_(lambda e: mul(e, at(s, 0)), r, ITEM))
    ),
}
RIGHT = {
    "each its own": by_rows(lambda r: let(squares(r, ITEM), lambda s: added(r, s, ITEM))),
    "each its own, several rounds": by_rows(
        lambda r: let(squares(r, ITEM), lambda s: added(r, s, ITEM)), L("group0"), columns=100
    ),
    "each a row of its own": let(
        to(PRIVATE, copied(matrix("x", 8, 5), L("global0"), SEQ)), lambda s: map_(total, s, L("global0"))
    ),
    "everyone everything": by_rows(
        lambda r: let(squares(r, SEQ), lambda s: map_(lambda p: add(proj(0, p), total(s)), zip_(s, r), ITEM))
    ),
    "groups their own": let(
        to(PRIVATE, copied(vector("a", 3), GROUP)),
        lambda s: map_(
            lambda p: map_(lambda e: add(e, proj(1, p)), proj(0, p), ITEM), zip_(matrix("x", 3, 8), s), GROUP
        ),
    ),
    "the first writes, the first reads": by_rows(
        lambda r: let(squares(take(1, r), ITEM), lambda s: copied(s, ITEM)), columns=4
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    error = rejected(WRONG[name], r"explicit exchange needed: t\w*\[.*\] is read")
    assert "local memory" in str(error)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate_memory, "missing_exchange", lambda _kernel: None)
    parameters = parameters_of(WRONG[name])
    program = translate(WRONG[name], parameters)
    rng = np.random.default_rng(0)
    leaves = [leaf for p in parameters for leaf in flat(random_value(p.type, rng))]
    with pytest.raises(EvaluationError, match="which nothing wrote"):
        run(program, {b.name: leaf for b, leaf in zip(program.parameters, leaves, strict=True)})


@pytest.mark.parametrize("name", RIGHT)
def test_allowed(name: str) -> None:
    check(RIGHT[name])
