"""The operator's roles allow exactly what it does in a life from the first policy to the last."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.component.operator.test_evictions import MEASURED, report_excess
from tests.component.operator.test_refused_pods import hold_open
from tests.fakes.operator_cluster import NAMESPACE, Cluster, Operator, converge
from tests.samples.operator import INSTALLATION, VOLCANO_CONFIG, control_plane, hostctl_run, policy
from tests.samples.rights import Right, allowed, group_and_parts

from gpushare_core.api.enums import Engine
from gpushare_core.api.names import (
    DEDICATED_EXTENDER_ACCOUNT,
    DEDICATED_SCHEDULER,
    DIALECT_LABEL,
    KUBE_SCHEDULER_USER,
    MODE_LABEL,
    PLUGIN_NODE_LABEL,
    POLICY_LABEL,
    SCHEDULER_LABEL,
)
from gpushare_core.api.plugin_heartbeat import SILENT_SECONDS, heartbeat_lease
from gpushare_core.api.policy import LOG_FOLDER_PATTERN
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import ANNOTATION_KEYS, DIALECTS, RESOURCES, SHARED_RESOURCES
from gpushare_core.kube import paths
from gpushare_core.kubernetes_minors import NEWEST
from gpushare_core.text.json_object import Json
from gpushare_operator.backends.dedicated.deployment import scheduler_deployment
from gpushare_operator.backends.extender_workload.daemon_set import extender_daemon_set
from gpushare_operator.backends.extender_workload.log_folder import ExtenderLog
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand, HostctlRun, hostctl_job
from gpushare_operator.cluster.kinds import KINDS
from gpushare_operator.cluster.labels import DIALECT_LABELS
from gpushare_operator.cluster.server import needed_rights
from gpushare_operator.desired.names import VOLCANO_BACKUP
from gpushare_operator.desired.plugin_daemon_set import plugin_daemon_set
from gpushare_operator.desired.plugin_platform import FOLDERS, PluginPlatform
from gpushare_operator.main import ACCOUNT
from gpushare_operator.policies.engine_choice import EngineChoice
from gpushare_operator.process.leadership import LEASE_NAME
from gpushare_operator.reconcile import HEARTBEATS

MANIFEST = Path(__file__).resolve().parents[3] / "manifests" / "rbac-operator.yaml"

DEDICATED = MANIFEST.parent / "dedicated"

VERBS = {"apply": ("create", "patch"), "merge": ("patch",), "create": ("create",), "delete": ("delete",)}
"""What the API server asks for: server-side apply may create."""

VOLCANO_SYSTEM = "namespaces/volcano-system/"


def needed(write: str) -> set[Right]:
    """What one recorded write asks for."""
    verb, path = write.split(" ")
    group, resource = group_and_resource(path)
    # Of an object that is not there a subresource is not made.
    verbs = ("patch",) if path.endswith("/status") else VERBS[verb]
    return {(group, resource, verb) for verb in verbs}


def group_and_resource(path: str) -> tuple[str, str]:
    group, rest = group_and_parts(path)
    subresource = f"/{rest[2]}" if len(rest) > 2 else ""
    return group, rest[0] + subresource


def followed() -> set[Right]:
    places = [group_and_resource(kind.path(NAMESPACE)) for kind in KINDS]
    return {(*place, verb) for place in places for verb in ("list", "watch")}


async def exceed_memory(cluster: Cluster) -> None:
    cluster.api.put(paths.pods("team"), {"metadata": {"name": "a", "namespace": "team", "uid": "uid-a"}})
    report_excess(cluster, cluster.now)
    cluster.api.put(paths.leases(NAMESPACE), heartbeat_lease("gpu-1", "uid", cluster.now))
    operator = Operator(cluster, now=cluster.now)
    await operator.work(HEARTBEATS)
    await converge(cluster, operator)


async def fall_silent(cluster: Cluster) -> None:
    cluster.api.put(
        paths.leases(NAMESPACE), heartbeat_lease("gpu-1", "uid", cluster.now - timedelta(hours=1))
    )
    operator = await converge(cluster)
    for seconds in range(0, SILENT_SECONDS + 16, 15):
        operator.reconciler.heartbeats.clock = partial(float, 10**9 + seconds)
        await operator.work(HEARTBEATS)
    await operator.work("default")


async def hold_a_job_open(cluster: Cluster) -> None:
    job = next(iter(cluster.api.of(paths.jobs(NAMESPACE))), "")
    if job:
        hold_open(cluster, job, exit_code=0)
        await converge(cluster, Operator(cluster, now=cluster.now))


def whole_life(**extra: Any) -> list[str]:
    """Everything that was written from a policy's coming to its going."""
    cluster = Cluster()
    cluster.serve()
    cluster.add_node("gpu-1")
    cluster.add_node("cp", control_plane=True)
    data = {"volcano-scheduler.conf": VOLCANO_CONFIG}
    cluster.api.put(
        paths.config_maps("volcano-system"),
        {"metadata": {"name": "volcano-scheduler-configmap"}, "data": data},
    )
    cards = {"source": "Simulated", "simulated": [{"count": 1, "memory": "16Gi"}]}
    evicting = {"onExcess": "Evict", "graceSeconds": 0}
    rule = {"names": ["gpu-1"], "devices": cards, "isolation": evicting}
    cluster.add_policy("default", rule, plugin=MEASURED, **extra)
    asyncio.run(converge(cluster))
    cluster.api.change(paths.POLICIES, "default", {"spec": {"plugin": {"logLevel": "debug"}}})
    asyncio.run(converge(cluster))
    asyncio.run(exceed_memory(cluster))
    asyncio.run(fall_silent(cluster))
    asyncio.run(hold_a_job_open(cluster))
    cluster.delete_policy("default")
    asyncio.run(converge(cluster))
    assert cluster.api.of(paths.POLICIES) == {}
    return cluster.api.writes


def test_the_roles_name_exactly_the_verbs_in_use() -> None:
    # Its own, for the image; and to take our kube-scheduler away.
    used: set[Any] = followed() | {("apps", "deployments", verb) for verb in ("get", "delete")}
    used.add(("events.k8s.io", "events", "list"))  # while pods are not made
    used |= {
        ("coordination.k8s.io", "leases", verb) for verb in ("get", "update", "create")
    }  # its own as well
    for write in [*whole_life(), *whole_life(scheduler={"backend": "External"}), *volcano_life()]:
        used |= needed(write) if VOLCANO_SYSTEM not in write else set()
    assert allowed(MANIFEST) == used


def test_of_leases_it_writes_only_its_own() -> None:
    rules = [
        rule
        for body in yaml.safe_load_all(MANIFEST.read_text())
        for rule in body.get("rules", ())
        if "leases" in rule["resources"] and not {"list", "watch"}.issuperset(rule["verbs"])
    ]
    assert [rule["resourceNames"] for rule in rules] == [[LEASE_NAME]]


def test_of_config_maps_it_writes_only_its_backup() -> None:
    """Every namespace has one by which its pods know the API server."""
    rules = [
        (rule.get("resourceNames"), rule["verbs"])
        for body in yaml.safe_load_all(MANIFEST.read_text())
        for rule in body.get("rules", ())
        if "configmaps" in rule["resources"]
    ]
    assert rules == [(None, ["list", "watch"]), ([VOLCANO_BACKUP], ["create", "patch", "delete"])]


def test_in_volcanos_namespace_it_may_only_read_and_change_one_config_map() -> None:
    role, binding = yaml.safe_load_all((MANIFEST.parent / "volcano" / "rbac.yaml").read_text())
    assert {item["metadata"]["namespace"] for item in (role, binding)} == {"volcano-system"}
    used = {right for write in volcano_life() if VOLCANO_SYSTEM in write for right in needed(write)}
    (rule,) = role["rules"]
    assert rule["resourceNames"] == ["volcano-scheduler-configmap"]
    assert {(*rule["apiGroups"], *rule["resources"], verb) for verb in rule["verbs"]} == used | {
        ("", "configmaps", "get")
    }


def dedicated_life() -> list[str]:
    return whole_life(scheduler={"backend": "Dedicated"})


def test_for_a_scheduler_of_our_own_it_has_to_be_given_more() -> None:
    used = {right for write in dedicated_life() for right in needed(write)}
    kinds = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
    read = {("", "pods", "list"), *(("admissionregistration.k8s.io", kind, "get") for kind in kinds)}
    assert allowed(DEDICATED / "scheduler" / "rbac-operator.yaml") == used - allowed(MANIFEST) | read
    roles = [body for body in bodies_of(DEDICATED / "scheduler" / "rbac-operator.yaml") if "rules" in body]
    named = {rule["resources"][0]: rule.get("resourceNames") for role in roles for rule in role["rules"]}
    assert named == {
        "deployments": [DEDICATED_SCHEDULER],
        "mutatingadmissionpolicies": [DEDICATED_SCHEDULER],
        "pods": None,
    }


def bodies_of(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def test_pods_that_ask_for_any_of_our_resources_are_pointed_at_our_scheduler() -> None:
    policy, binding = bodies_of(DEDICATED / "pods.yaml")
    assert binding["spec"]["policyName"] == policy["metadata"]["name"] == DEDICATED_SCHEDULER
    asks = next(
        match_condition["expression"]
        for match_condition in policy["spec"]["matchConditions"]
        if match_condition["name"] == "asks-for-cards"
    )
    own, shared = re.findall(r"\[('[^\[\]]+)\]", asks)
    assert set(quoted(own)) == RESOURCES.keys() - SHARED_RESOURCES
    assert set(quoted(shared)) == SHARED_RESOURCES
    (mutation,) = policy["spec"]["mutations"]
    assert f"value: '{DEDICATED_SCHEDULER}'" in mutation["jsonPatch"]["expression"]


def test_the_deployment_of_our_scheduler_is_what_its_admission_policy_lets_pass() -> None:
    """As far as that can be told without an API server: tests/e2e/test_dedicated_rights.py asks one."""
    (spec,) = [
        body["spec"]
        for body in bodies_of(DEDICATED / "scheduler" / "admission-operator.yaml")
        if body["kind"] == "ValidatingAdmissionPolicy" and "paramKind" not in body["spec"]
    ]
    text = re.sub(
        r"'\s*\+\s*r'", "", " ".join(validation["expression"] for validation in spec["validations"])
    )
    (account,) = [each["expression"] for each in spec["variables"] if each["name"] == "account"]
    accounts = dict(zip((Engine.EXTENDER, Engine.PLUGIN), quoted(account), strict=True))
    prepared = dict(zip((Engine.EXTENDER, Engine.PLUGIN), shapes(text, 0), strict=True))
    (extender,) = shapes(text, 2)
    for engine in Engine:
        settings = replace(every_resource().settings, engine=engine)
        pod = scheduler_deployment(INSTALLATION, settings, "v1.36.3")["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == accounts[engine]
        containers: list[Json] = [*pod["initContainers"], *pod["containers"]]
        preparation, scheduler, *others = containers
        assert re.match(prepared[engine], " ".join(preparation["args"]))
        assert f"== '{' '.join(scheduler['args'])}'" in text
        assert all(re.match(extender, " ".join(container["args"])) for container in others)
        for container in containers:
            assert f"{container['name']}={container['command'][0]}" in text


def shapes(text: str, container: int) -> list[str]:
    """Returns what an admission policy lets the arguments of this container be, as regular expressions."""
    found = re.findall(rf"args\[{container}\]\.matches\(r'([^']*)'", text)
    return [str(shape) for shape in found]


def rights_of(account: str) -> set[str]:
    """All that the manifests give an account of ours: rights, and the names of roles that Kubernetes has."""
    bodies = [
        body
        for folder in (MANIFEST.parent, DEDICATED / "scheduler")
        for path in sorted(folder.glob("rbac-*.yaml"))
        for body in bodies_of(path)
    ]
    roles = {(body["kind"], body["metadata"]["name"]): body for body in bodies if "rules" in body}
    bindings = [body for body in bodies if account in {who["name"] for who in body.get("subjects", ())}]
    return {right for binding in bindings for right in given_by(binding, roles)}


def given_by(binding: Json, roles: dict[tuple[str, str], Json]) -> Iterator[str]:
    reference, namespace = binding["roleRef"], binding["metadata"].get("namespace", "")
    if role := roles.get((reference["kind"], reference["name"])):
        yield from (spelled(right) for right in rights_in(role, namespace))
    else:
        yield f"{reference['kind']} {reference['name']}{f' in {namespace}' if namespace else ''}"


def rights_in(role: Json, namespace: str) -> Iterator[Json]:
    """As ``resourceAttributes`` of a review."""
    for rule in role["rules"]:
        parts = (rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames", [""]))
        for group, resource, verb, name in product(*parts):
            yield {"group": group, "resource": resource, "verb": verb, "name": name, "namespace": namespace}


def spelled(right: Json) -> str:
    name, namespace = right.get("name", ""), right.get("namespace", "")
    resource = ".".join(part for part in (right["resource"], right["group"]) if part)
    return f"{right['verb']} {resource}{name and f'/{name}'}{namespace and f' in {namespace}'}"


OF_EVERY_KUBE_SCHEDULER = {
    "ClusterRole system:kube-scheduler",
    "ClusterRole system:volume-scheduler",
    "Role extension-apiserver-authentication-reader in kube-system",
}


def test_with_engine_plugin_our_scheduler_has_the_rights_of_a_kube_scheduler_and_what_the_plugin_needs() -> (
    None
):
    leases = "leases.coordination.k8s.io"
    of_the_plugin = {
        "list gpusharenodes.gpushare.io",
        "watch gpusharenodes.gpushare.io",
        "create allocations.gpushare.io",
        *(f"{verb} {leases}/gpushare-extender in {NAMESPACE}" for verb in ("get", "update", "create")),
    }
    leading = {f"{verb} {leases}/gpushare-scheduler in {NAMESPACE}" for verb in ("get", "update")}
    assert rights_of(DEDICATED_SCHEDULER) == OF_EVERY_KUBE_SCHEDULER | of_the_plugin | leading
    # The plugin in the cluster's own kube-schedulers needs the same.
    assert of_the_plugin == {spelled(right) for right in needed_rights(NAMESPACE)}


def test_with_engine_extender_our_scheduler_also_has_the_rights_of_the_extender_beside_it() -> None:
    of_plugin, of_extender = rights_of(DEDICATED_SCHEDULER), rights_of("gpushare-extender")
    assert rights_of(DEDICATED_EXTENDER_ACCOUNT) == of_plugin | of_extender
    assert of_extender - of_plugin == {
        "get pods",
        "list pods",
        "watch pods",
        "create pods/binding",
        "create pods/eviction",
        "list poddisruptionbudgets.policy",
        "create events.events.k8s.io",
        *(
            f"{verb} leases.coordination.k8s.io/gpushare-extender-{name} in {NAMESPACE}"
            for verb in ("create", "patch")
            for name in ("calls", "books")
        ),
        *(
            f"{verb} csistoragecapacities.storage.k8s.io/gpushare-wake-up in {NAMESPACE}"
            for verb in ("create", "patch")
        ),
    }


@pytest.mark.parametrize(
    "folders",
    [
        pytest.param([MANIFEST.parent], id="manifests"),
        pytest.param([MANIFEST.parent, DEDICATED / "scheduler"], id="and a scheduler of our own"),
    ],
)
def test_a_lease_that_a_program_holds_goes_with_the_manifests(folders: list[Path]) -> None:
    """One that the program makes by itself nobody would delete."""
    paths_of = [path for folder in folders for path in sorted(folder.glob("*.yaml"))]
    bodies = [body for path in paths_of for body in bodies_of(path)]
    rules = [rule for body in bodies if body["kind"] == "Role" for rule in body["rules"]]
    held = {
        name
        for rule in rules
        if rule["resources"] == ["leases"] and rule["verbs"] != ["get"]
        for name in rule.get("resourceNames", ())
    }
    assert held
    assert held == {body["metadata"]["name"] for body in bodies if body["kind"] == "Lease"}


def volcano_life() -> list[str]:
    return whole_life(scheduler={"backend": "Volcano"}, dialect="volcano.sh")


def test_no_admission_policy_names_the_namespace() -> None:
    """An overlay with another namespace does not reach into expressions."""
    naming = [
        path.name
        for path in sorted(MANIFEST.parent.glob("*.yaml"))
        for body in yaml.safe_load_all(path.read_text())
        if body.get("kind") == "ValidatingAdmissionPolicy" and NAMESPACE in str(body["spec"])
    ]
    assert naming == []


def admission_variable(file: str, policy: str, name: str) -> str:
    bodies = yaml.safe_load_all((MANIFEST.parent / file).read_text())
    (spec,) = [
        body["spec"] for body in bodies if body["metadata"]["name"] == policy and "validations" in str(body)
    ]
    (expression,) = [variable["expression"] for variable in spec["variables"] if variable["name"] == name]
    return str(expression)


def quoted(expression: str) -> list[str]:
    return re.findall(r"'([^']+)'", expression)


def keys_by_dialect() -> list[str]:
    """The names of dialects that have annotations, each with its keys."""
    ours = ["gpushare.io", Dialect.allocation_annotation]
    with_keys = [dialect for dialect in DIALECTS.values() if dialect.codec.annotation_keys]
    return [
        *ours,
        *(name for with_key in with_keys for name in (with_key.name, *with_key.codec.annotation_keys)),
    ]


@pytest.mark.parametrize("policy", ["gpushare-pods", "gpushare-bindings"])
def test_the_annotations_of_every_dialect_are_protected(policy: str) -> None:
    file = {"gpushare-pods": "admission-pods.yaml", "gpushare-bindings": "admission-bindings.yaml"}[policy]
    assert quoted(admission_variable(file, policy, "keys")) == keys_by_dialect()
    (spec,) = [
        item["spec"]
        for item in yaml.safe_load_all((MANIFEST.parent / file).read_text())
        if item["metadata"]["name"] == policy and item["kind"] == "ValidatingAdmissionPolicy"
    ]
    looked_at = quoted(spec["matchConditions"][0]["expression"])
    assert {*ANNOTATION_KEYS} <= {*looked_at}
    walks = [
        validation["expression"]
        for validation in spec["validations"]
        if "old.filter(key" in validation["expression"]
    ]
    assert [{*quoted(walk)} for walk in walks] == [{*ANNOTATION_KEYS}] * (policy == "gpushare-pods")


def test_a_binding_that_is_let_through_at_once_is_one_that_the_validations_let_through() -> None:
    file, policy = "admission-bindings.yaml", "gpushare-bindings"
    (spec,) = [
        item["spec"]
        for item in yaml.safe_load_all((MANIFEST.parent / file).read_text())
        if item["metadata"]["name"] == policy and item["kind"] == "ValidatingAdmissionPolicy"
    ]
    through = squeezed(spec["matchConditions"][1]["expression"])
    account, allocation = (squeezed(validation["expression"]) for validation in spec["validations"])
    account = account.partition("||variables.keys")[0].removeprefix("(").removesuffix(")")
    annotations, beginning = (
        squeezed(admission_variable(file, policy, name)) for name in ("annotations", "beginning")
    )
    begun = allocation.replace("variables.annotations", annotations).replace("variables.beginning", beginning)
    assert through == f"!({account}&&({begun}))"


def squeezed(expression: str) -> str:
    """Without blanks: what is left says the same."""
    return re.sub(r"\s", "", expression)


def test_others_get_one_right_and_that_for_one_dialect() -> None:
    bodies = list(yaml.safe_load_all((MANIFEST.parent / "rbac-dialects.yaml").read_text()))
    roles = {body["metadata"]["name"]: body["rules"] for body in bodies if body["kind"] == "ClusterRole"}
    with_keys = [name for name, dialect in DIALECTS.items() if dialect.codec.annotation_keys]
    right = {"apiGroups": ["gpushare.io"], "resources": ["dialects"], "verbs": ["annotate"]}
    assert [rule for rules in roles.values() for rule in rules] == [
        {**right, "resourceNames": [name]} for name in with_keys
    ]
    bindings = [body for body in bodies if body["kind"] == "ClusterRoleBinding"]
    assert {binding["roleRef"]["name"] for binding in bindings} < set(roles)
    assert {subject["kind"] for binding in bindings for subject in binding["subjects"]} == {"ServiceAccount"}


def test_two_resources_of_any_dialects_are_noticed() -> None:
    names = quoted(admission_variable("admission-pods.yaml", "gpushare-requests", "askingForTwo"))
    assert {*names} == {*RESOURCES}


def test_who_makes_a_pod_that_asks_in_any_words_does_not_name_its_cards() -> None:
    file = "admission-pods.yaml"
    own = quoted(admission_variable(file, "gpushare-requests", "settingVariables"))
    others = quoted(admission_variable(file, "gpushare-dialect-environments", "asking"))
    assert {*own} & {*RESOURCES} == {*GPUSHARE.resources}
    assert {*others} & {*RESOURCES} == RESOURCES.keys() - GPUSHARE.resources.keys() - SHARED_RESOURCES


def test_the_operator_may_write_what_its_dialects_need_on_nodes_and_nothing_else() -> None:
    file, policy = "admission-operator.yaml", "gpushare-operator-nodes"
    labels = {POLICY_LABEL, PLUGIN_NODE_LABEL, MODE_LABEL, DIALECT_LABEL, SCHEDULER_LABEL, *DIALECT_LABELS}
    assert set(quoted(admission_variable(file, policy, "ourLabels"))) == labels
    assert set(quoted(admission_variable(file, policy, "ourResources"))) == {*RESOURCES, "tuya.com"}
    closed = {dialect.closed_cards_annotation for dialect in DIALECTS.values()} - {""}
    assert set(quoted(admission_variable(file, policy, "ourAnnotations"))) == closed
    counted = {
        part
        for dialect in DIALECTS.values()
        for part in (dialect.name, dialect.count_resource)
        if dialect.count_resource
    }
    assert set(quoted(admission_variable(file, policy, "counts"))) == counted


def test_elsewhere_it_may_only_list_the_pods_beside_kube_schedulers() -> None:
    role, binding = yaml.safe_load_all((MANIFEST.parent / "rbac-schedulers.yaml").read_text())
    assert (role["metadata"]["namespace"], binding["metadata"]["namespace"]) == ("kube-system", "kube-system")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def test_it_may_see_deployments_and_make_none() -> None:
    roles = [body for body in bodies_of(MANIFEST) if "rules" in body]
    rules = [rule for role in roles for rule in role["rules"] if rule["resources"] == ["deployments"]]
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        ([ACCOUNT], ["get"]),
        (None, ["list", "watch"]),
        ([DEDICATED_SCHEDULER], ["delete"]),
    ]
    assert [role["kind"] for role in roles if "deployments" in str(role["rules"])] == ["Role"]


def every_resource() -> HostctlRun:
    ignored = tuple(name for dialect in DIALECTS.values() for name in dialect.ignored_resources)
    return hostctl_run(HostctlCommand.INSTALL, resources=tuple(RESOURCES), ignored_resources=ignored)


def with_plugin(run: HostctlRun) -> HostctlRun:
    settings = replace(run.settings, engine=Engine.PLUGIN)
    return replace(run, settings=settings, choice=EngineChoice(minor=NEWEST))


RIGHTS = MANIFEST.parent / "kube-scheduler" / "rights.yaml"


def test_what_the_operator_asks_for_is_what_people_are_told_to_apply() -> None:
    """No more than that."""
    asked = {(right["group"], right["resource"], right["verb"]) for right in needed_rights(NAMESPACE)}
    asks = {("authorization.k8s.io", "subjectaccessreviews", "create")}
    of_all = allowed(RIGHTS) | allowed(MANIFEST.parent / "rbac-allocations.yaml")
    assert of_all == asked | asks

    bindings = [body for body in bodies_of(RIGHTS) if "roleRef" in body]
    given = {binding["roleRef"]["name"]: binding["subjects"][0]["name"] for binding in bindings}
    assert given == {
        "gpushare-kube-scheduler": KUBE_SCHEDULER_USER,
        "gpushare-allocations-extender": KUBE_SCHEDULER_USER,
        "gpushare-operator-kube-scheduler": ACCOUNT,
    }
    lease, *_ = [right for right in needed_rights(NAMESPACE) if right["resource"] == "leases"]
    (role,) = [body for body in bodies_of(RIGHTS) if body["kind"] == "Role"]
    assert (role["metadata"]["namespace"], role["rules"][0]["resourceNames"]) == (
        lease["namespace"],
        [lease["name"]],
    )


def test_the_image_of_our_kube_scheduler_is_one_that_the_admission_policy_lets_pass() -> None:
    (spec,) = [
        item["spec"]
        for item in yaml.safe_load_all((MANIFEST.parent / "admission-operator.yaml").read_text())
        if item["metadata"]["name"] == "gpushare-operator-images" and "validations" in item["spec"]
    ]
    (rule,) = [rule for rule in spec["validations"] if "engineImage" in rule["expression"]]
    (tag,) = re.findall(r"matches\(\s*r'([^']*)'\)", rule["expression"])
    pod = hostctl_job(with_plugin(every_resource()), control_plane(), 1)["spec"]["template"]["spec"]
    (check,), (hostctl,) = pod["initContainers"], pod["containers"]
    assert check["image"].startswith("gpushare-scheduler:")
    assert re.fullmatch(tag.strip("^$"), check["image"].removeprefix("gpushare-scheduler:"))
    assert f" --scheduler-image {check['image']} --lease-namespace " in " ".join(hostctl["args"])


def test_the_folders_that_a_policy_may_name_are_those_that_may_be_mounted() -> None:
    logs = admission_variable("admission-operator.yaml", "gpushare-operator-workloads", "logs")
    assert f"matches('{LOG_FOLDER_PATTERN}')" in logs


def test_the_operator_makes_only_what_its_admission_policy_lets_pass() -> None:
    """As far as that can be told without an API server: tests/e2e/test_operator_workloads.py asks one."""
    policies = list(yaml.safe_load_all((MANIFEST.parent / "admission-operator.yaml").read_text()))
    (spec,) = [
        item["spec"]
        for item in policies
        if item["metadata"]["name"] == "gpushare-operator-workloads" and "validations" in item["spec"]
    ]
    variables = {variable["name"]: variable["expression"] for variable in spec["variables"]}
    rules = variables["rules"]
    shapes = re.findall(r"r'(\^[^']*\$)'", re.sub(r"'\s*\+\s*r'", "", rules))
    assert len(shapes) == 5
    validations = " ".join(validation["expression"] for validation in spec["validations"])
    platform = PluginPlatform(
        runtime_class="nvidia",
        folders=FOLDERS,
        log_folder="/var/log/gpushare",
        host_processes=True,
    )
    made = [
        plugin_daemon_set(policy(), INSTALLATION),
        plugin_daemon_set(policy(), INSTALLATION, platform),
        extender_daemon_set(INSTALLATION, [22766]),
        extender_daemon_set(INSTALLATION, [22766], ExtenderLog.below("/var/log/gpushare")),
        extender_daemon_set(INSTALLATION, [22766, 12000]),
        *(hostctl_job(hostctl_run(command), control_plane(), 1) for command in HostctlCommand),
        hostctl_job(every_resource(), control_plane(), 1),
        hostctl_job(with_plugin(every_resource()), control_plane(), 1),
        hostctl_job(with_plugin(hostctl_run(HostctlCommand.INSTALL)), control_plane(), 1),
    ]
    for pod in (body["spec"]["template"]["spec"] for body in made):
        (container,) = pod["containers"]
        assert container["command"] == [pod["serviceAccountName"]]
        assert [field for field in container if f"'{field}'" not in variables["otherContainerFields"]] == []
        assert [field for field in pod if f"'{field}'" not in variables["otherFields"] + rules] == []
        literals = [variable for variable in container.get("env", ()) if "value" in variable]
        assert [literal for literal in literals if f"each == {literal}" not in validations] == []
        assert any(re.fullmatch(shape, " ".join(container["args"])) for shape in shapes)
        volumes = [
            f"'{volume['name']}={volume['hostPath']['path']}'"
            for volume in pod["volumes"]
            if volume["name"] != "logs" or not re.fullmatch(LOG_FOLDER_PATTERN, volume["hostPath"]["path"])
        ]
        assert [volume for volume in volumes if volume not in rules] == []
