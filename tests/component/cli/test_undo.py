"""``kubectl gpushare undo`` against an API server on a real socket."""

import asyncio
import io
import json
import os
import pty
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.component.cli.commands import printed
from tests.fakes.system_tls import system_tls
from tests.samples.drained_cards import cards_of, running

from gpushare_cli.changes.policy_deletion import SILENT
from gpushare_cli.changes.undo import Undo
from gpushare_cli.decide.undo.report import UndoOutcome, UndoPlan, UndoReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.cluster import COLLECTIONS
from gpushare_cli.gather.lists import MAX_NODES_WITH_PODS
from gpushare_cli.output.consent import Consent
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.progress import Silence
from gpushare_cli.output.terminal import ColorChoice
from gpushare_cli.report import ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.paths import POLICIES
from gpushare_core.text.json_object import Json

SETTING = "everything is being undone: kube-scheduler is being restored on cp-1"


def policy(name: str) -> Json:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}}


ZERO: Json = {
    "metadata": {"name": "gpu-1"},
    "status": {"capacity": {"gpushare.io/memory": "0"}, "allocatable": {"gpushare.io/memory": "0"}},
}
HOSTCTL_POD: Json = {
    "metadata": {
        "namespace": "gpushare-system",
        "name": "gpushare-hostctl-1",
        "labels": {
            "app.kubernetes.io/managed-by": "gpushare-operator",
            "app.kubernetes.io/component": "hostctl",
        },
        "ownerReferences": [{"kind": "Job", "name": "gpushare-hostctl"}],
    }
}


@dataclass
class Cluster:
    """An API server; what is deleted stays until ``operator`` has done its work, or for ever."""

    objects: dict[str, list[Json]]
    has_operator: bool = True
    refused: int = 0
    """The status of the answer to a deletion."""
    refuses: Sequence[str] = ()
    """Names of policies that may not be deleted."""
    deleted: list[str] = field(default_factory=list)
    events: asyncio.Queue[Json] = field(default_factory=asyncio.Queue)
    being_deleted: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            return self._delete(request.path.rpartition("/")[2])
        if "watch" in request.query:
            return await self._watch(request)
        kind = next((kind for kind, path in COLLECTIONS.items() if path == request.path), "")
        if kind not in self.objects:
            return web.json_response({"kind": "Status", "code": 404, "message": "unknown"}, status=404)
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": self.objects[kind]})

    def _delete(self, name: str) -> web.Response:
        if name in self.refuses:
            return web.json_response({"kind": "Status", "message": "you may not"}, status=403)
        if self.refused:
            body = {"kind": "Status", "code": self.refused, "message": "you may not"}
            return web.json_response(body, status=self.refused)
        self.deleted.append(name)
        held = next(item for item in self.objects["GPUSharePolicy"] if item["metadata"]["name"] == name)
        told = {"type": "Ready", "status": "False", "reason": "Deleting", "message": SETTING}
        dying = {**held, "status": {"conditions": [told]}}
        dying["metadata"] = {**held["metadata"], "resourceVersion": "2"}
        self.events.put_nowait({"type": "MODIFIED", "object": dying})
        if self.has_operator:
            self.objects["GPUSharePolicy"].remove(held)
            gone = {**dying, "metadata": {**dying["metadata"], "resourceVersion": "3"}}
            self.events.put_nowait({"type": "DELETED", "object": gone})
        else:
            self.objects["GPUSharePolicy"][:] = [dying]
        self.being_deleted.set()
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            event = await self.events.get()
            await response.write(json.dumps(event).encode() + b"\n")


@dataclass
class Time:
    """Passes where somebody sleeps."""

    cluster: Cluster
    clean_at: float = 0.0
    now: float = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.clean_at:
            self.cluster.objects["Node"] = self.cluster.objects["Pod"] = []


@pytest.fixture
def objects() -> dict[str, list[Json]]:
    return {**{kind: [] for kind in COLLECTIONS}, "GPUSharePolicy": [policy("default")]}


@pytest.fixture
async def served() -> AsyncIterator[Any]:
    servers: list[TestServer] = []

    async def serve(cluster: Cluster) -> KubeClient:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", cluster.answer)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return KubeClient(Credentials(str(server.make_url("")).rstrip("/"), system_tls, lambda: None))

    yield serve
    for server in servers:
        await server.close()


async def yes(_: UndoPlan) -> bool:
    return True


async def no(_: UndoPlan) -> bool:
    return False


async def undone(client: KubeClient, cluster: Cluster, agrees: Any = yes, **given: Any) -> UndoReport:
    time = Time(cluster, clean_at=given.pop("clean_at", 0.0))
    timeout = given.pop("timeout", 600.0)
    undo = Undo(client=client, progress=Silence(), timeout=timeout, sleep=time.sleep, clock=lambda: time.now)
    async with client:
        return await undo.run(given.pop("names", []), agrees)


async def test_policies_are_deleted_and_nothing_is_left(served: Any, objects: Any) -> None:
    cluster = Cluster(objects)
    report = await undone(await served(cluster), cluster)
    assert (report.outcome, report.exit_status) == (UndoOutcome.UNDONE, ExitStatus.GOOD)
    assert cluster.deleted == ["default"]
    assert "Nothing is left. Looked at 13 kinds of objects." in printed(report, "undo")
    document = json.loads(printed(report, "undo", "-o", "json"))
    assert (document["kind"], document["outcome"], document["residue"]) == ("UndoReport", "Undone", [])
    assert printed(report, "undo", "-o", "name") == "gpusharepolicy.gpushare.io/default\n"


async def test_a_pod_that_runs_is_named_before_its_plugin_reports_it(served: Any, objects: Any) -> None:
    """However many nodes there are."""
    nodes = [cards_of(f"gpu-{place}", {}) for place in range(MAX_NODES_WITH_PODS + 1)]
    cluster = Cluster({**objects, "GPUShareNode": nodes, "Pod": [running("early", "gpu-0", c0=4)]})
    report = await undone(await served(cluster), cluster, no)
    assert [(pod.name, pod.node) for pod in report.plan.pods] == [("early", "gpu-0")]


async def test_kubelets_get_the_time_to_forget(served: Any, objects: Any) -> None:
    cluster = Cluster({**objects, "Node": [ZERO]})
    report = await undone(await served(cluster), cluster, clean_at=300.0)
    assert (report.outcome, report.residue) == (UndoOutcome.UNDONE, [])


async def test_pods_get_the_time_to_end(served: Any, objects: Any) -> None:
    """Seen on a busy cluster: the garbage collector deletes a Job's pod some seconds after the Job."""
    cluster = Cluster({**objects, "Pod": [HOSTCTL_POD]})
    report = await undone(await served(cluster), cluster, clean_at=5.0)
    assert (report.outcome, report.residue) == (UndoOutcome.UNDONE, [])


async def test_what_kubelets_do_not_forget_in_time_is_left(served: Any, objects: Any) -> None:
    cluster = Cluster({**objects, "Node": [ZERO]})
    report = await undone(await served(cluster), cluster, clean_at=1000.0)
    assert report.exit_status is ExitStatus.NO
    assert "1 thing left, 1 of which goes by itself" in printed(report, "undo")


async def test_the_timeout_holds_for_the_proof_as_well(served: Any, objects: Any) -> None:
    cluster = Cluster({**objects, "GPUSharePolicy": []})
    time = Time(cluster)
    undo = Undo(
        client=await served(cluster),
        progress=Silence(),
        timeout=2.0,
        sleep=time.sleep,
        clock=lambda: time.now,
    )
    async with undo.client:
        report = await undo.run([], yes)
    assert (report.outcome, time.now) == (UndoOutcome.NOTHING_TO_UNDO, 2.0)


async def test_a_no_deletes_nothing(served: Any, objects: Any) -> None:
    cluster = Cluster(objects)
    report = await undone(await served(cluster), cluster, no)
    assert (report.outcome, cluster.deleted) == (UndoOutcome.DECLINED, [])


async def test_a_dry_run_deletes_nothing(served: Any, objects: Any) -> None:
    cluster = Cluster(objects)
    async with await served(cluster) as client:
        report = await Undo(client=client, progress=Silence(), timeout=1.0).dry_run([])
    assert (report.outcome, report.exit_status, cluster.deleted) == (UndoOutcome.DRY_RUN, ExitStatus.GOOD, [])


async def test_one_of_two_policies(served: Any, objects: Any) -> None:
    cluster = Cluster({**objects, "GPUSharePolicy": [policy("default"), policy("later")]})
    report = await undone(await served(cluster), cluster, names=["later"])
    assert (cluster.deleted, report.plan.staying, report.exit_status) == (["later"], ["default"], 0)


async def test_an_operator_that_does_nothing_until_the_deadline(served: Any, objects: Any) -> None:
    cluster = Cluster(objects, has_operator=False)
    report = await undone(await served(cluster), cluster, timeout=0.2)
    assert (report.outcome, report.exit_status) == (UndoOutcome.TIMED_OUT, ExitStatus.NO)
    assert report.waiting_for["default"] in (SETTING, SILENT)
    assert "The operator goes on by itself" in printed(report, "undo")


async def test_ctrl_c_ends_the_waiting_and_says_what_goes_on(served: Any, objects: Any) -> None:
    cluster = Cluster(objects, has_operator=False)
    run = asyncio.create_task(undone(await served(cluster), cluster))
    await asyncio.wait_for(cluster.being_deleted.wait(), 30.0)
    run.cancel()
    report = await run
    assert (report.outcome, report.exit_status) == (UndoOutcome.INTERRUPTED, ExitStatus.INTERRUPTED)
    assert [*report.waiting_for] == ["default"]


async def test_ctrl_c_before_the_first_deletion_is_an_interruption_as_any(served: Any, objects: Any) -> None:
    async def never(_: UndoPlan) -> bool:
        asked.set()
        return await asyncio.Event().wait()

    cluster, asked = Cluster(objects), asyncio.Event()
    run = asyncio.create_task(undone(await served(cluster), cluster, never))
    await asyncio.wait_for(asked.wait(), 30.0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert cluster.deleted == []


async def test_who_may_not_delete_is_told_so(served: Any, objects: Any) -> None:
    cluster = Cluster(objects, refused=403)
    with pytest.raises(CannotLookError, match=r"does not delete policy default.*you may not"):
        await undone(await served(cluster), cluster)


async def test_what_was_deleted_before_a_refusal_is_said(served: Any, objects: Any) -> None:
    cluster = Cluster({**objects, "GPUSharePolicy": [policy("a"), policy("b")]}, refuses=("b",))
    with pytest.raises(CannotLookError, match=r"does not delete policy b.*deleted before it: a"):
        await undone(await served(cluster), cluster)


async def test_an_operator_that_is_not_there_is_not_waited_for_as_long(
    served: Any, objects: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_cli.changes.undo.ABSENT_SECONDS", 0.2)
    cluster = Cluster(objects, has_operator=False)
    report = await asyncio.wait_for(undone(await served(cluster), cluster), 60.0)
    assert report.outcome is UndoOutcome.TIMED_OUT
    assert any("No operator is available" in warning.says for warning in report.plan.warnings)


async def test_who_may_not_list_everything_deletes_nothing(served: Any, objects: Any) -> None:
    del objects["Job"]
    cluster = Cluster(objects)
    with pytest.raises(CannotLookError, match=r"jobs.*nothing was changed"):
        await undone(await served(cluster), cluster)
    assert cluster.deleted == []


async def test_without_the_definitions_there_is_nothing_to_undo(served: Any, objects: Any) -> None:
    del objects["GPUSharePolicy"], objects["GPUShareNode"]
    cluster = Cluster(objects)
    report = await undone(await served(cluster), cluster)
    assert (report.outcome, report.exit_status) == (UndoOutcome.NOTHING_TO_UNDO, ExitStatus.GOOD)


def test_the_path_of_policies_is_what_is_deleted() -> None:
    assert COLLECTIONS["GPUSharePolicy"] == POLICIES


@pytest.fixture
def keyboard() -> Iterator[tuple[int, TextIO]]:
    """What a person types into, and where the program reads it."""
    typed, read = pty.openpty()
    with os.fdopen(read) as answers:
        yield typed, answers
    os.close(typed)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def consent(answers: TextIO, screen: TextIO, *, is_agreed: bool = False) -> Consent:
    return Consent(
        color=ColorChoice.NEVER,
        environment={},
        is_agreed=is_agreed,
        page=OutputPage(width=80),
        answers=answers,
        shown_at=screen,
    )


@pytest.mark.parametrize(("typed", "agreed"), [("y", True), ("YES", True), ("n", False), ("", False)])
async def test_a_person_is_asked(keyboard: tuple[int, TextIO], typed: str, *, agreed: bool) -> None:
    keys, answers = keyboard
    screen = Screen()
    asked = consent(answers, screen)
    asked.require_somebody()
    os.write(keys, f"{typed}\n".encode())
    assert await asked.agrees(lambda _: ["what will be done"]) is agreed
    assert screen.getvalue() == "what will be done\n\nDo this? [y/N] "


async def test_where_nobody_is_it_needs_a_yes() -> None:
    with pytest.raises(CannotLookError, match="--yes does it without asking"):
        consent(io.StringIO(), Screen()).require_somebody()
    with pytest.raises(CannotLookError, match="--yes does it without asking"):
        consent(None, Screen()).require_somebody()  # type: ignore[arg-type]  # kubectl gpushare undo <&-
    told = consent(io.StringIO(), Screen(), is_agreed=True)
    told.require_somebody()
    assert await told.agrees(lambda _: [])
