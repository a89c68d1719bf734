"""The kubelet's list with foreign units: its sums are those of the cards, and nothing is given twice."""

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samples.plugin import card, ids, layout, name_of

from gpushare_core.dialects.aliyun import ALIYUN
from gpushare_core.placement.card_choice import Strategy
from gpushare_plugin.decide.admit.preferred_allocation import ContainerRequest, NothingFitsError, choose_units
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.offer.device_list import device_lists, encode_devices
from gpushare_plugin.decide.offer.replaced_plugin_units import (
    NO_REPLACED_PLUGIN,
    DevicesOfReplacedPlugin,
    devices_of_replaced_plugin,
    foreign_by_card,
    require_room_beside_foreign,
)
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.foreign_units import ForeignUnits
from gpushare_plugin.decide.units.unit_ids import UnitSet, decode_id
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api

LAYOUT = layout()
NAME = ALIYUN.memory_resource


def foreign(count: int, card: str, *, first: int = 0, name: str = NAME) -> ForeignUnits:
    return ForeignUnits(name, {f"GPU-{card}-_-": array("I", range(first, first + count))}, card)


def held(own: dict[str, list[int]], others: dict[str, ForeignUnits]) -> AssignedDevices:
    """Pod -> its units; pods of ``others`` have foreign ones."""
    pods = [PodAssignment(name_of(pod), {"main": array("I", numbers)}) for pod, numbers in own.items()]
    pods += [
        PodAssignment(name_of(pod), {"main": array("I")}, foreign={"main": (units,)})
        for pod, units in others.items()
    ]
    return AssignedDevices({pod.name: pod for pod in pods})


def listed(assigned: AssignedDevices) -> list[str]:
    (message,) = device_lists(
        LAYOUT, ALIYUN, {}, devices_of_replaced_plugin(LAYOUT, ALIYUN, assigned)
    ).values()
    return [device.ID for device in api.ListAndWatchResponse.FromString(message).devices]


def test_they_stand_in_place_of_the_highest_units_that_nobody_has() -> None:
    assigned = held({"a": [14, 15]}, {"old": foreign(3, "0")})
    found = devices_of_replaced_plugin(LAYOUT, ALIYUN, assigned)
    assert found.withheld == {11, 12, 13}
    assert listed(assigned) == [
        *ids(*(number for number in range(32) if number not in (11, 12, 13))),
        "GPU-0-_-0",
        "GPU-0-_-1",
        "GPU-0-_-2",
    ]


def test_those_of_another_resource_keep_units_back_and_are_not_listed() -> None:
    found = devices_of_replaced_plugin(
        LAYOUT, ALIYUN, held({}, {"old": foreign(3, "1", name="nvidia.com/gpu")})
    )
    assert found.withheld == {*range(16, 32)}
    assert not any(found.ids.values())


def test_without_them_there_is_nothing_to_do() -> None:
    assert devices_of_replaced_plugin(LAYOUT, ALIYUN, held({"a": [1]}, {})) == NO_REPLACED_PLUGIN


def test_a_card_that_was_given_out_beyond_its_size_offers_nothing() -> None:
    assigned = held({"a": [0, 1]}, {"old": foreign(20, "0")})
    own = [identifier for identifier in listed(assigned) if "-_-" not in identifier]
    assert own == ids(0, 1, *range(16, 32))


def test_a_list_that_gets_too_long_goes_without_them_and_still_keeps_units_back() -> None:
    """The kubelet needs to see them after a reboot only; the message must not break the registration."""
    many = DevicesOfReplacedPlugin(
        {LAYOUT.only.resource: tuple(f"GPU-0-_-{n}" for n in range(16))}, frozenset(range(16))
    )
    message = encode_devices(LAYOUT, many, limit=600)
    found = [device.ID for device in api.ListAndWatchResponse.FromString(message).devices]
    assert found == ids(*range(16, 32))


def test_an_id_that_the_kubelet_would_not_take_is_not_listed() -> None:
    long = ForeignUnits(NAME, {f"{'x' * 63}-": array("I", [1])}, "0")
    assert not any(devices_of_replaced_plugin(LAYOUT, ALIYUN, held({}, {"old": long})).ids.values())


COUNTS = st.integers(0, 20)
OWN = st.sets(st.integers(0, 31), max_size=24)


@given(OWN, COUNTS, COUNTS)
@settings(max_examples=300)
def test_the_kubelets_sums_are_those_of_the_cards(own: set[int], on_0: int, on_1: int) -> None:
    """What the list has and nobody holds is what the cards have left, for any pods."""
    others = {"x": foreign(max(on_0, 1), "0"), "y": foreign(max(on_1, 1), "1")}
    assigned = held({"a": sorted(own)}, others)
    taken = {*ids(*own), *(text for other in others.values() for text in other.ids)}
    devices = listed(assigned)
    assert taken <= {*devices}
    shares = foreign_by_card(LAYOUT, LAYOUT.only.resource, assigned)
    for placed in LAYOUT.cards:
        free = [device for device in devices if device not in taken and decode_id(device) in placed.numbers]
        of_pods = len(own & {*placed.numbers}) + shares[placed.uuid]
        assert len(free) == max(0, placed.units - of_pods)


@given(
    own=OWN, on_0=st.integers(1, 16), on_1=st.integers(1, 16), asked=st.integers(1, 16), stale=st.booleans()
)
@settings(max_examples=300)
def test_whatever_the_kubelet_calls_available_no_card_is_filled_beyond_its_size(
    *, own: set[int], on_0: int, on_1: int, asked: int, stale: bool
) -> None:
    """``stale``: it has the list from before the foreign units were known."""
    assigned = held({"a": sorted(own)}, {"x": foreign(on_0, "0"), "y": foreign(on_1, "1")})
    withheld = frozenset() if stale else devices_of_replaced_plugin(LAYOUT, ALIYUN, assigned).withheld
    shares = foreign_by_card(LAYOUT, LAYOUT.only.resource, assigned)
    left = {card.uuid: card.units - len(own & {*card.numbers}) - shares[card.uuid] for card in LAYOUT.cards}
    request = ContainerRequest(units=asked, pod_units=asked, limits=left)
    available = UnitSet(number for number in range(32) if number not in own | withheld)
    try:
        cards, numbers = choose_units(
            request, LAYOUT, available=available, included=(), strategy=Strategy.BINPACK
        )
    except NothingFitsError:
        assert max(left.values()) < asked
        return
    assert left[cards[0]] >= asked
    require_room_beside_foreign(numbers, LAYOUT, assigned)


@given(OWN, st.integers(1, 16), st.sets(st.integers(0, 15), min_size=1))
@settings(max_examples=300)
def test_units_that_the_kubelet_chose_by_itself_are_refused_where_the_card_is_full(
    own: set[int], on_0: int, chosen: set[int]
) -> None:
    assigned = held({"a": sorted(own)}, {"x": foreign(on_0, "0")})
    used = len((own | chosen) & {*range(16)}) + on_0
    try:
        require_room_beside_foreign(sorted(chosen), LAYOUT, assigned)
    except UnusableUnitsError:
        assert used > 16
    else:
        assert used <= 16


def test_cards_without_foreign_units_are_nobodys_concern() -> None:
    assigned = held({}, {"x": foreign(16, "0")})
    require_room_beside_foreign([16, 17], LAYOUT, assigned)
    require_room_beside_foreign([], LAYOUT, assigned)
    assert foreign_by_card(layout(card(0)), LAYOUT.only.resource, assigned) == {"GPU-0": 16}
