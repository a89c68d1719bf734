"""Each dialect's names and words, field by field as the replaced system has them (peers.md A1, B1, F)."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.allocation_annotation import Allocation
from gpushare_core.api.enums import DialectName
from gpushare_core.dialects.grants import CardGrant, CardPlace, ContainerGrant
from gpushare_core.dialects.legacy import LegacyAllocation, MalformedAnnotationsError
from gpushare_core.dialects.table import ANNOTATION_KEYS, DIALECTS, RESOURCES
from gpushare_core.placement.requests import ResourceClass

GIB = 2**30
MEMORY, SLICE, CARD = ResourceClass.MEMORY, ResourceClass.SLICE, ResourceClass.CARD
AT = 1_764_000_000_123_456_789


def card(index: int = 1, units: int = 4, *, uuid: str = "") -> CardGrant:
    return CardGrant(
        uuid=uuid or f"GPU-{index}",
        index=index,
        units=units,
        memory=units * GIB,
        card_units=16,
        card_memory=16 * GIB,
    )


def grant(
    *cards: CardGrant, resource: ResourceClass = MEMORY, pod_units: int | None = None
) -> ContainerGrant:
    units = sum(card.units for card in cards)
    return ContainerGrant(
        resource=resource, cards=cards, pod_units=units if pod_units is None else pod_units, unit="1Gi"
    )


def allocation(
    cards: dict[str, int],
    resource: ResourceClass = MEMORY,
    containers: dict[str, dict[str, int]] | None = None,
) -> Allocation:
    return Allocation(
        node="gpu-1",
        uid="u",
        at="",
        unit="1Gi",
        resource=resource,
        containers=containers or {"main": cards},
        cards=cards,
    )


PLACES = {f"GPU-{index}": CardPlace(index=index, units=16) for index in range(4)}

OURS = {
    "NVIDIA_VISIBLE_DEVICES": "GPU-1",
    "GPUSHARE_CARD": "GPU-1",
    "GPUSHARE_CARD_INDEX": "1",
    "GPUSHARE_UNIT": "1Gi",
    "GPUSHARE_UNITS": "4",
    "GPUSHARE_MEMORY_MIB": "4096",
    "GPUSHARE_CARD_MEMORY_MIB": "16384",
}


def test_every_dialect_that_the_api_offers_has_a_row_under_its_name() -> None:
    assert {name: dialect.name for name, dialect in DIALECTS.items()} == {name: name for name in DialectName}


@pytest.mark.parametrize(
    ("name", "resources"),
    [
        ("gpushare.io", {"gpushare.io/memory": MEMORY, "gpushare.io/slice": SLICE, "gpushare.io/card": CARD}),
        ("aliyun.com", {"aliyun.com/gpu-mem": MEMORY, "gpushare.io/slice": SLICE, "gpushare.io/card": CARD}),
        (
            "volcano.sh",
            {"volcano.sh/gpu-memory": MEMORY, "gpushare.io/slice": SLICE, "volcano.sh/gpu-number": CARD},
        ),
        (
            "enflame.com",
            {"enflame.com/gcu-memory": MEMORY, "gpushare.io/slice": SLICE, "gpushare.io/card": CARD},
        ),
        ("tuya.com", {"tuya.com/vcuda-memory": MEMORY, "tuya.com/sgpu": SLICE, "nvidia.com/gpu": CARD}),
    ],
)
def test_resources(name: str, resources: dict[str, ResourceClass]) -> None:
    assert DIALECTS[name].resources == resources
    assert {
        DIALECTS[name].resource_name(resource_class): resource_class for resource_class in ResourceClass
    } == resources
    assert resources.items() <= RESOURCES.items()


@pytest.mark.parametrize(
    ("name", "labels", "inspect", "version", "ignored"),
    [
        ("gpushare.io", {}, "/gpushare/inspect", "", ()),
        ("aliyun.com", {"gpushare": "true"}, "/gpushare-scheduler/inspect", "/version", ()),
        ("volcano.sh", {}, "", "", ()),
        (
            "enflame.com",
            {"enflame.com/gcushare": "true"},
            "/gcushare-scheduler/inspect",
            "/version",
            (),
        ),
        ("tuya.com", {}, "", "", ("tuya.com/vcuda-core",)),
    ],
)
def test_what_nodes_and_tools_see(
    name: str, labels: dict[str, str], inspect: str, version: str, ignored: tuple[str, ...]
) -> None:
    row = DIALECTS[name]
    seen = (row.node_labels, row.inspect_path, row.version_path, row.ignored_resources)
    assert seen == (labels, inspect, version, ignored)


@pytest.mark.parametrize(
    ("name", "registered", "counts"),
    [
        pytest.param("gpushare.io", [MEMORY], (), id="ours has none"),
        pytest.param("tuya.com", [MEMORY, SLICE, CARD], (), id="tuya has none"),
        pytest.param("aliyun.com", [MEMORY], ("aliyun.com/gpu-count",), id="aliyun"),
        pytest.param("aliyun.com", [CARD], ("aliyun.com/gpu-count",), id="aliyun, whole cards"),
        pytest.param("enflame.com", [MEMORY], ("enflame.com/gcu-count",), id="enflame"),
        pytest.param("volcano.sh", [MEMORY], ("volcano.sh/gpu-number",), id="volcano, memory"),
        pytest.param("volcano.sh", [SLICE], ("volcano.sh/gpu-number",), id="volcano, slices"),
        pytest.param("volcano.sh", [CARD], (), id="volcano, whole cards: the kubelet's"),
        pytest.param("volcano.sh", [MEMORY, SLICE, CARD], (), id="volcano, mixed: the kubelet's"),
    ],
)
def test_counts_of_cards_beside_what_the_kubelet_registers(
    name: str, registered: list[ResourceClass], counts: tuple[str, ...]
) -> None:
    assert DIALECTS[name].counts(registered) == counts


@pytest.mark.parametrize(
    ("name", "given_", "expected"),
    [
        pytest.param("gpushare.io", grant(card()), OURS, id="ours"),
        pytest.param(
            "aliyun.com",
            grant(card(), pod_units=6),
            {
                **OURS,
                "ALIYUN_COM_GPU_MEM_IDX": "1",
                "ALIYUN_COM_GPU_MEM_POD": "6",
                "ALIYUN_COM_GPU_MEM_CONTAINER": "4",
                "ALIYUN_COM_GPU_MEM_DEV": "16",
            },
            id="aliyun: NVIDIA_VISIBLE_DEVICES has the UUID, not the index",
        ),
        pytest.param(
            "volcano.sh",
            grant(card()),
            {
                **OURS,
                "VOLCANO_GPU_ALLOCATED": "4096",
                "VOLCANO_GPU_MEMORY_TOTAL": "16384",
                "VOLCANO_GPU_TOTAL": "16384",
            },
            id="volcano: the card by the name in its guide, and by that of its device plugin",
        ),
        pytest.param(
            "enflame.com",
            grant(card()),
            {key: value for key, value in OURS.items() if key != "NVIDIA_VISIBLE_DEVICES"},
            id="enflame: no card of NVIDIA's",
        ),
        pytest.param("tuya.com", grant(card()), OURS, id="tuya"),
        pytest.param("aliyun.com", grant(card(), resource=CARD), OURS, id="aliyun, a class that it lacks"),
        pytest.param("volcano.sh", grant(card(), resource=CARD), OURS, id="volcano, whole card"),
        pytest.param(
            "volcano.sh",
            grant(card(0, 1), card(2, 1), resource=CARD),
            {
                "NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-2",
                "GPUSHARE_CARD": "GPU-0,GPU-2",
                "GPUSHARE_CARD_INDEX": "0,2",
                "GPUSHARE_UNIT": "1Gi",
                "GPUSHARE_UNITS": "2",
                "GPUSHARE_MEMORY_MIB": "1024,1024",
                "GPUSHARE_CARD_MEMORY_MIB": "16384,16384",
            },
            id="two cards",
        ),
    ],
)
def test_environment(name: str, given_: ContainerGrant, expected: dict[str, str]) -> None:
    assert DIALECTS[name].environment(given_) == expected


@pytest.mark.parametrize(
    ("name", "given_", "expected"),
    [
        pytest.param("gpushare.io", allocation({"GPU-1": 4}), {}, id="ours"),
        pytest.param(
            "aliyun.com",
            allocation({"GPU-1": 4}),
            {
                "ALIYUN_COM_GPU_MEM_IDX": "1",
                "ALIYUN_COM_GPU_MEM_POD": "4",
                "ALIYUN_COM_GPU_MEM_DEV": "16",
                "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1764000000123456789",
            },
            id="aliyun",
        ),
        pytest.param(
            "volcano.sh",
            allocation({"GPU-1": 4}),
            {"volcano.sh/gpu-index": "1", "volcano.sh/predicate-time": "1764000000123456789"},
            id="volcano, memory",
        ),
        pytest.param(
            "volcano.sh",
            allocation({"GPU-1": 1, "GPU-0": 1}, CARD),
            {"volcano.sh/gpu-index": "0,1", "volcano.sh/predicate-time": "1764000000123456789"},
            id="volcano, whole cards",
        ),
        pytest.param(
            "enflame.com",
            allocation({"GPU-0": 4}),
            {
                "enflame.com/gcu-device-id": "0",
                "enflame.com/gcu-device-memory": "16",
                "enflame.com/gcu-device-memory-request": "4",
                "enflame.com/gcu-device-assigned": "false",
                "enflame.com/gcu-device-assign-time": "1764000000123456789",
            },
            id="enflame",
        ),
        pytest.param("tuya.com", allocation({"GPU-1": 4}), {}, id="tuya"),
        *(
            pytest.param(name, allocation({"GPU-0": 1, "GPU-1": 1}, SLICE), {}, id=f"{name}, slices")
            for name in ("aliyun.com", "volcano.sh", "enflame.com")
        ),
        *(
            pytest.param(name, allocation({"GPU-0": 1}, CARD), {}, id=f"{name}, whole cards")
            for name in ("aliyun.com", "enflame.com")
        ),
    ],
)
def test_annotations_at_bind(name: str, given_: Allocation, expected: dict[str, str]) -> None:
    codec = DIALECTS[name].codec
    assert codec.bind_annotations(given_, PLACES, AT) == expected
    assert expected.keys() <= {*codec.bind_keys}


def test_an_init_container_that_lends_its_units_does_not_add_to_the_pods_total() -> None:
    lending = allocation({"GPU-1": 6}, containers={"first": {"GPU-1": 6}, "main": {"GPU-1": 4}})
    written = DIALECTS["aliyun.com"].codec.bind_annotations(lending, PLACES, AT)
    assert written["ALIYUN_COM_GPU_MEM_POD"] == "6"


@pytest.mark.parametrize(
    ("name", "resource", "expected"),
    [
        pytest.param("gpushare.io", MEMORY, {}, id="ours"),
        pytest.param(
            "aliyun.com",
            MEMORY,
            {
                "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1764000000123456789",
            },
            id="aliyun",
        ),
        pytest.param("aliyun.com", SLICE, {}, id="aliyun, a class that it lacks"),
        pytest.param("volcano.sh", MEMORY, {"volcano.sh/gpu-assigned": "true"}, id="volcano, memory"),
        pytest.param("volcano.sh", CARD, {"volcano.sh/gpu-assigned": "true"}, id="volcano, whole cards"),
        pytest.param("volcano.sh", SLICE, {}, id="volcano, a class that it lacks"),
        pytest.param(
            "enflame.com",
            MEMORY,
            {
                "enflame.com/gcu-device-assigned": "true",
                "enflame.com/gcu-device-assign-time": "1764000000123456789",
            },
            id="enflame",
        ),
        pytest.param("enflame.com", CARD, {}, id="enflame, a class that it lacks"),
        pytest.param("tuya.com", MEMORY, {}, id="tuya"),
    ],
)
def test_annotations_at_assignment(name: str, resource: ResourceClass, expected: dict[str, str]) -> None:
    codec = DIALECTS[name].codec
    assert codec.assignment_annotations(resource, AT) == expected
    assert expected.keys() <= {*codec.assignment_keys}


READ = [
    pytest.param("gpushare.io", {"ALIYUN_COM_GPU_MEM_IDX": "0"}, None, id="ours has none"),
    pytest.param("tuya.com", {"ALIYUN_COM_GPU_MEM_IDX": "0"}, None, id="tuya publishes none"),
    pytest.param("aliyun.com", {}, None, id="aliyun, not one of its pods"),
    pytest.param(
        "aliyun.com",
        {"ALIYUN_COM_GPU_MEM_IDX": "2", "ALIYUN_COM_GPU_MEM_POD": "6"},
        LegacyAllocation(cards={2: 6}),
        id="aliyun, bound",
    ),
    pytest.param(
        "aliyun.com",
        {
            "ALIYUN_COM_GPU_MEM_IDX": "0",
            "ALIYUN_COM_GPU_MEM_POD": "2",
            "ALIYUN_COM_GPU_MEM_DEV": "15",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1577786886345000000",
        },
        LegacyAllocation(cards={0: 2}, assigned=True),
        id="aliyun, running",
    ),
    pytest.param(
        "aliyun.com",
        {
            "scheduler.framework.gpushare.allocation": '{"a":{"3":2}}',
            "ALIYUN_COM_GPU_MEM_IDX": "0",
            "ALIYUN_COM_GPU_MEM_POD": "2",
        },
        LegacyAllocation(cards={0: 2}),
        id="aliyun, the plugin went by the index",
    ),
    pytest.param(
        "aliyun.com",
        {"scheduler.framework.gpushare.allocation": '{"a":{"0":2},"b":{"0":1,"3":4}}'},
        LegacyAllocation(cards={0: 3, 3: 4}, containers={"a": {0: 2}, "b": {0: 1, 3: 4}}),
        id="aliyun, container by container",
    ),
    pytest.param("volcano.sh", {"volcano.sh/predicate-time": "1"}, None, id="volcano, no index"),
    pytest.param(
        "volcano.sh", {"volcano.sh/gpu-index": "1"}, LegacyAllocation(cards={1: None}), id="volcano, one card"
    ),
    pytest.param(
        "volcano.sh",
        {"volcano.sh/gpu-index": "0,1", "volcano.sh/gpu-assigned": "true"},
        LegacyAllocation(cards={0: None, 1: None}, assigned=True),
        id="volcano, two cards, running",
    ),
    pytest.param("enflame.com", {"enflame.com/gcu-device-assigned": "true"}, None, id="enflame, no card"),
    pytest.param(
        "enflame.com",
        {
            "enflame.com/gcu-device-id": "0",
            "enflame.com/gcu-device-memory": "16",
            "enflame.com/gcu-device-memory-request": "4",
            "enflame.com/gcu-device-assigned": "true",
            "enflame.com/gcu-device-assign-time": "1661245000000000000",
        },
        LegacyAllocation(cards={0: 4}, assigned=True),
        id="enflame, running",
    ),
]


@pytest.mark.parametrize(("name", "annotations", "expected"), READ)
def test_what_a_pod_of_the_replaced_system_has(
    name: str, annotations: dict[str, str], expected: LegacyAllocation | None
) -> None:
    codec = DIALECTS[name].codec
    assert codec.read_legacy(annotations) == expected
    if expected:
        assert annotations.keys() <= {*codec.annotation_keys}


@pytest.mark.parametrize(
    ("name", "annotations", "told"),
    [
        pytest.param("aliyun.com", {"ALIYUN_COM_GPU_MEM_IDX": "-1"}, "IDX is '-1'", id="aliyun, no card"),
        pytest.param("aliyun.com", {"ALIYUN_COM_GPU_MEM_IDX": "0"}, "POD is ''", id="aliyun, no amount"),
        pytest.param(
            "aliyun.com",
            {"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "4GiB"},
            "POD is '4GiB'",
            id="aliyun, an amount with a unit",
        ),
        pytest.param(
            "aliyun.com", {"ALIYUN_COM_GPU_MEM_IDX": "٣"}, "IDX is", id="aliyun, a digit of another alphabet"
        ),
        pytest.param("aliyun.com", {"ALIYUN_COM_GPU_MEM_IDX": "9" * 5000}, "IDX is", id="aliyun, endless"),
        *(
            pytest.param(
                "aliyun.com", {"scheduler.framework.gpushare.allocation": text}, "allocation", id=text[:20]
            )
            for text in (
                "",
                "[]",
                '{"a":1}',
                '{"a":{"x":1}}',
                '{"a":{"0":-1}}',
                '{"a":{"0":1.5}}',
                "[" * 9999,
            )
        ),
        *(
            pytest.param("volcano.sh", {"volcano.sh/gpu-index": text}, "gpu-index is", id=f"volcano {text!r}")
            for text in ("", ",", "0,", "-1", "a", "0 ")
        ),
        pytest.param("enflame.com", {"enflame.com/gcu-device-id": "GCU-1"}, "id is 'GCU-1'", id="enflame"),
        pytest.param(
            "enflame.com", {"enflame.com/gcu-device-id": "0"}, "request is ''", id="enflame, amount"
        ),
    ],
)
def test_what_the_system_would_not_have_written_is_refused(
    name: str, annotations: dict[str, str], told: str
) -> None:
    with pytest.raises(MalformedAnnotationsError, match=told):
        DIALECTS[name].codec.read_legacy(annotations)


@given(
    st.sampled_from(sorted(DIALECTS)),
    st.dictionaries(
        st.sampled_from(ANNOTATION_KEYS), st.text(max_size=20) | st.text('0123456789,{}:"a-', max_size=20)
    ),
)
def test_no_annotation_crashes_a_reader(name: str, annotations: dict[str, str]) -> None:
    try:
        read = DIALECTS[name].codec.read_legacy(annotations)
    except MalformedAnnotationsError:
        return
    assert read is None or all(index >= 0 and (units or 0) >= 0 for index, units in read.cards.items())


@pytest.mark.parametrize(
    ("cards", "total", "expected"),
    [
        pytest.param({0: 4}, 4, {0: 4}, id="as asked"),
        pytest.param({0: 4}, 6, {0: 6}, id="less than asked: the kubelet gave it what it asks for"),
        pytest.param({0: 400}, 4, {0: 4}, id="more than asked"),
        pytest.param({0: 4, 1: 4}, 6, {0: 4, 1: 2}, id="more on two cards"),
        pytest.param({0: 1, 1: 2}, 6, {0: 4, 1: 2}, id="less on two cards"),
        pytest.param({0: 4}, 0, {}, id="a pod that asks for nothing"),
        pytest.param({}, 4, {}, id="no card"),
        pytest.param({1: None}, 1024, {1: 1024}, id="only the request says how much"),
        pytest.param({0: None, 1: None}, 2, {0: 1, 1: 1}, id="whole cards"),
        pytest.param({0: None, 1: None}, 1, {0: 1}, id="more cards than asked"),
    ],
)
def test_a_pod_has_what_it_asks_for_where_the_annotations_say(
    cards: dict[int, int | None], total: int, expected: dict[int, int]
) -> None:
    assert LegacyAllocation(cards=cards).shares(total) == expected


@pytest.mark.parametrize(
    ("name", "device_id", "expected"),
    [
        ("aliyun.com", "GPU-8f2c-_-0", "GPU-8f2c"),
        ("aliyun.com", "GPU-8f2c-_-15257", "GPU-8f2c"),
        ("aliyun.com", "AAA", None),
        ("aliyun.com", "-_-3", None),
        ("aliyun.com", "GPU-8f2c-_-x", None),
        ("volcano.sh", "0-0", 0),
        ("volcano.sh", "7-32509", 7),
        ("volcano.sh", "GPU-8f2c", "GPU-8f2c"),
        ("volcano.sh", "AAA", None),
        ("volcano.sh", "x-1", None),
        ("volcano.sh", "-1", None),
        ("enflame.com", "GCU-U53000090104-_-4", "GCU-U53000090104"),
        ("enflame.com", "GCU-U53000090104", None),
        ("gpushare.io", "GPU-8f2c-_-0", None),
        ("tuya.com", "GPU-8f2c-_-0", None),
    ],
)
def test_the_card_of_a_device_of_the_replaced_plugin(
    name: str, device_id: str, expected: str | int | None
) -> None:
    assert DIALECTS[name].codec.card_of(device_id) == expected


@pytest.mark.parametrize(
    ("name", "variables", "device_nodes", "expected"),
    [
        pytest.param("aliyun.com", {"ALIYUN_COM_GPU_MEM_IDX": "3"}, [], 3, id="aliyun"),
        pytest.param("aliyun.com", {"ALIYUN_COM_GPU_MEM_IDX": "-1"}, [], -1, id="aliyun, no card"),
        pytest.param("aliyun.com", {"NVIDIA_VISIBLE_DEVICES": "0"}, [], None, id="aliyun, another plugin's"),
        pytest.param(
            "volcano.sh",
            {"NVIDIA_VISIBLE_DEVICES": "1", "VOLCANO_GPU_ALLOCATED": "1024"},
            [],
            1,
            id="volcano",
        ),
        pytest.param("volcano.sh", {"NVIDIA_VISIBLE_DEVICES": "1"}, [], None, id="volcano, another plugin's"),
        pytest.param(
            "volcano.sh",
            {"NVIDIA_VISIBLE_DEVICES": "GPU-1", "VOLCANO_GPU_ALLOCATED": "1024"},
            [],
            None,
            id="volcano, our own",
        ),
        pytest.param("enflame.com", {}, ["/dev/gcuctrl", "/dev/gcu5"], 5, id="enflame"),
        pytest.param("enflame.com", {}, ["/dev/gcuctrl"], None, id="enflame, none"),
        pytest.param("tuya.com", {"NVIDIA_VISIBLE_DEVICES": "0"}, ["/dev/nvidia0"], None, id="tuya"),
    ],
)
def test_the_card_that_the_replaced_plugin_gave_to_a_container(
    name: str, variables: dict[str, str], device_nodes: list[str], expected: int | None
) -> None:
    assert DIALECTS[name].codec.stored_card(variables, device_nodes) == expected


def test_no_two_dialects_share_a_name_of_their_own() -> None:
    """Else one pod would be counted in two units."""
    own = {
        name: {resource for resource in row.resources if not resource.startswith("gpushare.io/")}
        for name, row in DIALECTS.items()
    }
    keys = {name: {*row.codec.annotation_keys} for name, row in DIALECTS.items()}
    for one, other in combinations(DIALECTS, 2):
        assert not own[one] & own[other]
        assert not keys[one] & keys[other]


def test_every_key_of_a_dialect_is_protected() -> None:
    assert ANNOTATION_KEYS == (
        "gpushare.io/allocation",
        "ALIYUN_COM_GPU_MEM_IDX",
        "ALIYUN_COM_GPU_MEM_POD",
        "ALIYUN_COM_GPU_MEM_DEV",
        "ALIYUN_COM_GPU_MEM_ASSIGNED",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
        "scheduler.framework.gpushare.allocation",
        "volcano.sh/gpu-index",
        "volcano.sh/predicate-time",
        "volcano.sh/gpu-assigned",
        "enflame.com/gcu-device-id",
        "enflame.com/gcu-device-memory",
        "enflame.com/gcu-device-memory-request",
        "enflame.com/gcu-device-assigned",
        "enflame.com/gcu-device-assign-time",
    )
