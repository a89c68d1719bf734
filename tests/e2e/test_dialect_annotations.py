"""Annotations of dialects, and what a container may ask for, as the API server admits them."""

import json

import pytest
from tests.e2e.observe import PODS, Json, get
from tests.e2e.rights import await_right
from tests.e2e.test_manifests import as_plugin_of
from tests.e2e.workloads import create, pod

from gpushare_core.dialects.table import ANNOTATION_KEYS, RESOURCES
from gpushare_core.kube.errors import ApiError
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("product")]

VOLCANO = "system:serviceaccount:volcano-system:volcano-scheduler"
ALIYUN = "system:serviceaccount:kube-system:gpushare-schd-extender"
GROUPS = ["--as-group=system:serviceaccounts", "--as-group=system:authenticated"]


def annotate(cluster: LocalCluster, namespace: str, *options: str, key: str, value: str = "0") -> None:
    patch = json.dumps({"metadata": {"annotations": {key: value}}})
    cluster.kubectl("patch", "pod", "plain", "-n", namespace, "--type=merge", "-p", patch, *options)


@pytest.fixture
def plain(cluster: LocalCluster, namespace: str) -> str:
    """A pod on gpu-1 that asks for nothing."""
    create(cluster, namespace, [pod("plain", {"main": 0}, node="gpu-1")])
    return "plain"


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("value", ["0", ""], ids=["a value", "nothing"])
def test_no_user_changes_the_annotation_of_any_dialect(
    cluster: LocalCluster, namespace: str, value: str
) -> None:
    for key in ANNOTATION_KEYS:
        with pytest.raises(LocalClusterError, match=f"only gpushare may change the annotation {key}"):
            annotate(cluster, namespace, key=key, value=value)


@pytest.mark.parametrize("key", ANNOTATION_KEYS)
def test_no_user_binds_with_one(cluster: LocalCluster, namespace: str, key: str) -> None:
    waiting = pod("waiting", {"main": 0})
    waiting["spec"]["schedulerName"] = "nobody"
    create(cluster, namespace, [waiting])
    with pytest.raises(LocalClusterError, match="only gpushare may create a Binding"):
        bind(cluster, namespace, key)


def bind(cluster: LocalCluster, namespace: str, key: str, *options: str) -> None:
    binding: Json = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "waiting", "annotations": {key: "0"}},
        "target": {"kind": "Node", "name": "gpu-1"},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/waiting/binding"
    cluster.kubectl("create", "--raw", path, "-f", "-", *options, stdin=json.dumps(binding))


@pytest.mark.usefixtures("plain")
def test_the_plugin_of_the_node_sets_them(cluster: LocalCluster, namespace: str) -> None:
    keys = [key for key in ANNOTATION_KEYS if key != "gpushare.io/allocation"]
    path = f"{PODS.format(namespace=namespace)}/plain"
    patch = {"metadata": {"annotations": dict.fromkeys(keys, "0")}}
    with pytest.raises(ApiError, match="may change only pods on that node"):
        as_plugin_of(cluster, "gpu-2", path, patch)
    as_plugin_of(cluster, "gpu-1", path, patch)
    assert get(cluster, path)["metadata"]["annotations"].keys() >= set(keys)


@pytest.mark.usefixtures("plain")
def test_another_systems_account_sets_those_of_its_dialect_only(
    cluster: LocalCluster, namespace: str
) -> None:
    cluster.kubectl(
        "create", "rolebinding", "others", "--clusterrole=edit", "-n", namespace,
        "--serviceaccount=volcano-system:volcano-scheduler",
        "--serviceaccount=kube-system:gpushare-schd-extender",
    )  # fmt: skip
    for account in (VOLCANO, ALIYUN):
        await_right(cluster, "patch", "pods", "-n", namespace, f"--as={account}", *GROUPS)
    annotate(cluster, namespace, f"--as={VOLCANO}", *GROUPS, key="volcano.sh/gpu-index")
    annotate(cluster, namespace, f"--as={ALIYUN}", *GROUPS, key="ALIYUN_COM_GPU_MEM_IDX")
    for account, key in [
        (VOLCANO, "ALIYUN_COM_GPU_MEM_IDX"),
        (VOLCANO, "gpushare.io/allocation"),
        (ALIYUN, "volcano.sh/gpu-assigned"),
    ]:
        with pytest.raises(LocalClusterError, match="only gpushare may change the annotation"):
            annotate(cluster, namespace, f"--as={account}", *GROUPS, key=key, value="1")


def test_a_copy_with_annotations_of_a_dialect_is_no_forgery(cluster: LocalCluster, namespace: str) -> None:
    copied = pod("copied", {"main": 0})
    copied["metadata"]["annotations"] = dict.fromkeys(ANNOTATION_KEYS, "0")
    create(cluster, namespace, [copied])


@pytest.mark.parametrize("second", [name for name in RESOURCES if name != "gpushare.io/memory"])
def test_a_container_that_asks_for_two_resources_is_refused(
    cluster: LocalCluster, namespace: str, second: str
) -> None:
    both = pod("both", {"main": 1})
    (main,) = both["spec"]["containers"]
    main["resources"]["limits"][second] = "1"
    with pytest.raises(LocalClusterError, match=f"container main asks for gpushare.io/memory and {second}"):
        create(cluster, namespace, [both])
    both["spec"] = {"containers": [{**main, "resources": {}}], "initContainers": [{**main, "name": "init"}]}
    with pytest.raises(LocalClusterError, match=r"container init asks for gpushare\.io/memory and"):
        create(cluster, namespace, [both])


def test_two_containers_may_ask_for_one_resource_each_and_nothing_is_no_request(
    cluster: LocalCluster, namespace: str
) -> None:
    both = pod("both", {"memory": 1})
    (memory,) = both["spec"]["containers"]
    memory["resources"]["limits"] |= {"gpushare.io/card": "0", "cpu": "10m"}
    slice_of = {**memory, "name": "slice", "resources": {"limits": {"gpushare.io/slice": "1"}}}
    both["spec"] |= {"containers": [memory, slice_of], "schedulerName": "nobody"}
    create(cluster, namespace, [both])
