"""Wrong pods and policies, and what is said of each: by ``kubectl gpushare why -f``, or by the API server.

docs/why.md has a table of them, with the sentences as they are here.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeVar

import msgspec
import pytest
from tests.e2e.fixtures import own_namespace
from tests.e2e.kubernetes_features import is_on
from tests.e2e.observe import CALL_SECONDS, Json, is_true, watch_until
from tests.e2e.observe import POLICIES as POLICY_PATH
from tests.e2e.product import ROOT, Product, policy
from tests.e2e.wrong_pods import CORDONED, MEMORY, PODS, POLICIES, QUOTA, WrongPod, WrongPolicy, pod

from gpushare_cli.decide.why.explain import explain
from gpushare_cli.gather.why.admission import DRY_RUN
from gpushare_cli.gather.why.manifest import read_manifest_situation
from gpushare_cli.gather.why.pods import PodFinder
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.process.clock import utc_now
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("two_nodes")]

PAGE = ROOT / "docs" / "why.md"
T = TypeVar("T")


def ask(cluster: LocalCluster, question: Callable[[KubeClient], Awaitable[T]]) -> T:
    """The program's own functions, without a start of Python for each question."""

    async def run() -> T:
        async with KubeClient(from_kubeconfig(cluster.kubeconfig), timeout=CALL_SECONDS) as client:
            return await question(client)

    return asyncio.run(run())


async def why_manifest(client: KubeClient, namespace: str, body: Json) -> Json:
    """Returns the document, with the exit status as ``exit``."""
    placed = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
    report = explain(await read_manifest_situation(client, placed, now=utc_now()))
    document: Json = msgspec.json.decode(msgspec.json.encode(report))
    return {**document, "exit": report.exit_status}


def finding(document: Json, code: str, *, about: str = "") -> Json:
    """Returns the first finding with the code whose sentence has ``about``; fails with all there are."""
    found = [
        finding
        for finding in document["findings"]
        if finding["code"] == code and about in finding["sentence"]
    ]
    assert found, f"no {code} in {[finding['sentence'] for finding in document['findings']]}"
    first: Json = found[0]
    return first


@pytest.fixture(scope="module")
def two_nodes(product: Product) -> Iterator[None]:
    """Workers that share their cards, beside the control plane, which shares one so that the schedulers stay
    connected."""
    with product.in_force(policy("default", nodes=["gpu-1", CORDONED], cards=2)):
        yield


@pytest.fixture(scope="module")
def surroundings(cluster: LocalCluster) -> Iterator[str]:
    """A namespace with a claim, and a node that is cordoned."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "nobody-makes-it",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    with own_namespace(cluster) as name:
        cluster.kubectl("create", "-n", name, "-f", "-", stdin=json.dumps(claim))
        cluster.kubectl("cordon", CORDONED)
        yield name
        cluster.kubectl("uncordon", CORDONED)


@pytest.fixture(scope="module")
def bounded(cluster: LocalCluster) -> Iterator[str]:
    """A namespace with a quota, which the API server's admission knows."""
    with own_namespace(cluster) as name:
        cluster.kubectl("create", "quota", "cards", "-n", name, f"--hard=requests.{MEMORY}={QUOTA}")
        wait_until(
            "the quota is counted",
            lambda: (
                "used"
                in json.loads(cluster.kubectl("get", "quota", "cards", "-n", name, "-o", "json"))["status"]
            ),
            interval=0.2,
        )
        yield name


@pytest.fixture(scope="module")
def explained(cluster: LocalCluster, surroundings: str, bounded: str) -> Mapping[str, Json]:
    """What is said of each of ``PODS``, by what is written."""

    async def explanations(client: KubeClient) -> dict[str, Json]:
        said: dict[str, Json] = {}
        for wrong in PODS:
            namespace = bounded if wrong.code == "QuotaExceeded" else surroundings
            said[wrong.written] = await why_manifest(client, namespace, wrong.body)
        return said

    return ask(cluster, explanations)


@pytest.fixture(scope="module")
def refused(cluster: LocalCluster) -> Mapping[str, str]:
    """What the API server says of each of ``POLICIES``, by what is written."""

    async def refusal(client: KubeClient, wrong: WrongPolicy) -> str:
        body = {**policy("wrong", nodes=["gpu-1"]), "spec": wrong.spec}
        try:
            await client.send(ApiRequest(method="POST", path=POLICY_PATH, body=body, params=DRY_RUN))
        except ApiError as error:
            return str(error)
        return ""

    async def refusals(client: KubeClient) -> dict[str, str]:
        return {wrong.written: await refusal(client, wrong) for wrong in POLICIES}

    return ask(cluster, refusals)


@pytest.mark.parametrize("wrong", PODS, ids=lambda wrong: wrong.written)
def test_what_why_says_of_a_wrong_pod(
    cluster: LocalCluster, wrong: WrongPod, explained: Mapping[str, Json]
) -> None:
    if not is_wrong(wrong, cluster):
        pytest.skip(f"{wrong.feature} is off in {cluster.kubernetes.name}")
    document = explained[wrong.written]
    said = finding(document, wrong.code)
    assert wrong.says in said["sentence"]
    assert wrong.advises in " ".join(said["advice"])
    assert document["exit"] == (1 if wrong.is_stopped else 0)


@pytest.mark.parametrize("wrong", POLICIES, ids=lambda wrong: wrong.written)
def test_what_the_api_server_says_of_a_wrong_policy(wrong: WrongPolicy, refused: Mapping[str, str]) -> None:
    assert wrong.says in refused[wrong.written]


def test_the_tables_of_the_page_have_the_sentences_that_are_said(
    cluster: LocalCluster, explained: Mapping[str, Json]
) -> None:
    rows = [pod_row(wrong, explained[wrong.written]) for wrong in PODS if is_wrong(wrong, cluster)]
    rows += [policy_row(wrong) for wrong in POLICIES]
    written = PAGE.read_text().splitlines()
    missing = [row for row in rows if row not in written]
    assert not missing, "these rows belong into docs/why.md:\n" + "\n".join(missing)


def is_wrong(wrong: WrongPod, cluster: LocalCluster) -> bool:
    return not wrong.feature or is_on(wrong.feature, cluster.kubernetes)


def pod_row(wrong: WrongPod, document: Json) -> str:
    """What to do: the advice, else what the sentence itself says."""
    said = finding(document, wrong.code)
    nearest = f" Nearest: {said['nearest']}." if said["nearest"] else ""
    lines = said["advice"] or [wrong.todo]
    todo = " ".join(f"`{line}`" if line.startswith("kubectl") else line for line in lines)
    return f"| {cell(wrong.written)} | {cell(said['sentence'] + nearest)} | {cell(todo)} |"


def policy_row(wrong: WrongPolicy) -> str:
    return f"| {cell(wrong.written)} | {cell(wrong.says)} | {cell(wrong.todo)} |"


def cell(text: str) -> str:
    """Names of namespaces are others in each run."""
    named = re.sub(r"test-[0-9a-f]{8}", "team-a", text)
    return " ".join(named.split()).replace("|", "\\|").replace("*", "\\*")


def test_a_deployment_beyond_its_quota_makes_no_pod_and_why_says_so(
    cluster: LocalCluster, bounded: str
) -> None:
    template = pod({MEMORY: "12"})
    labels = {"app": "large"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "large"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }
    cluster.kubectl("create", "-n", bounded, "-f", "-", stdin=json.dumps(deployment))
    watch_until(
        cluster,
        paths.deployments(bounded),
        lambda found: any(is_true(each, "ReplicaFailure") for each in found),
        what="its ReplicaSet was refused a pod",
        describe=lambda found: [each.get("status") for each in found],
    )

    async def of_deployment(client: KubeClient) -> Json:
        found = await PodFinder(client=client, namespace=bounded).find(["deployment/large"], None)
        assert not found.exists
        return await why_manifest(client, bounded, found.pod)

    document = ask(cluster, of_deployment)
    assert (
        "8 of gpushare.io/memory: 0 are used, and the pod asks for 12"
        in finding(document, "QuotaExceeded")["sentence"]
    )
    assert "exceeded quota: cards" in finding(document, "Refused")["sentence"]
    assert document["exit"] == 1


@pytest.fixture
def second_policy(product: Product) -> Iterator[Callable[[Json], None]]:
    """Applies a policy beside the shared one, and waits until the operator has looked at it."""

    def apply(spec: Json) -> None:
        body = {**policy("second", nodes=["gpu-1"]), "spec": spec}
        product.apply(body)
        watch_until(
            product.cluster,
            POLICY_PATH,
            lambda found: any(
                each["metadata"]["name"] == "second" and each.get("status", {}).get("conditions")
                for each in found
            ),
            what="the operator has looked at the second policy",
        )

    yield apply
    product.delete("second")


def test_policies_that_cannot_be_in_force_are_named_in_their_own_words(
    cluster: LocalCluster, surroundings: str, second_policy: Callable[[Json], None]
) -> None:
    """It claims a node of the older policy, and names one that is not there."""
    second_policy(policy("second", nodes=["gpu-1", "gpu-9"])["spec"])
    document = ask(cluster, lambda client: why_manifest(client, surroundings, pod({MEMORY: "4"})))
    said = finding(document, "PolicyNotReady", about="Policy second is not Ready")
    assert said["advice"] == ["kubectl describe gpusharepolicy second"]
    assert document["exit"] == 0, "the other policy serves the pod"
