"""The API against its own OpenAPI document: whatever is asked, no answer is a fault of ours."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from web_world import LONG, QUOTED, SCRIPT

from anyburl.web.app import create_app
from anyburl.web.explorer import Explorer
from kernels import examples

HEADERS = {"Host": "127.0.0.1"}
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
ENTITIES = st.sampled_from(["France", "French", "France_city_0_person_1", SCRIPT, QUOTED, LONG, "nobody"])
RELATIONS = st.sampled_from(["speaks", "lives_in", "nothing"])
AGGREGATIONS = st.sampled_from(["max", "noisy-or", "noisy-or-top:3", "tuned", "noisy-or-top:0"])
KNOWN = {
    **dict.fromkeys(("subject", "object", "label", "contains"), ENTITIES),
    "relation": RELATIONS,
    "aggregation": AGGREGATIONS,
}
QUICKLY = settings(
    max_examples=examples(60), phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
)


@pytest.fixture
def api(explorer: Explorer) -> Any:
    """Return the API by its document."""
    app = create_app(explorer)
    return schemathesis.openapi.from_asgi("/api/openapi.json", app, headers=HEADERS)


def with_known_labels(case: Any, draw: Any) -> Any:
    """Put labels that are there in some places: of text at random, hardly any is."""
    for part in (case.query, case.body):
        if isinstance(part, dict):
            part.update({name: draw(KNOWN[name]) for name in part if name in KNOWN and draw(st.booleans())})
    return case


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "forbidden"])
def test_no_request_makes_the_api_fail(api: Any, serve: Any, mode: GenerationMode) -> None:
    client, asked = serve(seconds=600), set()
    for found in api.get_all_operations():
        operation = found.ok()
        if mode == GenerationMode.NEGATIVE and operation.label == "GET /api/reviews":
            continue  # it takes nothing

        @QUICKLY
        @given(operation.as_strategy(generation_mode=mode), st.data())
        def ask(case: Any, data: Any) -> None:
            case = with_known_labels(case, data.draw)
            response = case.call_and_validate(session=client, headers=HEADERS, checks=CHECKS)
            asked.add((case.path, response.status_code))

        ask()
    assert len({path for path, _ in asked}) >= 8


PATHS = st.sampled_from(
    [
        "/",
        "/search",
        "/entity",
        "/relation",
        "/ask",
        "/why",
        "/why/page",
        "/rules",
        "/rules/0",
        "/rules/-1",
        "/run",
        "/review",
    ]
)
WORDS = (
    "q",
    "label",
    "view",
    "direction",
    "page",
    "new",
    "top",
    "type",
    "length",
    "min_support",
    "sort",
    "skip",
    "about",
)
VALUES = st.one_of(ENTITIES, RELATIONS, st.text(max_size=20), st.integers(-3, 10**12).map(str), st.floats().map(str))
ASKED = st.dictionaries(st.sampled_from([*WORDS, *KNOWN, "smoothing"]), VALUES, max_size=5)


def test_no_address_makes_a_page_fail(serve: Any) -> None:
    client = serve(seconds=600)

    @settings(max_examples=examples(150), suppress_health_check=list(HealthCheck), database=None)
    @given(PATHS, ASKED)
    def ask(path: str, parameters: dict[str, str]) -> None:
        response = client.get(path, params=parameters)
        assert response.status_code in (200, 303, 404, 422), response.text
        assert "Traceback" not in response.text

    ask()
