"""What somebody who has the operator's token can run: our three programs as the operator runs them.

Every field of pods and containers that the server knows is gone through, so that a new one is noticed.
"""

import asyncio
import copy
import dataclasses
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
from tests.e2e.observe import CALL_SECONDS, get, watch_until
from tests.e2e.product import SYSTEM
from tests.samples.operator import control_plane, hostctl_run, policy

from gpushare_core.api.names import COMPONENT_LABEL, MANAGED_BY_LABEL, PLUGIN_NODE_LABEL, POLICY_LABEL
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.kubernetes_minors import ENGINE_MINORS
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_operator.backends.extender_workload.daemon_set import extender_daemon_set
from gpushare_operator.backends.extender_workload.log_folder import ExtenderLog
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand, Occasion, hostctl_job
from gpushare_operator.cluster.labels import COMPARE_LABEL
from gpushare_operator.desired.names import Installation
from gpushare_operator.desired.plugin_daemon_set import plugin_daemon_set
from gpushare_operator.desired.plugin_platform import (
    CDI_FOLDERS,
    CGROUPS,
    FOLDERS,
    ISOLATION,
    PluginPlatform,
)
from gpushare_operator.desired.pod_template import to_be_compared
from gpushare_operator.policies.engine_choice import EngineChoice

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("product")]

INSTALLATION = Installation(namespace=SYSTEM, image="gpushare:0.1.0")
EXTENDER, PLUGIN = EngineChoice(), EngineChoice(minor=ENGINE_MINORS[-1])
COLLECTIONS = {"DaemonSet": paths.daemon_sets(SYSTEM), "Job": paths.jobs(SYSTEM)}


def run_of(command: HostctlCommand, choice: EngineChoice = EXTENDER, **occasion: Any) -> Json:
    given = hostctl_run(command, engine=choice.engine)
    run = dataclasses.replace(given, installation=INSTALLATION, choice=choice)
    return hostctl_job(run, control_plane("control-plane-1"), 99, Occasion(**occasion))


INVENTORIES = tuple(folder for folder in FOLDERS if folder.name.startswith("inventory-"))

MADE: dict[str, Json] = {
    "plugin": plugin_daemon_set(policy("forged"), INSTALLATION),
    "plugin of a runtime class": plugin_daemon_set(
        policy("forged"), INSTALLATION, PluginPlatform(runtime_class="nvidia")
    ),
    "plugin of an inventory": plugin_daemon_set(
        policy("forged"), INSTALLATION, PluginPlatform(folders=INVENTORIES[:1])
    ),
    "plugin of two inventories": plugin_daemon_set(
        policy("forged"), INSTALLATION, PluginPlatform(folders=INVENTORIES)
    ),
    "plugin with isolation": plugin_daemon_set(
        policy("forged"), INSTALLATION, PluginPlatform(folders=(ISOLATION,))
    ),
    "plugin that reads limits back": plugin_daemon_set(
        policy("forged"), INSTALLATION, PluginPlatform(folders=(CGROUPS, *CDI_FOLDERS))
    ),
    "plugin that measures containers": plugin_daemon_set(
        policy("forged"), INSTALLATION, PluginPlatform(host_processes=True)
    ),
    "plugin with logs on the host": plugin_daemon_set(
        policy("forged"), INSTALLATION, PluginPlatform(log_folder="/var/log/our.gpus/share")
    ),
    "plugin with everything": plugin_daemon_set(
        policy("forged"),
        INSTALLATION,
        PluginPlatform(
            runtime_class="nvidia",
            folders=FOLDERS,
            log_folder="/var/log/gpushare",
            host_processes=True,
        ),
    ),
    "extender": extender_daemon_set(INSTALLATION, [22766]),
    "extender with logs on the host": extender_daemon_set(
        INSTALLATION, [22766], ExtenderLog.below("/var/log/our.gpus/share")
    ),
    "extender on two ports": extender_daemon_set(INSTALLATION, [12000, 22766]),
    "install": run_of(HostctlCommand.INSTALL),
    "install unless rolled back": run_of(HostctlCommand.INSTALL, rolled_back_inputs="0123456789abcdef" * 4),
    "install with engine Plugin": run_of(HostctlCommand.INSTALL, PLUGIN),
    "install with engine Plugin unless rolled back": run_of(
        HostctlCommand.INSTALL, PLUGIN, rolled_back_inputs="0123456789abcdef" * 4
    ),
    "restore": run_of(HostctlCommand.RESTORE),
}
EXTENDER_LOGS = "extender with logs on the host"
PREPARATION = MADE[EXTENDER_LOGS]["spec"]["template"]["spec"]["initContainers"][0]
SWAP = "install with engine Plugin"
(CHECK,) = MADE[SWAP]["spec"]["template"]["spec"]["initContainers"]
AGAIN, OUR_IMAGE = {**CHECK, "name": "again"}, CHECK["image"]
OF_NOTHING = {**PREPARATION, "volumeMounts": []}
PREPARATIONS = "may run only two init containers"


def preparation(**change: Any) -> Callable[[Json], None]:
    return lambda pod: pod["initContainers"][0].update(change)


def swap_to(image: str) -> Callable[[Json], None]:
    """hostctl gives kube-scheduler another image, which is pulled before, as ours is."""

    def forge(pod: Json) -> None:
        replaced_arg("--scheduler-image", image)(pod)
        preparation(image=image)(pod)

    return forge


PATHS: dict[str, Callable[[Json], Json]] = {
    "pod": lambda pod: pod,
    "container": lambda pod: pod["containers"][0],
    "pod security": lambda pod: pod["securityContext"],
    "container security": lambda pod: pod["containers"][0]["securityContext"],
    "mount": lambda pod: pod["containers"][0]["volumeMounts"][0],
    "probe": lambda pod: pod["containers"][0]["livenessProbe"],
    "probe's request": lambda pod: pod["containers"][0]["livenessProbe"]["httpGet"],
    "resources": lambda pod: pod["containers"][0]["resources"],
}
SCHEMAS = {
    "pod": "PodSpec",
    "container": "Container",
    "pod security": "PodSecurityContext",
    "container security": "SecurityContext",
    "mount": "VolumeMount",
    "probe": "Probe",
    "probe's request": "HTTPGetAction",
    "resources": "ResourceRequirements",
}
ALLOWED = {
    "pod": {
        "containers",
        "dnsPolicy",
        "hostPID",
        "nodeSelector",
        "priorityClassName",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "terminationGracePeriodSeconds",
        "tolerations",
        "volumes",
    },
    "container": {
        "args",
        "command",
        "env",
        "image",
        "imagePullPolicy",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "resources",
        "securityContext",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "volumeMounts",
    },
    "pod security": {"seccompProfile"},
    "container security": {
        "allowPrivilegeEscalation",
        "capabilities",
        "readOnlyRootFilesystem",
        "runAsUser",
    },
    "mount": {"name", "mountPath", "readOnly"},
    "probe": {
        "httpGet",
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    },
    "probe's request": {"path", "port", "host", "scheme"},
    "resources": {"limits", "requests"},
}
"""Fields that the plugin's DaemonSet may have. Their values are FORGERIES' matter."""
SELINUX = {"type": "spc_t"}
ELSEWHERE = {"name": "a", "image": "evil"}
RUN = {"exec": {"command": ["sh"]}}
OTHER_FIELDS: dict[str, dict[str, Any]] = {
    "pod": {
        "activeDeadlineSeconds": 5,
        "affinity": {"podAntiAffinity": {}},
        "automountServiceAccountToken": False,
        "dnsConfig": {"nameservers": ["192.0.2.1"]},
        "enableServiceLinks": False,
        "ephemeralContainers": [ELSEWHERE],
        "evictionResponders": [{"name": "example.com/a", "priority": 5}],
        "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["kubernetes.default"]}],
        "hostIPC": True,
        "hostNetwork": True,
        "hostUsers": False,
        "hostname": "a",
        "hostnameOverride": "a",
        "imagePullSecrets": [{"name": "a"}],
        "initContainers": [ELSEWHERE],
        "nodeName": "control-plane-1",
        "os": {"name": "linux"},
        "overhead": {"cpu": "1"},
        "preemptionPolicy": "Never",
        "priority": 5,
        "readinessGates": [{"conditionType": "example.com/a"}],
        "resourceClaims": [{"name": "a", "resourceClaimName": "a"}],
        "resources": {"limits": {"cpu": "1"}},
        "schedulingGates": [{"name": "example.com/a"}],
        "schedulingGroup": {"podGroupName": "a"},
        "workloadRef": {"name": "a", "podGroup": "b"},  # 1.35 alone has it
        "setHostnameAsFQDN": True,
        "shareProcessNamespace": True,
        "subdomain": "a",
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
    },
    "container": {
        "envFrom": [{"configMapRef": {"name": "a"}}],
        "lifecycle": {"postStart": RUN},
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
        "restartPolicy": "Always",
        "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
        "startupProbe": RUN,
        "stdin": True,
        "stdinOnce": True,
        "tty": True,
        "volumeDevices": [{"name": "device-plugins", "devicePath": "/dev/a"}],
        "workingDir": "/var/lib/kubelet/device-plugins",
    },
    "pod security": {
        "appArmorProfile": {"type": "Unconfined"},
        "fsGroup": 0,
        "fsGroupChangePolicy": "Always",
        "runAsGroup": 5,
        "runAsNonRoot": False,
        "runAsUser": 5,
        "seLinuxChangePolicy": "Recursive",
        "seLinuxOptions": SELINUX,
        "supplementalGroups": [5],
        "supplementalGroupsPolicy": "Strict",
        "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}],
        "windowsOptions": {"runAsUserName": "a"},
    },
    "container security": {
        "appArmorProfile": {"type": "Unconfined"},
        "privileged": True,
        "procMount": "Unmasked",
        "runAsGroup": 5,
        "runAsNonRoot": False,
        "seLinuxOptions": SELINUX,
        "seccompProfile": {"type": "Unconfined"},
        "windowsOptions": {"runAsUserName": "a"},
    },
    "mount": {
        "bindMountOptions": ["noexec"],
        "mountPropagation": "HostToContainer",
        "recursiveReadOnly": "Disabled",
        "subPath": "a",
        "subPathExpr": "$(NODE_NAME)",
    },
    "probe": {
        "exec": {"command": ["sh"]},
        "grpc": {"port": 1},
        "tcpSocket": {"port": 1},
        "terminationGracePeriodSeconds": 5,
    },
    "probe's request": {"httpHeaders": [{"name": "Authorization", "value": "a"}], "protocol": "HTTP2"},
    "resources": {"claims": [{"name": "a"}]},
}
"""Everything else that Kubernetes 1.37 knows, each with a value that says something."""


@pytest.fixture(scope="module")
def operator(cluster: LocalCluster) -> Credentials:
    """The operator's token, as somebody may have stolen it."""
    token = cluster.kubectl("create", "token", "gpushare-operator", "-n", SYSTEM)
    return dataclasses.replace(from_kubeconfig(cluster.kubeconfig), token=lambda: token)


def create(operator: Credentials, body: Json) -> Json:
    """Returns what the API server would have made of it. Raises ``ApiError`` when it is refused."""

    async def send() -> Json:
        path = COLLECTIONS[body["kind"]]
        request = ApiRequest(method="POST", path=path, body=body, params={"dryRun": "All"})
        async with KubeClient(operator, timeout=CALL_SECONDS) as client:
            return await client.send(request)

    return asyncio.run(send())


def outcome(operator: Credentials, body: Json) -> Json | ApiError:
    try:
        return create(operator, body)
    except ApiError as error:
        return error


def forged(made: str, forge: Callable[[Json], Any]) -> Json:
    body = to_be_compared(copy.deepcopy(MADE[made]))
    forge(body["spec"]["template"]["spec"])
    return body


@pytest.mark.parametrize("made", MADE)
def test_what_the_operator_makes_passes(operator: Credentials, made: str) -> None:
    """What is there already is refused only after the policies have let it pass."""
    answer = outcome(operator, forged(made, lambda _: None))
    assert not isinstance(answer, ApiError) or answer.is_conflict


@pytest.mark.parametrize("place", PATHS)
def test_every_field_that_the_server_knows_was_judged(cluster: LocalCluster, place: str) -> None:
    schemas = get(cluster, "/openapi/v3/apis/batch/v1")["components"]["schemas"]
    known = schemas[f"io.k8s.api.core.v1.{SCHEMAS[place]}"]["properties"]
    assert set(known) <= ALLOWED[place] | set(OTHER_FIELDS[place])


@pytest.mark.parametrize(
    ("place", "field"), [(place, field) for place, fields in OTHER_FIELDS.items() for field in fields]
)
def test_a_field_that_is_not_ours_is_refused(operator: Credentials, place: str, field: str) -> None:
    def forge(pod: Json) -> None:
        target = PATHS[place](pod)
        if place == "probe":
            target.pop("httpGet")
        target[field] = OTHER_FIELDS[place][field]

    match outcome(operator, forged("plugin", forge)):
        case ApiError(status=HTTPStatus.UNPROCESSABLE_ENTITY):
            """No valid pod at all: refused before."""
        case ApiError(message=message):
            assert "gpushare operator may" in message
        case answer:
            made = PATHS[place](answer["spec"]["template"]["spec"])
            assert field not in made, "only what the server drops, because the feature is off"


def set_args(*args: str) -> Callable[[Json], Any]:
    return lambda pod: pod["containers"][0].update(args=list(args))


def replaced_arg(name: str, value: str) -> Callable[[Json], Any]:
    def forge(pod: Json) -> None:
        args = pod["containers"][0]["args"]
        args[args.index(name) + 1] = value

    return forge


def more_args(*args: str) -> Callable[[Json], Any]:
    return lambda pod: pod["containers"][0]["args"].extend(args)


def volume(**source: Any) -> Callable[[Json], Any]:
    def forge(pod: Json) -> None:
        pod["volumes"].append({"name": "code", **source})
        pod["containers"][0]["volumeMounts"].append({"name": "code", "mountPath": "/usr/lib/python3"})

    return forge


def last_mount(pod: Json) -> Json:
    mounted: Json = pod["containers"][0]["volumeMounts"][-1]
    return mounted


def logs(**fields: str) -> Callable[[Json], Any]:
    return lambda pod: pod["volumes"][2]["hostPath"].update(fields)


def container(**fields: Any) -> Callable[[Json], Any]:
    return lambda pod: pod["containers"][0].update(fields)


def security(**fields: Any) -> Callable[[Json], Any]:
    return lambda pod: pod["containers"][0]["securityContext"].update(fields)


RUNS, MAY_NOT_RUN, VOLUMES, CONFINED, PLACES, PROGRAMS = (
    "here are also",
    "may not run",
    "no other volumes",
    "only containers with seccomp",
    "plugins only on the nodes of their policy",
    "only HTTP probes",
)
LOGS = "plugin with logs on the host"
LOGS_VOLUME = {"name": "logs", "hostPath": {"path": "/var/log/a", "type": "DirectoryOrCreate"}}
RESTORE = ("restore", "--root", "/host", "--timeout", "120")
FORGERIES = [
    ("restore", set_args(*RESTORE, "--folder", "/etc/kubernetes/pki"), MAY_NOT_RUN, "another folder"),
    (
        "restore",
        set_args(*RESTORE, "--manifest", "/etc/kubernetes/manifests/etcd.yaml"),
        MAY_NOT_RUN,
        "manifest",
    ),
    ("restore", set_args("restore --root", "/host", "--timeout", "120"), MAY_NOT_RUN, "two in one"),
    ("restore", set_args("restore", "--root", "/host", "--timeout", "120\n--folder\n/"), "denied", "lines"),
    ("restore", set_args("keys", "--root", "/host"), MAY_NOT_RUN, "another command"),
    ("install", more_args("--extender-group", "0"), MAY_NOT_RUN, "another group"),
    ("install", more_args("--termination-log", "/host/etc/kubernetes/a"), MAY_NOT_RUN, "another file"),
    *(
        ("install", replaced_arg("--weight", weight), MAY_NOT_RUN, f"weight {weight}")
        for weight in ("0", "101", "05", "1e2", "-1")
    ),
    ("plugin", more_args("--kubeconfig", "/x"), MAY_NOT_RUN, "plugin's arguments"),
    ("extender", set_args("--listen", "0.0.0.0:22766"), MAY_NOT_RUN, "listens to everybody"),
    ("plugin", more_args("--log-folder", "/"), MAY_NOT_RUN, "logs anywhere"),
    *(
        (LOGS, logs(path=path), VOLUMES, f"logs in {path}")
        for path in (
            "/etc",
            "/var/log",
            "/var/log/",
            "/var/log/.a",
            "/x/var/log/a",
        )  # the server itself refuses ..
    ),
    (LOGS, logs(type="Directory"), VOLUMES, "logs, another kind of host path"),
    (
        LOGS,
        lambda pod: pod["containers"][0]["volumeMounts"][2].update(mountPath="/usr"),
        VOLUMES,
        "over code",
    ),
    ("install", lambda pod: pod["volumes"].append(LOGS_VOLUME), VOLUMES, "logs of another program"),
    (
        EXTENDER_LOGS,
        lambda pod: pod["volumes"][1]["hostPath"].update(path="/var/log/pods"),
        "denied",
        "pods' logs",
    ),
    (EXTENDER_LOGS, lambda pod: pod.pop("initContainers"), PREPARATIONS, "no folder of its own"),
    *(
        (EXTENDER_LOGS, preparation(**change), PREPARATIONS, f"preparation with another {next(iter(change))}")
        for change in (
            {"image": "evil"},
            {"command": ["gpushare-plugin"]},
            {"args": ["log-folder", "--folder", "/", "--group", "65532"]},
            {"env": [{"name": "LD_PRELOAD", "value": "/logs/evil.so"}]},
            {"securityContext": {"privileged": True}},
            {"volumeMounts": [{"name": "keys", "mountPath": "/logs"}]},
            {"resources": {"requests": {"cpu": "64"}}},
            {"restartPolicy": "Always"},
        )
    ),
    (
        "extender",
        lambda pod: pod.update(initContainers=[OF_NOTHING]),
        PREPARATIONS,
        "preparation of nothing",
    ),
    (
        "install",
        lambda pod: pod.update(initContainers=[OF_NOTHING]),
        "denied",
        "preparation of another program",
    ),
    *(
        (SWAP, preparation(**change), PREPARATIONS, f"check of our image with another {next(iter(change))}")
        for change in (
            {"image": f"{OUR_IMAGE}0"},
            {"command": ["sh"]},
            {"args": ["--config=/etc/kubernetes/scheduler.conf"]},
            {"env": [{"name": "KUBECONFIG", "value": "/etc/kubernetes/admin.conf"}]},
            {"securityContext": {**CHECK["securityContext"], "runAsUser": 0, "runAsNonRoot": False}},
            {"volumeMounts": [{"name": "configuration", "mountPath": "/etc/kubernetes"}]},
            {"resources": {"requests": {"cpu": "64"}}},
            {"restartPolicy": "Always"},
        )
    ),
    (SWAP, lambda pod: pod.pop("initContainers"), PREPARATIONS, "our image is not checked before"),
    (SWAP, lambda pod: pod["initContainers"].append(AGAIN), PREPARATIONS, "our image is checked twice"),
    ("install", lambda pod: pod.update(initContainers=[CHECK]), PREPARATIONS, "a check with engine Extender"),
    ("restore", lambda pod: pod.update(initContainers=[CHECK]), PREPARATIONS, "a check before restoring"),
    (SWAP, replaced_arg("--scheduler-image", "evil"), PREPARATIONS, "another image than what was checked"),
    *(
        (SWAP, swap_to(image), "only a version of the image gpushare-scheduler", f"kube-scheduler of {image}")
        for image in (
            "evil",
            "evil/gpushare-scheduler:0.1.0-1.36",
            "gpushare-scheduler",
            "gpushare-scheduler:latest",
            "gpushare-scheduler-evil:0.1.0-1.36",
            f"{OUR_IMAGE}@sha256:{'0' * 64}",
        )
    ),
    (SWAP, replaced_arg("--lease-namespace", "../kube-system"), MAY_NOT_RUN, "no namespace"),
    (SWAP, replaced_arg("--weight", "101"), MAY_NOT_RUN, "weight 101 of the plugin"),
    (SWAP, more_args("--extender-url", "http://192.0.2.1"), MAY_NOT_RUN, "both engines"),
    ("extender", more_args("--metrics-listen", "0.0.0.0:80"), MAY_NOT_RUN, "metrics to everybody"),
    ("install", volume(emptyDir={}), VOLUMES, "empty folder"),
    ("install", volume(configMap={"name": "a"}), VOLUMES, "ConfigMap"),
    ("install", volume(secret={"secretName": "a"}), VOLUMES, "Secret"),
    ("install", volume(downwardAPI={"items": []}), VOLUMES, "downward API"),
    ("install", volume(projected={"sources": []}), VOLUMES, "projected"),
    ("install", volume(hostPath={"path": "/etc/kubernetes", "type": "Directory"}), VOLUMES, "twice"),
    ("install", lambda pod: pod["volumes"][0]["hostPath"].update(path="/"), VOLUMES, "host path"),
    ("install", lambda pod: pod["volumes"][0]["hostPath"].update(type=""), VOLUMES, "kind of host path"),
    (
        "install",
        lambda pod: PATHS["mount"](pod).update(mountPath="/usr/lib/python3"),
        VOLUMES,
        "mounted over the program",
    ),
    ("extender", lambda pod: PATHS["mount"](pod).pop("readOnly"), VOLUMES, "keys may be written"),
    ("plugin of an inventory", lambda pod: last_mount(pod).pop("readOnly"), VOLUMES, "writes inventories"),
    (
        "plugin of an inventory",
        lambda pod: last_mount(pod).update(mountPath="/usr/lib/python3"),
        VOLUMES,
        "an inventory over the program",
    ),
    (
        "plugin of an inventory",
        lambda pod: pod["volumes"][-1]["hostPath"].update(path="/etc"),
        VOLUMES,
        "more than the inventory",
    ),
    ("plugin that reads limits back", lambda pod: last_mount(pod).pop("readOnly"), VOLUMES, "writes CDI"),
    (
        "plugin that reads limits back",
        lambda pod: pod["containers"][0]["volumeMounts"][2].pop("readOnly"),
        VOLUMES,
        "writes cgroups",
    ),
    (
        "plugin with isolation",
        lambda pod: pod["volumes"][-1]["hostPath"].update(path="/var/lib"),
        VOLUMES,
        "more than the folder of isolation",
    ),
    (
        "plugin with isolation",
        more_args("--isolation-folder", "/var/lib/kubelet"),
        MAY_NOT_RUN,
        "isolation in another folder",
    ),
    (
        "plugin",
        lambda pod: pod["volumes"][0]["hostPath"].update(type="DirectoryOrCreate"),
        VOLUMES,
        "a folder of the kubelet's that is not there",
    ),
    (
        "extender",
        lambda pod: pod["volumes"].append(
            {"name": "inventory-etc", "hostPath": {"path": "/etc/gpushare", "type": "DirectoryOrCreate"}}
        ),
        VOLUMES,
        "an inventory for another program",
    ),
    (
        "install",
        container(image="evil"),
        "its own image gpushare:0.1.0, with its own pull secrets; here container hostctl has evil",
        "image",
    ),
    (
        "install",
        lambda pod: pod["containers"].append({**pod["containers"][0], "name": "sidecar"}),
        "run only one container in a pod; here are hostctl, sidecar",
        "sidecar",
    ),
    ("install", container(command=["sh"]), "run only gpushare-plugin", "command"),
    ("install", container(command=["gpushare-plugin"]), "run only gpushare-plugin", "another program"),
    (
        "install",
        lambda pod: pod.update(serviceAccountName="gpushare-plugin"),
        "account of that name",
        "account",
    ),
    ("install", container(env=[{"name": "PYTHONPATH", "value": "/host"}]), PROGRAMS, "environment"),
    ("plugin", container(env=[{"name": "SSL_CERT_FILE", "value": "/a"}]), PROGRAMS, "value of a variable"),
    (
        "plugin",
        container(env=[{"name": "NODE_NAME", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]),
        PROGRAMS,
        "source of a variable",
    ),
    ("install", container(terminationMessagePath="/usr/lib/python3/site.py"), PROGRAMS, "over the program"),
    (
        "plugin",
        lambda pod: PATHS["probe's request"](pod).update(host="192.0.2.1"),
        PROGRAMS,
        "probe elsewhere",
    ),
    (
        "plugin",
        lambda pod: pod["containers"][0]["resources"]["limits"].update({"example.com/device": "1"}),
        PROGRAMS,
        "a device",
    ),
    ("plugin", container(ports=[{"containerPort": 9640, "hostPort": 9640}]), PROGRAMS, "port of the host"),
    ("extender", container(ports=[{"containerPort": 9640}]), PROGRAMS, "port of another program"),
    ("extender", security(runAsUser=0), CONFINED, "root"),
    ("plugin", security(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), CONFINED, "capability"),
    ("plugin", security(readOnlyRootFilesystem=False), CONFINED, "writable"),
    ("extender", lambda pod: pod["securityContext"].update(runAsGroup=0), CONFINED, "group"),
    ("install", lambda pod: pod["securityContext"].pop("seccompProfile"), CONFINED, "system calls"),
    ("install", lambda pod: pod.pop("affinity"), PLACES, "an edit anywhere"),
    ("extender", lambda pod: pod.pop("affinity"), PLACES, "an extender anywhere"),
    (
        "plugin",
        lambda pod: pod.update(nodeSelector={"kubernetes.io/os": "linux"}),
        PLACES,
        "a plugin anywhere",
    ),
    ("install", lambda pod: pod.pop("automountServiceAccountToken"), PLACES, "a token for hostctl"),
    (
        "restore",
        lambda pod: pod.pop("activeDeadlineSeconds"),
        "because the ResourceQuota gpushare-hostctl counts",
        "no quota counts it",
    ),
    ("install", lambda pod: pod.update(tolerations=[]), PLACES, "tolerations"),
    ("install", lambda pod: pod.update(schedulerName="mine"), PLACES, "scheduler"),
    ("install", lambda pod: pod.update(hostPID=True), f"{RUNS}: hostPID", "what is too much is named"),
    ("extender", lambda pod: pod.update(runtimeClassName="a"), f"{RUNS}: runtimeClassName", "runtime"),
]


@pytest.mark.parametrize(
    ("made", "forge", "refusal"), [pytest.param(*forgery[:3], id=forgery[3]) for forgery in FORGERIES]
)
def test_a_forgery_is_refused_and_the_message_says_what_it_is(
    operator: Credentials, made: str, forge: Callable[[Json], Any], refusal: str
) -> None:
    with pytest.raises(ApiError, match=refusal) as refused:
        create(operator, forged(made, forge))
    assert refused.value.status == HTTPStatus.FORBIDDEN


def test_an_image_as_a_volume_is_refused_unless_the_server_drops_it(operator: Credentials) -> None:
    """Before Kubernetes 1.35 the feature is off, and the server drops the volume with its mounts."""
    match outcome(operator, forged("install", volume(image={"reference": "evil"}))):
        case ApiError(status=status, message=message):
            assert status == HTTPStatus.FORBIDDEN
            assert VOLUMES in message
        case answer:
            plain = create(operator, forged("install", lambda _: None))
            assert answer["spec"]["template"]["spec"] == plain["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda body: body["spec"].update(parallelism=9), id="many at once"),
        pytest.param(lambda body: body["spec"].update(ttlSecondsAfterFinished=1), id="no record"),
        pytest.param(lambda body: body["spec"].update(managedBy="example.com/a"), id="somebody else's"),
        pytest.param(
            lambda body: body["spec"]["template"]["metadata"]["annotations"].update(
                {"io.kubernetes.cri-o.Devices": "/dev/sda"}
            ),
            id="annotation for a runtime",
        ),
    ],
)
def test_of_jobs_and_templates_too_only_what_is_ours(
    operator: Credentials, forge: Callable[[Json], Any]
) -> None:
    body = forged("install", lambda _: None)
    forge(body)
    with pytest.raises(ApiError, match="fields and annotations that its DaemonSets and Jobs need"):
        create(operator, body)


def test_labels_and_a_restart_by_kubectl_are_no_matter(operator: Credentials) -> None:
    body = forged("plugin", lambda _: None)
    metadata = body["spec"]["template"]["metadata"]
    metadata["labels"]["cost-center"] = "7"
    metadata["annotations"]["kubectl.kubernetes.io/restartedAt"] = "2026-11-21T12:00:00Z"
    assert create(operator, body)["metadata"]["name"] == "gpushare-plugin-forged"


def another_selector(body: Json) -> None:
    """So a second DaemonSet would put another pod on nodes that have their plugin."""
    body["spec"]["selector"]["matchLabels"] = {"another": "one"}
    body["spec"]["template"]["metadata"]["labels"]["another"] = "one"


def renamed(name: str) -> Callable[[Json], Any]:
    return lambda body: body["metadata"].update(name=name)


def node_selector(**labels: str) -> Callable[[Json], Any]:
    return lambda body: body["spec"]["template"]["spec"].update(nodeSelector=labels)


def resources(**amounts: Any) -> Callable[[Json], Any]:
    return lambda body: body["spec"]["template"]["spec"]["containers"][0].update(resources=amounts)


def uncompared(body: Json) -> None:
    body["metadata"]["labels"].pop(COMPARE_LABEL)


NAMES, UNCOMPARED, REQUESTS = "may write only", "only with the label", "may request"
FORGED_OBJECTS = [
    ("plugin", renamed("gpushare-plugin-other"), NAMES, "a second plugin of a policy"),
    ("plugin", renamed("gpushare-extender"), NAMES, "a plugin by the extender's name"),
    ("extender", renamed("gpushare-extender-2"), NAMES, "a second extender"),
    ("plugin", another_selector, NAMES, "a plugin's selector"),
    ("extender", another_selector, NAMES, "the extender's selector"),
    ("install", renamed("install"), NAMES, "a Job's name"),
    ("install", renamed("gpushare-scheduler-restore-cp-1"), NAMES, "the name of another command"),
    (
        "install",
        lambda body: body["spec"]["template"]["metadata"]["labels"].update({COMPONENT_LABEL: "operator"}),
        NAMES,
        "pods that look like the operator's",
    ),
    ("plugin", node_selector(**{POLICY_LABEL: "forged"}), PLACES, "nodes that label themselves"),
    ("plugin", node_selector(**{PLUGIN_NODE_LABEL: "other"}), PLACES, "the nodes of another policy"),
    *(
        (
            made,
            lambda body: body["metadata"]["labels"].pop(COMPARE_LABEL),
            UNCOMPARED,
            f"{made}, not compared",
        )
        for made in ("plugin", "extender", "install")
    ),
    ("plugin", resources(requests={"cpu": "1500m"}), REQUESTS, "cpu"),
    ("extender", resources(requests={"memory": "65Mi"}), REQUESTS, "memory"),
    ("restore", resources(requests={"memory": "1Gi"}), REQUESTS, "memory for hostctl"),
    ("plugin", resources(limits={"memory": "256Mi"}), REQUESTS, "a limit that is a request, too"),
]


@pytest.mark.parametrize(
    ("made", "forge", "refusal"), [pytest.param(*forgery[:3], id=forgery[3]) for forgery in FORGED_OBJECTS]
)
def test_names_selectors_places_and_requests_are_the_operators(
    operator: Credentials, made: str, forge: Callable[[Json], Any], refusal: str
) -> None:
    body = forged(made, lambda _: None)
    forge(body)
    with pytest.raises(ApiError, match=refusal) as refused:
        create(operator, body)
    assert refused.value.status == HTTPStatus.FORBIDDEN


MAX_RUNS = 20
"""As manifests/resource-quota.yaml has it."""


def test_runs_of_hostctl_are_too_few_to_crowd_a_node(cluster: LocalCluster, operator: Credentials) -> None:
    """Their pods are bound to a node that is not there, so none of them ends."""
    names = [f"gpushare-scheduler-restore-nowhere-{number}" for number in range(MAX_RUNS + 2)]

    async def create_all() -> None:
        async with KubeClient(operator, timeout=CALL_SECONDS) as client:
            for name in names:
                body = forged("restore", lambda pod: pod.update(nodeName="nowhere"))
                body["metadata"]["name"] = name
                body["metadata"]["labels"].pop(MANAGED_BY_LABEL)  # the operator at work leaves them alone
                await client.create(paths.jobs(SYSTEM), body)

    try:
        asyncio.run(create_all())
        watch_until(
            cluster,
            f"/api/v1/namespaces/{SYSTEM}/events",
            lambda events: any(
                "exceeded quota: gpushare-hostctl" in event.get("message", "") for event in events
            ),
            what="no more pods are made",
            describe=lambda events: [event.get("message") for event in events],
        )
        pods = get(cluster, paths.pods(SYSTEM))["items"]
        made = [pod for pod in pods if pod["spec"].get("nodeName") == "nowhere"]
        assert len(made) <= MAX_RUNS
    finally:
        cluster.kubectl("delete", "jobs", "-n", SYSTEM, *names, "--ignore-not-found", "--wait=false")
