"""The objects that the operator makes: what they may do, and how they are called."""

import dataclasses
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.operator import INSTALLATION, control_plane, hostctl_run, policy, rule, spec

from gpushare_core.api.api_object import ApiObject
from gpushare_core.api.share_node import NodeSpec
from gpushare_core.text.json_object import Json
from gpushare_extender.extender import DRAIN_SECONDS
from gpushare_operator.backends.dedicated.deployment import scheduler_deployment
from gpushare_operator.backends.extender_workload.daemon_set import extender_daemon_set
from gpushare_operator.backends.extender_workload.log_folder import ExtenderLog
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand, HostctlRun, hostctl_job
from gpushare_operator.cluster.labels import HASH_ANNOTATION
from gpushare_operator.desired.names import Installation, job_name
from gpushare_operator.desired.plugin_daemon_set import plugin_daemon_set
from gpushare_operator.desired.plugin_platform import PluginPlatform
from gpushare_operator.desired.pod_template import digest
from gpushare_operator.desired.programs import Amounts, Program, Programs, Resources
from gpushare_operator.desired.share_nodes import share_node, share_node_patch, share_node_spec
from gpushare_operator.policies.scheduler_settings import SchedulerSettings

INSTALLING, SETTINGS = HostctlCommand.INSTALL, SchedulerSettings()
PLUGIN = plugin_daemon_set(policy(), INSTALLATION)["spec"]["template"]["spec"]
EXTENDER = extender_daemon_set(INSTALLATION, [22766])["spec"]["template"]["spec"]
INSTALL = hostctl_job(hostctl_run(HostctlCommand.INSTALL), control_plane(), 1)["spec"]["template"]["spec"]
RESTORE = hostctl_job(hostctl_run(HostctlCommand.RESTORE), control_plane(), 2)["spec"]["template"]["spec"]

EVERY_POD = [
    pytest.param(PLUGIN, id="plugin"),
    pytest.param(EXTENDER, id="extender"),
    pytest.param(INSTALL, id="install"),
    pytest.param(RESTORE, id="restore"),
]


@pytest.mark.parametrize("pod", EVERY_POD)
def test_no_container_has_more_rights_than_its_user(pod: Any) -> None:
    (container,) = pod["containers"]
    context = container["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in context
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize("pod", EVERY_POD)
def test_every_pod_is_critical_and_tolerates_everything(pod: Any) -> None:
    assert pod["priorityClassName"].startswith("system-")
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["containers"][0]["image"] == "gpushare:test"
    assert "memory" in pod["containers"][0]["resources"]["limits"]


CHOSEN = Installation(
    image="gpushare:test",
    pull_policy="Always",
    pull_secrets=("registry", "mirror"),
    programs=Programs(
        plugin=Program(priorityClassName="mine", resources=Resources(requests=Amounts(memory="1Gi"))),
        extender=Program(priorityClassName="theirs"),
    ),
)


@pytest.mark.parametrize(
    ("body", "priority"),
    [
        pytest.param(plugin_daemon_set(policy(), CHOSEN), "mine", id="plugin"),
        pytest.param(extender_daemon_set(CHOSEN, [22766]), "theirs", id="extender"),
        pytest.param(
            hostctl_job(
                HostctlRun(command=INSTALLING, settings=SETTINGS, installation=CHOSEN), control_plane(), 1
            ),
            "theirs",
            id="hostctl",
        ),
    ],
)
def test_image_and_priority_are_as_the_installation_says(body: Any, priority: str) -> None:
    pod = body["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "registry"}, {"name": "mirror"}]
    assert pod["containers"][0]["imagePullPolicy"] == "Always"
    assert pod["priorityClassName"] == priority


def test_our_own_kube_scheduler_is_made_of_the_same_image_pulled_in_the_same_way() -> None:
    programs = Programs(extender=Program(resources=Resources(requests=Amounts(memory="1Gi"))))
    chosen = dataclasses.replace(CHOSEN, programs=programs)
    pod: Json = scheduler_deployment(chosen, SETTINGS, "v1.36.3")["spec"]["template"]["spec"]
    scheduler, ours = pod["containers"][0], [pod["containers"][1], pod["initContainers"][0]]
    assert pod["imagePullSecrets"] == [{"name": "registry"}, {"name": "mirror"}]
    assert [our["imagePullPolicy"] for our in ours] == ["Always", "Always"]
    assert [our["resources"] for our in ours] == [{"requests": {"memory": "1Gi"}}] * 2
    assert "imagePullPolicy" not in scheduler, "another image"


def test_resources_are_those_that_were_chosen_else_the_usual_ones() -> None:
    (plugin,) = plugin_daemon_set(policy(), CHOSEN)["spec"]["template"]["spec"]["containers"]
    (extender,) = extender_daemon_set(CHOSEN, [22766])["spec"]["template"]["spec"]["containers"]
    assert plugin["resources"] == {"requests": {"memory": "1Gi"}}
    assert extender["resources"] == EXTENDER["containers"][0]["resources"]


def test_other_pull_secrets_are_another_try_but_no_other_edit() -> None:
    usual = HostctlRun(command=INSTALLING, settings=SETTINGS, installation=INSTALLATION)
    other = dataclasses.replace(
        usual, installation=dataclasses.replace(INSTALLATION, pull_secrets=("registry",))
    )
    assert usual.work_hash == other.work_hash
    assert usual.inputs_hash != other.inputs_hash


def test_the_plugin_mounts_the_two_folders_of_the_kubelet_that_it_needs() -> None:
    mounts = [volume_mount["mountPath"] for volume_mount in PLUGIN["containers"][0]["volumeMounts"]]
    assert mounts == ["/var/lib/kubelet/device-plugins", "/var/lib/kubelet/pod-resources"]
    assert mounts == [volume["hostPath"]["path"] for volume in PLUGIN["volumes"]]
    assert "hostNetwork" not in PLUGIN


def test_the_plugin_runs_with_the_runtime_class_that_the_policy_names() -> None:
    asked = spec(rule("gpu-1"), plugin={"runtimeClassName": "nvidia"})
    body = plugin_daemon_set(policy(), INSTALLATION, PluginPlatform.of_spec(asked))
    assert body["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"
    assert PluginPlatform.of_daemon_set(body) == PluginPlatform.of_spec(asked)
    assert "runtimeClassName" not in PLUGIN, "the node's default"


def test_the_plugin_sees_the_folders_of_the_inventories_that_the_policy_names_and_may_not_write() -> None:
    inventory = {"source": "Inventory", "inventoryPath": "/var/lib/gpushare/cards.yaml"}
    asked = spec(rule("gpu-1", devices=inventory), rule("gpu-2"))
    platform = PluginPlatform.of_spec(asked)
    body = plugin_daemon_set(policy(), INSTALLATION, platform)
    pod = body["spec"]["template"]["spec"]
    assert pod["volumes"][2:] == [
        {
            "name": "inventory-var-lib",
            "hostPath": {"path": "/var/lib/gpushare", "type": "DirectoryOrCreate"},
        }
    ]
    assert pod["containers"][0]["volumeMounts"][2:] == [
        {"name": "inventory-var-lib", "mountPath": "/var/lib/gpushare", "readOnly": True}
    ]
    assert PluginPlatform.of_daemon_set(body) == platform


@pytest.mark.parametrize(
    ("source", "scope", "expected"),
    [
        pytest.param("NVML", "Containers", True, id="NVML names processes"),
        pytest.param("NVML", "Cards", None, id="only cards are measured"),
        pytest.param("NVML", "Off", None, id="nothing is measured"),
        pytest.param("Simulated", "Containers", None, id="a simulated load has no processes"),
    ],
)
def test_the_plugin_sees_the_hosts_processes_only_where_it_has_to(
    source: str, scope: str, *, expected: bool | None
) -> None:
    cards = [{"count": 1, "memory": "16Gi"}] if source == "Simulated" else []
    devices = {"source": source, "simulated": cards}
    measuring = spec(rule("gpu-1", devices=devices), plugin={"measurement": {"scope": scope}})
    body = plugin_daemon_set(policy(), INSTALLATION, PluginPlatform.of_spec(measuring))
    assert body["spec"]["template"]["spec"].get("hostPID") is expected
    assert PluginPlatform.of_daemon_set(body) == PluginPlatform.of_spec(measuring)


def test_a_rule_that_shares_nothing_is_no_reason_to_see_processes() -> None:
    off = spec(rule("gpu-1", mode="Off"), plugin={"measurement": {"scope": "Containers"}})
    assert not PluginPlatform.of_spec(off).host_processes


NVML: Json = {"source": "NVML"}
CDI: Json = {"source": "NVML", "injection": "CDI"}
ISOLATED: Json = {"name": "isolation", "mountPath": "/var/lib/gpushare/isolation"}
CGROUPS: Json = {"name": "cgroups", "mountPath": "/sys/fs/cgroup", "readOnly": True}
CDI_MOUNTS: list[Json] = [
    {"name": "cdi-etc", "mountPath": "/etc/cdi", "readOnly": True},
    {"name": "cdi-run", "mountPath": "/var/run/cdi", "readOnly": True},
]


@pytest.mark.parametrize(
    ("asked", "mounts"),
    [
        pytest.param(rule("gpu-1", devices=NVML), [], id="nothing"),
        pytest.param(rule("gpu-1", devices=NVML, isolation={"memory": "Hook"}), [ISOLATED], id="Hook"),
        pytest.param(rule("gpu-1", devices=NVML, isolation={"memory": "Driver"}), [CGROUPS], id="Driver"),
        pytest.param(
            rule("gpu-1", devices=CDI, isolation={"memory": "Driver"}),
            [CGROUPS, *CDI_MOUNTS],
            id="Driver and CDI",
        ),
        pytest.param(rule("gpu-1", devices=CDI, isolation={"memory": "Hook"}), [ISOLATED], id="Hook and CDI"),
        pytest.param(rule("gpu-1", mode="Off", isolation={"memory": "Hook"}), [], id="nodes left alone"),
        pytest.param(rule("gpu-1", isolation={"onExcess": "Evict"}), [], id="evictions alone"),
    ],
)
def test_the_plugin_sees_of_its_node_what_the_isolation_needs(asked: Json, mounts: list[Json]) -> None:
    platform = PluginPlatform.of_spec(spec(asked))
    body = plugin_daemon_set(policy(), INSTALLATION, platform)
    pod = body["spec"]["template"]["spec"]
    assert pod["containers"][0]["volumeMounts"][2:] == mounts
    assert [volume["hostPath"]["path"] for volume in pod["volumes"][2:]] == [
        mounted["mountPath"] for mounted in mounts
    ]
    has_folder = "--isolation-folder /var/lib/gpushare/isolation" in " ".join(pod["containers"][0]["args"])
    assert has_folder is (ISOLATED in mounts)
    assert PluginPlatform.of_daemon_set(body) == platform


def test_a_folder_that_is_missing_is_made_but_no_file_system_of_cgroups() -> None:
    platform = PluginPlatform.of_spec(
        spec(
            rule("gpu-1", devices=NVML, isolation={"memory": "Driver"}),
            rule("gpu-2", devices=NVML, isolation={"memory": "Hook"}),
        )
    )
    kinds = {volume["name"]: volume["hostPath"]["type"] for volume in platform.volumes}
    assert kinds == {"isolation": "DirectoryOrCreate", "cgroups": ""}


def test_the_plugin_writes_to_a_folder_of_the_host_only_where_a_policy_names_one() -> None:
    asked = PluginPlatform.of_spec(spec(rule("gpu-1"), plugin={"logFolder": "/var/log/gpushare"}))
    body = plugin_daemon_set(policy(), INSTALLATION, asked)
    assert PluginPlatform.of_daemon_set(body) == asked
    pod = body["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    folder = {"path": "/var/log/gpushare", "type": "DirectoryOrCreate"}
    assert pod["volumes"][2:] == [{"name": "logs", "hostPath": folder}]
    assert container["volumeMounts"][2:] == [{"name": "logs", "mountPath": "/logs"}]
    assert container["args"][-2:] == ["--log-folder", "/logs"]
    assert "--log-folder" not in PLUGIN["containers"][0]["args"]


def test_the_extender_may_take_the_time_to_finish_its_binds() -> None:
    assert EXTENDER["terminationGracePeriodSeconds"] >= 2 * DRAIN_SECONDS


def test_the_extender_listens_on_the_loopback_of_its_host_only_and_mounts_its_keys_only() -> None:
    (container,) = EXTENDER["containers"]
    assert EXTENDER["hostNetwork"] is True
    assert container["args"][:4] == ["--listen", "127.0.0.1:22766", "--health-listen", "127.0.0.1:22767"]
    assert [volume["hostPath"]["path"] for volume in EXTENDER["volumes"]] == [
        "/etc/kubernetes/gpushare/extender"
    ]
    assert [volume_mount["readOnly"] for volume_mount in container["volumeMounts"]] == [True]
    assert EXTENDER["securityContext"]["runAsUser"] == 65532


def test_the_extender_hears_only_who_shows_a_certificate() -> None:
    (container,) = EXTENDER["containers"]
    assert container["args"][4:] == ["--tls-cert", "/keys/server.pem", "--client-ca", "/keys/authorities.pem"]
    assert EXTENDER["securityContext"]["runAsGroup"] in INSTALL["securityContext"]["supplementalGroups"]


@pytest.mark.parametrize(
    ("ports", "health"),
    [
        pytest.param([22766], 22767, id="usual"),
        pytest.param([65535], 65534, id="last"),
        pytest.param([22766, 22767], 22765, id="the former one is beside"),
        pytest.param([65535, 65534], 65533, id="both at the end"),
        pytest.param([1024, 1025], 1026, id="none that is root's"),
        pytest.param([32768, 32769], 32770, id="none that a Service may take over"),
    ],
)
def test_probes_have_a_port_of_their_own(ports: list[int], health: int) -> None:
    (container,) = extender_daemon_set(INSTALLATION, ports)["spec"]["template"]["spec"]["containers"]
    probed = {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")}
    assert probed == {health}


def test_hostctl_has_no_token_and_is_not_placed_by_the_scheduler() -> None:
    assert INSTALL["automountServiceAccountToken"] is False
    assert INSTALL["nodeName"] == "cp"
    assert INSTALL["restartPolicy"] == "Never"


def test_hostctl_may_write_where_selinux_is_on() -> None:
    assert INSTALL["containers"][0]["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}


def test_kubernetes_does_not_repeat_a_run_of_hostctl() -> None:
    job = hostctl_job(hostctl_run(HostctlCommand.INSTALL), control_plane(), 1)
    assert job["spec"]["backoffLimit"] == 0
    assert "ttlSecondsAfterFinished" not in job["spec"]


def test_a_slow_cluster_gets_more_time_for_an_edit_and_for_undoing_it() -> None:
    job = hostctl_job(hostctl_run(HostctlCommand.INSTALL, timeout=300), control_plane(), 1)
    assert job["spec"]["activeDeadlineSeconds"] == 960
    args = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[args.index("--timeout") + 1] == "300"


def test_more_time_is_another_try_but_no_other_edit() -> None:
    usual, slow = hostctl_run(HostctlCommand.INSTALL), hostctl_run(HostctlCommand.INSTALL, timeout=300)
    assert usual.work_hash == slow.work_hash
    assert usual.inputs_hash != slow.inputs_hash


def test_the_job_itself_says_with_which_code_hostctl_ended() -> None:
    (rule,) = hostctl_job(hostctl_run(HostctlCommand.INSTALL), control_plane(), 1)["spec"][
        "podFailurePolicy"
    ]["rules"]
    assert rule["onExitCodes"]["values"] == [2, 3]


def test_the_hash_follows_the_spec() -> None:
    def stamp(image: str) -> str:
        body = extender_daemon_set(Installation(image=image), [22766])
        return str(body["metadata"]["annotations"][HASH_ANNOTATION])

    assert stamp("a") == stamp("a")
    assert stamp("a") != stamp("b")


def test_pods_ask_to_be_left_alone_by_what_adds_sidecars() -> None:
    made = [
        plugin_daemon_set(policy(), INSTALLATION),
        extender_daemon_set(INSTALLATION, [22766]),
        hostctl_job(hostctl_run(HostctlCommand.INSTALL), control_plane(), 1),
    ]
    for body in made:
        assert body["spec"]["template"]["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"


@pytest.mark.parametrize("hosts", range(1, 12))
def test_control_planes_that_are_away_hold_up_no_other_extender(hosts: int) -> None:
    spread = extender_daemon_set(INSTALLATION, [22766])["spec"]["updateStrategy"]["rollingUpdate"]
    at_once = ceil(hosts * int(spread["maxUnavailable"].removesuffix("%")) / 100)
    lost = (hosts - 1) // 2  # with more than these away there is no etcd, and so no rollout
    assert at_once > lost
    assert hosts == 1 or at_once < hosts, "an image that does not start leaves some that serve"


def test_only_restoring_may_go_where_no_control_plane_is() -> None:
    assert "affinity" in INSTALL
    assert "affinity" not in RESTORE


def test_the_selector_of_a_daemon_set_is_part_of_its_pods_labels() -> None:
    for body in (plugin_daemon_set(policy(), INSTALLATION), extender_daemon_set(INSTALLATION, [22766])):
        labels = body["spec"]["template"]["metadata"]["labels"]
        assert body["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_a_share_node_carries_all_that_the_rule_says() -> None:
    asked = policy("default", rule("gpu-1", reservedMemory="1Gi"))
    assert asked.spec is not None
    spec = share_node_spec(asked, asked.spec.nodes[0])
    body = share_node(asked, "gpu-1", spec, digest(spec))
    parsed = NodeSpec.from_json(body["spec"])
    assert parsed == asked.spec.of_node("default", asked.spec.nodes[0])
    assert body["metadata"]["ownerReferences"][0]["name"] == "default"


def asked_of_a_node() -> Json:
    asked = policy("default", rule("gpu-1"))
    assert asked.spec is not None
    return share_node_spec(asked, asked.spec.nodes[0])


def test_a_patch_of_a_share_node_takes_out_what_is_not_asked_for_any_more() -> None:
    asked = asked_of_a_node()
    patch = share_node_patch(share_node(policy(), "gpu-1", asked, digest(asked)), "uid-of-gpu-1")
    assert patch["metadata"]["uid"] == "uid-of-gpu-1", "another object of this name is left alone"
    assert {name: patch["spec"][name] for name in asked} == asked
    left_out = {name: value for name, value in patch["spec"].items() if name not in asked}
    optional = ("candidates", "slicesPerCard", "unitChange", "isolation", "extenderLogLevel")
    assert left_out == dict.fromkeys(optional)


def inner_objects(whole: ApiObject) -> list[ApiObject]:
    fields = [getattr(whole, name) for name in whole.__struct_fields__]
    found = [field for field in fields if isinstance(field, ApiObject)]
    return [*found, *(inner for field in found for inner in inner_objects(field))]


def test_what_is_within_a_field_of_a_share_node_is_always_said() -> None:
    """A merge patch replaces values and lists; of an object it would leave what is not said any more."""
    inner = inner_objects(NodeSpec.from_json(asked_of_a_node()))
    assert {type(part).__name__ for part in inner} == {"Devices", "CardHealth", "Measurement"}
    for part in inner:
        said = part.to_json()
        assert said.keys() == {*part.__struct_encode_fields__}
        objects = [name for name in part.__struct_fields__ if isinstance(getattr(part, name), ApiObject)]
        maps = [value for value in said.values() if isinstance(value, dict)]
        assert len(maps) == len(objects), "any other one would keep its keys"


node_names = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True)


@given(node_names, st.integers(1, 99_999))
def test_a_job_is_never_called_longer_than_its_pods_label_may_be(node: str, sequence: int) -> None:
    assert len(job_name("install", node, sequence)) <= 63


@given(node_names, node_names)
def test_jobs_of_different_nodes_are_called_differently(one: str, other: str) -> None:
    assert (job_name("install", one, 1) == job_name("install", other, 1)) is (one == other)


LOG = ExtenderLog.below("/var/log/gpushare")


def test_the_extender_keeps_its_log_on_the_host_only_where_a_policy_names_a_folder() -> None:
    body = extender_daemon_set(INSTALLATION, [22766], LOG)
    pod = body["spec"]["template"]["spec"]
    (container,), (preparation,) = pod["containers"], pod["initContainers"]
    folder = {"path": "/var/log/gpushare/extender", "type": "DirectoryOrCreate"}
    assert ExtenderLog.of_daemon_set(body) == LOG
    assert pod["volumes"][1:] == [{"name": "logs", "hostPath": folder}]
    assert container["volumeMounts"][1:] == [{"name": "logs", "mountPath": "/logs"}]
    assert container["args"][-2:] == ["--log-folder", "/logs"]
    assert preparation["args"] == ["log-folder", "--folder", "/logs", "--group", "65532"]
    assert preparation["image"] == container["image"]
    assert "initContainers" not in EXTENDER
    assert "--log-folder" not in EXTENDER["containers"][0]["args"]


def test_the_extender_stays_without_root_and_what_prepares_its_folder_has_no_capability() -> None:
    pod = extender_daemon_set(INSTALLATION, [22766], LOG)["spec"]["template"]["spec"]
    (container,), (preparation,) = pod["containers"], pod["initContainers"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65532)
    assert "runAsUser" not in container["securityContext"]
    assert preparation["securityContext"]["runAsUser"] == 0
    assert preparation["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_extenders_metrics_are_on_the_hosts_address_at_the_number_of_its_health_port() -> None:
    body = extender_daemon_set(INSTALLATION, [22766])
    template = body["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert "127.0.0.1:22767" in container["args"]
    assert container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"] == "status.hostIP"
    assert template["metadata"]["annotations"]["gpushare.io/metrics-port"] == "22767"
