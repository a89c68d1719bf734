"""What ``why`` says of isolation: what holds a pod, which nodes cannot have it, who was evicted before."""

from typing import Any

import pytest
from tests.samples.drawn_pages import drawn, page_of_width
from tests.samples.why import MEMORY, SLICE, card_json, event, full_node, pod_json, share_node_json, situation

from gpushare_cli.decide.objects.pod_event import EVICTED_FOR_MEMORY, EventSubject, ObservedEvent
from gpushare_cli.decide.why.explain import explain
from gpushare_cli.decide.why.explanation import PodExplanation, WhyState
from gpushare_cli.views.why import why_view
from gpushare_core.text.json_object import Json

HOOK: Json = {"memory": "Hook"}
EVICTING: Json = {**HOOK, "onExcess": "Evict", "graceSeconds": 120}
NO_LIBRARY = "The hook's library is not in the image of the plugin. Install the image of a release."
TRIED = pod_json(main={MEMORY: 4})
UNABLE: Json = {"type": "IsolationReady", "status": "False", "reason": "HookMissing", "message": NO_LIBRARY}


def runs(pod: Json) -> Json:
    status = {"phase": "Running", "startTime": "2026-11-21T10:01:00Z"}
    return {**pod, "spec": {**pod["spec"], "nodeName": "gpu-1"}, "status": status}


def share(units: int, *, container: str = "main", **isolation: str) -> Json:
    return {
        "namespace": "ml",
        "name": "train",
        "uid": "uid-train",
        "container": container,
        "units": units,
        "usedMemory": "1Gi",
        **isolation,
    }


def node_of(*cards: Json, given: str = "Hook", conditions: tuple[Json, ...] = (), **spec: Any) -> Json:
    node = share_node_json("gpu-1", *cards, **{"isolation": HOOK, **spec})
    status = {**node["status"], "isolation": given}
    return {**node, "status": {**status, "conditions": [*status["conditions"], *conditions]}}


def card_of(*shares: Json, index: int = 0, units: int = 16, **more: Any) -> Json:
    held = sum(given["units"] for given in shares)
    return {**card_json(index, units), "allocatedUnits": held, "pods": [*shares], **more}


def explained(node: Json, *, resource: str = MEMORY, **facts: Any) -> PodExplanation:
    pod = runs(pod_json(main={resource: 4}))
    return explain(situation(pod, [node], bound=[pod], **facts))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Hook", "Container main: the hook refuses what it asks of CUDA beyond 4Gi of card 0."),
        ("Driver", "Container main: the driver refuses what it allocates beyond 4Gi of card 0."),
    ],
)
def test_what_holds_a_container(kind: str, said: str) -> None:
    report = explained(node_of(card_of(share(4, isolation=kind)), given=kind, isolation={"memory": kind}))
    assert report.isolation == [said]
    page = page_of_width(100)
    assert f"What holds it to its share\n  {said}" in drawn(why_view(report, page), page)


def test_the_driver_has_one_limit_for_all_cards_of_a_container() -> None:
    cards = [card_of(share(1, isolation="Driver"), index=index, units=2, memory="16Gi") for index in (0, 1)]
    node = node_of(*cards, given="Driver", isolation={"memory": "Driver"}, mode="Slices")
    assert explained(node, resource=SLICE).isolation == [
        "Container main: the driver refuses what it allocates beyond 8Gi of card 0 and 8Gi of card 1."
    ]


def test_a_container_from_before() -> None:
    assert explained(node_of(card_of(share(4)))).isolation == [
        "Container main: nothing. Policy default asks for isolation Hook: a new pod has it."
    ]


def test_where_a_new_pod_would_not_have_it_either() -> None:
    node = node_of(card_of(share(4)), given="Unavailable", conditions=(UNABLE,))
    assert explained(node).isolation == ["Container main: nothing. Policy default asks for isolation Hook."]


def test_where_no_isolation_is_asked_for() -> None:
    node = node_of(card_of(share(4)), given="None", isolation={})
    assert explained(node).isolation == ["Nothing: policy default asks for no isolation."]


def test_of_an_older_plugin_nothing_is_said() -> None:
    assert explained(share_node_json("gpu-1", card_of(share(4)))).isolation == []


def test_a_whole_card_has_no_limit() -> None:
    node = node_of(card_of(share(1), units=1, memory="16Gi"), mode="Exclusive")
    assert explained(node, resource="gpushare.io/card").isolation == []


def test_what_is_not_in_force_is_said() -> None:
    differs = {
        "type": "IsolationInForce",
        "status": "False",
        "reason": "LimitDiffers",
        "message": "ml/train has 8Gi instead of 4Gi.",
    }
    report = explained(node_of(card_of(share(4, isolation="Driver")), conditions=(differs,)))
    assert report.isolation[-1] == (
        "On gpu-1 IsolationInForce is False (LimitDiffers): ml/train has 8Gi instead of 4Gi."
    )


@pytest.mark.parametrize(("pod", "is_said"), [("ml/train", True), ("ml/train-2", False)])
def test_of_isolation_in_force_what_is_said_of_the_pod_is_worth_knowing(pod: str, is_said: bool) -> None:  # noqa: FBT001
    too_small = {
        "type": "IsolationInForce",
        "status": "True",
        "reason": "ShareTooSmall",
        "message": f"container main of pod {pod} on card GPU-0, given Hook: its share is used up",
    }
    report = explained(node_of(card_of(share(4, isolation="Hook")), conditions=(too_small,)))
    assert report.isolation[1:] == is_said * [
        f"On gpu-1 IsolationInForce is True (ShareTooSmall): {too_small['message']}"
    ]


@pytest.mark.parametrize(
    ("since", "said"),
    [
        (
            "2026-11-21T10:04:00Z",
            "for 60s. Its pod is evicted in 60s, by isolation.onExcess of policy default.",
        ),
        ("2026-11-21T10:00:00Z", "for 5m. Its pod is evicted now, by isolation.onExcess of policy default."),
    ],
)
def test_when_it_is_evicted(since: str, said: str) -> None:
    node = node_of(card_of(share(4, isolation="Hook", exceededSince=since)), isolation=EVICTING)
    assert explained(node).isolation[-1] == f"Container main has used more memory than it asked for, {said}"


def test_an_excess_that_is_only_reported() -> None:
    node = node_of(card_of(share(4, exceededSince="2026-11-21T10:04:00Z")))
    assert explained(node).isolation[-1] == "Container main has used more memory than it asked for, for 60s."


def unable(name: str = "gpu-1") -> Json:
    node = share_node_json(name, card_json(0, node=name), isolation=HOOK)
    status = {**node["status"], "isolation": "Unavailable"}
    return {**node, "status": {**status, "conditions": [*status["conditions"], UNABLE]}}


def test_nodes_that_cannot_have_it_keep_a_pod_waiting() -> None:
    report = explain(situation(TRIED, [unable(), unable("gpu-2")], events=[event()]))
    assert report.state is WhyState.WAITING
    assert report.answer == (
        "Pod ml/train waits for 5m: gpu-1, gpu-2 cannot have the isolation Hook that policy default asks for,"
        " and take no new pods."
    )
    assert report.findings[0].advice == [f"gpu-1: {NO_LIBRARY}", "kubectl describe gpusharenode gpu-1"]


def test_beside_full_nodes_it_is_one_reason_of_several() -> None:
    report = explain(situation(TRIED, [unable(), full_node("gpu-2")], events=[event()]))
    codes = {finding.code for finding in report.findings if finding.is_decisive}
    assert codes >= {"IsolationUnavailable", "CardsFull"}
    (more,) = [remedy for remedy in report.remedies if remedy.code == "AnotherNode"]
    assert more.sentence.startswith("One more node like gpu-2")


def test_where_another_node_has_room_it_is_only_noted() -> None:
    free = share_node_json("gpu-2", card_json(0, node="gpu-2"))
    report = explain(situation(TRIED, [unable(), free], events=[event()]))
    assert report.state is WhyState.FITS
    assert {finding.code: finding.is_decisive for finding in report.findings}["IsolationUnavailable"] is False


def evicted(name: str) -> ObservedEvent:
    return event(
        EVICTED_FOR_MEMORY,
        "container main has 9Gi and asked for 4Gi",
        regarding=EventSubject(name=name, namespace="ml"),
    )


def made(name: str, beginning: str = "") -> Json:
    pod = pod_json(name, main={MEMORY: 4})
    return {**pod, "metadata": {**pod["metadata"], "generateName": beginning}}


@pytest.mark.parametrize(
    ("pod", "before"),
    [(made("web-7f9c-abcde", "web-7f9c-"), "web-7f9c-xyz12"), (made("db-0"), "db-0")],
    ids=["Deployment", "StatefulSet"],
)
def test_the_pod_before_it_was_evicted(pod: Json, before: str) -> None:
    facts: dict[str, Any] = {"evictions": [evicted(before), evicted("web-7f9c-other-ab"), evicted("x")]}
    said = (
        f"Pod ml/{before}, which came before it, was evicted 4m59s ago: container main has 9Gi and asked for"
    )
    waiting = explain(situation(pod, [full_node()], **facts))
    (finding,) = [finding for finding in waiting.findings if finding.code == "EvictedBefore"]
    assert finding.sentence.startswith(said)
    assert not finding.is_decisive
    running = explain(situation(runs(pod), [node_of(card_json(0))], **facts))
    assert [sentence for sentence in running.isolation if sentence.startswith(said)]
