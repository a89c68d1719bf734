"""One extender for all dialects: as pods, kube-scheduler and the tools of the replaced systems meet it."""

import json
from collections.abc import AsyncIterator
from typing import ClassVar

import pytest
from tests.fakes.api_server import PODS, SHARE_NODES, FakeApi, fake_api
from tests.fakes.following_extender import extender_of
from tests.fakes.replaced_tools import (
    CardUse,
    kubectl_inspect_gpushare,
    read_aliyun_inspect,
    read_annotations,
    read_gcu_inspect,
)
from tests.samples.dialects import MEMORY_RESOURCE, asking, dialect_node, left_by, mixed_node

from gpushare_core.text.json_object import Json


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        yield fake


class TestBind:
    @pytest.mark.parametrize(
        ("dialect", "expected"),
        [
            pytest.param("gpushare.io", {}, id="gpushare.io"),
            pytest.param(
                "aliyun.com",
                {
                    "ALIYUN_COM_GPU_MEM_IDX": 0,
                    "ALIYUN_COM_GPU_MEM_POD": 4,
                    "ALIYUN_COM_GPU_MEM_DEV": 16,
                    "ALIYUN_COM_GPU_MEM_ASSIGNED": False,
                },
                id="aliyun.com",
            ),
            pytest.param("volcano.sh", {"volcano.sh/gpu-index": [0]}, id="volcano.sh"),
            pytest.param(
                "enflame.com",
                {
                    "enflame.com/gcu-device-id": 0,
                    "enflame.com/gcu-device-memory": 16,
                    "enflame.com/gcu-device-memory-request": 4,
                    "enflame.com/gcu-device-assigned": False,
                },
                id="enflame.com",
            ),
            pytest.param("tuya.com", {}, id="tuya.com"),
        ],
    )
    async def test_a_pod_gets_our_annotation_and_those_of_its_nodes_dialect(
        self, api: FakeApi, dialect: str, expected: Json
    ) -> None:
        pod = asking({dialect: 4})
        async with extender_of(api, dialect_node("n1", dialect)) as extender:
            assert await extender.filter(pod, "n1", "n2") == ["n1"]
            assert await extender.bind(pod) == ""
            assert extender.used() == [4, 0]
        annotations = api.pod("a")["metadata"]["annotations"]
        assert json.loads(annotations.pop("gpushare.io/allocation"))["cards"] == {"n1-0": 4}
        read = read_annotations(dialect, annotations)
        assert read.keys() == annotations.keys(), "and no others"
        times = {key: value for key, value in read.items() if key.lower().endswith("time")}
        assert all(len(str(value)) == 19 for value in times.values()), "UnixNano"
        assert {key: value for key, value in read.items() if key not in times} == expected

    async def test_both_land_with_the_node_in_one_write(self, api: FakeApi) -> None:
        async with extender_of(api, dialect_node()) as extender:
            assert await extender.bind(asking({"aliyun.com": 4})) == ""
        shown = [pod for pod in api.history(PODS) if pod["spec"].get("nodeName")]
        assert len(shown) == 1
        assert {"gpushare.io/allocation", "ALIYUN_COM_GPU_MEM_IDX"} <= shown[0]["metadata"][
            "annotations"
        ].keys()

    async def test_what_a_user_wrote_under_these_keys_is_overwritten(self, api: FakeApi) -> None:
        forged = left_by("aliyun.com", card=1, units=900)
        async with extender_of(api, dialect_node()) as extender:
            assert await extender.bind(asking({"aliyun.com": 4}, "a", annotations=forged)) == ""
            assert extender.used() == [4, 0]
        read = read_annotations("aliyun.com", api.pod("a")["metadata"]["annotations"])
        assert (read["ALIYUN_COM_GPU_MEM_IDX"], read["ALIYUN_COM_GPU_MEM_POD"]) == (0, 4)

    async def test_whole_cards_of_volcano(self, api: FakeApi) -> None:
        node = dialect_node("n1", "volcano.sh", 1, 1, 1, mode="Exclusive", unit="1 card")
        async with extender_of(api, node) as extender:
            assert await extender.bind(asking({"volcano.sh/gpu-number": 2})) == ""
        read = read_annotations("volcano.sh", api.pod("a")["metadata"]["annotations"])
        assert read["volcano.sh/gpu-index"] == [0, 1]

    async def test_a_class_that_the_system_lacks_goes_by_our_name_and_without_its_annotations(
        self, api: FakeApi
    ) -> None:
        node = dialect_node("n1", "aliyun.com", 2, 2, mode="Slices", unit="1/2 card")
        async with extender_of(api, node) as extender:
            assert await extender.bind(asking({"gpushare.io/slice": 2})) == ""
        assert [*api.pod("a")["metadata"]["annotations"]] == ["gpushare.io/allocation"]


GCU_UNITS = [
    pytest.param("1G", 1, id="1 GB"),
    pytest.param("100M", 10, id="0.1 GB"),
    pytest.param("10M", 100, id="0.01 GB"),
]


class TestPublishedScenarios:
    @pytest.mark.parametrize(("unit", "factor"), GCU_UNITS)
    async def test_gcushare_4_8_12_20(self, api: FakeApi, unit: str, factor: int) -> None:
        node = dialect_node("n1", "enflame.com", *[16 * factor] * 8, unit=unit)
        async with extender_of(api, node) as extender:
            for name, size in (("p4", 4), ("p8", 8), ("p12", 12)):
                pod = asking({"enflame.com": size * factor}, name)
                assert await extender.filter(pod, "n1") == ["n1"]
                assert await extender.bind(pod) == ""
            refusal = await extender.refusal(asking({"enflame.com": 20 * factor}, "p20"), "n1")
            assert f"asked {20 * factor}, largest free {16 * factor}" in refusal
            inspected = read_gcu_inspect(await extender.text("/gcushare-scheduler/inspect"))
        assert inspected["n1"][0] == CardUse(16 * factor, 12 * factor, {"p4": 4 * factor, "p8": 8 * factor})
        assert inspected["n1"][1] == CardUse(16 * factor, 12 * factor, {"p12": 12 * factor})
        assert all(inspected["n1"][index] == CardUse(16 * factor, 0, {}) for index in range(2, 8))

    async def test_volcano_1024_and_1024_on_one_card_and_8000_on_the_second_node(self, api: FakeApi) -> None:
        nodes = [dialect_node(name, "volcano.sh", 8128, unit="1Mi") for name in ("n1", "n2")]
        async with extender_of(api, *nodes) as extender:
            for name in ("a", "b"):
                assert await extender.bind(asking({"volcano.sh": 1024}, name)) == ""
            assert extender.used("n1") == [2048]
            large = asking({"volcano.sh": 8000}, "c")
            assert await extender.filter(large, "n1", "n2") == ["n2"]
            assert await extender.bind(large, "n2") == ""
        indexes = [api.pod(name)["metadata"]["annotations"]["volcano.sh/gpu-index"] for name in "abc"]
        assert indexes == ["0", "0", "0"]

    async def test_aliyun_takes_the_tightest_card_as_its_kubectl_plugin_shows(self, api: FakeApi) -> None:
        async with extender_of(api, dialect_node("n1", "aliyun.com", 15, 15)) as extender:
            for name, units in (("a", 9), ("b", 8), ("c", 2), ("d", 6)):
                assert await extender.bind(asking({"aliyun.com": units}, name)) == ""
            await extender.until("all pods", lambda: extender.used() == [11, 14])
        node = {
            "metadata": {"name": "n1"},
            "status": {"capacity": {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}},
        }
        pods = [api.pod(name) for name in "abcd"]
        assert kubectl_inspect_gpushare([node], pods) == {"n1": {0: 11, 1: 14}}


class TestTwoDialectsAtOnce:
    NODES = (
        dialect_node("ali", "aliyun.com"),
        dialect_node("gcu", "enflame.com"),
        dialect_node("vol", "volcano.sh"),
        dialect_node("tuya", "tuya.com"),
        dialect_node("own", "gpushare.io"),
    )
    NAMES = ("ali", "gcu", "vol", "tuya", "own")

    @pytest.mark.parametrize(
        ("dialect", "node"),
        [
            ("aliyun.com", "ali"),
            ("enflame.com", "gcu"),
            ("volcano.sh", "vol"),
            ("tuya.com", "tuya"),
            ("gpushare.io", "own"),
        ],
    )
    async def test_a_pod_fits_the_nodes_of_its_dialect_only(
        self, api: FakeApi, dialect: str, node: str
    ) -> None:
        pod = asking({dialect: 4})
        async with extender_of(api, *self.NODES) as extender:
            assert await extender.filter(pod, *self.NAMES) == [node]
            other = next(name for name in self.NAMES if name != node)
            told = f"the pod asks for {MEMORY_RESOURCE[dialect]}"
            assert told in await extender.refusal(pod, other)
            assert told in await extender.bind(pod, other)
            assert await extender.bind(pod, node) == ""

    async def test_each_tool_sees_the_nodes_of_its_dialect_only(self, api: FakeApi) -> None:
        async with extender_of(api, *self.NODES) as extender:
            await extender.bind(asking({"aliyun.com": 4}, "a"), "ali")
            await extender.bind(asking({"enflame.com": 5}, "g"), "gcu")
            aliyun = read_aliyun_inspect(await extender.text("/gpushare-scheduler/inspect"))
            gcu = read_gcu_inspect(await extender.text("/gcushare-scheduler/inspect"))
            ours = json.loads(await extender.text("/gpushare/inspect"))
        assert aliyun == {"ali": {0: CardUse(16, 4, {"a": 4}), 1: CardUse(16, 0, {})}}
        assert gcu == {"gcu": {0: CardUse(16, 5, {"g": 5}), 1: CardUse(16, 0, {})}}
        assert [node["name"] for node in ours["nodes"]] == sorted(self.NAMES)


class TestInspect:
    READERS: ClassVar = {
        "aliyun.com": ("/gpushare-scheduler/inspect", read_aliyun_inspect),
        "enflame.com": ("/gcushare-scheduler/inspect", read_gcu_inspect),
    }

    @pytest.mark.parametrize("dialect", READERS)
    async def test_one_node_by_its_name(self, api: FakeApi, dialect: str) -> None:
        path, read = self.READERS[dialect]
        nodes = [dialect_node(name, dialect) for name in ("n1", "n2")]
        async with extender_of(api, *nodes) as extender:
            assert [*read(await extender.text(path))] == ["n1", "n2"]
            assert [*read(await extender.text(f"{path}/n2"))] == ["n2"]

    @pytest.mark.parametrize("dialect", READERS)
    @pytest.mark.parametrize("node", ["nobody", "other", "n%2F1", "cards"])
    async def test_a_node_that_is_not_there_is_told_and_breaks_no_connection(
        self, api: FakeApi, dialect: str, node: str
    ) -> None:
        path, read = self.READERS[dialect]
        cards = dialect_node("cards", dialect, 1, mode="Exclusive", unit="1 card")
        async with extender_of(api, dialect_node("other", "gpushare.io"), cards) as extender:
            with pytest.raises(LookupError, match=f"does not share GPU cards by {dialect}"):
                read(await extender.text(f"{path}/{node}"))
            assert read(await extender.text(path)) == {}

    async def test_the_creation_of_a_pod_is_told_as_the_api_has_it(self, api: FakeApi) -> None:
        async with extender_of(api, dialect_node("n1", "enflame.com")) as extender:
            await extender.bind(asking({"enflame.com": 4}))
            await extender.until("the pod", lambda: "uid-a" not in extender.ledger.reservations)
            inspected = json.loads(await extender.text("/gcushare-scheduler/inspect/n1"))
        assert inspected["nodes"][0]["devices"][0]["pods"] == [
            {
                "name": "a",
                "namespace": "default",
                "uid": "uid-a",
                "createTime": "2026-11-21T09:59:00Z",
                "usedGCU": 4,
            }
        ]

    async def test_version(self, api: FakeApi) -> None:
        async with extender_of(api) as extender:
            assert await extender.text("/version") == "0.1.0"


class TestMixed:
    """Cards that serve one class at a time, under the names of each system."""

    async def test_tuyas_names_take_cards_as_published(self, api: FakeApi) -> None:
        """Halves of two cards, then memory, then a whole card: of four cards none is left."""
        async with extender_of(api, mixed_node("n1", "tuya.com", 86, 86, 86, 86)) as extender:
            for name, resource, amount in (
                ("halves", "tuya.com/sgpu", 2),
                ("memory", "tuya.com/vcuda-memory", 10),
                ("whole", "nvidia.com/gpu", 1),
            ):
                assert await extender.filter(asking({resource: amount}, name), "n1") == ["n1"]
                assert await extender.bind(asking({resource: amount}, name)) == ""
            assert await extender.filter(asking({"nvidia.com/gpu": 1}, "b"), "n1") == []
            assert await extender.filter(asking({"tuya.com/vcuda-memory": 76}, "m"), "n1") == ["n1"]
            assert await extender.filter(asking({"tuya.com/vcuda-memory": 77}, "m"), "n1") == []
            assert await extender.filter(asking({"tuya.com/sgpu": 2}, "s"), "n1") == ["n1"]
            assert await extender.filter(asking({"tuya.com/sgpu": 3}, "s"), "n1") == []

    async def test_a_card_that_serves_another_class_is_full_of_nobodys_pods(self, api: FakeApi) -> None:
        async with extender_of(api, mixed_node("n1", "aliyun.com", 16, 16)) as extender:
            assert await extender.bind(asking({"gpushare.io/card": 1}, "whole")) == ""
            assert await extender.bind(asking({"aliyun.com": 4}, "part")) == ""
            inspected = read_aliyun_inspect(await extender.text("/gpushare-scheduler/inspect"))
        assert inspected == {"n1": {0: CardUse(16, 16, {}), 1: CardUse(16, 4, {"part": 4})}}
        read = read_annotations("aliyun.com", api.pod("part")["metadata"]["annotations"])
        keys = ("ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD", "ALIYUN_COM_GPU_MEM_DEV")
        assert [read[key] for key in keys] == [1, 4, 16]

    async def test_a_pod_of_two_classes_is_annotated_for_its_memory(self, api: FakeApi) -> None:
        pod = asking({"aliyun.com": 4})
        limits = {"gpushare.io/slice": "1"}
        pod["spec"]["containers"].append({"name": "slice", "resources": {"limits": limits}})
        async with extender_of(api, mixed_node("n1", "aliyun.com", 16, 16)) as extender:
            assert await extender.bind(pod) == ""
        read = read_annotations("aliyun.com", api.pod("a")["metadata"]["annotations"])
        assert (read["ALIYUN_COM_GPU_MEM_POD"], read["ALIYUN_COM_GPU_MEM_DEV"]) == (4, 16)

    async def test_a_pod_of_the_replaced_system_locks_its_card(self, api: FakeApi) -> None:
        old = asking({"aliyun.com": 4}, "old", node="n1", annotations=left_by("aliyun.com", card=1))
        async with extender_of(api, mixed_node("n1", "aliyun.com", 16, 16), old) as extender:
            assert await extender.filter(asking({"gpushare.io/card": 1}), "n1") == ["n1"]
            assert await extender.filter(asking({"gpushare.io/card": 2}), "n1") == []
            assert await extender.filter(asking({"aliyun.com": 12}, "b"), "n1") == ["n1"]


class TestNamesThatOthersOfferAsWell:
    """``nvidia.com/gpu`` is Tuya's for whole cards, and NVIDIA's own."""

    BOTH = asking({"gpushare.io": 4, "nvidia.com/gpu": 1})

    async def test_without_a_node_of_that_dialect_it_is_not_ours(self, api: FakeApi) -> None:
        async with extender_of(api, dialect_node("n1", "gpushare.io")) as extender:
            assert await extender.filter(self.BOTH, "n1") == ["n1"]
            assert await extender.bind(self.BOTH) == ""

    async def test_with_one_it_is(self, api: FakeApi) -> None:
        cards = dialect_node("n2", "tuya.com", 1, 1, mode="Exclusive", unit="1 card")
        async with extender_of(api, dialect_node("n1", "gpushare.io"), cards) as extender:
            assert await extender.filter(asking({"nvidia.com/gpu": 1}), "n1", "n2") == ["n2"]
            assert "together" in await extender.refusal(self.BOTH, "n1")
            api.delete(SHARE_NODES, "n2")
            await extender.until("it is gone", lambda: extender.ledger.share_node("n2") is None)
            assert await extender.filter(self.BOTH, "n1") == ["n1"]

    @pytest.mark.parametrize(
        ("resource", "amount"),
        [
            pytest.param("nvidia.com/gpu", 1, id="another plugin's, and ours until lately"),
            pytest.param("tuya.com/vcuda-core", 1, id="limits nothing"),
            pytest.param("gpushare.io/memory", 0, id="nothing of ours: it is named all the same"),
        ],
    )
    async def test_what_schedulers_leave_to_us_and_is_not_ours_is_bound_without_a_share(
        self, api: FakeApi, resource: str, amount: int
    ) -> None:
        pod = asking({resource: amount})
        async with extender_of(api, dialect_node("n1", "tuya.com")) as extender:
            assert await extender.filter(pod, "n1", "n2") == ["n1", "n2"]
            assert await extender.bind(pod, "n2") == ""
            assert await extender.bind(pod, "n2") == "", "its answer was lost"
            assert extender.used() == [0, 0]
        assert api.pod("a")["spec"]["nodeName"] == "n2"
        assert not api.pod("a")["metadata"]["annotations"]
