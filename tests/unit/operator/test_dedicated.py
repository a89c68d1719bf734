"""Backend Dedicated: a kube-scheduler of our own, and the pods that it gets or does not get."""

from dataclasses import replace

import pytest
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    cluster_actions,
    control_plane,
    dedicated,
    dedicated_policy,
    installed,
    node,
    policy,
    scheduler_pods,
    server,
    sharing,
    untouched,
)

from gpushare_core.api.enums import Backend
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import Action, ApplyDeployment, CreateJob, DeleteDeployment
from gpushare_operator.backends.table import BACKENDS
from gpushare_operator.cluster.objects import ReadResult
from gpushare_operator.cluster.readers.pods import read_pod_without_scheduler
from gpushare_operator.cluster.readers.workloads import read_deployment
from gpushare_operator.cluster.server import read_server_version
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.status.pods_without_scheduler import absent_scheduler
from gpushare_operator.status.policy import policy_status


def line(seen: ClusterSnapshot, kind: str) -> str:
    status = policy_status(seen, seen.policies["default"], INSTALLATION, now=NOW)
    (found,) = [condition for condition in status.conditions if condition.type == kind]
    return f"{found.status} {found.reason}: {found.message}"


SHORT = {DeleteDeployment: "delete", CreateJob: "restore a host"}


def planned(seen: ClusterSnapshot) -> list[str]:
    return [SHORT.get(type(action)) or deployed(action) for action in cluster_actions(seen)]


def deployed(action: Action) -> str:
    assert isinstance(action, ApplyDeployment)
    return f"deploy {action.body['spec']['template']['spec']['containers'][0]['image']}"


@pytest.mark.parametrize(
    ("seen", "plan"),
    [
        pytest.param(sharing(dedicated_policy()), [], id="the server's version is not known"),
        pytest.param(
            sharing(dedicated_policy(), server(), kubernetes=""), [], id="a server without a version"
        ),
        pytest.param(
            sharing(dedicated_policy(), server(pods_without_scheduler=None)),
            [],
            id="without the rights to it",
        ),
        pytest.param(
            sharing(dedicated_policy(), server()),
            [f"deploy gpushare-scheduler:{VERSION}-1.36"],
            id="it is made",
        ),
        pytest.param(sharing(dedicated_policy(), server(), dedicated()), [], id="it is there"),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated(), kubernetes="v1.37.0"),
            [f"deploy gpushare-scheduler:{VERSION}-1.37"],
            id="the server was upgraded",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated(body={})),
            [f"deploy gpushare-scheduler:{VERSION}-1.36"],
            id="somebody changed it",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated(body={}, deleting=True)),
            [],
            id="somebody deleted it, and it is going",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(pods_without_scheduler=None), control_plane(), installed()),
            [],
            id="without the rights to it the backend before it stays",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated(), control_plane(), installed()),
            ["restore a host"],
            id="hosts that were edited are restored first",
        ),
        pytest.param(sharing(dedicated()), ["delete"], id="it goes"),
        pytest.param(sharing(dedicated(deleting=True)), [], id="it is going"),
        pytest.param(
            sharing(policy(), untouched(), dedicated()),
            ["delete"],
            id="before another backend comes",
        ),
        pytest.param(sharing(policy(), untouched(), node("a"), scheduler_pods()), [], id="its pods stop"),
    ],
)
def test_it_is_made_followed_and_removed(seen: ClusterSnapshot, plan: list[str]) -> None:
    assert planned(seen) == plan


@pytest.mark.parametrize(
    ("seen", "unsettled"),
    [
        pytest.param(sharing(dedicated()), {Backend.DEDICATED}, id="our kube-scheduler"),
        pytest.param(sharing(node("a"), scheduler_pods()), {Backend.DEDICATED}, id="a pod of it"),
    ],
)
def test_settled(seen: ClusterSnapshot, unsettled: set[Backend]) -> None:
    assert {name for name, backend in BACKENDS.items() if not backend.settled(seen)} == unsettled


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        pytest.param(
            sharing(dedicated_policy(), server(pods_without_scheduler=None)),
            "False RightsMissing: the operator lacks the rights to run a kube-scheduler: kubectl apply -k"
            " manifests/ded",
            id="no rights",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), kubernetes=""),
            "False SchedulerNotReady: waiting for the API server's version",
            id="no version",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(pods_without_scheduler=None), control_plane(), installed()),
            "False RightsMissing: the operator lacks the rights to run a kube-scheduler",
            id="without the rights to it, another one in force",
        ),
        pytest.param(
            sharing(dedicated_policy(), server()),
            "False SchedulerNotReady: the Deployment gpushare-scheduler is being created or changed",
            id="not made yet",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated(body={})),
            "False SchedulerNotReady: the Deployment gpushare-scheduler is being created or changed",
            id="it runs with other settings still",
        ),
        pytest.param(
            sharing(
                dedicated_policy(),
                server(),
                dedicated(is_rolled_out=False),
                scheduler_pods(ready=False, waiting="ImagePullBackOff: no such image"),
            ),
            "False SchedulerNotReady: scheduler-a: ImagePullBackOff: no such image",
            id="no image",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated()),
            f"True Configured: gpushare-scheduler (gpushare-scheduler:{VERSION}-1.36, engine Plugin) places"
            " pods; pods that ask for cards get its schedulerName",
            id="it serves, and pods come to it",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(pod_policy=ReadResult.NOT_SERVED), dedicated()),
            "the API server has no MutatingAdmissionPolicy, so each pod has to set schedulerName: ",
            id="it serves, and pods have to name it",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(pod_policy=ReadResult.MISSING), dedicated()),
            "kubectl apply -f manifests/dedicated/pods.yaml",
            id="it serves, and the policy for pods is not installed",
        ),
        pytest.param(
            sharing(dedicated_policy(deleting=True), dedicated()),
            "False Restoring: gpushare-scheduler is being removed",
            id="Dedicated goes",
        ),
        pytest.param(
            sharing(dedicated_policy(deleting=True), dedicated_policy("b"), dedicated()),
            "False Deleting: gpushare-scheduler stays",
            id="Dedicated stays",
        ),
    ],
)
def test_the_condition_says_what_there_is_and_what_to_do(seen: ClusterSnapshot, said: str) -> None:
    assert said in line(seen, "SchedulerConfigured")


@pytest.mark.parametrize(
    ("rights", "backend"), [(None, Backend.KUBE_SCHEDULER), ((), Backend.DEDICATED)], ids=["missing", "given"]
)
def test_pods_are_pointed_at_it_once_it_may_be_made(rights: tuple[str, ...] | None, backend: Backend) -> None:
    seen = sharing(dedicated_policy(), server(pods_without_scheduler=rights), control_plane(), installed())
    assert policy_status(seen, seen.policies["default"], INSTALLATION, now=NOW).backend == backend


WAITING = ("a/x", "a/y")


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        pytest.param(
            sharing(
                dedicated_policy(), server(pods_without_scheduler=WAITING, pod_policy=ReadResult.NOT_SERVED)
            ),
            "True PodsNotScheduled: nobody places 2 pods with schedulerName: default-scheduler (a/x, a/y) by"
            " cards: delete them, and create them with schedulerName: gpushare-scheduler",
            id="without a policy that points them",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(pods_without_scheduler=WAITING)),
            "by cards: delete them; new ones get schedulerName: gpushare-scheduler",
            id="created before",
        ),
        pytest.param(
            sharing(policy(), server(pods_without_scheduler=("a/x",), absent_scheduler="gpushare-scheduler")),
            "nobody places 1 pod with schedulerName: gpushare-scheduler (a/x) any more: delete them, and",
            id="left by our kube-scheduler",
        ),
        pytest.param(sharing(dedicated_policy(), server()), "False AsExpected", id="none"),
    ],
)
def test_pods_that_nobody_places_are_counted(seen: ClusterSnapshot, said: str) -> None:
    assert said in line(seen, "Degraded")


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        pytest.param(sharing(), "", id="nothing"),
        pytest.param(sharing(policy()), "", id="another backend"),
        pytest.param(sharing(dedicated_policy()), "default-scheduler", id="ours places"),
        pytest.param(sharing(policy(), dedicated()), "gpushare-scheduler", id="ours goes"),
        pytest.param(sharing(policy(), server()), "gpushare-scheduler", id="ours has just gone"),
        pytest.param(
            sharing(policy(), server(pods_without_scheduler=WAITING, absent_scheduler="gpushare-scheduler")),
            "gpushare-scheduler",
            id="some are left",
        ),
        pytest.param(sharing(policy(), server(absent_scheduler="gpushare-scheduler")), "", id="none is left"),
        pytest.param(
            sharing(dedicated(), server(pods_without_scheduler=WAITING)), "", id="nobody is to be told"
        ),
    ],
)
def test_pods_that_nobody_places_are_looked_for_where_there_may_be_some(
    seen: ClusterSnapshot, asked: str
) -> None:
    assert absent_scheduler(seen) == asked


@pytest.mark.parametrize(
    ("given", "image"),
    [
        ("example.com/kube-scheduler", "example.com/kube-scheduler:v1.36.3"),
        ("example.com:5000/kube-scheduler", "example.com:5000/kube-scheduler:v1.36.3"),
        ("example.com/kube-scheduler:v1.36.1", "example.com/kube-scheduler:v1.36.1"),
        ("example.com/kube-scheduler@sha256:00", "example.com/kube-scheduler@sha256:00"),
    ],
)
def test_an_administrator_names_the_image_of_kube_scheduler(given: str, image: str) -> None:
    assert replace(INSTALLATION, scheduler_image=given).scheduler_image_for("v1.36.3") == image


@pytest.mark.parametrize(
    ("seen", "backend"),
    [
        pytest.param(sharing(dedicated_policy()), "Dedicated", id="asked for"),
        pytest.param(
            sharing(dedicated_policy(), policy("older", created=-1)), "KubeScheduler", id="overruled"
        ),
        pytest.param(sharing(dedicated_policy(deleting=True)), "", id="going"),
        pytest.param(
            sharing(dedicated_policy(deleting=True), policy("b", created=1)),
            "KubeScheduler",
            id="another stays",
        ),
    ],
)
def test_the_status_says_who_places_pods(seen: ClusterSnapshot, backend: str) -> None:
    """The admission policy of pods goes by it."""
    assert policy_status(seen, seen.policies["default"], INSTALLATION, now=NOW).backend == backend


@pytest.mark.parametrize(
    ("given", "version"),
    [
        ("v1.36.3", "v1.36.3"),
        ("v1.31.5-gke.1233000", "v1.31.5"),
        ("v1.32.1-eks-a737599", "v1.32.1"),
        ("v1.33.0+k3s1", "v1.33.0"),
        ("v1.37.0-alpha.1", "v1.37.0"),
        ("unknown", ""),
    ],
)
def test_of_a_servers_version_only_what_images_are_tagged_with_is_read(given: str, version: str) -> None:
    assert read_server_version({"gitVersion": given}) == version


def waiting_pod(**spec: object) -> Json:
    given = {"containers": [asking("gpushare.io/memory")]}
    return {"metadata": {"namespace": "a", "name": "x"}, "spec": {**given, **spec}}


def asking(resource: str, amount: str = "4") -> Json:
    return {"name": "main", "resources": {"limits": {resource: amount}}}


@pytest.mark.parametrize(
    ("body", "stray"),
    [
        pytest.param(waiting_pod(), "a/x", id="asks for a unit"),
        pytest.param(waiting_pod(containers=[asking("tuya.com/sgpu")]), "a/x", id="in any dialect"),
        pytest.param(
            waiting_pod(containers=[{"name": "a"}], initContainers=[asking("gpushare.io/card")]),
            "a/x",
            id="an init container asks",
        ),
        pytest.param(waiting_pod(containers=[asking("cpu")]), "", id="asks for nothing of ours"),
        pytest.param(waiting_pod(containers=[asking("tuya.com/sgpu", "+0")]), "", id="asks for none of ours"),
        pytest.param(waiting_pod(containers=[asking("nvidia.com/gpu")]), "", id="another plugin's, perhaps"),
        pytest.param(waiting_pod(schedulingGates=[{"name": "a"}]), "", id="is not to be scheduled yet"),
    ],
)
def test_only_pods_that_ask_for_our_cards_are_strays(body: Json, stray: str) -> None:
    assert read_pod_without_scheduler(body) == stray


COUNTS = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "observedGeneration": 3}


@pytest.mark.parametrize(
    ("status", "rolled_out"),
    [
        pytest.param(COUNTS, "yes", id="all are there"),
        pytest.param({**COUNTS, "readyReplicas": 1}, "yes", id="one can do it"),
        pytest.param({**COUNTS, "readyReplicas": 0}, "no", id="none is ready"),
        pytest.param({**COUNTS, "updatedReplicas": 1}, "no", id="one is as before"),
        pytest.param({**COUNTS, "replicas": 3}, "no", id="one of before is there still"),
        pytest.param({**COUNTS, "observedGeneration": 2}, "no", id="the change was not seen yet"),
        pytest.param({}, "no", id="just made"),
    ],
)
def test_it_is_rolled_out_when_no_pod_is_as_before(status: Json, rolled_out: str) -> None:
    metadata = {"name": "gpushare-scheduler", "uid": "1", "generation": 3}
    body = {"metadata": metadata, "spec": {"replicas": 2}, "status": status}
    assert read_deployment(body).is_rolled_out == (rolled_out == "yes")
