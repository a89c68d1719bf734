"""``kubectl gpushare drain-card`` against an API server whose pods end at once."""

import asyncio
import copy
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from tests.component.cli.commands import printed, run_command
from tests.fakes.api_server import DISRUPTION_BUDGETS, PODS, SHARE_NODES, Answer, cut, passing, status
from tests.fakes.card_api import CardApi, card_api
from tests.samples.drained_cards import cards_of, running

from gpushare_cli.changes.card_cordon import CardCordoning
from gpushare_cli.changes.card_drain import CardDrain, DrainOptions
from gpushare_cli.decide.drain.drain_report import DrainAction, DrainOutcome, DrainReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.output.progress import Silence
from gpushare_cli.report import ExitStatus
from gpushare_core.api.names import CORDON_ANNOTATION
from gpushare_core.kube.client import KubeClient
from gpushare_core.text.json_object import Json

NODES = (cards_of("gpu-1", {"a": 4, "b": 2}, {}), cards_of("gpu-2", {"c": 12}))
PODS_ON_IT = (running("a", "gpu-1", c0=4), running("b", "gpu-1", c0=2))
EVICTION = "/api/v1/namespaces/default/pods/a/eviction"
BUDGET: Json = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
    "status": {"disruptionsAllowed": 0},
}


async def run(api: CardApi, *arguments: str) -> DrainReport:
    async with KubeClient(api.credentials()) as client:
        report = await run_command(client, "drain-card", *arguments)
    assert isinstance(report, DrainReport)
    return report


async def drained(
    api: CardApi,
    options: DrainOptions,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    *,
    meanwhile: Callable[[], object] = lambda: None,
) -> DrainReport:
    """Card 0 of gpu-1, by somebody who agrees; time passes where somebody sleeps. ``meanwhile``: what happens
    while that person thinks."""
    now = 0.0

    async def pass_time(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def agrees(plan: DrainReport) -> bool:
        assert api.stored == []
        assert plan.outcome is DrainOutcome.DRY_RUN
        meanwhile()
        return True

    async with KubeClient(api.credentials()) as client:
        cordoning = CardCordoning(
            client=client,
            progress=Silence(),
            node="gpu-1",
            timeout=30.0,
            sleep=pass_time,
            clock=lambda: now,
        )
        drain = CardDrain(
            client=client,
            progress=Silence(),
            cordoning=cordoning,
            options=options,
            sleep=sleep or pass_time,
            clock=lambda: now,
        )
        return await drain.run(["0"], agrees)


async def test_a_card_is_drained() -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        report = await run(api, "gpu-1", "0", "--yes")
        assert api.annotations("gpu-1") == {CORDON_ANNOTATION: "gpu-1-0"}
        assert api.objects[PODS] == {}
    assert (report.outcome, report.exit_status) == (DrainOutcome.DRAINED, ExitStatus.GOOD)
    assert all(pod.is_gone for pod in report.pods)
    text = printed(report, "drain-card", "gpu-1", "0")
    assert "Card 0 of gpu-1: drained, 2 pods moved away" in text
    assert "  kubectl gpushare uncordon gpu-1 0\n" in text


async def test_a_dry_run_shows_where_new_pods_would_land() -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        report = await run(api, "gpu-1", "0", "--dry-run")
        assert api.stored == []
    assert report.exit_status is ExitStatus.GOOD
    places = [
        (pod.name, pod.replacement.node, pod.replacement.cards[0].index)
        for pod in report.pods
        if pod.replacement
    ]
    assert places == [("a", "gpu-2", 0), ("b", "gpu-1", 1)]
    text = printed(report, "drain-card", "gpu-1", "0")
    assert "a new one on gpu-2 card 0" in text
    assert text.endswith("Nothing was changed.\n")


async def test_a_budget_is_honoured_and_named() -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        api.put(DISRUPTION_BUDGETS, BUDGET)
        api.protected = {"b"}
        report = await drained(api, DrainOptions(timeout=10.0))
        assert [*api.objects[PODS]] == [("default", "b")]
    assert (report.outcome, report.exit_status) == (DrainOutcome.INCOMPLETE, ExitStatus.NO)
    assert [(pod.name, pod.budget) for pod in report.staying] == [("b", "web")]
    text = printed(report, "drain-card", "gpu-1", "0")
    assert "not drained in 10s. It stays cordoned" in text
    assert "PodDisruptionBudget web does not let it go" in text


async def test_a_pod_goes_when_its_budget_allows_it() -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        api.protected = {"a", "b"}
        api.fail("POST", EVICTION, passing, lambda _: allowed())

        async def allowed() -> None:
            api.protected = set()

        report = await drained(api, DrainOptions(timeout=60.0))
    assert report.outcome is DrainOutcome.DRAINED


async def test_a_pod_without_a_controller_needs_force() -> None:
    pods = (running("a", "gpu-1", c0=4), running("b", "gpu-1", owner="", c0=2))
    async with card_api(*NODES, *pods) as api:
        report = await drained(api, DrainOptions())
        assert (report.outcome, api.stored) == (DrainOutcome.REFUSED, [])
        text = printed(report, "drain-card", "gpu-1", "0")
        assert "default/b would be gone for good" in text
        assert "  kubectl gpushare drain-card gpu-1 0 --force\n" in text
        forced = await drained(api, DrainOptions(is_forced=True))
    assert (report.exit_status, forced.outcome) == (ExitStatus.NO, DrainOutcome.DRAINED)


async def test_what_was_forced_goes_on_by_force() -> None:
    pods = (running("a", "gpu-1", c0=4), running("b", "gpu-1", owner="", c0=2))
    async with card_api(*NODES, *pods) as api:
        api.has_plugins = False
        report = await drained(api, DrainOptions(is_forced=True))
    assert "  kubectl gpushare drain-card gpu-1 0 --force\n" in printed(report, "drain-card", "gpu-1", "0")


async def test_what_belongs_to_the_node_stays() -> None:
    pods = (running("a", "gpu-1", c0=4), running("b", "gpu-1", owner="DaemonSet", c0=2))
    async with card_api(*NODES, *pods) as api:
        report = await drained(api, DrainOptions())
    assert (report.outcome, report.exit_status) == (DrainOutcome.INCOMPLETE, ExitStatus.NO)
    assert [(pod.name, pod.action) for pod in report.staying] == [("b", DrainAction.STAYS)]


async def test_units_of_a_pod_that_nobody_knows_stay() -> None:
    async with card_api(*NODES, PODS_ON_IT[0]) as api:
        report = await drained(api, DrainOptions())
    assert [(pod.name, pod.action) for pod in report.staying] == [("b", DrainAction.UNKNOWN)]


async def test_an_eviction_that_is_not_allowed_is_said_at_once() -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        api.fail("POST", EVICTION, *[status(403, "you may not evict")] * 20)
        report = await drained(api, DrainOptions())
        assert len(api.requests("POST", EVICTION)) == 1
    assert [(pod.name, pod.problem) for pod in report.staying] == [("a", "you may not evict")]
    assert report.seconds < 10
    assert "not evicted: you may not evict" in printed(report, "drain-card", "gpu-1", "0")


async def test_an_eviction_that_fails_is_tried_again() -> None:
    terminating = status(403, "because namespace default is being terminated")
    async with card_api(*NODES, *PODS_ON_IT) as api:
        api.fail("POST", EVICTION, status(500), terminating, status(504))
        report = await drained(api, DrainOptions())
    assert report.outcome is DrainOutcome.DRAINED


async def test_the_card_is_the_one_that_was_shown() -> None:
    """While the person thinks a card is lost, and another one has its index."""

    def renumber() -> None:
        changed = copy.deepcopy(api.objects[SHARE_NODES]["", "gpu-1"])
        for card in changed["status"]["cards"]:
            card["index"] = 1 - card["index"]
        api.put(SHARE_NODES, changed)

    async with card_api(*NODES, *PODS_ON_IT) as api:
        report = await drained(api, DrainOptions(), meanwhile=renumber)
        assert api.annotations("gpu-1") == {CORDON_ANNOTATION: "gpu-1-0"}
    assert (report.outcome, report.cards[0].uuid) == (DrainOutcome.DRAINED, "gpu-1-0")
    assert "  kubectl gpushare uncordon gpu-1 1\n" in printed(report, "drain-card", "gpu-1", "0")


async def test_a_pod_on_its_way_to_the_card_is_evicted_as_well() -> None:
    """It is bound; its kubelet has not started it, so that its plugin does not report it yet."""
    async with card_api(*NODES, *PODS_ON_IT, running("early", "gpu-1", c0=3)) as api:
        report = await drained(api, DrainOptions())
        assert api.objects[PODS] == {}
    assert [(pod.name, pod.units) for pod in report.pods] == [("a", 4), ("b", 2), ("early", 3)]
    assert report.outcome is DrainOutcome.DRAINED


async def test_a_pod_whose_other_card_alone_is_reported_is_evicted_as_well() -> None:
    """Its kubelet gives units to one container after the other."""
    half = running("half", "gpu-1", c0=3, c1=4)
    async with card_api(cards_of("gpu-1", {}, {"half": 4}), NODES[1], half) as api:
        report = await drained(api, DrainOptions())
        assert api.objects[PODS] == {}
    assert [(pod.name, pod.units) for pod in report.pods] == [("half", 3)]
    assert report.outcome is DrainOutcome.DRAINED


async def test_pods_without_a_uid_are_known_by_their_names() -> None:
    node = cards_of("gpu-1", {"a": 4, "b": 2})
    for pod in node["status"]["cards"][0]["pods"]:
        pod |= {"uid": "", "orphaned": True}
    async with card_api(node) as api:
        report = await run(api, "gpu-1", "0", "--dry-run")
    assert [(pod.name, pod.units, pod.action) for pod in report.pods] == [
        ("a", 4, DrainAction.UNKNOWN),
        ("b", 2, DrainAction.UNKNOWN),
    ]


async def test_a_pod_that_comes_after_the_question_is_not_evicted_unasked() -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        late = running("late", "gpu-1", c0=3)
        report = await drained(api, DrainOptions(), meanwhile=lambda: api.put(PODS, late))
        assert [*api.objects[PODS]] == [("default", "late")]
    assert (report.outcome, report.exit_status) == (DrainOutcome.INCOMPLETE, ExitStatus.NO)
    assert [(pod.name, pod.action, pod.units) for pod in report.staying] == [("late", DrainAction.CAME, 3)]
    assert "it came after the list of pods" in printed(report, "drain-card", "gpu-1", "0")


@pytest.mark.parametrize("status_then", [{"cards": []}, {}])
async def test_a_card_that_is_not_reported_any_more_is_not_drained(status_then: Json) -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        lost = {**api.objects[SHARE_NODES]["", "gpu-1"], "status": status_then}

        async def lose(_: web.Request) -> None:
            api.put(SHARE_NODES, {**lost, "metadata": api.objects[SHARE_NODES]["", "gpu-1"]["metadata"]})

        api.protected = {"a", "b"}
        api.fail("POST", EVICTION, lose)
        report = await drained(api, DrainOptions(timeout=20.0))
    assert report.outcome is DrainOutcome.INCOMPLETE
    assert not any(pod.is_gone for pod in report.pods)
    text = printed(report, "drain-card", "gpu-1", "0")
    assert "does not report gpu-1-0 any more" in " ".join(text.split())
    assert "kubectl gpushare uncordon gpu-1 0" in text


@pytest.mark.parametrize("fault", [status(500), status(429), cut])
async def test_an_api_server_that_is_away_for_a_moment_ends_nothing(fault: Answer) -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        path = f"{SHARE_NODES}/gpu-1"
        api.fail("GET", path, passing, passing, fault, fault)
        report = await drained(api, DrainOptions())
    assert report.outcome is DrainOutcome.DRAINED
    assert report.problem == ""


async def test_nothing_is_evicted_before_the_card_is_closed() -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        api.has_plugins = False
        report = await drained(api, DrainOptions())
        assert len(api.objects[PODS]) == 2
    assert report.outcome is DrainOutcome.INCOMPLETE
    text = printed(report, "drain-card", "gpu-1", "0")
    assert "No pod was evicted: the plugin on gpu-1" in text
    assert text.count("it was not evicted") == 2


async def test_ctrl_c_leaves_the_card_cordoned_and_says_so() -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        api.protected = {"a", "b"}

        async def interrupted(_seconds: float) -> None:
            raise asyncio.CancelledError

        report = await drained(api, DrainOptions(), sleep=interrupted)
        assert api.annotations("gpu-1") == {CORDON_ANNOTATION: "gpu-1-0"}
    assert report.exit_status is ExitStatus.INTERRUPTED
    text = printed(report, "drain-card", "gpu-1", "0")
    assert text.startswith("Interrupted: Card 0 of gpu-1 stays cordoned")


async def test_without_a_terminal_it_does_not_begin() -> None:
    async with card_api(*NODES, *PODS_ON_IT) as api:
        with pytest.raises(CannotLookError, match="--yes does it without asking"):
            await run(api, "gpu-1", "0")
        assert api.stored == []


async def test_what_a_pipe_gets_is_not_folded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    async with card_api(*NODES) as api, KubeClient(api.credentials()) as client:
        await run_command(client, "drain-card", "gpu-1", "0", "--yes", "--timeout", "1s")
    assert "unknown to the API server; its kubelet keeps the units" in capsys.readouterr().err
