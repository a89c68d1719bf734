"""Resources by wrong names, and amounts that mean something else."""

import pytest
from tests.samples.surroundings import asked, found, node, said
from tests.samples.why import CARD, MEMORY, SLICE, card_json, pod_json, share_node_json

from gpushare_cli.decide.why.causes.amounts import too_much, written_amounts
from gpushare_cli.decide.why.causes.names import unserved_names
from gpushare_core.text.json_object import Json


def test_a_name_of_another_dialect_is_translated() -> None:
    finding = found(unserved_names, asked(pod_json(main={"aliyun.com/gpu-mem": 4})))
    assert finding.sentence == (
        "Container main asks for aliyun.com/gpu-mem, and no node serves that: it is a name of the dialect"
        " aliyun.com, and the nodes that share cards speak gpushare.io."
    )
    assert finding.advice[0] == "Instead of aliyun.com/gpu-mem write gpushare.io/memory: 4."
    assert finding.is_decisive


@pytest.mark.parametrize(
    "name", ["gpushare.io/mem", "gpushare/memory", "gpushare.io/memroy", "gpushare.com/memory"]
)
def test_a_name_that_is_misspelt_is_corrected(name: str) -> None:
    finding = found(unserved_names, asked(pod_json(main={name: 4})))
    assert f"asks for {name}, and there is no such resource" in finding.sentence
    assert finding.advice == ["Do you mean gpushare.io/memory? Write gpushare.io/memory: 4 in its limits."]


def test_whole_cards_of_nvidias_plugin_are_asked_for_by_units() -> None:
    finding = found(unserved_names, asked(pod_json(main={"nvidia.com/gpu": 1})))
    assert finding.sentence == (
        "Container main asks for nvidia.com/gpu, and no node offers that: nodes that share their cards serve"
        " gpushare.io/memory."
    )
    (advice,) = finding.advice
    assert advice == (
        "Instead of nvidia.com/gpu write gpushare.io/memory: N, with N for how many units of 1Gi it needs, 16"
        " at most."
    )


def test_whole_cards_are_named_where_nodes_share_whole_cards() -> None:
    exclusive = share_node_json("gpu-1", card_json(0, 1), mode="Exclusive")
    finding = found(unserved_names, asked(pod_json(main={"nvidia.com/gpu": 2}), share_nodes=[exclusive]))
    assert finding.advice == ["Instead of nvidia.com/gpu write gpushare.io/card: 1."]


def test_nothing_is_said_of_what_another_plugin_offers() -> None:
    others = node("cpu-1", offered={"nvidia.com/gpu": "8"})
    assert said(unserved_names, asked(pod_json(main={"nvidia.com/gpu": 1}), nodes=[node(), others])) == []


def test_nothing_is_said_of_resources_that_are_nothing_like_ours() -> None:
    assert said(unserved_names, asked(pod_json(main={"rdma/hca": 1}))) == []


def test_a_resource_of_another_mode_names_the_modes() -> None:
    finding = found(unserved_names, asked(pod_json(main={SLICE: 1})))
    assert finding.sentence == (
        "Container main asks for gpushare.io/slice, and no node serves that: it needs mode Slices or"
        " Mixed, and 1"
        " node is in mode Memory."
    )
    assert "kubectl edit gpusharepolicy default" in finding.advice


def test_bytes_for_units_are_read_as_kubernetes_reads_them() -> None:
    finding = found(written_amounts, asked(pod_json(main={MEMORY: "4Gi"})))
    assert finding.sentence == (
        "Container main asks for 4Gi of gpushare.io/memory. An amount is a number of units: 4Gi means"
        " 4294967296 of"
        " them."
    )
    assert finding.advice == ["Write gpushare.io/memory: 4. A unit is 1Gi."]
    assert finding.is_decisive


def test_bytes_for_cards_have_no_amount_to_write() -> None:
    exclusive = share_node_json("gpu-1", card_json(0, 1), mode="Exclusive")
    finding = found(written_amounts, asked(pod_json(main={CARD: "4Gi"}), share_nodes=[exclusive]))
    assert finding.advice == ["Write how many units it needs, such as gpushare.io/card: 1."]


def test_nothing_is_said_of_an_amount_as_it_is_to_be() -> None:
    assert said(written_amounts, asked()) == []


def test_none_of_a_resource_is_no_card() -> None:
    finding = found(written_amounts, asked(pod_json(main={MEMORY: 0})))
    assert finding.sentence == "Container main asks for 0 of gpushare.io/memory: it gets no card."
    assert not finding.is_decisive


def test_half_a_unit_is_none() -> None:
    finding = found(written_amounts, asked(pod_json(main={MEMORY: "0.5"})))
    assert (
        finding.sentence
        == "Container main asks for 0.5 of gpushare.io/memory, which is counted in whole units."
    )


def with_requests(requests: Json, limits: Json) -> Json:
    pod = pod_json(main=limits)
    pod["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": limits}
    return pod


def test_requests_alone_are_refused() -> None:
    finding = found(written_amounts, asked(with_requests({MEMORY: "4"}, {})))
    assert "has gpushare.io/memory in its requests and not in its limits" in finding.sentence
    assert finding.advice[0].startswith("Write gpushare.io/memory: 4 in resources.limits")


def test_requests_that_differ_from_limits_are_refused() -> None:
    finding = found(written_amounts, asked(with_requests({MEMORY: "2"}, {MEMORY: "4"})))
    assert "has 2 of gpushare.io/memory in its requests and 4 in its limits" in finding.sentence


def test_mebibytes_for_units_are_noticed() -> None:
    finding = found(too_much, asked(pod_json(main={MEMORY: 4096})))
    assert finding.sentence == "4,096 units of 1Gi are 4Ti: an amount is a number of units, not of MiB."
    assert finding.advice == ["If you mean 4,096 MiB, write gpushare.io/memory: 4."]


@pytest.mark.parametrize("units", [16, 20, 20_000])
def test_other_amounts_are_not_taken_for_mebibytes(units: int) -> None:
    assert said(too_much, asked(pod_json(main={MEMORY: units}))) == []


def test_an_init_container_that_asks_for_most_is_named() -> None:
    finding = found(too_much, asked(pod_json(main={MEMORY: 4}, init={"load": {MEMORY: 20}})))
    assert finding.sentence == (
        "The pod asks for 20 of gpushare.io/memory because init container load asks for more than the others"
        " together, before"
        " they start."
    )


def test_a_sidecar_that_adds_up_is_named() -> None:
    pod = pod_json(main={MEMORY: 10}, init={"proxy": {MEMORY: 10}})
    pod["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    finding = found(too_much, asked(pod))
    assert "init container proxy (restartPolicy: Always) keeps running" in finding.sentence
