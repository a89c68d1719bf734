"""What the plugin reads of pods, its GPUShareNode, inventories, drivers and processes."""

import asyncio
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pynvml
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import ValidationError
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies import annotations, objects
from tests.fuzz.strategies.yaml_text import BOMBS, TAGS, damaged_yaml
from tests.samples.inventory import card_lines
from tests.samples.plugin import card, layout

from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.text.json_object import UNREADABLE_JSON
from gpushare_plugin.cluster.container_names import container_ids
from gpushare_plugin.cluster.pod_watch import read_one
from gpushare_plugin.cluster.share_node_watch import ShareNodeWatch
from gpushare_plugin.decide.admit.unadmitted_pods import hinted_cards
from gpushare_plugin.decide.health.cordon import read_cordon
from gpushare_plugin.decide.held.pods import is_bound_to, read_pod
from gpushare_plugin.decide.use.cgroups import cgroup_owners
from gpushare_plugin.devices.card import Reading
from gpushare_plugin.devices.inventory.health_command import _reason
from gpushare_plugin.devices.inventory.inventory_file import InventoryError, read_inventory
from gpushare_plugin.devices.nvml.cards import CardFacts, reading_of
from gpushare_plugin.devices.nvml.library import _facts, _optional
from gpushare_plugin.devices.nvml.use_library import _cgroup
from gpushare_plugin.devices.simulated.simulation import read_simulation, simulated_reading
from gpushare_plugin.devices.simulated.use import read_load
from gpushare_plugin.state import PluginState

KEY = Dialect.allocation_annotation
INVENTORY = (
    f"cards:\n{card_lines()}- {{uuid: GCU-1, memory: 8Gi}}\ncontainer:\n  deviceNodes: [/dev/gcuctl]\n"
    "health:\n  command: [/bin/true, '{uuid}']\n  periodSeconds: 5\n"
)


@fuzzes(read_pod, few=30)
@given(objects.watched(objects.POD))
@example({**objects.POD, "spec": None})
@example({**objects.POD, "metadata": {**objects.META, "resourceVersion": "9" * 5000}})
@example({**objects.POD, "metadata": {**objects.META, "annotations": {"kubernetes.io/config.mirror": 5}}})
def test_an_odd_pod_is_read_or_refused_with_a_reason(body: Any) -> None:
    raw = json.dumps(body).encode()
    try:
        seen = read_one(raw)
        whole = read_pod(body, KEY, RESOURCES)
        is_bound_to(body, "n1")
        container_ids(body)
    except UNREADABLE_JSON as error:
        assert str(error)
        return
    assert seen.name == whole.name
    assert whole.annotated_cards is not None
    for dialect in DIALECTS.values():
        hinted_cards(whole, layout(), dialect)


@fuzzes(ShareNodeWatch._store, read_cordon, few=30)
@given(objects.watched(objects.SHARE_NODE))
def test_an_odd_share_node_leaves_what_was_known_in_force(body: Any) -> None:
    async def follow() -> None:
        state = PluginState("n1")
        watch = ShareNodeWatch(state, client=None)  # type: ignore[arg-type]  # nothing is asked
        watch._store(objects.SHARE_NODE)
        known = state.share_node
        assert known
        watch._store(body)
        if state.share_node_problem:
            assert state.share_node
            assert (state.share_node.spec, state.share_node.status) == (known.spec, known.status)

    asyncio.run(follow())
    try:
        share_node = GPUShareNode.from_json(body)
    except (ValidationError, *UNREADABLE_JSON):
        return
    cordon = read_cordon(share_node, Reading(cards=(card(0), card(1))))
    assert all(len(word) <= 60 for word in cordon.unknown)


@fuzzes(read_simulation, simulated_reading, read_load)
@given(annotations.simulations, annotations.simulations, annotations.loads)
def test_a_simulation_happens_or_is_a_problem(text: str, before: str, load: str) -> None:
    reading = simulated_reading((card(0), card(1)), text, before)
    assert reading.cards or reading.problem or "vanish" in text
    try:
        read_load(load)
    except ValueError as error:
        assert str(error)


@fuzzes(read_inventory, few=30)
@given(damaged_yaml(st.just(INVENTORY)), st.binary(max_size=2))
@example("cards: !!int ''", b"")
@example("cards: !!bool perhaps", b"")
@example("cards: !!timestamp never", b"")
@example("cards:\n- {uuid: a, memory: " + "9" * 5000 + "}", b"")
def test_an_inventory_is_read_or_refused_with_a_reason(text: str, end: bytes) -> None:
    try:
        inventory = read_inventory(text.encode("utf-8", "surrogatepass") + end)
    except InventoryError as error:
        assert str(error)
        assert len(str(error)) < 2000
    else:
        assert inventory.cards


@pytest.mark.parametrize("text", [*BOMBS.values(), *(f"cards: {tag}" for tag in TAGS)])
def test_an_inventory_that_grows_is_refused_at_once(text: str) -> None:
    with pytest.raises(InventoryError):
        read_inventory(text.encode("utf-8", "surrogatepass"))


@fuzzes(_reason)
@given(st.binary(max_size=600), st.integers(-64, 255))
def test_what_a_health_command_says_becomes_one_short_line(output: bytes, status: int) -> None:
    said = _reason(output, status)
    assert len(said) < 400
    assert said.isprintable()


_CGROUPS = st.sampled_from(
    [
        "0::/kubepods.slice/kubepods-pod"
        + "a" * 8
        + ("_" + "b" * 4) * 3
        + "_"
        + "c" * 12
        + ".slice/cri-containerd-"
        + "d" * 64
        + ".scope\n",
        "4:memory:/kubepods/pod" + "a" * 32 + "/" + "d" * 64 + "\n",
        "0::/" + "pod" * 3000 + "\n",
        "0::/" + "-" * 20_000 + "\n",
        ":::::\n",
    ]
)


@fuzzes(cgroup_owners)
@given(st.lists(_CGROUPS | st.text(max_size=30), max_size=4).map("".join))
def test_a_process_belongs_to_pods_or_to_nobody(text: str) -> None:
    assert all(owner.pod_uid for owner in cgroup_owners(text))


_AMOUNTS = st.sampled_from([0, 1, 2**30, 2**63, 2**64 - 1, -1])
facts = st.builds(
    CardFacts,
    index=st.integers(0, 3),
    uuid=st.sampled_from(["GPU-0", "GPU-1", "", "\N{SNOWMAN}", "x" * 500]),
    model=st.text(max_size=5),
    memory=_AMOUNTS,
    capability=st.tuples(st.integers(-1, 99), st.integers(-1, 99)),
    numa_node=st.integers(-1, 64),
    remapping_failures=st.none() | _AMOUNTS,
    recovery_action=st.none() | _AMOUNTS,
    error=st.sampled_from([0, 2, 3, 15, 16, 999, 12345]),
)


@fuzzes(reading_of)
@given(st.lists(facts, max_size=4), st.lists(st.sampled_from([card(0), card(1)]), max_size=2, unique=True))
def test_absurd_answers_of_a_driver_make_a_reading(told: list[CardFacts], known: list[Any]) -> None:
    reading = reading_of(told, frozenset(), known)
    assert len({card.uuid for card in reading.cards}) == len(reading.cards)


@fuzzes(_facts)
@given(st.sampled_from(["uuid", "model"]), st.binary(min_size=1, max_size=20))
@example("uuid", b"\xff")
@example("model", b"\xff")
def test_a_driver_whose_words_are_no_utf8_makes_one_card_unusable(word: str, said: bytes) -> None:
    """``pynvml`` decodes what the library says."""

    def answer(_: Any) -> str:
        return said.decode()

    questions = ((word, answer if word == "uuid" else _optional(answer, "", "")),)
    with (
        patch.object(pynvml, "nvmlDeviceGetHandleByIndex", lambda _: object()),
        patch("gpushare_plugin.devices.nvml.library._QUESTIONS", questions),
    ):
        told = _facts(0)
    assert word == "model" or told.error or told.uuid


def test_the_folder_of_processes_is_read_as_bytes(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_bytes(b"0::/\xff\xfe\0\n")
    assert _cgroup(7, tmp_path).startswith("0::/")
    assert _cgroup(2**70, tmp_path) == ""
