"""``status`` and ``version`` read a cluster, whole or in part, and print one page."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.component.cli.commands import printed, run_command
from tests.fakes.status_facts import (
    condition,
    deployment_object,
    lease_object,
    node_object,
    policy_object,
    program_object,
    unplaced_object,
)
from tests.fakes.system_tls import system_tls

from gpushare_cli.decide.status import StatusReport
from gpushare_cli.decide.version import VersionReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.status_facts import EVENTS
from gpushare_cli.report import CommandReport, ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.paths import PODS, POLICIES, SERVER_VERSION, SHARE_NODES
from gpushare_core.text.json_object import Json

DEPLOYMENTS = "/apis/apps/v1/deployments"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpushare-system/leases"
OPERATOR_LEASE = f"{LEASES}/gpushare-operator"
PROGRAMS = "/api/v1/namespaces/gpushare-system/pods"


def items(*objects: Json) -> Json:
    return {"metadata": {"resourceVersion": "1"}, "items": list(objects)}


def well() -> dict[str, Json]:
    """Path -> what the API server answers; it refuses numbers with that status, and has nothing else."""
    return {
        POLICIES: items(policy_object()),
        SHARE_NODES: items(node_object()),
        PODS: items(),
        SERVER_VERSION: {"gitVersion": "v1.36.3"},
        DEPLOYMENTS: items(deployment_object()),
        OPERATOR_LEASE: lease_object(),
        f"{LEASES}/gpushare-extender-calls": lease_object("gpushare-extender-calls"),
        PROGRAMS: items(program_object("operator"), program_object("extender")),
    }


@dataclass(slots=True)
class SmallCluster:
    answers: Mapping[str, Json | int]
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(str(request.rel_url))
        found = self.answers.get(request.path, 404)
        if isinstance(found, int):
            body = {
                "kind": "Status",
                "code": found,
                "reason": "Refused",
                "message": f"{request.path} refused",
            }
            return web.json_response(body, status=found)
        return web.json_response(found)

    async def run(self, *arguments: str) -> CommandReport:
        app = web.Application()
        app.router.add_get("/{rest:.*}", self.answer)
        async with TestServer(app) as server:
            url = str(server.make_url("")).rstrip("/")
            async with KubeClient(Credentials(url, system_tls, lambda: None)) as client:
                return await run_command(client, *arguments)


async def status(answers: Mapping[str, Json | int], *arguments: str) -> StatusReport:
    report = await SmallCluster(answers).run("status", *arguments)
    assert isinstance(report, StatusReport)
    return report


@pytest.fixture(autouse=True)
def same_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is of the version of the programs of these tests."""
    monkeypatch.setattr("gpushare_cli.gather.status_facts.VERSION", "0.4.0")


async def test_a_cluster_that_is_well_is_a_short_page() -> None:
    report = await status(well())
    assert (report.is_well, report.exit_status) == (True, ExitStatus.GOOD)
    assert printed(report, "--ascii") == (
        "gpushare is well\n"
        "\n"
        "POLICY   READY  NODES  CARDS  UNITS HELD   UNIT  MEMORY HELD  BACKEND\n"
        "default  True     1/1    1/1  ##.... 4/16  1Gi   4Gi/16Gi     KubeScheduler\n"
        "\n"
        "Versions: 0.4.0 (client, operator, plugin, extender, hostctl), Kubernetes v1.36.3\n"
    )


async def test_what_is_wrong_comes_first_with_the_command_to_type() -> None:
    sick = node_object(cards=[{"index": 3, "units": 16, "health": "Unhealthy", "healthReason": "Xid 79"}])
    report = await status({**well(), SHARE_NODES: items(sick)})
    assert report.exit_status is ExitStatus.NO
    assert printed(report, "--ascii").startswith(
        "1 problem\n"
        "warning: card gpu-1/3: the card is sick: no new pod gets it\n"
        "  Xid 79\n"
        "    kubectl gpushare drain-card gpu-1 3 --dry-run\n"
    )


async def test_notes_leave_a_cluster_well() -> None:
    cordoned = node_object(cards=[{"index": 3, "units": 16, "cordoned": True}])
    report = await status({**well(), SHARE_NODES: items(cordoned), PODS: items(unplaced_object("job"))})
    assert report.exit_status is ExitStatus.GOOD
    assert printed(report).startswith("gpushare is well, 2 notes\n")


async def test_only_pods_without_a_node_are_read() -> None:
    cluster = SmallCluster(well())
    await cluster.run("status")
    assert [path for path in cluster.asked if path.startswith(PODS)] == [
        f"{PODS}?resourceVersion=0&fieldSelector=status.phase%3DPending"
    ]


async def test_events_are_read_only_where_pods_are_evicted() -> None:
    cluster = SmallCluster(well())
    await cluster.run("status")
    assert not [path for path in cluster.asked if path.startswith(EVENTS)]
    node = node_object(isolation="None")
    evicting = {**node, "spec": {**node["spec"], "isolation": {"memory": "None", "onExcess": "Evict"}}}
    event = {"reason": "EvictedForMemory", "regarding": {"namespace": "ml", "name": "train"}, "note": "9Gi"}
    cluster = SmallCluster({**well(), SHARE_NODES: items(evicting), EVENTS: items(event)})
    text = printed(await cluster.run("status"))
    assert "warning: pod ml/train: evicted lately" in text
    assert [path for path in cluster.asked if path.startswith(EVENTS)] == [
        f"{EVENTS}?resourceVersion=0&fieldSelector=reason%3DEvictedForMemory"
    ]


async def test_without_gpushare_it_says_how_to_install_it() -> None:
    report = await status({SERVER_VERSION: {"gitVersion": "v1.36.3"}, PODS: items(), DEPLOYMENTS: items()})
    assert report.exit_status is ExitStatus.NO
    assert "gpushare is not installed here" in printed(report)


async def test_what_may_not_be_read_is_unknown_and_the_rest_is_said() -> None:
    report = await status({**well(), PODS: 403, OPERATOR_LEASE: 403, DEPLOYMENTS: 403})
    assert (report.is_well, report.exit_status) == (False, ExitStatus.CANNOT_LOOK)
    text = printed(report)
    assert text.startswith("Nothing is wrong in what could be read\n")
    assert "Unknown: pods that wait could not be read" in text
    assert "default  True" in text


async def test_who_may_read_nothing_is_not_told_to_make_a_policy() -> None:
    refused = dict.fromkeys((POLICIES, SHARE_NODES, PODS, OPERATOR_LEASE, DEPLOYMENTS), 403)
    report = await status({**well(), **refused})
    assert (report.problems, report.exit_status) == ((), ExitStatus.CANNOT_LOOK)
    assert printed(report).startswith("Whether gpushare is well cannot be known\n")


async def test_a_lost_operator_is_known_without_its_lease() -> None:
    gone = deployment_object()
    gone["spec"] = {**gone.get("spec", {}), "replicas": 0}
    report = await status({**well(), OPERATOR_LEASE: 403, DEPLOYMENTS: items(gone)})
    assert [policy.ready for policy in report.policies] == ["Unknown"]


async def test_share_nodes_that_may_not_be_read_are_not_missing() -> None:
    report = await status({**well(), SHARE_NODES: 403})
    assert [part.part for part in report.unread] == ["GPUShareNodes"]
    assert report.problems == ()


async def test_a_status_without_an_operator_at_work_is_unknown() -> None:
    answers = {**well(), OPERATOR_LEASE: lease_object(renewed="2020-01-01T00:00:00Z")}
    report = await status(answers)
    assert [policy.ready for policy in report.policies] == ["Unknown"]
    assert report.problems[0].reason == "NoOperatorAtWork"


async def test_objects_that_are_half_written_are_read() -> None:
    bare = {"metadata": {"name": "half"}}
    report = await status({**well(), POLICIES: items(bare), SHARE_NODES: items(bare)})
    assert {problem.reason for problem in report.problems} == {"NotReported", "NotAnswered"}


async def test_of_thousands_that_cannot_be_read_one_says_why() -> None:
    wrong = [{"metadata": {"name": f"gpu-{number}"}, "status": {"cards": "many"}} for number in range(3_000)]
    report = await status({**well(), SHARE_NODES: items(*wrong)})
    (unread,) = report.unread
    assert unread.reason.startswith("3,000 of them are not as expected: Expected")


async def test_an_installation_elsewhere_is_found() -> None:
    deployment = deployment_object()
    deployment["metadata"]["namespace"] = "gpu-sharing"
    cluster = SmallCluster({**well(), DEPLOYMENTS: items(deployment)})
    await cluster.run("status")
    assert any("/namespaces/gpu-sharing/leases/gpushare-operator" in path for path in cluster.asked)


async def test_who_is_not_known_is_told_to_log_in() -> None:
    with pytest.raises(CannotLookError, match=r"does not know you.*log in again"):
        await status({**well(), POLICIES: 401})


async def test_a_status_that_cannot_be_read_is_said() -> None:
    wrong = policy_object()
    wrong["status"]["conditions"] = "none"
    report = await status({**well(), POLICIES: items(wrong)})
    assert [part.part for part in report.unread] == ["GPUSharePolicies"]


async def test_json_has_all_that_a_page_leaves_out() -> None:
    silent = condition("Registered", "Unknown", "PluginSilent", "x" * 1000)
    nodes = items(*(node_object(silent, name=f"gpu-{number}") for number in range(50)))
    report = await status({**well(), SHARE_NODES: nodes})
    document = json.loads(printed(report, "-o", "json"))
    assert len(document["problems"][0]["names"]) == 50
    assert document["problems"][0]["detail"] == "x" * 1000
    assert document["policies"][0]["totalMemoryBytes"] == 16 * 2**30
    text = printed(report)
    assert "50 nodes (gpu-0, gpu-1, gpu-10 and 47 more)" in text or "50 nodes (gpu-0, gpu-1" in text
    assert "x" * 300 not in text
    assert "x" * 1000 in printed(report, "-o", "wide")


async def test_many_problems_are_cut_and_counted() -> None:
    policies = items(*(policy_object(condition("Conflicted"), name=f"p{number}") for number in range(20)))
    text = printed(await status({**well(), POLICIES: policies}))
    assert "... and 14 more:\n  kubectl gpushare status -o wide\n" in text


async def version(answers: Mapping[str, Json | int]) -> VersionReport:
    report = await SmallCluster(answers).run("version")
    assert isinstance(report, VersionReport)
    return report


async def test_versions_are_a_table() -> None:
    report = await version(well())
    assert report.exit_status is ExitStatus.GOOD
    assert printed(report, "version") == (
        "PROGRAM     VERSION  RUNS ON\n"
        "client      0.4.0    this machine\n"
        "operator    0.4.0    1 pod\n"
        "plugin      0.4.0    1 node\n"
        "extender    0.4.0    1 pod\n"
        "hostctl     0.4.0    -\n"
        "Kubernetes  v1.36.3  the API server\n"
    )


async def test_versions_that_do_not_fit_are_a_no() -> None:
    nodes = items(node_object(pluginVersion="0.1.0"), node_object(name="gpu-2"))
    report = await version({**well(), SHARE_NODES: nodes})
    assert report.exit_status is ExitStatus.NO
    text = printed(report, "version")
    assert "plugin      0.1.0    1 node\n" in text
    assert "error: the plugins of 1 node are of version 0.1.0, more than one release" in text


async def test_hostctl_has_several_versions_during_an_upgrade() -> None:
    policy = policy_object(versions={"hostctl": "0.4.0 (2), 0.3.0 (1)"})
    report = await version({**well(), POLICIES: items(policy)})
    rows = [(row.version, row.count) for row in report.programs if row.program == "hostctl"]
    assert rows == [("0.4.0", 2), ("0.3.0", 1)]
    assert report.exit_status is ExitStatus.GOOD
