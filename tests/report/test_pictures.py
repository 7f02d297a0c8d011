"""Pictures are drawn from recorded results, and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lithify.lang.errors import LithifyError
from lithify.report.pictures import _together, draw_all, draw_portability

pytest.importorskip("matplotlib")

STAGES = [
    {"name": "macro rules", "what_in": "high-level program", "came_in": 1, "what": "rewritten programs", "made": 100,
     "dropped": {"nesting depth (at most 7)": 60}, "went_on": 40, "seconds": 1.0},
    {"name": "mapping", "what_in": "rewritten programs", "came_in": 40, "what": "lowered programs", "made": 200,
     "dropped": {f"reason {k}": 1 for k in range(7)}, "went_on": 193, "seconds": 1.0},
]  # fmt: skip
CURVE = [3e-3, 2e-3, 1e-3]
SEARCH = {"random": {"low": CURVE, "median": CURVE, "high": CURVE}, "guided": [CURVE]}
EXPLORATION = {
    "size": 64,
    "machine": {"cpu": "x"},
    "points": {"cpu": [1e-3, 2e-3, 3e-3], "c": [1e-3, 2e-3, 3e-3]},
    "default": {"cpu": 2e-3, "c": None},
    "searches": {"cpu": SEARCH, "c": SEARCH},
}
ELSEWHERE = {
    "size": 64,
    "machine": {"cpu": "y"},
    "points": {"gpu": [1e-3]},
    "default": {"gpu": 2e-3},
    "searches": {"gpu": SEARCH},
}


def rows(on: str, times: dict[str, float | None]) -> dict[str, object]:
    return {"results": [{"tuned for": of, "run on": on, "size": 64, "ms": ms} for of, ms in times.items()]}


def test_every_picture_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "funnel-x.json").write_text(json.dumps({"funnels": {"a CPU": {"stages": STAGES}}}))
    (tmp_path / "exploration-x.json").write_text(json.dumps(EXPLORATION))
    (tmp_path / "exploration-y.json").write_text(json.dumps(ELSEWHERE))
    (tmp_path / "portability-x.json").write_text(json.dumps(rows("cpu", {"cpu": 1.0, "gpu": None})))
    (tmp_path / "portability-y.json").write_text(json.dumps(rows("gpu", {"gpu": 0.1})))
    written = draw_all(tmp_path, tmp_path / "pictures")
    assert [path.stem.partition("-")[2] for path in written] == ["funnel", "space", "search", "portability"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_results_of_several_machines_are_drawn_together() -> None:
    both = _together([EXPLORATION, ELSEWHERE, {**ELSEWHERE, "size": 65, "points": {"other": []}}])
    assert list(both["points"]) == list(both["searches"]) == ["cpu", "c", "gpu"]
    assert both["machine"] == {"cpu": "x"}
    matrix = _together([rows("cpu", {"cpu": 1.0, "gpu": None}), rows("gpu", {"gpu": 0.1})])
    texts = [text.get_text() for text in draw_portability(matrix).axes[0].texts]
    assert texts == ["100 %", "not\nmeasured", "does not\nrun", "100 %"]


def test_nothing_is_drawn_from_nothing(tmp_path: Path) -> None:
    with pytest.raises(LithifyError, match="holds no results"):
        draw_all(tmp_path, tmp_path)


def test_what_is_no_result_is_said(tmp_path: Path) -> None:
    (tmp_path / "funnel-x.json").write_text("{")
    with pytest.raises(LithifyError, match="cannot be read"):
        draw_all(tmp_path, tmp_path)


def test_the_committed_results_can_be_drawn(tmp_path: Path) -> None:
    assert len(draw_all(Path(__file__).parents[2] / "benchmarks" / "results", tmp_path)) == 4
