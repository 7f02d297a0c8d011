"""Whatever a strategy makes of a term has its type and its value."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.lang.term import Term
from lithify.rewrite import (
    Context,
    Failure,
    Rule,
    Strategy,
    bottomup,
    difference,
    everywhere,
    first,
    innermost,
    normalize,
    topdown,
)
from lithify.rules import all_rules
from tests.generators import well_typed

RULES = all_rules()
FUSIONS = first(*[RULES[name] for name in ("map-fusion", "reduce-map-fusion", "scan-map-fusion", "zip-of-maps")])
VIEWS = first(*[RULES[name] for name in ("take-map", "drop-map", "reindex-map", "map-concat", "map-join", "split-map")])

STRATEGIES: dict[str, Strategy] = {
    "fusion to the end": normalize(FUSIONS),
    "fusion from inside": innermost(FUSIONS),
    "fusion everywhere once": everywhere(FUSIONS),
    "views first": normalize(VIEWS) >> normalize(FUSIONS),
    "tiles everywhere": everywhere(RULES["split-join"](2)),
    "a tile inside": bottomup(RULES["split-join"](3)),
    "lanes": topdown(RULES["reduce-lanes"](2)),
    "blocks": everywhere(RULES["partial-reduce"](2)),
}


@pytest.mark.parametrize("name", STRATEGIES)
@given(term=well_typed(2, depth=6))
def test_type_and_value_are_kept(name: str, term: Term) -> None:
    result = STRATEGIES[name].run(term, Context())
    if not isinstance(result, Failure):
        assert result.type is term.type
        assert difference(term, result) is None


@given(term=well_typed(depth=5), rule=st.sampled_from([r for r in RULES.values() if not r.parameters]))
@settings(max_examples=400)
def test_no_rule_loses_a_binder_or_catches_a_variable(term: Term, rule: Rule) -> None:
    result = topdown(rule).run(term, Context())
    if not isinstance(result, Failure):
        assert result.open_depth == 0
        assert result.parameters <= term.parameters
