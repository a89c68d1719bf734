"""Splicing into YAML and JSON texts: what was not asked for stays, byte by byte."""

from collections.abc import Callable

import pytest

from gpushare_core.text.yaml_edit import (
    YamlEditError,
    first_document,
    insert_entry,
    insert_item,
    remove_entry,
    remove_item,
    replace_scalar,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a:\n- x\n", "a:\n- x\n- new\n", id="a list at the key's column"),
        pytest.param("a:\n  - x\n", "a:\n  - x\n  - new\n", id="an indented list"),
        pytest.param(
            "a:\n- x # why\n# tail\n", "a:\n- x # why\n- new\n# tail\n", id="comments stay in place"
        ),
        pytest.param("a:\n- x", "a:\n- x\n- new", id="no line end at the end"),
        pytest.param("a:\r\n- x\r\n", "a:\r\n- x\r\n- new\r\n", id="carriage returns"),
        pytest.param("a:\n- |\n  x\n\nb: 1\n", "a:\n- |\n  x\n\n- new\nb: 1\n", id="behind a block scalar"),
        pytest.param(
            "a:\n- b: 1\n  c:\n  - d\n", "a:\n- b: 1\n  c:\n  - d\n- new\n", id="behind a deep item"
        ),
        pytest.param("a: [x]\n", 'a: [x, "new"]\n', id="a flow list"),
        pytest.param("a: [ x, ]\n", 'a: [ x, "new", ]\n', id="a flow list with a comma at its end"),
        pytest.param("a: []\n", 'a: ["new"]\n', id="an empty flow list"),
        pytest.param(
            "a: [\n  x\n]\n", 'a: [\n  x,\n  "new"\n]\n', id="a flow list with a line for each item"
        ),
        pytest.param("a:\n", 'a: [ "new" ]\n', id="a key without a value"),
        pytest.param("a: null\n", 'a: ["new"]\n', id="a null"),
        pytest.param("b: 1\n", "b: 1\na:\n- new\n", id="a missing key"),
        pytest.param(
            "b:\n  - 1\n", "b:\n  - 1\na:\n  - new\n", id="a missing key takes its neighbours' style"
        ),
        pytest.param("b: 1", "b: 1\na:\n- new", id="a missing key and no line end at the end"),
        pytest.param("{b: 1}\n", '{b: 1, "a": ["new"]}\n', id="a missing key in a flow mapping"),
        pytest.param("{}\n", '{"a": ["new"]}\n', id="an empty flow mapping"),
        pytest.param('{\n\t"b": 1\n}', '{\n\t"b": 1,\n\t"a": ["new"]\n}', id="JSON indented with tabs"),
        pytest.param("b: 1\n...\n", "b: 1\na:\n- new\n...\n", id="before the end of the document"),
        pytest.param("a:\n- x\n---\na: 2\n", "a:\n- x\n- new\n---\na: 2\n", id="the first document only"),
        pytest.param("\ufeffa:\n- x\n", "\ufeffa:\n- x\n- new\n", id="behind a byte order mark"),
    ],
)
def test_an_item_is_appended_in_the_style_around_it(before: str, after: str) -> None:
    assert insert_item(before, ("a",), value="new") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a:\n- x\n- y\n", "a:\n- x\n- new\n- y\n", id="block list"),
        pytest.param("a:\n- x # why\n- y\n", "a:\n- x # why\n- new\n- y\n", id="behind a comment"),
        pytest.param("a: [x, y]\n", 'a: [x, "new", y]\n', id="flow list"),
    ],
)
def test_an_item_is_inserted_behind_the_first(before: str, after: str) -> None:
    assert insert_item(before, ("a",), value="new", index=1) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a:\n- x\n", "a:\n- new\n- x\n", id="block list"),
        pytest.param("a:\n# why\n- x\n", "a:\n# why\n- new\n- x\n", id="below a comment"),
        pytest.param("a: [x]\n", 'a: ["new", x]\n', id="flow list"),
    ],
)
def test_an_item_is_inserted_at_the_front(before: str, after: str) -> None:
    assert insert_item(before, ("a",), value="new", index=0) == after


def test_a_mapping_is_written_below_its_dash() -> None:
    text = insert_item("a:\n  - x\n", ("a",), value={"b": {"c": "d"}, "e": True})

    assert text == "a:\n  - x\n  - b:\n      c: d\n    e: true\n"


@pytest.mark.parametrize(
    ("before", "index", "after"),
    [
        pytest.param("a:\n- x\n- y\n", 0, "a:\n- y\n", id="the first of a block list"),
        pytest.param("a:\n- x\n- y # why\nb: 1\n", 1, "a:\n- x\nb: 1\n", id="the last, its comment with it"),
        pytest.param("a:\n- x\n- y", 1, "a:\n- x", id="the last without a line end"),
        pytest.param("a:\r\n- x\r\n- y", 1, "a:\r\n- x", id="the last without a line end, carriage returns"),
        pytest.param("a:\n- b: 1\n  c: 2\n- y\n", 0, "a:\n- y\n", id="an item of several lines"),
        pytest.param("a:\n-\n  b: 1\n- y\n", 0, "a:\n- y\n", id="a dash on its own line"),
        pytest.param("c: 1\na:\n- x\nb: 1\n", 0, "c: 1\nb: 1\n", id="the only one goes with its key"),
        pytest.param("a: [x, y]\n", 0, "a: [y]\n", id="the first of a flow list"),
        pytest.param("a: [x, y]\n", 1, "a: [x]\n", id="the last of a flow list"),
        pytest.param("a: [x]\n", 0, "a: []\n", id="the only one of a flow list"),
        pytest.param("a: [ x ]\n", 0, "a:\n", id="the only one where nothing stood"),
    ],
)
def test_an_item_is_removed(before: str, index: int, after: str) -> None:
    assert remove_item(before, ("a",), index=index) == after


def test_the_only_item_below_a_key_behind_a_dash_leaves_an_empty_list() -> None:
    text = remove_item("l:\n- a:\n  - x\n  b: 1\n", ("l", 0, "a"), index=0)

    assert text == "l:\n- a: []\n  b: 1\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a: x\n", "a: /new=1\n", id="plain"),
        pytest.param("a: 'x' # why\n", "a: '/new=1' # why\n", id="single quotes"),
        pytest.param('a: "x"\n', 'a: "/new=1"\n', id="double quotes"),
        pytest.param("a: >-\n  x\nb: 1\n", "a: >-\n  /new=1\nb: 1\n", id="a folded scalar"),
        pytest.param("a: !!str x # why\n", "a: !!str /new=1 # why\n", id="a tag"),
        pytest.param("a: &it x\n", "a: &it /new=1\n", id="an anchor"),
        pytest.param("a: xx\n", "a: /new=1\n", id="part of it twice"),
    ],
)
def test_a_scalar_is_replaced_in_its_quotes(before: str, after: str) -> None:
    assert replace_scalar(before, ("a",), value="/new=1") == after


@pytest.mark.parametrize(
    "value", ["registry.example:5000/a/b-c@sha256:0f", "gpushare-scheduler:0.1.0-1.36", "-x=a:b"]
)
@pytest.mark.parametrize("text", ["a: x\n", "{a: x}", "{a: x, b: c}", "a: x # why\nb: c\n"])
def test_a_colon_within_a_word_needs_no_quotes(text: str, value: str) -> None:
    changed = replace_scalar(text, ("a",), value=value)
    assert changed == text.replace("x", value, 1)
    assert first_document(changed)["a"] == value


@pytest.mark.parametrize("value", ["a:", ":a", "a::b", "12:30", "=", "...", "a: b", "@a"])
@pytest.mark.parametrize("text", ["a: x\n", "{a: x}", "{a: x, b: c}"])
def test_what_yaml_would_read_otherwise_is_quoted(text: str, value: str) -> None:
    assert first_document(replace_scalar(text, ("a",), value=value))["a"] == value


@pytest.mark.parametrize("value", ["true", "12", "a: b", "it's", "- x", "", "é", '"'])
@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_any_string_stays_a_string(value: str, quote: str) -> None:
    assert first_document(replace_scalar(f"a: {quote}x{quote}\n", ("a",), value=value)) == {"a": value}


def test_text_that_is_no_yaml_is_refused_with_the_place_alone() -> None:
    """What stands there may be a secret."""
    with pytest.raises(YamlEditError) as refused:
        first_document("users:\n- token: secret: x\n")
    assert str(refused.value) == "not valid YAML: mapping values are not allowed here, line 2, column 16"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [\n", "not valid YAML", id="not YAML"),
        pytest.param("a: 1\n", "not a list", id="no list"),
        pytest.param("a: [1]\na: [2]\n", "2 times", id="the key twice"),
        pytest.param("- a\n", "not a mapping", id="no mapping"),
        pytest.param("", "empty", id="nothing"),
        pytest.param("b: &b x\na:\n- *b\n", "alias", id="an alias at the end"),
        pytest.param("a: 2020-13-45\n", "not", id="a date that is none"),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str, message: str) -> None:
    with pytest.raises(YamlEditError, match=message):
        insert_item(text, ("a",), value="new")


ENTRIES = [
    pytest.param("a:\n  b: 1 # one\nz: 2\n", "a:\n  b: 1 # one\n  new: true\nz: 2\n", id="block"),
    pytest.param("a:\n  b: 1", "a:\n  b: 1\n  new: true", id="no line end"),
    pytest.param("a:\r\n  b: 1\r\n", "a:\r\n  b: 1\r\n  new: true\r\n", id="line ends of Windows"),
    pytest.param("a: {b: 1}\n", 'a: {b: 1, "new": true}\n', id="flow"),
    pytest.param('{"a": {\n  "b": 1\n}}', '{"a": {\n  "b": 1,\n  "new": true\n}}', id="JSON"),
    pytest.param("a: {} # none\n", 'a: {"new": true} # none\n', id="empty"),
]


@pytest.mark.parametrize(("before", "after"), ENTRIES)
def test_an_entry_comes_last_and_goes_without_a_trace(before: str, after: str) -> None:
    assert insert_entry(before, ("a", "new"), value=True) == after
    emptied = remove_entry(after, ("a", "new"))
    assert emptied == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a:\nb: 1\n", 'a: { "new": true }\nb: 1\n', id="null"),
        pytest.param("a: ~\n", 'a: {"new": true}\n', id="written null"),
    ],
)
def test_null_becomes_a_mapping(before: str, after: str) -> None:
    assert insert_entry(before, ("a", "new"), value=True) == after


def test_a_mapping_of_its_own_is_indented() -> None:
    assert (
        insert_entry("- a: 1\n- b: 2\n", (0, "c"), value={"d": True}) == "- a: 1\n  c:\n    d: true\n- b: 2\n"
    )


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        pytest.param("a:\n  b: 1\n  c: 2 # two\n", ("a", "c"), "a:\n  b: 1\n", id="its comment goes, too"),
        pytest.param("a:\n  b:\n    x: 1\n  c: 2\n", ("a", "b"), "a:\n  c: 2\n", id="a mapping"),
        pytest.param("a: {b: 1, c: 2}\n", ("a", "b"), "a: {c: 2}\n", id="first of a flow"),
        pytest.param("a:\n  b: 1\nz: 3\n", ("a", "b"), "a: {}\nz: 3\n", id="the only one"),
    ],
)
def test_an_entry_is_removed(before: str, path: tuple[str, ...], after: str) -> None:
    assert remove_entry(before, path) == after


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(
            lambda: insert_entry("a: 1\n", ("a", "b"), value=1), "a is not a mapping", id="no mapping"
        ),
        pytest.param(
            lambda: insert_entry("a: {b: 1}", ("a", "b"), value=1), "a.b is there already", id="there"
        ),
        pytest.param(lambda: remove_entry("a: {b: 1}", ("a", "c")), "there is no a.c", id="not there"),
        pytest.param(lambda: remove_entry("- a: 1\n  b: 2\n", (0, "a")), "cannot edit the line", id="first"),
        pytest.param(
            lambda: remove_entry("- a: 1\n", (0, "a")), "cannot remove a", id="the only one of an item"
        ),
        pytest.param(
            lambda: remove_entry("a: # why\n  b: 1\n", ("a", "b")), "write {} in its place", id="a comment"
        ),
    ],
)
def test_an_entry_that_cannot_be_edited_says_why(call: Callable[[], str], message: str) -> None:
    with pytest.raises(YamlEditError, match=message):
        call()
