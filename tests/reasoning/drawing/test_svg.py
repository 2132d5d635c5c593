"""Drawings as SVG: text stays text, and nothing is styled in place."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from anyburl.reasoning.drawing import Drawing, Layers, plain, shorten, to_svg

EVIL = "<script>alert('x')</script>"


def drawing_of(subject: str, relation: str, object: str) -> Drawing:
    layers = Layers()
    layers.add_arrow((0, subject), (1, object), relation, "prediction")
    layers.add_arrow((0, subject), (0, subject), relation, "fact")
    return layers.draw(subject, [(0, subject)], str)


@given(st.tuples(*[st.one_of(st.text(min_size=1, max_size=60), st.just(EVIL), st.just("a" * 10_000))] * 3))
def test_labels_are_text_whatever_they_hold(labels: tuple[str, str, str]) -> None:
    svg = to_svg(drawing_of(*labels), lambda node: f'/entity/"{plain(node.text)}"')
    root = ElementTree.fromstring(svg)
    names = {element.tag for element in root.iter()}
    assert names <= {"svg", "g", "title", "rect", "text", "path", "polygon", "a"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or name == "style" for name in attributes)
    assert len(svg) < 4_000 + 12 * 6 * sum(map(len, labels))


def test_a_long_label_is_cut_in_the_picture_and_whole_in_the_title() -> None:
    svg = to_svg(drawing_of("long " * 20, "r", "o"))
    assert f"<title>{('long ' * 20).strip()}</title>" in svg
    assert f">{shorten('long ' * 20, 28)}</text>" in svg


def test_right_to_left_labels_do_not_turn_their_surroundings_around() -> None:
    city, capital = "\u0642\u0627\u0647", "\u0639\u0627\u0635"
    svg = to_svg(drawing_of(city, capital, "\u202emurder\nline"))
    assert "\u202e" not in svg
    assert f"<title>predicted: \u2068{city}\u2069 \u2068{capital}\u2069 \u2068murder line\u2069</title>" in svg
    assert svg.count('unicode-bidi="plaintext"') == 4
    assert plain("\u202e\u0000") == "?"


def test_only_nodes_with_an_address_are_links() -> None:
    svg = to_svg(drawing_of("a", "r", "b"), lambda node: "/b?x=1&y=2" if node.label == "b" else None)
    assert svg.count("<a ") == 1
    assert 'href="/b?x=1&amp;y=2"' in svg
