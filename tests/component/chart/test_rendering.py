"""What Helm makes of the chart: the objects of the manifests, with the values where they belong."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from charts import copy_objects
from tests.samples.chart import (
    CHART,
    KUBERNETES,
    ROOT,
    SYSTEM,
    HelmError,
    as_arguments,
    is_hook,
    one,
    render,
    run_helm,
)

from gpushare_core.api.policy import PolicySpec
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_operator.desired.programs import read_programs
from gpushare_operator.main import parser
from gpushare_operator.policies.served import problems

MANIFESTS = ROOT / "manifests"
OPERATOR = ("Deployment", "gpushare-operator")
ANNOTATIONS: Json = yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]
VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text())


def hook_of(body: Json) -> str:
    return str(body["metadata"].get("annotations", {}).get("helm.sh/hook", ""))


def identity(body: Json) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def of_kustomization(folder: Path) -> list[Json]:
    """The objects of ``kubectl apply -k``, with the image that it puts in."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    bodies: list[Json] = []
    for name in kustomization["resources"]:
        path = folder / name
        bodies += of_kustomization(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for image in kustomization.get("images", ()):
        (container,) = one(bodies, *OPERATOR)["spec"]["template"]["spec"]["containers"]
        assert container["image"] == image["name"]
        container["image"] = f"{image['newName']}:{image['newTag']}"
    return bodies


def test_without_values_it_installs_what_the_manifests_install() -> None:
    """But the namespace: Helm keeps its own records there, so it makes that first."""
    manifests = {
        identity(manifest): manifest
        for manifest in of_kustomization(MANIFESTS)
        if manifest["kind"] != "Namespace"
    }
    rendered = {identity(manifest): manifest for manifest in render() if not is_hook(manifest)}
    assert rendered.keys() == manifests.keys()
    assert [key for key in rendered if rendered[key] != manifests[key]] == []


def test_in_another_namespace_nothing_names_the_usual_one() -> None:
    bodies = render(namespace="elsewhere", networkPolicy={"enabled": True}, podMonitor={"enabled": True})
    assert [identity(body) for body in bodies if "gpushare-system" in json.dumps(body)] == []
    named = {body["metadata"]["namespace"] for body in bodies if "namespace" in body["metadata"]}
    assert named == {"elsewhere", "kube-system"}


def operator_pod(**values: Any) -> Json:
    pod: Json = one(render(**values), *OPERATOR)["spec"]["template"]["spec"]
    return pod


def test_the_image_is_pulled_as_the_values_say_by_operator_and_hook() -> None:
    image = {"repository": "registry.example.com/gpushare", "tag": "2", "pullPolicy": "Always"}
    bodies = render(image=image, imagePullSecrets=[{"name": "registry"}])
    for body in (one(bodies, *OPERATOR), one(bodies, "Job", "gpushare-uninstall")):
        pod = body["spec"]["template"]["spec"]
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        assert pod["containers"][0]["image"] == "registry.example.com/gpushare:2"
        assert pod["containers"][0]["imagePullPolicy"] == "Always"


def test_an_image_may_be_named_by_its_digest() -> None:
    (container,) = operator_pod(image={"tag": "sha256:0123"})["containers"]
    assert container["image"] == "gpushare@sha256:0123"


def test_the_operator_runs_as_the_values_say() -> None:
    tolerations = [{"operator": "Exists"}]
    affinity: Json = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    resources = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    pod = operator_pod(
        logLevel="debug",
        operator={
            "tolerations": tolerations,
            "affinity": affinity,
            "resources": resources,
            "priorityClassName": "mine",
        },
    )
    (container,) = pod["containers"]
    assert (pod["tolerations"], pod["affinity"], pod["priorityClassName"]) == (tolerations, affinity, "mine")
    assert container["resources"] == resources
    assert parser().parse_args(container["args"]).log_level == "debug"


def test_there_are_as_many_operators_as_the_values_say() -> None:
    assert one(render(operator={"replicas": 3}), *OPERATOR)["spec"]["replicas"] == 3


def test_what_is_said_of_plugin_and_extender_reaches_the_operator() -> None:
    resources = {"requests": {"memory": "100Mi"}, "limits": {"cpu": 1}}
    (container,) = operator_pod(
        plugin={"resources": resources}, extender={"priorityClassName": "system-cluster-critical"}
    )["containers"]
    programs = read_programs(parser().parse_args(container["args"]).programs)
    assert programs.plugin.resources is not None
    assert programs.plugin.resources.to_json() == {"requests": {"memory": "100Mi"}, "limits": {"cpu": "1"}}
    assert programs.extender.priority_class_name == "system-cluster-critical"


DEDICATED_VALUES: Json = {
    "enabled": True,
    "image": "registry.example.com/kube-scheduler",
    "engineImage": "registry.example.com:5000/gpushare-scheduler",
}


def test_a_scheduler_of_our_own_is_let_in_where_it_is_asked_for() -> None:
    bodies = render(dedicatedScheduler=DEDICATED_VALUES)
    sources = of_kustomization(ROOT / copy_objects.DEDICATED)
    found = {identity(body): body for body in bodies}
    assert [source for source in sources if found[identity(source)] != source] == []
    usual = {identity(manifest) for manifest in render()}
    assert found.keys() - usual == {identity(source) for source in sources}


def test_a_server_that_can_point_pods_nowhere_is_asked_for_nothing_of_the_kind() -> None:
    bodies = render(dedicatedScheduler=DEDICATED_VALUES, served="v1")
    assert [body for body in bodies if body["kind"].startswith("Mutating")] == []
    assert one(bodies, "ValidatingAdmissionPolicy", "gpushare-operator-scheduler")


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1"])
def test_pods_are_pointed_at_it_in_the_version_of_the_api_that_the_server_has(version: str) -> None:
    served = f"admissionregistration.k8s.io/{version}"
    bodies = render(dedicatedScheduler=DEDICATED_VALUES, served=f"{served}/MutatingAdmissionPolicy")
    pointing = [body["apiVersion"] for body in bodies if body["kind"].startswith("Mutating")]
    assert pointing == [served, served]


@pytest.mark.parametrize("version", ["1.31.5", "v1.31.14-eks-a737599", "1.31.9+k3s1"])
def test_a_cluster_that_is_too_old_is_refused(version: str) -> None:
    with pytest.raises(HelmError, match="incompatible with Kubernetes"):
        run_helm("template", "gpushare", str(CHART), "--kube-version", version)


@pytest.mark.parametrize(
    "version", ["1.32.0", "v1.32.4-gke.100", "v1.33.0+k3s1", "1.37.0-alpha.1", "1.38.0", "1.34.1+rke2r1"]
)
def test_a_cluster_that_is_new_enough_is_taken_whatever_its_provider_adds(version: str) -> None:
    assert run_helm("template", "gpushare", str(CHART), "--kube-version", version)


def test_its_images_reach_the_operator_as_the_admission_policy_reads_them() -> None:
    (container,) = operator_pod(dedicatedScheduler=DEDICATED_VALUES)["containers"]
    assert "--scheduler-image=registry.example.com/kube-scheduler" in container["args"]
    assert "--engine-image=registry.example.com:5000/gpushare-scheduler" in container["args"]
    options = parser().parse_args(container["args"])
    assert options.scheduler_image == DEDICATED_VALUES["image"]
    assert options.engine_image == DEDICATED_VALUES["engineImage"]


@pytest.mark.parametrize("image", ["ours:0.1.0-1.37", "a:5000/ours:1", "ours@sha256:00"])
def test_the_tag_of_our_kube_scheduler_is_not_the_administrators(image: str) -> None:
    with pytest.raises(HelmError, match="engineImage"):
        render(dedicatedScheduler={"enabled": True, "engineImage": image})


def test_optional_objects_are_those_of_the_folder_config() -> None:
    bodies = render(
        podMonitor={"enabled": True}, networkPolicy={"enabled": True}, kubeScheduler={"enginePlugin": True}
    )
    sources = [
        body for path in copy_objects.OPTIONAL for body in yaml.safe_load_all((ROOT / path).read_text())
    ]
    for source in sources:
        rendered = one(bodies, source["kind"], source["metadata"]["name"])
        assert {**rendered, "metadata": {}} == {**source, "metadata": {}}
    usual = {identity(manifest) for manifest in render()}
    assert len({identity(manifest) for manifest in bodies} - usual) == len(sources)


def test_the_api_servers_ports_are_what_pods_may_call() -> None:
    bodies = render(networkPolicy={"enabled": True, "apiServerPorts": [8443]})
    egress = [body["spec"]["egress"] for body in bodies if "egress" in body.get("spec", {})]
    assert egress == [[{"ports": [{"port": 8443, "protocol": "TCP"}]}]] * 3


def test_every_pod_of_a_network_policy_has_its_labels() -> None:
    bodies = render(networkPolicy={"enabled": True})
    pods = [body["spec"]["template"] for body in bodies if body["kind"] in ("Deployment", "Job")]
    for name in ("operator", "uninstall"):
        wanted = one(bodies, "NetworkPolicy", f"gpushare-{name}")["spec"]["podSelector"]["matchLabels"]
        assert [wanted.items() <= pod["metadata"]["labels"].items() for pod in pods].count(True) == 1


def test_a_policy_is_made_once_and_deleted_by_no_upgrade() -> None:
    spec = {"memoryUnit": "256Mi", "nodes": [{"names": ["gpu-1"]}]}
    policy = one(render(policy=spec), "GPUSharePolicy", "default")
    assert policy["spec"] == spec
    annotations = policy["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "post-install"
    assert "before-hook-creation" not in annotations["helm.sh/hook-delete-policy"]


def test_the_hook_comes_before_everything_is_deleted_with_rights_of_its_own() -> None:
    hooks = [manifest for manifest in render() if hook_of(manifest) == "pre-delete"]
    weights = {
        hook["kind"]: int(hook["metadata"]["annotations"].get("helm.sh/hook-weight", 0)) for hook in hooks
    }
    assert all(weights[kind] < weights["Job"] for kind in weights if kind != "Job")
    (rule,) = one(hooks, "ClusterRole", "gpushare-uninstall")["rules"]
    assert rule == {
        "apiGroups": ["gpushare.io"],
        "resources": ["gpusharepolicies"],
        "verbs": ["list", "watch", "delete"],
    }


def test_operators_that_stand_by_are_as_many_as_the_value_says() -> None:
    assert one(render(operator={"replicas": 2}), *OPERATOR)["spec"]["replicas"] == 2


def test_the_hook_gives_up_by_itself_before_its_job_is_killed() -> None:
    job = one(render(uninstall={"timeoutSeconds": 100}), "Job", "gpushare-uninstall")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    options = parser().parse_args(container["args"])
    assert (options.command, options.timeout) == ("uninstall", 100.0)
    assert job["spec"]["activeDeadlineSeconds"] > options.timeout
    assert job["spec"]["backoffLimit"] == 0


def test_no_custom_resource_definition_is_in_the_folder_that_helm_never_upgrades() -> None:
    assert not (CHART / "crds").exists()
    definitions = [manifest for manifest in render() if manifest["kind"] == "CustomResourceDefinition"]
    assert len(definitions) == 2


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        pytest.param({"replicaCount": 2}, "replicaCount", id="no such value"),
        pytest.param({"operator": {"replicas": 0}}, "replicas", id="no operator"),
        pytest.param({"logLevel": "loud"}, "logLevel", id="no such level"),
        pytest.param({"plugin": {"tolerations": []}}, "tolerations", id="what is not up to them"),
        pytest.param(
            {"plugin": {"resources": {"limits": {"nvidia.com/gpu": 1}}}}, "nvidia.com/gpu", id="a device"
        ),
        pytest.param(
            {"operator": {"resources": {"requests": {"memory": "much"}}}}, "memory", id="no quantity"
        ),
        pytest.param({"networkPolicy": {"apiServerPorts": [0]}}, "apiServerPorts", id="no port"),
        pytest.param({"imagePullSecrets": ["registry"]}, "imagePullSecrets", id="a name alone"),
        pytest.param({"uninstall": {"timeoutSeconds": 0}}, "timeoutSeconds", id="no time"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_its_name(values: Json, problem: str) -> None:
    with pytest.raises(HelmError, match=re.escape(problem)):
        render(**values)


def test_helm_finds_nothing_to_complain_about() -> None:
    said = run_helm("lint", "--strict", "--kube-version", "1.36.3", str(CHART))
    assert "0 chart(s) failed" in said
    assert "[" not in said


def test_helms_test_leaves_neither_pod_nor_account() -> None:
    hooks = [manifest for manifest in render() if hook_of(manifest) == "test"]
    assert {hook["kind"] for hook in hooks} == {
        *("Pod", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    }
    for hook in hooks:
        policies = hook["metadata"]["annotations"]["helm.sh/hook-delete-policy"].split(",")
        assert {"hook-succeeded", "hook-failed"} <= set(policies)


def test_all_that_helm_makes_names_its_version() -> None:
    label = "app.kubernetes.io/version"
    unnamed = [
        identity(manifest)
        for manifest in render()
        if manifest["metadata"].get("labels", {}).get(label) != VERSION
    ]
    assert unnamed == []


def test_helms_test_runs_the_operators_check() -> None:
    (container,) = one(render(namespace="elsewhere"), "Pod", "gpushare-test")["spec"]["containers"]
    options = parser().parse_args(container["args"])
    assert (options.command, options.namespace) == ("check", "elsewhere")


def test_the_account_of_helms_test_may_make_a_policy_and_read_one_lease() -> None:
    hooks = render()
    assert one(hooks, "ClusterRole", "gpushare-test")["rules"] == [
        {"apiGroups": ["gpushare.io"], "resources": ["gpusharepolicies"], "verbs": ["create"]}
    ]
    (rule,) = one(hooks, "Role", "gpushare-test")["rules"]
    assert (rule["resourceNames"], rule["verbs"]) == (["gpushare-operator"], ["get"])


NOTES = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data: {text: {{ tpl (.Files.Get "NOTES.txt") . | toJson }}}
"""
"""Of its notes Helm renders nothing without a cluster."""


@pytest.fixture
def noted(tmp_path: Path) -> Path:
    """A chart of the notes alone."""
    chart = tmp_path / "gpushare"
    (chart / "templates").mkdir(parents=True)
    for name in ("Chart.yaml", "values.yaml"):
        shutil.copy(CHART / name, chart)
    shutil.copy(CHART / "templates" / "NOTES.txt", chart)
    (chart / "templates" / "notes.yaml").write_text(NOTES)
    return chart


def notes(chart: Path, **values: Any) -> str:
    said = run_helm(
        *("template", "gpushare", str(chart), "--namespace", SYSTEM, "--kube-version", KUBERNETES),
        *as_arguments(values),
    )
    return str(yaml.safe_load(said)["data"]["text"])


def test_the_policy_in_the_notes_is_one_that_there_may_be(noted: Path) -> None:
    (text,) = re.findall(r"<<'END'\n(.*?)END\n", notes(noted), flags=re.DOTALL)
    policy = yaml.safe_load(text)
    assert problems(PolicySpec.model_validate(policy["spec"])) == []
    assert policy == yaml.safe_load(ANNOTATIONS["artifacthub.io/crdsExamples"])[0]


def test_the_notes_fit_a_terminal_and_ask_for_no_policy_where_there_is_one(noted: Path) -> None:
    assert max(map(len, notes(noted).splitlines())) <= 80
    assert "kubectl apply" not in notes(noted, policy={"memoryUnit": "1Gi"})


def test_artifact_hub_is_told_of_every_definition() -> None:
    definitions = [manifest for manifest in render() if manifest["kind"] == "CustomResourceDefinition"]
    told = yaml.safe_load(ANNOTATIONS["artifacthub.io/crds"])
    assert {(manifest["kind"], manifest["name"], manifest["version"]) for manifest in told} == {
        (definition["spec"]["names"]["kind"], definition["metadata"]["name"], version["name"])
        for definition in definitions
        for version in definition["spec"]["versions"]
    }


def test_the_chart_is_of_the_version_of_the_programs() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


def leaves(values: Json, path: str = "") -> list[str]:
    """``image.tag`` and so on; an empty mapping is a value."""
    return [
        leaf
        for name, value in values.items()
        for leaf in (leaves(value, f"{path}{name}.") if isinstance(value, dict) and value else [path + name])
    ]


def test_every_value_is_documented_and_every_documented_one_is_there() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    values = text[text.index("| value |") :].partition("\n\n")[0]
    table = re.findall(r"^\| `([A-Za-z.]+)` \|", values, flags=re.MULTILINE)
    assert table == leaves(VALUES)


def test_every_value_has_a_place_in_the_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def resolved(part: Json) -> Json:
        reference = part.get("$ref", "").removeprefix("#/definitions/")
        return schema["definitions"][reference] if reference else part

    for path in leaves(VALUES):
        part: Json = schema
        for name in path.split("."):
            assert resolved(part)["additionalProperties"] is False, path
            part = resolved(part)["properties"][name]
