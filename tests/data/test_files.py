"""Files of triples: what is read, and what is said about a file that cannot be."""

from __future__ import annotations

import bz2
import gzip
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from anyburl.base.errors import DataError
from anyburl.data import COLUMNS, TripleTable, read_triples, write_triples
from anyburl.data.files import read_batches
from anyburl.data.options import ReadOptions
from kernels import examples

ROWS = [("ed", "speaks", "dutch"), ("lisa", "speaks", "dutch")]
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def written(folder: Path, content: bytes | str, name: str = "train.txt") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


SKIP = "; --skip-bad leaves such lines out"


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_triples(path)
    return str(caught.value).removeprefix(str(path.parent) + os.sep).removesuffix(SKIP)


@pytest.mark.parametrize(
    "text",
    [
        "ed\tspeaks\tdutch\nlisa\tspeaks\tdutch\n",
        "ed\tspeaks\tdutch\nlisa\tspeaks\tdutch",
        "ed\tspeaks\tdutch\r\nlisa\tspeaks\tdutch\r\n",
        "ed\tspeaks\tdutch\r\n\r\nlisa\tspeaks\tdutch\r\n\r\n",
        "\ufeffed\tspeaks\tdutch\nlisa\tspeaks\tdutch\n",
        "\ufeff\n\ned\tspeaks\tdutch\n  \nlisa\tspeaks\tdutch\n\n\n",
        "ed speaks dutch\nlisa speaks dutch\n",
        "\n  ed  speaks   dutch \nlisa speaks dutch\r\n\r\n",
        "\ufeffed speaks dutch\n\nlisa speaks dutch",
    ],
)
def test_separators_line_ends_and_blank_lines_do_not_matter(tmp_path: Path, text: str) -> None:
    frame = read_triples(written(tmp_path, text))
    assert frame.rows() == ROWS
    assert tuple(frame.columns) == COLUMNS


def test_the_order_and_repetitions_of_a_file_are_kept(tmp_path: Path) -> None:
    assert read_triples(written(tmp_path, "b\tr\ta\na\tr\tb\nb\tr\ta\n")).rows() == [
        ("b", "r", "a"),
        ("a", "r", "b"),
        ("b", "r", "a"),
    ]


ODD_LABELS = [
    '"',
    "'a",
    '"a"',
    "a,b",
    "#a",
    "#",
    "(a)",
    " a b ",
    " ",
    "null",
    "NA",
    "\\N",
    "1.0",
    "x^2",
    "x\x01",
]
ODD_CHARACTERS = ["é", "𝄞", "a\u2028b", "a\x0bb", "a\x85b", "\u00a0", "xڄ"]


@pytest.mark.parametrize("label", ODD_LABELS + ODD_CHARACTERS)
def test_nothing_in_a_label_is_special(tmp_path: Path, label: str) -> None:
    path = written(tmp_path, f"{label}\t{label}\t{label}\na\tb\tc\n")
    assert read_triples(path).rows() == [(label, label, label), ("a", "b", "c")]


@pytest.mark.parametrize("name", ["train.txt", "train.txt.gz", "train.tsv.zst", "train[1]*.txt", "?.gz"])
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_triples(ROWS, path)
    assert read_triples(path).rows() == ROWS
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    magic = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5"}.get(path.suffix, b"ed")
    assert path.read_bytes()[:2] == magic


def test_a_compressed_file_is_known_by_its_content_and_not_by_its_name(tmp_path: Path) -> None:
    text = b"ed\tspeaks\tdutch\nlisa\tspeaks\tdutch\n"
    assert read_triples(written(tmp_path, gzip.compress(text))).rows() == ROWS
    assert read_triples(written(tmp_path, text, "train.txt.gz")).rows() == ROWS
    parts = gzip.compress(text[:16]) + gzip.compress(text[16:])
    assert read_triples(written(tmp_path, parts, "train.txt.gz")).rows() == ROWS


characters = st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"])
label_texts = st.text(characters, min_size=1).filter(str.strip)


@in_one_folder
@given(
    st.lists(st.tuples(label_texts, label_texts, label_texts), min_size=1),
    st.sampled_from(["", ".gz", ".zst"]),
)
def test_any_labels_without_tabs_and_line_breaks_survive_writing(
    tmp_path: Path, rows: list[tuple[str, str, str]], packed: str
) -> None:
    path = tmp_path / f"any.txt{packed}"
    if any(label.startswith("\ufeff") for row in rows for label in row):
        return
    write_triples(rows, path)
    assert read_triples(path).rows() == rows


def reference(text: str) -> list[tuple[str, ...]] | int:
    """Read triples in the plainest way; if a line is wrong, return its number."""
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip(" \r")]
    if not numbered:
        return 0
    tabs = "\t" in numbered[0][1]
    rows = []
    for number, line in numbered:
        fields = line.split("\t") if tabs else [field for field in line.split(" ") if field]
        if len(fields) != 3 or "" in fields:
            return number
        rows.append(tuple(fields))
    return rows


odd_texts = st.lists(
    st.sampled_from(["a", "b\t", "\t", " ", "\n", "\r\n", "\r", '"', "x^", "é\tr\to\n", "a r b\n"])
).map("".join)


@settings(in_one_folder, max_examples=examples(400))
@given(odd_texts)
@example("a\tb\tc\r\r\n")
@example("a\tb\tc\n\r\r\n")
@example("a\tb\tc\n\t\t\n")
@example("a\tb\t\r\n")
@example("a\tr\to\nb\tb\tb\t")
@example("a\r\tb\ta")
def test_odd_texts_are_read_as_the_plainest_reader_does(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    expected = reference(text)
    if isinstance(expected, list):
        assert read_triples(path).rows() == expected
    else:
        where = f"train.txt:{expected}: expected 3" if expected else "train.txt: expected lines"
        assert refusal(path).startswith(where)


def read_in_pieces(path: Path, size: int) -> list[tuple[str, ...]] | str:
    try:
        return [row for frame in read_batches(path, size=size) for row in frame.rows()]
    except DataError as error:
        return str(error)


def read_whole(path: Path) -> list[tuple[str, ...]] | str:
    try:
        return read_triples(path).rows()
    except DataError as error:
        return str(error)


@settings(in_one_folder, max_examples=examples(200))
@given(odd_texts, st.integers(1, 12), st.sampled_from(["plain", "gzip", "zstd"]))
@example("a r b\n\ta\tb\tc\n", 1, "plain")
@example("\n\n\na\tr\tb\nx^a\tr\tb\n\ufeffa\tr\tb\n", 1, "plain")
@example("\ufeffa\tr\tb\n\ufeffa\tr\tb\n", 2, "zstd")
def test_pieces_of_a_file_are_the_whole_and_so_is_what_is_wrong_with_it(
    tmp_path: Path, text: str, size: int, packed: str
) -> None:
    if packed == "zstd" and len(text.encode()) > 255:
        return
    pack = {"plain": bytes, "gzip": gzip.compress, "zstd": zstd}[packed]
    path = written(tmp_path, pack(text.encode()))
    assert read_in_pieces(path, size) == read_whole(path)


def test_lines_are_numbered_across_pieces(tmp_path: Path) -> None:
    lines = ["a\tb\tc"] * 50
    assert read_in_pieces(written(tmp_path, "\n".join(lines)), 40) == [("a", "b", "c")] * 50
    for wrong, message in (
        (b"d\te", f"expected 3 tab-separated fields, got 2: 'd\\te'{SKIP}"),
        (b"d\te\t\xe9", "expected UTF-8 text, got other bytes"),
        (b"d\te\tf\0", "expected 3 tab-separated fields, got text with a NUL character: 'd\\te\\tf\\x00'" + SKIP),
    ):
        content = "\n".join(lines[:33]).encode() + b"\n" + wrong + b"\n"
        for path in (written(tmp_path, content), written(tmp_path, gzip.compress(content), "t.gz")):
            assert read_in_pieces(path, 40) == f"{path}:34: {message}"


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("a\tb\tc\n\ned\tspeaks\n", 3, r"2: 'ed\tspeaks'"),
        ("a\tb\tc\na\tb\tc\td\n", 2, r"4: 'a\tb\tc\td'"),
        ("a\tb\tc\nd e f\n", 2, "1: 'd e f'"),
        ("a\tb\tc\na\t\tc\n", 2, r"an empty relation: 'a\t\tc'"),
        ("\tb\tc\n", 1, r"an empty subject: '\tb\tc'"),
        ("a\tb\t\r\n", 1, r"an empty object: 'a\tb\t'"),
        ("a\tb\0\tc\n", 1, r"text with a NUL character: 'a\tb\x00\tc'"),
        ("a\tb\tc\n" * 200_000 + "d\te\n" + "a\tb\tc\n" * 9, 200_001, r"2: 'd\te'"),
        ("a\tb\tc\n" * 200_000 + "d\te\tf\tg\n", 200_001, r"4: 'd\te\tf\tg'"),
    ],
)
def test_the_first_wrong_line_is_named(tmp_path: Path, text: str, line: int, found: str) -> None:
    assert refusal(written(tmp_path, text)) == f"train.txt:{line}: expected 3 tab-separated fields, got {found}"


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("a b c\r\ned speaks\r\n", 2, "2: 'ed speaks'"),
        ("a b c\na b c d\n", 2, "4: 'a b c d'"),
        ("a b c\na b\tc\n", 2, r"2: 'a b\tc'"),
        ("272115\na\tb\tc\n", 1, "1: '272115'"),
        ("x" * 99, 1, f"1: '{'x' * 77}...'"),
    ],
)
def test_the_first_wrong_line_between_blanks_is_named(tmp_path: Path, text: str, line: int, found: str) -> None:
    sentence = f"train.txt:{line}: expected 3 blank-separated fields, got {found}"
    assert refusal(written(tmp_path, text)) == sentence


@pytest.mark.parametrize("text", ["", "\n\r\n  \n", "\ufeff"])
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    sentence = "train.txt: expected lines with a subject, a relation and an object, got an empty file"
    assert refusal(written(tmp_path, text)) == sentence
    packed = written(tmp_path, gzip.compress(text.encode()), "train.txt.gz")
    assert refusal(packed) == sentence.replace("train.txt", "train.txt.gz")


@pytest.mark.parametrize("packed", [False, True])
def test_bytes_that_are_not_utf_8_are_refused_with_their_line(tmp_path: Path, packed: bool) -> None:
    content = "a\tb\t\ufffd\n\n".encode() + "é\tr\tü\n".encode("latin-1")
    path = written(tmp_path, gzip.compress(content) if packed else content)
    assert refusal(path) == "train.txt:3: expected UTF-8 text, got other bytes"
    utf_16 = written(tmp_path, "a\tb\tc\n".encode("utf-16"))
    assert refusal(utf_16) == "train.txt:1: expected UTF-8 text, got other bytes"
    no_mark = written(tmp_path, "a\tb\tc\n".encode("utf-16-le"))
    assert refusal(no_mark).startswith("train.txt:1: expected 3 tab-separated fields, got text with a NUL character")


def zstd(content: bytes) -> bytes:
    """Wrap up to 255 bytes in a zstd frame of one block that is not compressed (RFC 8878, section 3.1.1)."""
    header = b"\x28\xb5\x2f\xfd\x20" + bytes([len(content)])
    return header + (len(content) << 3 | 1).to_bytes(3, "little") + content


def test_a_wrong_line_in_a_zstd_file_is_named(tmp_path: Path) -> None:
    short = written(tmp_path, zstd(b"a\tb\tc\n\na\tb"), "t.zst")
    assert refusal(short) == "t.zst:3: expected 3 tab-separated fields, got 2: 'a\\tb'"
    latin = written(tmp_path, zstd(b"a\tb\tc\n\n\nd\tr\t\xe9\n"), "t.zst")
    assert refusal(latin) == "t.zst:4: expected UTF-8 text, got other bytes"


@pytest.mark.parametrize("name", ["t.gz", "t.zst"])
def test_a_damaged_compressed_file_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_triples([(f"{number:x}", "r", f"{number * number:x}") for number in range(5000)], path)
    whole = path.read_bytes()
    for cut in (5, len(whole) // 2, len(whole) - 3):
        sentence = refusal(written(tmp_path, whole[:cut], name))
        assert sentence.startswith(f"{name}: the compressed file is damaged or truncated (")
    assert refusal(written(tmp_path, whole[:2], name)).startswith(name)


def test_a_changed_byte_in_a_gzip_file_is_noticed(tmp_path: Path) -> None:
    # Not so for zstd: its checksum is optional, and Polars writes none.
    text = b"".join(b"%x\tr\t%x\n" % (number, number * number) for number in range(5000))
    content = bytearray(gzip.compress(text))
    content[len(content) // 2] ^= 0xFF
    sentence = refusal(written(tmp_path, bytes(content), "t.gz"))
    assert sentence.startswith("t.gz: the compressed file is damaged or truncated (")


def test_binary_junk_is_refused(tmp_path: Path) -> None:
    assert refusal(written(tmp_path, bytes(range(256)) * 9)).startswith("train.txt:2: expected UTF-8 text")


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.txt").mkdir()
    assert refusal(tmp_path / "folder.txt") == "folder.txt: expected a file of triples, got a folder"
    assert refusal(tmp_path / "none.txt") == "none.txt: no such file"
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert refusal(tmp_path / "pipe") == "pipe: expected a regular file of triples, got a device or a pipe"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a\tb\tc\n")
    path.chmod(0)
    assert refusal(path) == "train.txt: the file cannot be read (Permission denied)"


@pytest.mark.parametrize("label", ["a\tb", "a\nb", "a\r", "\ufeffa"])
def test_a_label_that_a_file_cannot_hold_is_not_written(tmp_path: Path, label: str) -> None:
    path = tmp_path / "train.txt"
    with pytest.raises(DataError, match=r"train\.txt: .* cannot be written: " + re.escape(repr(label))):
        write_triples([(label, "r", "b")], path)
    assert not path.exists()


def test_a_table_is_written_sorted_and_a_file_is_replaced(tmp_path: Path) -> None:
    path = written(tmp_path, "old")
    write_triples(TripleTable.from_frame([("b", "r", "a"), ("a", "r", "b")]), path)
    assert path.read_text() == "a\tr\tb\nb\tr\ta\n"


def test_writing_into_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the file cannot be written"):
        write_triples(ROWS, tmp_path / "none" / "train.txt")


def test_commas_are_answered_with_what_would_do(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("ed,speaks,dutch\n")
    with pytest.raises(DataError, match=r"fields \(separate them by tabs, not commas\), got 1: 'ed,speaks,dutch'"):
        read_triples(tmp_path / "train.txt")


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.bz2", ".csv", ".csv.gz"])
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr("anyburl.data.formats.delimited.MOST_REST", 100_000)
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(suffix).suffix, bytes)
    file = tmp_path / f"graph{suffix}"
    file.write_bytes(pack(b"subject,relation,object\n" + b"a" * 200_000))
    with pytest.raises(DataError, match="expected lines of at most 100,000 bytes, got a longer one: is it text"):
        list(read_batches(file, ReadOptions(), size=1000))
