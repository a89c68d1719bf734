"""What we write on a pod fits beside what is there: how much there is, and how much it will be at most."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.api.timestamps import rfc3339, unix_nanoseconds
from gpushare_core.dialects.annotation_room import (
    MAX_ANNOTATIONS,
    MAX_BYTES,
    MAX_CARDS,
    MAX_CONTAINERS,
    ROOM_BYTES,
    lack_of_room,
    size_beside_ours,
    size_of,
    worst_size,
)
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.grants import CardPlace
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest

MANIFEST = Path(__file__).resolve().parents[3] / "manifests/admission-pods.yaml"
NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
OWN = Dialect.allocation_annotation


def cards(count: int) -> list[str]:
    """Names as long as an inventory may give them."""
    return [f"{number:0>63}" for number in range(count)]


def asking(resource: ResourceClass, *amounts: int) -> ResourceRequest:
    """One container of the longest name for each of ``amounts``."""
    containers = {f"{resource}-{number:0>56}"[:63]: amount for number, amount in enumerate(amounts)}
    return ResourceRequest("", resource, max(amounts), containers)


def shares(asked: ResourceRequest, amount: int) -> dict[str, int]:
    if asked.resource is ResourceClass.MEMORY:
        return {cards(1)[0]: 999_999}
    return dict.fromkeys(cards(amount), 1)


def written(dialect: Dialect, *asked: ResourceRequest) -> Mapping[str, str]:
    """All that a Binding and the plugin write, on the node and the cards of the longest names."""
    most = max(1 if request.resource is ResourceClass.MEMORY else request.total for request in asked)
    allocation = Allocation(
        node="n" * 253,
        uid="u" * 36,
        at=rfc3339(NOW),
        unit="9" * 12,
        resource=asked[0].resource,
        containers={
            name: shares(request, units) for request in asked for name, units in request.containers.items()
        },
        cards=dict.fromkeys(cards(most), 999_999),
        cpu="9" * 30,
        memory="9" * 30,
        other_units=dict.fromkeys(cards(most), "1/64 card") if len(asked) > 1 else {},
    )
    places = {card: CardPlace(1023, 999_999) for card in cards(most)}
    at = unix_nanoseconds(NOW)
    return {
        **dialect.codec.bind_annotations(allocation, places, at),
        **dialect.codec.assignment_annotations(allocation.resource, at),
        OWN: encode_allocation(allocation),
    }


MEMORY, SLICE, CARD = ResourceClass.MEMORY, ResourceClass.SLICE, ResourceClass.CARD


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param([asking(MEMORY, 1)], id="memory"),
        pytest.param([asking(MEMORY, *[1] * MAX_CONTAINERS)], id="memory, the most containers"),
        pytest.param([asking(SLICE, *[4] * 100)], id="slices"),
        pytest.param([asking(CARD, *[MAX_CARDS] * 20)], id="cards lent by init containers"),
        pytest.param([asking(MEMORY, *[1] * 9), asking(CARD, *[MAX_CARDS] * 9)], id="several resources"),
    ],
)
def test_nothing_that_is_written_is_larger_than_foreseen(
    dialect: Dialect, asked: list[ResourceRequest]
) -> None:
    assert size_of(written(dialect, *asked)) <= worst_size(PodRequest(tuple(asked)))


def test_the_most_containers_fit_with_a_card_each() -> None:
    assert worst_size(PodRequest((asking(MEMORY, *[1] * MAX_CONTAINERS),))) <= ROOM_BYTES / 3


@given(st.dictionaries(st.text(), st.text()))
def test_bytes_are_counted_not_characters(annotations: dict[str, str]) -> None:
    expected = sum(len(text.encode()) for pair in annotations.items() for text in pair)
    assert size_of(annotations) == expected
    assert size_beside_ours({**annotations, OWN: "x" * 100}) == size_beside_ours(annotations)


def test_the_last_byte_counts() -> None:
    assert lack_of_room(MAX_BYTES - 300, 300) == ""
    assert lack_of_room(MAX_BYTES - 299, 300) != ""


def test_who_has_no_room_is_told_the_figures_and_what_to_do() -> None:
    told = lack_of_room(262_000, 2_500)
    assert "262000 bytes of annotations" in told
    assert "up to 2500 more, of 262144" in told
    assert "remove annotations from the pod" in told
    assert "fewer containers" not in told
    assert "fewer containers" in lack_of_room(200_000, ROOM_BYTES + 1)


def test_admission_knows_the_same_limits() -> None:
    bodies = [body for body in yaml.safe_load_all(MANIFEST.read_text()) if body["kind"].endswith("Policy")]
    for name in ("gpushare-requests", "gpushare-pods"):
        (body,) = [body for body in bodies if body["metadata"]["name"] == name]
        numbers = {int(number) for number in re.findall(r"\b\d{3,}\b", str(body["spec"]["validations"]))}
        assert {MAX_BYTES - ROOM_BYTES, MAX_ANNOTATIONS} <= numbers
        assert (MAX_CONTAINERS in numbers) == (name == "gpushare-requests")
