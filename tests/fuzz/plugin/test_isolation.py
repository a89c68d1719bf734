"""Files of limits and what Leases say of them: read whatever they are."""

from array import array
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import mutated

from gpushare_core.api.plugin_heartbeat import (
    ISOLATION_FILES_ANNOTATION,
    MAX_NAMED_PODS,
    read_isolation_files,
)
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.isolation.kind import CardLimit, GrantedMemory
from gpushare_plugin.decide.isolation.limits_file import limits_file, read_limits

NUMBERS = array("I", [0, 1])
LIMITS = (CardLimit(uuid="GPU-0", memory=2**31),)
IDENTITY, WRITTEN = limits_file(
    GrantedMemory(numbers=NUMBERS, limits=LIMITS, context_memory=2**29, folder="/f")
)
_PARTS = st.sampled_from(
    [b"container ", IDENTITY.encode(), b"\n", b"context ", b"0", b"9" * 30, b"GPU-0 ", b"\0", b"\xb2", b" "]
)


@fuzzes(read_limits)
@given(st.binary(max_size=200) | st.lists(_PARTS, max_size=12).map(b"".join))
@example(WRITTEN + b"GPU-1 1\n")
@example(WRITTEN[:-1])
@example(WRITTEN.replace(b"\n", b"\r\n"))
def test_a_file_of_limits_is_as_it_was_written_or_none(content: bytes) -> None:
    read = read_limits(content, IDENTITY, NUMBERS)
    assert (read.limits if read else None) == (LIMITS if content == WRITTEN else None)


def _lease(text: str) -> Json:
    return {"metadata": {"annotations": {ISOLATION_FILES_ANNOTATION: text}}}


@fuzzes(read_isolation_files)
@given(mutated(_lease("default/a,+3")) | st.text(max_size=50).map(_lease))
@example(_lease("+" + "9" * 5000))
@example(_lease("+\N{SUPERSCRIPT TWO},+"))
@example({"metadata": None})
def test_what_a_lease_says_of_files_is_bounded(lease: Any) -> None:
    files = read_isolation_files(lease) if isinstance(lease, dict) else None
    assert files is None or (len(files.pods) <= MAX_NAMED_PODS and 0 <= files.more < 10**6)
