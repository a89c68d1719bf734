"""Of Deployments the operator's account makes one only: a second kube-scheduler, as the operator makes it."""

import asyncio
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest
from tests.e2e.observe import CALL_SECONDS
from tests.e2e.product import ROOT, SYSTEM, Product
from tests.e2e.rights import await_right, may

from gpushare_core.api.enums import Engine
from gpushare_core.api.names import DEDICATED_EXTENDER_ACCOUNT, DEDICATED_SCHEDULER
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until
from gpushare_operator.backends.dedicated.deployment import scheduler_deployment
from gpushare_operator.desired.names import Installation
from gpushare_operator.desired.pod_template import to_be_compared
from gpushare_operator.policies.scheduler_settings import SchedulerSettings

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

MANIFESTS = str(ROOT / "manifests" / "dedicated" / "scheduler")
INSTALLATION = Installation(namespace=SYSTEM, image="gpushare:0.1.0")
SETTINGS = SchedulerSettings(engine=Engine.EXTENDER)
MADE = scheduler_deployment(INSTALLATION, SETTINGS, "v1.36.3")
WITH_PLUGIN = scheduler_deployment(INSTALLATION, replace(SETTINGS, engine=Engine.PLUGIN), "v1.36.3")
CONTAINER = {"name": "sidecar", "image": "gpushare:0.1.0", "command": ["sh"]}


@pytest.fixture(scope="module")
def operator(cluster: LocalCluster, product: Product) -> Iterator[Credentials]:
    """The operator's own token, with the rights for this backend."""
    del product
    try:
        yield from rights(cluster)
    finally:
        cluster.kubectl("delete", "-k", MANIFESTS)


def rights(cluster: LocalCluster) -> Iterator[Credentials]:
    cluster.kubectl("apply", "-k", MANIFESTS)
    token = cluster.kubectl("create", "token", "gpushare-operator", "-n", SYSTEM)
    credentials = replace(from_kubeconfig(cluster.kubeconfig), token=lambda: token)
    forgeries = (lambda pod: pod.update(hostPID=True), image(1, "evil"))  # one for each policy
    wait_until(
        "the admission policies are in force",
        lambda: all(is_refused(credentials, forged(forge)) for forge in forgeries),
    )
    yield credentials


def forged(forge: Callable[[Json], Any], made: Json = MADE) -> Json:
    body = to_be_compared(copy.deepcopy(made))
    forge(body["spec"]["template"]["spec"])
    return body


def apply(operator: Credentials, body: Json) -> None:
    """A dry run, as the operator's account. Raises ``ApiError`` when it is refused."""
    path = paths.deployment_path(SYSTEM, body["metadata"]["name"])
    params = {"fieldManager": "gpushare-operator", "force": "true", "dryRun": "All"}
    request = ApiRequest(
        method="PATCH", path=path, body=body, content_type="application/apply-patch+yaml", params=params
    )

    async def send() -> None:
        async with KubeClient(operator, timeout=CALL_SECONDS) as client:
            await client.send(request)

    asyncio.run(send())


def is_refused(operator: Credentials, body: Json) -> bool:
    try:
        apply(operator, body)
    except ApiError as error:
        return error.is_forbidden and "ValidatingAdmissionPolicy" in error.message
    return False


each_engine = pytest.mark.parametrize("made", [MADE, WITH_PLUGIN], ids=["Extender", "Plugin"])


@each_engine
def test_what_the_operator_makes_is_let_pass(operator: Credentials, made: Json) -> None:
    apply(operator, to_be_compared(made))


@each_engine
def test_it_has_to_be_compared_with_the_operators_own_deployment(operator: Credentials, made: Json) -> None:
    with pytest.raises(ApiError, match="only with the label"):
        apply(operator, made)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"replicas": 3}, id="many pods"),
        pytest.param({"selector": {"matchLabels": {"app.kubernetes.io/name": "gpushare"}}}, id="selector"),
    ],
)
def test_how_many_there_are_is_the_operators_too(operator: Credentials, changed: Json) -> None:
    body = forged(lambda _: None)
    with pytest.raises(ApiError, match="only the Deployment gpushare-scheduler, of two pods"):
        apply(operator, {**body, "spec": {**body["spec"], **changed}})


def test_no_other_deployment_may_be_made(operator: Credentials) -> None:
    other = {**MADE, "metadata": {**MADE["metadata"], "name": "other"}}
    with pytest.raises(ApiError, match='"other" is forbidden'):
        apply(operator, other)


def image(number: int, name: str) -> Callable[[Json], Any]:
    return lambda pod: pod["containers"][number].update(image=name)


def security(number: int, **fields: Any) -> Callable[[Json], Any]:
    return lambda pod: pod["containers"][number]["securityContext"].update(fields)


PROGRAMS = "only the Deployment gpushare-scheduler"


CONFINED = "only containers with seccomp"
OTHER_FIELDS = "only HTTP probes"
PLACES = "let the default scheduler place"
# Where two policies refuse a forgery, the API server names either.
FORGERIES = (
    (image(0, "evil/kube-scheduler:v1.36.3"), "may run only", "another image for kube-scheduler"),
    (image(0, "registry.k8s.io/kube-scheduler:latest"), "may run only", "no version"),
    (image(0, "registry.k8s.io/kube-scheduler:v1.36.3@sha256:0"), "may run only", "a digest behind it"),
    (image(1, "evil"), "may run only", "another image for the extender"),
    (
        lambda pod: pod["containers"][0].update(resources={"requests": {"memory": "2Gi"}}),
        "may request for a container no more",
        "memory",
    ),
    (lambda pod: pod["initContainers"][0].update(image="evil"), "may run only", "another one before both"),
    (lambda pod: pod.update(imagePullSecrets=[{"name": "theirs"}]), "may run only", "a pull secret"),
    (lambda pod: pod["containers"].append(CONTAINER), PROGRAMS, "another container"),
    (lambda pod: pod["initContainers"].append(CONTAINER), f"{PROGRAMS}|may run only", "another one before"),
    (lambda pod: pod["containers"][0].update(command=["sh"]), PROGRAMS, "another program"),
    (lambda pod: pod.update(serviceAccountName="default"), PROGRAMS, "another account"),
    (lambda pod: pod.update(serviceAccountName=DEDICATED_SCHEDULER), PROGRAMS, "the other engine's account"),
    (
        lambda pod: pod["containers"][0]["args"].append("--kubeconfig=/a"),
        "may not run its programs",
        "argument",
    ),
    (
        lambda pod: pod["containers"][1]["args"].__setitem__(1, "0.0.0.0:22766"),
        "may not run its programs",
        "an extender for everybody",
    ),
    (lambda pod: pod.update(hostNetwork=True), "here are also: hostNetwork", "network"),
    (lambda pod: pod.update(tolerations=[{"operator": "Exists"}]), "also: tolerations", "tolerations"),
    (
        lambda pod: pod["containers"][0].update(envFrom=[{"configMapRef": {"name": "a"}}]),
        "here are also: kube-scheduler",
        "variables from elsewhere",
    ),
    (
        lambda pod: pod["containers"][0].update(env=[{"name": "A", "value": "b"}]),
        OTHER_FIELDS,
        "variable",
    ),
    (
        lambda pod: pod["containers"][0]["livenessProbe"]["httpGet"].update(host="192.0.2.1"),
        OTHER_FIELDS,
        "a probe elsewhere",
    ),
    (
        lambda pod: pod["containers"][1]["ports"][0].update(hostPort=80),
        OTHER_FIELDS,
        "a port of the host",
    ),
    (
        lambda pod: pod["volumes"].__setitem__(0, {"name": "shared", "hostPath": {"path": "/"}}),
        "only one volume",
        "the host",
    ),
    (
        lambda pod: pod["containers"][0]["volumeMounts"][0].update(mountPath="/usr"),
        "only one volume",
        "elsewhere",
    ),
    (security(0, runAsUser=0), CONFINED, "root"),
    (security(1, privileged=True, allowPrivilegeEscalation=True), CONFINED, "privileged"),
    (lambda pod: pod["securityContext"].pop("seccompProfile"), CONFINED, "system calls"),
    (lambda pod: pod.update(nodeSelector={"a": "b"}), PLACES, "place"),
    (lambda pod: pod.update(schedulerName="mine"), PLACES, "scheduler"),
)


def argument(old: str, new: str) -> Callable[[Json], Any]:
    """Changes an argument of what prepares the pod."""

    def forge(pod: Json) -> None:
        arguments = pod["initContainers"][0]["args"]
        arguments[arguments.index(old)] = new

    return forge


EXTENDER = MADE["spec"]["template"]["spec"]["containers"][1]
FORGERIES_WITH_PLUGIN = (
    (image(0, "evil:0.1.0-1.36"), "may run only", "another image"),
    (
        image(0, "registry.k8s.io/kube-scheduler:v1.36.3"),
        "may run only",
        "Kubernetes' own, which asks nobody",
    ),
    (image(0, "gpushare:0.1.0"), "may run only", "the operator's image"),
    (image(0, "gpushare-scheduler-evil:0.1.0-1.36"), "may run only", "a longer name"),
    (image(0, "gpushare-scheduler:latest"), "may run only", "no minor"),
    (image(0, "gpushare-scheduler:0.1.0-1.36@sha256:0"), "may run only", "a digest behind it"),
    (lambda pod: pod["initContainers"][0].update(image="evil"), "may run only", "another one before it"),
    (lambda pod: pod["containers"].append(CONTAINER), PROGRAMS, "another container"),
    (lambda pod: pod["containers"].append(EXTENDER), f"may run only|{PROGRAMS}", "an extender"),
    (
        lambda pod: pod.update(serviceAccountName=DEDICATED_EXTENDER_ACCOUNT),
        PROGRAMS,
        "the other engine's account",
    ),
    (
        lambda pod: pod["containers"][0].update(command=["kube-scheduler", "--authorization-always-allow"]),
        PROGRAMS,
        "more in the command",
    ),
    (argument("Plugin", "Extender"), "may not run its programs", "the other engine's configuration"),
    (argument("gpushare-scheduler", "default-scheduler"), "may not run its programs", "others' pods"),
    (argument("5", "1000"), "may not run its programs", "weight"),
    (
        lambda pod: pod["containers"][0]["args"].append("--v=9"),
        "may not run its programs",
        "an argument of kube-scheduler's",
    ),
    (security(0, runAsUser=0), CONFINED, "root"),
    (lambda pod: pod["containers"][0].update(ports=[{"containerPort": 1}]), OTHER_FIELDS, "a port"),
    (lambda pod: pod.update(hostNetwork=True), "here are also: hostNetwork", "network"),
)


@pytest.mark.parametrize(
    ("made", "forge", "refusal"),
    [
        *(pytest.param(MADE, forge, refusal, id=name) for forge, refusal, name in FORGERIES),
        *(
            pytest.param(WITH_PLUGIN, forge, refusal, id=f"Plugin: {name}")
            for forge, refusal, name in FORGERIES_WITH_PLUGIN
        ),
    ],
)
def test_a_forgery_is_refused_and_the_message_says_what_it_is(
    operator: Credentials, made: Json, forge: Callable[[Json], Any], refusal: str
) -> None:
    with pytest.raises(ApiError, match=refusal) as refused:
        apply(operator, forged(forge, made))
    assert refused.value.status == HTTPStatus.FORBIDDEN


def as_account(account: str, question: str) -> list[str]:
    """``question`` to ``kubectl auth can-i``, in gpushare's namespace unless it names another one."""
    namespace = () if " -n " in question else ("-n", SYSTEM)
    return [*question.split(), *namespace, f"--as=system:serviceaccount:{SYSTEM}:{account}"]


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("account", [DEDICATED_SCHEDULER, DEDICATED_EXTENDER_ACCOUNT])
@pytest.mark.parametrize(
    "question",
    [
        "create pods --subresource=binding",
        "delete pods",
        "watch gpusharenodes.gpushare.io",
        "update leases.coordination.k8s.io/gpushare-scheduler",
        "update leases.coordination.k8s.io/gpushare-extender",
        "watch configmaps/extension-apiserver-authentication -n kube-system",
    ],
)
def test_with_either_engine_our_scheduler_may_do_what_it_needs(
    cluster: LocalCluster, account: str, question: str
) -> None:
    await_right(cluster, *as_account(account, question))


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    "question",
    [
        "create pods --subresource=eviction",
        "patch leases.coordination.k8s.io/gpushare-extender-calls",
        "patch leases.coordination.k8s.io/gpushare-extender-books",
        "patch csistoragecapacities.storage.k8s.io/gpushare-wake-up",
    ],
)
def test_what_only_the_extender_needs_the_account_of_engine_plugin_may_not(
    cluster: LocalCluster, question: str
) -> None:
    await_right(cluster, *as_account(DEDICATED_EXTENDER_ACCOUNT, question))
    assert not may(cluster, *as_account(DEDICATED_SCHEDULER, question))


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    "question",
    [
        "get secrets",
        "get configmaps -n kube-system",
        "patch pods",
        "patch nodes",
        "get gpusharepolicies.gpushare.io",
        "patch gpusharenodes.gpushare.io --subresource=status",
        "patch leases.coordination.k8s.io/gpushare-operator",
        "create deployments.apps",
    ],
)
def test_nobody_who_schedules_may_do_more(cluster: LocalCluster, question: str) -> None:
    assert may(cluster, *question.split()), "there is such a right, and who has all rights has it"
    for account in (DEDICATED_SCHEDULER, DEDICATED_EXTENDER_ACCOUNT):
        assert not may(cluster, *as_account(account, question))
