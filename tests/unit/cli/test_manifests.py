"""What ``-f`` reads: files, folders, standard input, and the workloads in them."""

import io
import json
from pathlib import Path

import pytest
import yaml

from gpushare_cli.decide.objects.workload import Workload
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.manifests import MAX_JSON_BYTES, MAX_YAML_BYTES, read_workloads
from gpushare_core.text.json_object import Json

SPEC: Json = {"containers": [{"name": "main", "resources": {"limits": {"gpushare.io/memory": 4}}}]}
TEMPLATE: Json = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}


def read(text: str | bytes, namespace: str = "ml") -> tuple[Workload, ...]:
    content = text.encode() if isinstance(text, str) else text
    return read_workloads(["-"], namespace=namespace, stdin=io.BytesIO(content)).workloads


def controller(kind: str, **spec: object) -> str:
    return yaml.safe_dump({"kind": kind, "metadata": {"name": "web"}, "spec": {"template": TEMPLATE, **spec}})


@pytest.mark.parametrize(
    ("text", "pods"),
    [
        (controller("Deployment"), 1),
        (controller("Deployment", replicas=3), 3),
        (controller("ReplicaSet", replicas=0), 0),
        (controller("StatefulSet", replicas=2), 2),
        (controller("Job"), 1),
        (controller("Job", parallelism=4), 4),
        (controller("Job", parallelism=4, completions=3), 3),
        (controller("Job", parallelism=4, suspend=True), 0),
    ],
)
def test_each_kind_has_its_pods(text: str, pods: int) -> None:
    (workload,) = read(text)
    assert workload.pods == pods
    assert workload.pod["spec"] == SPEC
    assert workload.pod["metadata"] == {"labels": {"app": "web"}, "name": "web", "namespace": "ml"}


def test_a_cron_job_is_one_run_of_its_job() -> None:
    job = {"jobTemplate": {"spec": {"template": TEMPLATE, "parallelism": 2}}}
    (workload,) = read(yaml.safe_dump({"kind": "CronJob", "metadata": {"name": "nightly"}, "spec": job}))
    assert workload.pods == 2


def test_pods_of_a_stateful_set_have_their_own_names() -> None:
    (workload,) = read(controller("StatefulSet", replicas=2))
    assert [workload.pod_name(place) for place in range(2)] == ["web-0", "web-1"]
    (workload,) = read(controller("StatefulSet", ordinals={"start": 5}))
    assert workload.pod_name(0) == "web-5"


def test_documents_and_lists_keep_their_order() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "a", "namespace": "other"}, "spec": SPEC}
    both = {"kind": "List", "items": [pod, {**pod, "metadata": {"generateName": "b-"}}]}
    found = read(f"{yaml.safe_dump(both)}---\n{controller('Job')}---\nkind: Service\nmetadata: {{name: s}}\n")
    assert [(workload.namespace, workload.name) for workload in found] == [
        ("other", "a"),
        ("ml", "b"),
        ("ml", "web"),
    ]


def test_a_daemon_set_is_left_out_and_named() -> None:
    text = controller("DaemonSet")
    found = read_workloads(["-"], namespace="ml", stdin=io.BytesIO(text.encode()))
    assert found.workloads == ()
    assert found.left_out[0].startswith("DaemonSet web: ")


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps({"kind": "Pod", "metadata": {"name": "b"}, "spec": SPEC}))
    (tmp_path / "a.yml").write_text(controller("Job"))
    (tmp_path / "notes.txt").write_text("{")
    found = read_workloads([str(tmp_path)], namespace="ml", stdin=io.BytesIO())
    assert [workload.name for workload in found.workloads] == ["web", "b"]


BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{letter}: &{letter} [{','.join(['*' + before] * 9)}]\n"
    for before, letter in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        (b"\xff\xfe", "no text in UTF-8"),
        ("a: [", "not valid YAML"),
        ("[1, 2]", "Expected `object`"),
        ("metadata: {name: a}", "it has no kind"),
        ("kind: Pod\nmetadata: {name: a}\nspec: {containers: 3}", r"spec.containers"),
        ("kind: Pod\nmetadata: {name: a}\nspec: {}", "has no containers"),
        ("kind: Pod\nspec: {}", "the Pod has no name"),
        ("kind: Deployment\nmetadata: {name: a}\nspec: {}", "template"),
        (BOMB, "more than 50000 values"),
        ("{" * 100_000, "not valid YAML"),
        ("#" * (MAX_YAML_BYTES + 1), "longer than 512 KiB"),
        (b" " * (MAX_JSON_BYTES + 1), "longer than 16 MiB"),
        (controller("Deployment", replicas=10**9), "10000 is the most"),
    ],
)
def test_what_cannot_be_read_is_said(text: str | bytes, why: str) -> None:
    with pytest.raises(CannotLookError, match=why):
        read(text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotLookError, match=r"none\.yaml: No such file"):
        read_workloads([str(tmp_path / "none.yaml")], namespace="", stdin=io.BytesIO())
    with pytest.raises(CannotLookError, match="there is no file in it"):
        read_workloads([str(tmp_path)], namespace="", stdin=io.BytesIO())
    with pytest.raises(CannotLookError, match=r"curl -sSf https://example\.com/a\.yaml"):
        read_workloads(["https://example.com/a.yaml"], namespace="", stdin=io.BytesIO())
