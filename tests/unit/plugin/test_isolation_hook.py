"""What a container with the hook gets, in each mode and by each injection."""

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import GIB, card, ids, layout

from gpushare_core.api.enums import Injection, MemoryIsolation
from gpushare_core.api.share_node import Devices
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.units import parse_node_unit
from gpushare_plugin.decide.admit.injection import ContainerAnswer, container_answer
from gpushare_plugin.decide.isolation.hook import HOOK
from gpushare_plugin.decide.isolation.kind import CardLimit, GrantedMemory, IsolationChoice
from gpushare_plugin.decide.isolation.limits_file import identity_of, limits_file, read_limits
from gpushare_plugin.decide.isolation.table import ISOLATION_KINDS
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.layout import Layout, lay_out
from gpushare_plugin.devices.card import Equipment, HostMount

MIB = 2**20
CHOICE = IsolationChoice(kind=HOOK, context_memory=600 * MIB, folder="/isolation")
CDI = Devices(injection=Injection.CDI)
UNEQUAL = (card(0), card(1, memory=8 * GIB))


def answer(*numbers: int, cards: Layout | None = None, devices: Devices | None = None) -> ContainerAnswer:
    return container_answer(ids(*numbers), cards or layout(), GPUSHARE, devices or Devices(), CHOICE)


def limits(given: ContainerAnswer) -> list[str]:
    """Lines of cards in the one file."""
    (content,) = given.files.values()
    return content.decode().splitlines()[2:]


def cards(unit: str, *, reserved: int = 0) -> Layout:
    return lay_out(UNEQUAL, parse_node_unit(unit), reserved=reserved)


def test_every_kind_has_a_row() -> None:
    assert ISOLATION_KINDS.keys() == {*MemoryIsolation}


def test_units_of_memory_are_a_limit_on_their_card() -> None:
    given = answer(16, 17, 18)
    assert limits(given) == [f"GPU-1 {3 * GIB}"]
    assert given.variables["GPUSHARE_ISOLATION"] == "Hook"
    assert [mount.container_path for mount in given.mounts if mount.read_only] == [
        "/etc/ld.so.preload",
        "/opt/gpushare/lib/libgpushare-cuda.so",
        "/etc/gpushare/limits",
    ]
    assert [*given.files] == [given.mounts[-1].host_path]


def test_slices_on_several_cards_are_several_limits() -> None:
    given = answer(0, 2, cards=cards("1/2 card"))
    assert limits(given) == [f"GPU-0 {8 * GIB}", f"GPU-1 {4 * GIB}"]


def test_whole_cards_are_limited_only_where_memory_is_reserved() -> None:
    whole = answer(0, cards=cards("1 card"))
    assert (whole.files, whole.mounts) == ({}, ())
    assert "GPUSHARE_ISOLATION" not in whole.variables
    assert limits(answer(0, cards=cards("1 card", reserved=GIB))) == [f"GPU-0 {15 * GIB}"]


def test_both_injections_give_the_same() -> None:
    by_variable, by_cdi = answer(0, 1), answer(0, 1, devices=CDI)
    assert by_cdi.cdi_devices == ("nvidia.com/gpu=GPU-0",)
    assert (by_cdi.mounts, by_cdi.files) == (by_variable.mounts, by_variable.files)


def test_an_inventory_that_mounts_something_else_there_is_refused_with_a_reason() -> None:
    own = Equipment(mounts=(HostMount("/opt/other", "/etc/ld.so.preload"),))
    (first,) = [card(0)]
    there = layout(first.__class__(uuid="GPU-0", index=0, memory=GIB, equipment=own))
    with pytest.raises(UnusableUnitsError, match=r"its isolation, come with different things at /etc/ld"):
        answer(0, cards=there)


def test_the_file_is_as_the_library_reads_it() -> None:
    granted = GrantedMemory(
        numbers=(0, 1),
        limits=(CardLimit(uuid="GPU-0", memory=5), CardLimit(uuid="GPU-1", memory=7)),
        context_memory=3,
        folder="/isolation",
    )
    identity, content = limits_file(granted)
    assert content == f"container {identity}\ncontext 3\nGPU-0 5\nGPU-1 7\n".encode()
    assert len(identity) == 32
    assert identity == identity.lower()


NUMBERS = st.sets(st.integers(0, 2**31), min_size=1, max_size=8).map(sorted)
LIMITS = st.lists(
    st.builds(
        CardLimit, uuid=st.from_regex(r"GPU-[0-9a-f]{1,8}", fullmatch=True), memory=st.integers(0, 2**40)
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda limit: limit.uuid,
).map(tuple)
GRANTED = st.builds(
    GrantedMemory,
    numbers=NUMBERS,
    limits=LIMITS,
    context_memory=st.integers(0, 2**32),
    folder=st.just("/isolation"),
)


@given(GRANTED, GRANTED)
def test_an_identity_follows_from_units_and_limits_alone(one: GrantedMemory, other: GrantedMemory) -> None:
    def identity(granted: GrantedMemory) -> str:
        return identity_of(granted.numbers, granted.limits, granted.context_memory)

    assert identity(one) == limits_file(one)[0]
    assert (identity(one) == identity(other)) == (one == other)


@given(GRANTED)
def test_what_is_read_is_what_was_written(granted: GrantedMemory) -> None:
    identity, content = limits_file(granted)
    read = read_limits(content, identity, array("I", granted.numbers))
    assert read
    assert (read.limits, read.context_memory) == (granted.limits, granted.context_memory)


@given(st.lists(st.integers(0, 31), min_size=1, max_size=6, unique=True), st.randoms())
def test_allocate_may_be_repeated_in_any_order(numbers: list[int], random: Any) -> None:
    on_one = [number % 16 for number in {number % 16: number for number in numbers}]
    shuffled = random.sample(on_one, len(on_one))
    assert answer(*on_one) == answer(*shuffled)
