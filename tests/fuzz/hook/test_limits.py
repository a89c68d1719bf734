"""The file of limits as the hook reads it, in every container of every user, under sanitizers.

The plugin writes the file, so what it writes must be read as it was meant. Everything else is refused whole:
half a file of limits would be a limit that nobody set.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.cuda_driver import compiled
from tests.fakes.hook_library import SOURCES
from tests.fuzz.fuzzing import fuzzes

from gpushare_plugin.decide.isolation.kind import CardLimit, GrantedMemory
from gpushare_plugin.decide.isolation.limits_file import limits_file

SANITIZERS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-DHOOK_HOSTED",
    f"-I{SOURCES}",
    f"-I{SOURCES}/share",
)
HEAD = re.compile(rb"container ([0-9a-f]{32})\ncontext (0|[1-9][0-9]*)\n")
LINE = re.compile(rb"([!-~]{1,64}) (0|[1-9][0-9]*)\n")
CUDA = re.compile(rb"GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
MOST = 2**60
CARDS = 64

hexadecimal = st.text("0123456789abcdef", min_size=32, max_size=32)
cuda_uuids = st.uuids().map(lambda uuid: f"GPU-{uuid}")
other_uuids = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=64)
sizes = st.one_of(st.integers(0, 2**40), st.sampled_from([MOST - 1, MOST, MOST + 1, 2**64, 10**40]))
lines = st.builds(lambda uuid, size: f"{uuid} {size}\n", cuda_uuids | other_uuids, sizes)
files = st.builds(
    lambda identity, context, cards: f"container {identity}\ncontext {context}\n{''.join(cards)}".encode(),
    hexadecimal,
    sizes,
    st.lists(lines, max_size=4) | st.lists(lines, min_size=63, max_size=66),
)


@st.composite
def broken_files(draw: st.DrawFn) -> bytes:
    """Files of which a part is left out, doubled, or replaced."""
    content = draw(files)
    first, last = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    middle = draw(
        st.sampled_from([b"", content[first:last] * 2, b"\0", b" ", b"\r\n", b"-1", b"\xff", b"00"])
    )
    return content[:first] + middle + content[last:]


@pytest.fixture(scope="module")
def reader() -> Iterator[Path]:
    """The hook's own code, and around it a program that answers for each text what is read of it."""
    with compiled([SOURCES / "tests/fuzz_limits.c", SOURCES / "share/limits.c"], SANITIZERS) as program:
        yield program


def answers(reader: Path, texts: Sequence[bytes]) -> list[str]:
    asked = b"".join(b"%d\n%s" % (len(text), text) for text in texts)
    done = subprocess.run([reader], input=asked, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode().splitlines()


def right_answer(text: bytes) -> str:
    head = HEAD.match(text)
    if head is None:
        return "refused"
    cards, at = [], head.end()
    while line := LINE.match(text, at):
        cards.append((line[1], int(line[2])))
        at = line.end()
    cuda = [uuid.lower() for uuid, _ in cards if CUDA.fullmatch(uuid)]
    is_right = at == len(text) and 0 < len(cards) <= CARDS and len(set(cuda)) == len(cuda)
    if not is_right or max(int(head[2]), *(size for _, size in cards)) > MOST:
        return "refused"
    shown = [f"{'' if CUDA.fullmatch(uuid) else '*'}{size}" for uuid, size in cards]
    return " ".join([head[1].decode(), head[2].decode(), *shown])


@given(st.lists(files | broken_files() | st.binary(max_size=200), min_size=1, max_size=30))
@fuzzes()
def test_a_file_is_read_whole_and_right_or_refused(reader: Path, texts: list[bytes]) -> None:
    for text, answer in zip(texts, answers(reader, texts), strict=True):
        assert answer == right_answer(text), text


@given(
    st.builds(
        GrantedMemory,
        numbers=st.just((1, 2)),
        limits=st.lists(
            st.builds(CardLimit, uuid=cuda_uuids, memory=st.integers(0, 2**42)),
            min_size=1,
            max_size=CARDS,
            unique_by=lambda limit: limit.uuid,
        ).map(tuple),
        context_memory=st.integers(0, 2**32),
        folder=st.just("/folder"),
    )
)
@fuzzes()
def test_what_the_plugin_writes_is_read_as_it_was_meant(reader: Path, granted: GrantedMemory) -> None:
    identity, content = limits_file(granted)
    sizes = [str(limit.memory) for limit in granted.limits]
    assert answers(reader, [content]) == [" ".join([identity, str(granted.context_memory), *sizes])]
