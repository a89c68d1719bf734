"""What the operator's account may do while its Deployment is not there, and what others may.

A namespace with an account and a Deployment of the operator's name is judged as the operator's own: no policy
knows that by its name.
"""

import asyncio
import copy
import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.e2e.fixtures import own_namespace
from tests.e2e.observe import CALL_SECONDS, get, watch_until
from tests.e2e.product import named
from tests.samples.operator import control_plane, hostctl_run, policy

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand, hostctl_job
from gpushare_operator.desired.names import Installation
from gpushare_operator.desired.plugin_daemon_set import plugin_daemon_set
from gpushare_operator.desired.pod_template import to_be_compared

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("product")]

ACCOUNT = "gpushare-operator"
IMAGE = "gpushare:0.1.0"
PLUGIN = "gpushare-plugin-nowhere"
NO_DEPLOYMENT = "no params found"
PROGRAMS = {"plugin": {"resources": {"requests": {"cpu": "1.5", "memory": "1Gi"}}}}


@dataclasses.dataclass(frozen=True)
class Place:
    """A namespace with an operator, as far as admission policies can tell."""

    cluster: LocalCluster
    namespace: str
    operator: Credentials

    @property
    def path(self) -> str:
        return paths.daemon_sets(self.namespace)

    def deploy(self, *args: str) -> None:
        """Nothing of it runs."""
        labels = {"app": "operator"}
        pod = {"containers": [{"name": "operator", "image": IMAGE, "args": list(args)}]}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": ACCOUNT, "namespace": self.namespace}
        self.admit({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})

    def undeploy(self) -> None:
        self.cluster.kubectl("delete", "deployment", ACCOUNT, "-n", self.namespace, "--cascade=orphan")

    def admit(self, *bodies: Json) -> None:
        """As an administrator does."""
        items = {"apiVersion": "v1", "kind": "List", "items": bodies}
        self.cluster.kubectl("apply", "-n", self.namespace, "-f", "-", stdin=json.dumps(items))

    def apply(self, body: Json) -> None:
        """As the operator does. Raises ``ApiError`` when it is refused."""

        async def send() -> None:
            async with KubeClient(self.operator, field_manager=ACCOUNT, timeout=CALL_SECONDS) as client:
                if body["kind"] == "Job":
                    await client.create(paths.jobs(self.namespace), body)
                else:
                    await client.apply(f"{self.path}/{body['metadata']['name']}", body)

        asyncio.run(send())

    def refusal(self, body: Json) -> str:
        """Returns the API server's words; empty when it agrees."""
        try:
            self.apply(body)
        except ApiError as error:
            return error.message
        return ""

    def plugin(self, forge: Callable[[Json], Any] = lambda _: None) -> Json:
        """As the operator makes it for a policy that has no nodes."""
        body = plugin_daemon_set(policy("nowhere"), Installation(namespace=self.namespace, image=IMAGE))
        made = copy.deepcopy(body)
        # There is no such policy: the garbage collector would take it away.
        made["metadata"].pop("ownerReferences")
        forge(made["spec"]["template"]["spec"]["containers"][0])
        return made

    def job(self) -> Json:
        installation = Installation(namespace=self.namespace, image=IMAGE)
        run = dataclasses.replace(hostctl_run(HostctlCommand.RESTORE), installation=installation)
        return hostctl_job(run, control_plane("gpu-1"), 1)

    def await_gone(self, collection: str, name: str) -> None:
        watch_until(
            self.cluster,
            collection,
            lambda items: not any(named(item, name) for item in items),
            what=f"{name} is gone",
            describe=lambda items: [item["metadata"] for item in items],
        )


@pytest.fixture
def place(cluster: LocalCluster) -> Iterator[Place]:
    """With the operator's Deployment and the plugin's DaemonSet."""
    with own_namespace(cluster) as namespace:
        cluster.kubectl("create", "serviceaccount", ACCOUNT, "-n", namespace)
        account = f"--serviceaccount={namespace}:{ACCOUNT}"
        cluster.kubectl(
            "create", "rolebinding", ACCOUNT, "--clusterrole=cluster-admin", account, "-n", namespace
        )
        token = cluster.kubectl("create", "token", ACCOUNT, "-n", namespace)
        credentials = dataclasses.replace(from_kubeconfig(cluster.kubeconfig), token=lambda: token)
        made = Place(cluster, namespace, credentials)
        made.deploy()
        # At first the API server knows neither the new rights nor this Deployment.
        wait_until(
            "the operator may make what it makes",
            lambda: not made.refusal(to_be_compared(made.plugin())),
        )
        made.apply(made.plugin())
        yield made


@pytest.fixture
def absent(place: Place) -> Place:
    """The same, and its Deployment was deleted without its pods."""
    place.undeploy()
    # The API server's admission learns of that a moment later.
    wait_until(
        "the operator has no Deployment",
        lambda: NO_DEPLOYMENT in place.refusal(to_be_compared(place.plugin())),
    )
    return place


EVIL = {"image": "evil"}
GREEDY = {"resources": {"requests": {"cpu": "1500m", "memory": "2Gi"}}}


def privileged(container: Json) -> None:
    container["securityContext"].update(privileged=True, allowPrivilegeEscalation=True)


@pytest.mark.parametrize("written", [to_be_compared, lambda body: body], ids=["compared", "not compared"])
def test_without_its_deployment_the_operator_brings_no_image_and_no_requests(
    absent: Place, written: Callable[[Json], Json]
) -> None:
    for forge in (lambda labels: labels.update(EVIL), lambda labels: labels.update(GREEDY), privileged):
        assert "ValidatingAdmissionPolicy" in absent.refusal(written(absent.plugin(forge)))


def test_nor_does_it_make_anything_new(absent: Place) -> None:
    absent.cluster.kubectl("delete", "daemonset", PLUGIN, "-n", absent.namespace)
    assert NO_DEPLOYMENT in absent.refusal(to_be_compared(absent.plugin()))
    assert "only with the label" in absent.refusal(absent.plugin())
    assert NO_DEPLOYMENT in absent.refusal(absent.job())


def test_what_was_there_may_still_be_put_right(absent: Place) -> None:
    absent.cluster.kubectl("label", "daemonset", PLUGIN, "-n", absent.namespace, "gpushare.io/policy-")
    absent.apply(absent.plugin())
    labels = get(absent.cluster, f"{absent.path}/{PLUGIN}")["metadata"]["labels"]
    assert labels["gpushare.io/policy"] == "nowhere"


def of_somebody_else(**labels: str) -> list[Json]:
    """Workloads that have nothing to do with us, and that nothing has to run of."""
    metadata = {"name": "theirs", "labels": labels}
    pod = {"containers": [{"name": "main", "image": "busybox"}], "nodeSelector": {"no": "node"}}
    template = {"metadata": {"labels": {"app": "theirs"}}, "spec": pod}
    selected = {"selector": {"matchLabels": {"app": "theirs"}}, "template": template}
    run = {"suspend": True, "template": {"spec": {**pod, "restartPolicy": "Never"}}}
    return [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": selected},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": selected},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": run},
    ]


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="nothing to do with us"),
        pytest.param({"app.kubernetes.io/managed-by": ACCOUNT}, id="with the label of what we make"),
    ],
)
def test_everybody_else_goes_on(absent: Place, labels: dict[str, str]) -> None:
    absent.admit(*of_somebody_else(**labels))
    absent.admit(*of_somebody_else(**labels, changed="yes"))
    for kind in ("daemonset", "deployment", "job"):
        absent.cluster.kubectl("delete", kind, "theirs", "-n", absent.namespace, "--cascade=foreground")


@pytest.mark.parametrize("cascade", ["foreground", "orphan", "background"])
def test_what_is_ours_can_be_deleted_in_any_way(absent: Place, cascade: str) -> None:
    """The garbage collector removes its finalizers by an update."""
    absent.cluster.kubectl(
        "delete", "daemonset", PLUGIN, "-n", absent.namespace, f"--cascade={cascade}", "--wait=false"
    )
    absent.await_gone(absent.path, PLUGIN)


def test_a_job_of_ours_can_be_deleted_in_any_way(place: Place) -> None:
    body = place.job()
    place.apply(body)
    place.undeploy()
    name = body["metadata"]["name"]
    place.cluster.kubectl(
        "delete", "job", name, "-n", place.namespace, "--cascade=foreground", "--wait=false"
    )
    place.await_gone(paths.jobs(place.namespace), name)


def test_more_may_be_requested_where_the_administrator_says_so(place: Place) -> None:
    greedy = place.plugin(lambda container: container.update(GREEDY))
    chosen = place.plugin(with_requests(cpu="1500m", memory="1024Mi"))
    place.deploy("--programs", json.dumps(PROGRAMS))
    wait_until(
        "the API server's admission knows the Deployment's arguments",
        lambda: not place.refusal(to_be_compared(chosen)),
    )
    assert "may request" in place.refusal(to_be_compared(greedy)), "of cpu, and not of memory"


def with_requests(**amounts: str) -> Callable[[Json], None]:
    return lambda container: container.update(resources={"requests": amounts})
