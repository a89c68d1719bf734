"""``kubectl gpushare cordon`` and ``uncordon`` against an API server whose plugins follow."""

import pytest
from tests.component.cli.commands import printed, run_command
from tests.fakes.api_server import PODS, SHARE_NODES, passing, status
from tests.fakes.card_api import CardApi, card_api
from tests.samples.dialects import asking, left_by
from tests.samples.drained_cards import cards_of, running

from gpushare_cli.changes.card_cordon import CardCordoning
from gpushare_cli.decide.drain.cordon_report import CordonReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.output.progress import Silence
from gpushare_cli.report import ExitStatus
from gpushare_core.api.names import CORDON_ANNOTATION, CORDON_REASON_ANNOTATION
from gpushare_core.kube.client import KubeClient

NODE = cards_of("gpu-1", {"a": 4, "b": 2}, {}, {"c": 16})
PATH = f"{SHARE_NODES}/gpu-1"


async def run(api: CardApi, *arguments: str) -> CordonReport:
    async with KubeClient(api.credentials()) as client:
        report = await run_command(client, *arguments)
    assert isinstance(report, CordonReport)
    return report


async def test_a_card_is_cordoned_by_its_uuid() -> None:
    async with card_api(NODE) as api:
        report = await run(api, "cordon", "gpu-1", "0", "--reason", "fan is loud,\nticket 7")
        assert api.annotations("gpu-1") == {
            CORDON_ANNOTATION: "gpu-1-0",
            CORDON_REASON_ANNOTATION: "gpu-1-0: fan is loud, ticket 7",
        }
    assert report.exit_status is ExitStatus.GOOD
    text = printed(report, "cordon", "gpu-1", "0")
    assert text.startswith("Card 0 of gpu-1 (gpu-1-0) is cordoned: no new pod gets it.\n  Reason: fan is")
    assert "2 pods have units there:" in text
    assert "default/a" in text
    assert "  kubectl gpushare drain-card gpu-1 0\n" in text


@pytest.mark.parametrize("phase", ["Pending", "Running"])
async def test_a_pod_is_shown_before_its_plugin_reports_it(phase: str) -> None:
    early = {**running("early", "gpu-1", c1=3), "status": {"phase": phase}}
    async with card_api(NODE, early) as api:
        report = await run(api, "cordon", "gpu-1", "1", "--dry-run")
    ((tenant,),) = (card.pods for card in report.cards)
    assert (tenant.name, tenant.units, tenant.orphaned) == ("early", 3, False)
    assert "1 pod has units there:" in printed(report, "cordon", "gpu-1", "1")


async def test_a_pod_of_a_replaced_system_is_shown_by_its_own_annotations() -> None:
    node = cards_of("gpu-1", {}, dialect="aliyun.com")
    node["status"]["dialect"] = "aliyun.com"
    old = asking({"aliyun.com": 4}, "old", node="gpu-1", annotations=left_by("aliyun.com"))
    async with card_api(node, old) as api:
        report = await run(api, "cordon", "gpu-1", "0")
    assert [(pod.name, pod.units) for card in report.cards for pod in card.pods] == [("old", 4)]


async def test_a_pod_on_two_cards_is_one_pod() -> None:
    async with card_api(cards_of("gpu-1", {"a": 4}, {"a": 2})) as api:
        report = await run(api, "cordon", "gpu-1", "0", "1")
    assert "1 pod has units there:" in printed(report, "cordon", "gpu-1", "0", "1")


async def test_who_may_not_list_pods_cordons_and_hears_what_is_not_known() -> None:
    async with card_api(NODE) as api:
        api.fail("GET", PODS, status(403, "you may not"))
        report = await run(api, "cordon", "gpu-1", "1")
    assert report.exit_status is ExitStatus.GOOD
    text = " ".join(printed(report, "cordon", "gpu-1", "1").split())
    assert "Pods that the plugin does not report yet are not known: the API server does not list" in text
    assert "No pod has units there" not in text


async def test_what_is_cordoned_stays_so() -> None:
    async with card_api(NODE) as api:
        await run(api, "cordon", "gpu-1", "gpu-1-2", "--reason", "old")
        await run(api, "cordon", "gpu-1", "0", "1")
        assert api.annotations("gpu-1")[CORDON_ANNOTATION] == "gpu-1-2,gpu-1-0,gpu-1-1"
        report = await run(api, "uncordon", "gpu-1", "0", "1")
        assert api.annotations("gpu-1") == {
            CORDON_ANNOTATION: "gpu-1-2",
            CORDON_REASON_ANNOTATION: "gpu-1-2: old",
        }
        await run(api, "uncordon", "gpu-1", "2")
        assert api.annotations("gpu-1") == {}
    assert report.is_confirmed


async def test_the_same_twice_writes_once() -> None:
    async with card_api(NODE) as api:
        await run(api, "cordon", "gpu-1", "0")
        again = await run(api, "cordon", "gpu-1", "0")
        assert len(api.stored) == 1
    assert not again.is_changed
    assert "is cordoned already" in printed(again, "cordon", "gpu-1", "0")


async def test_an_index_that_people_wrote_is_taken_back() -> None:
    node = {**NODE, "metadata": {"name": "gpu-1", "annotations": {CORDON_ANNOTATION: "0, 2"}}}
    async with card_api(node) as api:
        await run(api, "uncordon", "gpu-1", "gpu-1-0")
        assert api.annotations("gpu-1") == {CORDON_ANNOTATION: "2"}


async def test_a_name_that_is_no_nodes_leads_to_no_other_object() -> None:
    async with card_api(NODE) as api:
        with pytest.raises(CannotLookError, match="shares no cards"):
            await run(api, "cordon", "gpu-1?x", "0")
        assert api.annotations("gpu-1") == {}


async def test_a_sick_card_stays_closed() -> None:
    sick = cards_of("gpu-1", {})
    sick["status"]["cards"][0] |= {"health": "Unhealthy", "healthReason": "Xid 79"}
    async with card_api(sick) as api:
        report = await run(api, "uncordon", "gpu-1", "0")
    assert "None comes while it is Unhealthy: Xid 79" in printed(report, "uncordon", "gpu-1", "0")


async def test_a_dry_run_changes_nothing() -> None:
    async with card_api(NODE) as api:
        report = await run(api, "cordon", "gpu-1", "0", "--dry-run")
        assert api.stored == []
    assert "would be cordoned: no new pod gets it. Nothing was changed." in printed(
        report, "cordon", "gpu-1", "0"
    )


async def test_somebody_else_who_writes_meanwhile_is_not_overwritten() -> None:
    async with card_api(NODE) as api:
        api.fail("PATCH", PATH, status(409, "modified"), status(409, "modified"))
        await run(api, "cordon", "gpu-1", "1")
        assert api.annotations("gpu-1") == {CORDON_ANNOTATION: "gpu-1-1"}
        assert len(api.requests("PATCH", PATH)) == 3
        api.fail("PATCH", PATH, *[status(409, "modified")] * 10)
        with pytest.raises(CannotLookError, match="changed each time"):
            await run(api, "cordon", "gpu-1", "0")


async def test_it_is_written_although_the_plugin_cannot_be_seen_for_a_moment() -> None:
    async with card_api(NODE) as api:
        api.fail("GET", PATH, passing, status(500))
        report = await run(api, "cordon", "gpu-1", "0")
    assert report.exit_status is ExitStatus.GOOD


async def test_a_card_that_is_cordoned_by_its_index_is_by_its_uuid_then() -> None:
    node = {**NODE, "metadata": {"name": "gpu-1", "annotations": {CORDON_ANNOTATION: "0, 2"}}}
    async with card_api(node) as api:
        await run(api, "cordon", "gpu-1", "0")
        assert api.annotations("gpu-1") == {CORDON_ANNOTATION: "2,gpu-1-0"}


async def test_what_is_not_there_is_refused_with_what_is() -> None:
    async with card_api(NODE) as api:
        with pytest.raises(CannotLookError, match=r"no card 7; its cards are 0 \(gpu-1-0\), 1 \(gpu-1-1\)"):
            await run(api, "cordon", "gpu-1", "0", "7")
        with pytest.raises(CannotLookError, match="node gpu-9 shares no cards; these do: gpu-1"):
            await run(api, "cordon", "gpu-9", "0")
        api.fail("PATCH", PATH, status(403, "you may not"))
        with pytest.raises(CannotLookError, match="kubectl auth can-i patch"):
            await run(api, "cordon", "gpu-1", "0")
        assert api.stored == []


async def test_a_plugin_that_does_not_follow_is_said() -> None:
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async with card_api(NODE) as api:
        api.has_plugins = False
        async with KubeClient(api.credentials()) as client:
            cordoning = CardCordoning(
                client=client,
                progress=Silence(),
                node="gpu-1",
                timeout=30.0,
                sleep=sleep,
                clock=lambda: now,
            )
            report = await cordoning.run(["0"], is_cordon=True)
    assert report.exit_status is ExitStatus.NO
    text = printed(report, "cordon", "gpu-1", "0")
    assert "The plugin on gpu-1 has not taken that over within 30 seconds." in text
    assert "--field-selector spec.nodeName=gpu-1" in text
