"""Nothing that decodes what comes from outside is without a test that fuzzes it."""

import importlib
from pathlib import Path

import pytest
from tests.fuzz import entry_points
from tests.fuzz.entry_points import FUZZED_BY, OWN, decoding_functions
from tests.fuzz.fuzzing import FUZZED

READER = "class A:\n    def read(self, text):\n        return int(text)\n"
FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def fuzzed() -> set[str]:
    """What the tests beside this one say that they fuzz."""
    for path in FOLDER.glob("*/test_*.py"):
        importlib.import_module(".".join(["tests", "fuzz", path.parent.name, path.stem]))
    return FUZZED


def test_every_function_that_decodes_is_fuzzed_or_has_nothing_from_outside(fuzzed: set[str]) -> None:
    unknown = decoding_functions() - fuzzed - FUZZED_BY.keys() - OWN.keys()
    assert not unknown, "fuzz these, or say in tests/fuzz/entry_points.py why not"


def test_the_list_names_only_what_is_there(fuzzed: set[str]) -> None:
    listed = FUZZED_BY.keys() | OWN.keys()
    assert not listed - decoding_functions()
    assert not set(FUZZED_BY.values()) - fuzzed


def test_a_new_decoder_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "reader.py").write_text(
        "class A:\n    def read(self, text):\n        return int(text)\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry_points, "PACKAGES", {"new": tmp_path})
        assert decoding_functions() == {"new.reader:A.read"}
