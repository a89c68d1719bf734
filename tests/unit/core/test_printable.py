"""What leaves for people is text and nothing else."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.hidden import HIDDEN, hidden_in

from gpushare_core.text.printable import CUT, printable, printable_lines


@pytest.mark.parametrize("character", HIDDEN, ids=lambda letter: f"U+{ord(letter):04X}")
def test_a_character_that_a_terminal_obeys_is_shown_as_an_escape(character: str) -> None:
    assert printable(f"a{character}b") == f"a\\u{ord(character):04x}b"


def test_all_control_characters_are_among_them() -> None:
    controls = {
        chr(number) for number in range(0x110000) if unicodedata.category(chr(number)) in ("Cc", "Zl", "Zp")
    }
    assert controls <= {*HIDDEN}


@pytest.mark.parametrize("text", ["", "card 1 (GPU-0): 80 °C", "节点", "\U0001f4a5", "a\u00a0b", r"C:\new"])
def test_other_text_stays(text: str) -> None:
    assert printable(text) == text


@given(st.text())
def test_nothing_hidden_is_left_and_once_more_changes_nothing(text: str) -> None:
    shown = printable(text)
    assert hidden_in(shown) == set()
    assert printable(shown) == shown


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_json_says_the_same(text: str) -> None:
    encoded = json.dumps({"a": text}, ensure_ascii=False)
    assert json.loads(printable(encoded)) == {"a": text}


@given(st.text(alphabet=st.sampled_from(["\x1b", "a", "é", "\U0001f4a5", "\ud800"])), st.integers(10, 60))
def test_no_more_bytes_are_left_than_asked_for_and_no_half_of_an_escape(text: str, most: int) -> None:
    shown = printable(text, max_bytes=most)
    assert len(shown.encode()) <= most
    if shown != printable(text):
        kept = shown.removesuffix(CUT)
        assert printable(text).startswith(kept)
        assert kept.count("\\") * 6 == sum(len(part) + 1 for part in _escapes(kept))


def _escapes(text: str) -> list[str]:
    return [part[:5] for part in text.split("\\")[1:]]


def test_lines_that_the_program_has_made_stay_lines() -> None:
    assert printable_lines("a\x1b\nb\r\n") == "a\\u001b\nb\\u000d\n"
