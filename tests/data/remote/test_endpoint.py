"""A graph behind a SPARQL endpoint: read whole, or not at all."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event

import pytest

from anyburl.base.errors import DataError
from anyburl.data.dataset import load_dataset
from anyburl.data.options import ReadOptions
from anyburl.data.remote import http
from anyburl.temporal.facts import NEVER, load_temporal_dataset
from serving import running
from sparql_server import JSON, SparqlServer

EX = "http://example.org/"
GRAPH = "http://example.org/graph"


def iri(name: str) -> str:
    return f"<{EX}{name}>"


def triples(n: int, relation: str = "knows") -> list[tuple[str, str, str]]:
    return [(iri(f"s{i}"), iri(relation), iri(f"o{i % 7}")) for i in range(n)]


def labels(facts: list[tuple[str, str, str]]) -> list[tuple[str, ...]]:
    return sorted(tuple(term.strip("<>") for term in fact) for fact in facts)


def read(server: SparqlServer, **options: object) -> list[tuple[str, ...]]:
    data = load_dataset(server.url, ReadOptions(**options))  # type: ignore[arg-type]
    return sorted(data.train.to_polars().rows())


def refusal(server: SparqlServer, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        read(server, **options)
    return str(caught.value)


def test_a_small_graph_is_one_page(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(20) + triples(5, "likes"))
    assert read(endpoint) == labels(triples(20) + triples(5, "likes"))
    assert len(endpoint.asked) == 3  # how many, all of them, how many still


@pytest.mark.parametrize("page_size", [1, 7, 10, 19, 20, 21])
def test_pages_of_any_size_give_the_same_graph(endpoint: SparqlServer, page_size: int) -> None:
    facts = triples(20) + triples(5, "likes") + triples(3, "hates")
    endpoint.fill(facts)
    assert read(endpoint, page_size=page_size) == labels(facts)


@pytest.mark.parametrize(("page_size", "cap"), [(100, 6), (10, 6), (5, 6)])
def test_a_server_that_gives_fewer_rows_than_asked_for_is_read_whole(
    endpoint: SparqlServer, page_size: int, cap: int
) -> None:
    facts = triples(20) + triples(5, "likes")
    endpoint.fill(facts)
    endpoint.cap = cap
    assert read(endpoint, page_size=page_size) == labels(facts)


def test_named_graphs_are_chosen(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(3))
    endpoint.fill(triples(4, "likes"), GRAPH)
    endpoint.fill(triples(6, "likes"), f"{GRAPH}2")
    assert read(endpoint) == read(endpoint, graphs=("default",)) == labels(triples(3))
    assert "not both" in refusal(endpoint, graphs=("default", GRAPH))
    assert "expected the IRI of a named graph, got 'no iri'" in refusal(endpoint, graphs=("no iri",))
    assert read(endpoint, graphs=("ex:graph",), prefixes={"ex": EX}) == labels(triples(4, "likes"))
    assert read(endpoint, graphs=(GRAPH,)) == labels(triples(4, "likes"))
    assert read(endpoint, graphs=(GRAPH, f"{GRAPH}2"), page_size=2) == labels(triples(6, "likes"))


def test_a_query_with_prefixes_is_read_in_pages(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(20) + triples(5, "likes"))
    query = f"# mine\nPREFIX ex: <{EX}>\nSELECT ?s (ex:liked AS ?p) ?o WHERE {{ ?s ex:likes ?o }} # these"
    assert read(endpoint, query=query, page_size=3) == labels(triples(5, "liked"))


def test_a_query_may_have_times(endpoint: SparqlServer) -> None:
    endpoint.store.update(
        "INSERT DATA { <http://m1> <http://of> <http://malta> ; <http://in> <http://eu> ; "
        "<http://since> '2004-05-01' . "
        "<http://m2> <http://of> <http://uk> ; <http://in> <http://eu> ; <http://since> '1973-01-01' ; "
        "<http://until> '2020-01-31' }"
    )
    query = (
        "SELECT ?s (<http://joins> AS ?p) ?o ?time ?end WHERE { ?m <http://of> ?s ; <http://in> ?o ; "
        "<http://since> ?time OPTIONAL { ?m <http://until> ?end } }"
    )
    data = load_temporal_dataset(f"sparql:{endpoint.url}", query=query, time=("time", "end"))
    assert [data.clock.label(step) for step in data.train.times] == ["1973-01-01", "2004-05-01"]
    assert data.train.ends is not None
    assert (data.clock.label(data.train.ends[0]), data.train.ends[1]) == ("2020-01-31", NEVER)


def test_a_query_without_the_three_variables_is_refused(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(2))
    assert "got one without ?p" in refusal(endpoint, query="SELECT ?s ?o WHERE { ?s ?x ?o }")
    assert "expected a SELECT query" in refusal(endpoint, query="ASK { ?s ?p ?o }")
    assert "responded with 400" in refusal(endpoint, query="SELECT ?s ?p ?o WHERE { ?s ?p }")


@pytest.mark.parametrize("codes", [[500], [503, 502], [429, 504, 408]])
def test_what_may_pass_is_tried_again(endpoint: SparqlServer, codes: list[int]) -> None:
    endpoint.fill(triples(3))
    endpoint.refusals = codes
    assert read(endpoint) == labels(triples(3))


def test_what_does_not_pass_is_told(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(3))
    endpoint.refusals = [503] * 4
    assert refusal(endpoint) == f"{endpoint.url} responded with 503 (Service Unavailable)"
    endpoint.refusals = [404]
    assert refusal(endpoint) == f"{endpoint.url} responded with 404 (Not Found)"
    assert len(endpoint.asked) == 5


def test_a_server_says_how_long_to_wait(endpoint: SparqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    monkeypatch.setattr("anyburl.data.remote.http.time.sleep", paused.append)
    endpoint.fill(triples(3))
    endpoint.refusals, endpoint.retry_after = [429], "7"
    assert read(endpoint) == labels(triples(3))
    assert paused == [7.0]


@pytest.mark.parametrize("n", [1, 3])
def test_a_connection_that_breaks_is_tried_again(endpoint: SparqlServer, n: int) -> None:
    endpoint.fill(triples(3))
    endpoint.n_breaks = n
    assert read(endpoint) == labels(triples(3))


def test_half_an_answer_is_none(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(3))
    endpoint.n_breaks = 4
    assert "the connection broke after" in refusal(endpoint)


def test_an_answer_that_is_cut_short_unnoticed_is_noticed(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(3))
    endpoint.n_cuts = 1
    assert read(endpoint) == labels(triples(3))
    endpoint.n_cuts = 4
    assert "the results are damaged or truncated" in refusal(endpoint)


@pytest.mark.parametrize(
    ("content_type", "content"),
    [("text/html", b"<html>Please log in</html>"), ("text/plain", b"error"), ("text/csv", b"s,p,o\n")],
)
def test_a_page_for_browsers_is_no_graph(endpoint: SparqlServer, content_type: str, content: bytes) -> None:
    endpoint.fill(triples(3))
    endpoint.wrong = [(content_type, content)]
    told = refusal(endpoint)
    assert "does not respond like a SPARQL endpoint: expected JSON results, got " + content_type in told


@pytest.mark.parametrize(
    "content", [b"{}", b"[]", b"null", b'{"results": {"bindings": [{"p": {}}]}}', b'{"results": 1}']
)
def test_other_json_is_no_graph(endpoint: SparqlServer, content: bytes) -> None:
    endpoint.wrong = [("application/json", content)] * 4
    assert "the results are damaged" in refusal(endpoint)


def test_a_silent_server_is_not_waited_for(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(3))
    endpoint.pause = 30.0
    started = time.monotonic()
    assert "did not respond for 0.2 seconds" in refusal(endpoint, timeout=0.2)
    endpoint.is_over.set()
    assert time.monotonic() - started < 10


def test_a_redirection_is_told_and_not_followed(endpoint: SparqlServer) -> None:
    endpoint.refusals = [301]
    assert "has moved: the server points to 'http://127.0.0.1:9/elsewhere'" in refusal(endpoint)


def test_a_server_that_is_down_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyburl.data.remote.http.FIRST_PAUSE", 0.0)
    with pytest.raises(DataError, match="does not respond: Connection refused"):
        load_dataset("sparql:http://127.0.0.1:9/sparql")


def test_an_empty_graph_is_refused(endpoint: SparqlServer) -> None:
    assert "no triples in its default graph; name others with --graph" in refusal(endpoint)
    assert f"no triples in {GRAPH}" in refusal(endpoint, graphs=(GRAPH,))


def test_a_graph_that_changes_between_pages_is_noticed(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(20))

    def change(text: str) -> None:
        if "OFFSET 10" in text:
            endpoint.store.update(f"DELETE DATA {{ {iri('s0')} {iri('knows')} {iri('o0')} }}")

    endpoint.before = change
    assert "the graph changed while it was being read" in refusal(endpoint, page_size=5)


def test_a_graph_that_changes_after_the_last_page_is_noticed(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(20))

    def change(text: str) -> None:
        if "LIMIT" in text:
            endpoint.fill(triples(1, "likes"))

    endpoint.before = change
    assert "the graph changed while it was being read" in refusal(endpoint)


def test_pages_without_a_stable_order_are_noticed(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(20))
    answer = endpoint.store.query

    class Shuffling:
        def query(self, text: str) -> object:
            return answer(text.replace("OFFSET 5\n", "OFFSET 4\n"))

    endpoint.store = Shuffling()
    assert "its pages have no stable order: expected 20 triples" in refusal(endpoint, page_size=5)


def test_credentials_are_sent_to_a_server_that_asks_for_them(
    endpoint: SparqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.fill(triples(3))
    monkeypatch.setenv("ANYBURL_SPARQL_USER", "me")
    monkeypatch.setenv("ANYBURL_SPARQL_PASSWORD", "hunter2")
    read(endpoint)
    assert endpoint.authorizations == [None] * 3
    endpoint.allow("me", "hunter2")
    assert read(endpoint) == labels(triples(3))
    assert endpoint.authorizations[3:] == [None, *[endpoint.login] * 3]


def test_a_token_is_a_credential(endpoint: SparqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint.fill(triples(3))
    endpoint.login = "Bearer hunter2"
    assert "asks for credentials: set ANYBURL_SPARQL_USER" in refusal(endpoint)
    monkeypatch.setenv("ANYBURL_SPARQL_TOKEN", "hunter3")
    told = refusal(endpoint)
    assert "rejects the credentials" in told
    assert "hunter" not in told
    monkeypatch.setenv("ANYBURL_SPARQL_TOKEN", "hunter2")
    assert read(endpoint) == labels(triples(3))


class DripServer(ThreadingTCPServer):
    """Sends `first`, and then a byte now and then until the client hangs up."""

    daemon_threads = True

    def __init__(self, first: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Drip)
        self.first, self.is_over = first, Event()


class Drip(BaseRequestHandler):
    server: DripServer

    def handle(self) -> None:
        self.request.recv(1 << 16)
        self.request.sendall(self.server.first)
        with suppress(OSError):
            while not self.server.is_over.wait(0.02):
                self.request.sendall(b"x")


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 No\r\n\r\n"]
)
def test_a_server_that_sends_a_byte_now_and_then_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    monkeypatch.setattr(http, "MOST_TIMEOUTS", 0.01)
    with DripServer(first) as server, running(server):
        url = f"http://127.0.0.1:{server.server_address[1]}/sparql"
        with pytest.raises(DataError) as caught:
            load_dataset(url, ReadOptions(timeout=100))
    told = f"{url}: the response was not complete after 1 seconds: ask for less with --page-size or --query"
    assert str(caught.value) == told


def test_a_response_without_an_end_is_refused(endpoint: SparqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_BYTES", 100_000)
    endpoint.wrong = [("application/json", b" " * 300_000)]
    assert "the response has more than 100,000 bytes" in refusal(endpoint)


def counted(n: int) -> tuple[str, bytes]:
    """Return the answer of a server that has `n` triples."""
    row = {"p": {"type": "uri", "value": f"{EX}knows"}, "n": {"type": "literal", "value": str(n)}}
    return JSON, json.dumps({"results": {"bindings": [row]}}).encode()


def test_pages_that_come_again_end_the_reading_soon(endpoint: SparqlServer) -> None:
    endpoint.fill(triples(20))
    page = JSON, bytes(endpoint.to_json(endpoint.store.query("SELECT ?s ?p ?o { ?s ?p ?o }")))
    endpoint.wrong = [counted(10**15), *[page] * 50]
    assert "its pages have no stable order: expected 1,000,000,000,000,000 triples" in refusal(endpoint, page_size=20)
    assert len(endpoint.asked) < 5


def test_a_negative_number_of_triples_is_refused(endpoint: SparqlServer) -> None:
    endpoint.wrong = [counted(-5)]
    assert refusal(endpoint) == f"{endpoint.url}: expected numbers of triples (got -5)"
