"""``preflight`` reads a cluster, whole or in part, and prints a row for each question."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.component.cli.commands import printed, run_command
from tests.fakes.preflight_facts import KUBEADM_FLAGS, node_object, scheduler_object
from tests.fakes.status_facts import deployment_object
from tests.fakes.system_tls import system_tls

from gpushare_cli.commands.installation.preflight import DESCRIPTION
from gpushare_cli.decide.preflight.answer import Verdict
from gpushare_cli.decide.preflight.report import PreflightReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.preflight import kubelets
from gpushare_cli.gather.preflight.kubelets import KUBELET_SECONDS, MAX_ASKED
from gpushare_cli.gather.preflight.preflight_facts import MAX_PAGES
from gpushare_cli.report import ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.paths import (
    ACCESS_REVIEWS,
    ADMISSION,
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    OWN_GROUP,
    RUNTIME_CLASSES,
    SERVER_VERSION,
    namespace_path,
    pods,
    quotas,
)
from gpushare_core.text.json_object import Json

SCHEDULERS = pods("kube-system")
METRICS = "# TYPE kubelet_cgroup_version gauge\nkubelet_cgroup_version 2\nkubelet_node_name 1\n"
CONFIG = {"kubeletconfig": {"staticPodPath": "/etc/kubernetes/manifests"}}


def items(*objects: Json) -> Json:
    return {"metadata": {"resourceVersion": "1"}, "items": list(objects)}


def gpu_node(name: str = "gpu-1") -> Json:
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/cuda.driver-version.full": "580.65.06"}
    return node_object(name, labels=labels)


def fitting() -> dict[str, Json | str | int]:
    """Path -> what the API server answers: gpushare is not installed, and nothing is missing.

    Numbers are the status with which it refuses; it has nothing else.
    """
    return {
        SERVER_VERSION: {"gitVersion": "v1.36.3"},
        NODES: items(node_object("cp-1"), gpu_node()),
        SCHEDULERS: items(scheduler_object(*KUBEADM_FLAGS)),
        pods("openshift-kube-scheduler"): items(),
        ADMISSION: {"versions": [{"version": "v1"}]},
        f"{ADMISSION}/v1": {
            "resources": [{"name": "validatingadmissionpolicies"}, {"name": "mutatingadmissionpolicies"}]
        },
        DAEMON_SETS: items(),
        RUNTIME_CLASSES: items({"metadata": {"name": "nvidia"}, "handler": "nvidia"}),
        DEPLOYMENTS: items(),
        quotas("gpushare-system"): items(),
        ACCESS_REVIEWS: {"status": {"allowed": True}},
    }


@dataclass(slots=True)
class AskedCluster:
    answers: Mapping[str, Json | str | int]
    kubelet: str | int = METRICS
    has_silent_kubelets: bool = False
    asked: list[str] = field(default_factory=list)
    _is_over: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.rel_url}")
        if self.has_silent_kubelets and "/proxy/" in request.path:
            await self._is_over.wait()
        if request.path.endswith("/proxy/metrics"):
            found: Json | str | int = self.kubelet
        elif request.path.endswith("/proxy/configz"):
            found = self.kubelet if isinstance(self.kubelet, int) else CONFIG
        else:
            found = self.answers.get(request.path, 404)
        if isinstance(found, int):
            message = f"{request.path} is forbidden: no"
            body = {"kind": "Status", "code": found, "reason": "Refused", "message": message}
            return web.json_response(body, status=found)
        return web.Response(text=found) if isinstance(found, str) else web.json_response(found)

    async def run(self, *arguments: str) -> PreflightReport:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self.answer)
        async with TestServer(app) as server:
            url = str(server.make_url("")).rstrip("/")
            async with KubeClient(Credentials(url, system_tls, lambda: None)) as client:
                report = await run_command(client, "preflight", *arguments)
            self._is_over.set()
        assert isinstance(report, PreflightReport)
        return report


async def preflight(answers: Mapping[str, Json | str | int], kubelet: str | int = METRICS) -> PreflightReport:
    return await AskedCluster(answers, kubelet).run()


def verdicts(report: PreflightReport) -> dict[str, Verdict]:
    return {answer.question: answer.verdict for answer in report.answers}


async def test_a_cluster_that_fits() -> None:
    report = await preflight(fitting())
    assert set(verdicts(report).values()) == {Verdict.OK}
    assert report.exit_status is ExitStatus.GOOD
    page = printed(report, "preflight", "--ascii")
    assert page.startswith("gpushare can be installed: nothing is missing\n\nQUESTION ")
    assert "cgroups         ok      version 2 on all 2 nodes\n" in page
    assert printed(report, "preflight", "-o", "name") == "node/gpu-1\n"


async def test_what_is_missing_comes_first_with_what_to_do_and_to_type() -> None:
    narrow = {
        "metadata": {"name": "gpushare-system", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}
    }
    report = await preflight({**fitting(), namespace_path("gpushare-system"): narrow})
    assert report.exit_status is ExitStatus.NO
    page = printed(report, "preflight", "--ascii")
    assert page.startswith("1 thing missing\n")
    assert page.endswith(
        "namespace: Let it admit privileged pods: plugins mount folders of their host.\n"
        "    kubectl label namespace gpushare-system pod-security.kubernetes.io/enforce=privileged"
        " --overwrite\n"
    )


async def test_an_installation_is_found_in_its_namespace() -> None:
    own = deployment_object()
    own["metadata"]["namespace"] = "gpu-sharing"
    report = await preflight(
        {
            **fitting(),
            OWN_GROUP: {"versions": [{"version": "v1alpha1"}]},
            DEPLOYMENTS: items(own),
            quotas("gpu-sharing"): items(),
            namespace_path("gpu-sharing"): {"metadata": {"name": "gpu-sharing"}},
        }
    )
    assert report.is_installed
    assert printed(report, "preflight").startswith("gpushare is installed, and nothing is missing\n")
    (own_answer,) = [answer for answer in report.answers if answer.question == "namespace"]
    assert own_answer.found.startswith("gpu-sharing ")


@pytest.mark.parametrize(
    ("path", "questions"),
    [
        (DAEMON_SETS, {"other plugins"}),
        (RUNTIME_CLASSES, {"RuntimeClass"}),
        (SCHEDULERS, {"distribution", "kube-scheduler"}),
        (f"{ADMISSION}/v1", {"admission"}),
        (DEPLOYMENTS, {"gpushare"}),
        (namespace_path("gpushare-system"), {"namespace"}),
        (quotas("gpushare-system"), {"namespace"}),
        (ACCESS_REVIEWS, {"rights"}),
    ],
)
async def test_what_is_forbidden_is_unknown_for_its_questions_alone(path: str, questions: set[str]) -> None:
    report = await preflight({**fitting(), path: 403})
    unknown = {question for question, verdict in verdicts(report).items() if verdict is Verdict.UNKNOWN}
    assert unknown == questions
    assert report.exit_status is ExitStatus.CANNOT_LOOK
    assert len(report.unread) == 1
    assert "Unknown: " in printed(report, "preflight")


async def test_who_may_read_nothing_is_told_so() -> None:
    others = (OWN_GROUP, namespace_path("gpushare-system"))
    report = await preflight(dict.fromkeys((*fitting(), *others), 403))
    assert set(verdicts(report).values()) == {Verdict.UNKNOWN}
    assert report.exit_status is ExitStatus.CANNOT_LOOK
    assert printed(report, "preflight").startswith("Nothing could be read\n")


async def test_who_may_not_ask_kubelets_loses_what_they_alone_know() -> None:
    report = await preflight(fitting(), kubelet=403)
    unknown = {question for question, verdict in verdicts(report).items() if verdict is Verdict.UNKNOWN}
    assert unknown == {"cgroups"}
    assert report.exit_status is ExitStatus.GOOD
    assert "you may not ask kubelets (get nodes/proxy)" in printed(report, "preflight")


async def test_a_kubelet_is_waited_for_as_long_as_is_asked_for() -> None:
    cluster = AskedCluster(fitting(), has_silent_kubelets=True)
    report = await cluster.run("--request-timeout", "50ms")
    assert "did not answer within 0.05 s" in printed(report, "preflight")


@pytest.mark.parametrize("arguments", [(), ("--request-timeout", "0")], ids=["not said", "0"])
async def test_a_kubelet_is_waited_for_as_long_as_the_help_says_where_nobody_says_how_long(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"It waits {KUBELET_SECONDS:g}s for each" in " ".join(DESCRIPTION.split())
    monkeypatch.setattr(kubelets, "KUBELET_SECONDS", 0.05)
    report = await AskedCluster(fitting(), has_silent_kubelets=True).run(*arguments)
    assert "did not answer within 0.05 s" in printed(report, "preflight")


@pytest.mark.parametrize(
    "metrics", ["", "kubelet_cgroup_version \n", "kubelet_cgroup_version two\n", "\x00\xff"]
)
async def test_a_kubelet_that_answers_oddly_says_no_version(metrics: str) -> None:
    report = await preflight(fitting(), kubelet=metrics)
    assert verdicts(report)["cgroups"] is Verdict.UNKNOWN


async def test_few_kubelets_of_many_are_asked_and_those_with_cards_first() -> None:
    many = items(*(node_object(f"n{number}") for number in range(100)), gpu_node())
    cluster = AskedCluster({**fitting(), NODES: many})
    report = await cluster.run()
    asked = [line for line in cluster.asked if line.endswith("/proxy/metrics")]
    assert len(asked) == MAX_ASKED
    assert f"GET {NODES}/gpu-1/proxy/metrics" in asked
    assert "version 2 on 8 nodes; unknown on 93 others" in printed(report, "preflight")


async def test_pods_are_read_by_selectors_and_nodes_in_one_list() -> None:
    cluster = AskedCluster(fitting())
    await cluster.run()
    listed = [line for line in cluster.asked if "/pods" in line]
    assert len(listed) == 3
    assert all("labelSelector=" in line for line in listed)
    assert len([line for line in cluster.asked if line.startswith(f"GET {NODES}?")]) == 1


async def test_of_thousands_of_daemon_sets_the_rest_is_said_not_to_be_read() -> None:
    endless = {**items(), "metadata": {"resourceVersion": "1", "continue": "more"}}
    cluster = AskedCluster({**fitting(), DAEMON_SETS: endless})
    report = await cluster.run()
    assert len([line for line in cluster.asked if line.startswith(f"GET {DAEMON_SETS}?")]) == MAX_PAGES
    assert verdicts(report)["other plugins"] is Verdict.UNKNOWN
    assert report.unread[0].reason == "there are more than 2,000; the rest was not looked at"


async def test_nothing_is_written_but_reviews_of_ones_own_access() -> None:
    cluster = AskedCluster(fitting())
    await cluster.run()
    written = {line for line in cluster.asked if not line.startswith("GET ")}
    assert written == {f"POST {ACCESS_REVIEWS}"}


async def test_text_of_the_cluster_moves_no_cursor() -> None:
    odd = node_object("gpu-1", osImage="Debian \x1b[2J", containerRuntimeVersion="\x1b]0;x\x07://1.2")
    report = await preflight({**fitting(), NODES: items(odd)})
    for shown in ("table", "wide", "json", "yaml"):
        assert not {"\x1b", "\x07"} & set(printed(report, "preflight", "-o", shown))


async def test_a_node_that_is_not_as_expected_leaves_the_others() -> None:
    report = await preflight({**fitting(), NODES: items({"metadata": 7}, gpu_node())})
    assert report.card_nodes == ("gpu-1",)
    assert report.exit_status is ExitStatus.CANNOT_LOOK


async def test_the_document_has_every_answer() -> None:
    document = json.loads(printed(await preflight(fitting()), "preflight", "-o", "json"))
    assert document["kind"] == "PreflightReport"
    assert document["distribution"] == "kubeadm"
    assert document["recommendedBackend"] == "KubeScheduler"
    assert len(document["answers"]) == 15


async def test_who_is_not_known_is_told_so() -> None:
    with pytest.raises(CannotLookError, match="does not know you"):
        await preflight({**fitting(), NODES: 401})
