"""What the stand-in for the API server keeps, and how it is found."""

import json

import pytest
from bench.peers.objects import Objects, Place, Wanted, merged, place

from gpushare_core.text.json_object import Json

PODS = "/api/v1/pods"


def pod(name: str, node: str = "", namespace: str = "default") -> Json:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"nodeName": node}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api/v1/pods", Place(PODS)),
        ("/api/v1/namespaces/a/pods", Place(PODS, "a")),
        ("/api/v1/namespaces/a/pods/b", Place(PODS, "a", "b")),
        ("/api/v1/namespaces/a/pods/b/binding", Place(PODS, "a", "b", "binding")),
        ("/api/v1/nodes/n", Place("/api/v1/nodes", "", "n")),
        (
            "/apis/gpushare.io/v1alpha1/gpusharenodes/n/status",
            Place("/apis/gpushare.io/v1alpha1/gpusharenodes", "", "n", "status"),
        ),
        ("/api/v1/namespaces/a", Place("/api/v1/namespaces", "", "a")),
        ("/apis/gpushare.io", None),
        ("/healthz", None),
    ],
)
def test_where_a_path_leads(path: str, found: Place | None) -> None:
    assert place(path) == found


def test_lists_come_in_pages_of_one_version() -> None:
    objects = Objects()
    for number in range(5):
        objects.put(PODS, pod(f"p{number}"))
    names, token = [], ""
    for _ in range(3):
        page = json.loads(objects.page(Place(PODS), {"limit": "2", "continue": token}))
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
    assert names == [f"p{number}" for number in range(5)]
    assert token == ""
    assert page["metadata"]["resourceVersion"] == str(objects.version)


def test_selectors_find_by_node_name_and_namespace() -> None:
    objects = Objects()
    for body in (pod("a", "n1"), pod("b", "n2"), pod("a", "n2", "other")):
        objects.put(PODS, body)
    assert selected(objects, "spec.nodeName=n2,status.phase!=Succeeded") == ["default/b", "other/a"]
    assert selected(objects, "metadata.name=a", namespace="other") == ["other/a"]


def selected(objects: Objects, fields: str = "", labels: str = "", namespace: str = "") -> list[str]:
    wanted = Wanted.of(Place(PODS, namespace), {"fieldSelector": fields, "labelSelector": labels})
    return [f"{item.namespace}/{item.name}" for item in objects.selected(wanted, PODS)]


def test_pods_without_a_node_and_those_of_a_label() -> None:
    objects = Objects()
    objects.put(PODS, pod("waiting"))
    labelled = pod("bound", "n1")
    labelled["metadata"]["labels"] = {"run": "1"}
    objects.put(PODS, labelled)
    objects.put(PODS, {"metadata": {"name": "metadata alone"}}, node="n1")
    assert selected(objects, "spec.nodeName!=,status.phase!=Failed") == ["default/bound", "/metadata alone"]
    assert selected(objects, "status.phase=Pending") == ["default/waiting"]
    assert selected(objects, labels="run=1") == ["default/bound"]
    assert selected(objects, labels="run=2") == []


def test_two_lists_at_once_do_not_get_each_others_pages() -> None:
    objects = Objects()
    for number in range(3):
        objects.put(PODS, pod(f"p{number}"))
        objects.put("/api/v1/nodes", {"metadata": {"name": f"n{number}"}})
    places = [Place(PODS), Place("/api/v1/nodes")]
    first = [json.loads(objects.page(place, {"limit": "2"})) for place in places]
    tokens = [page["metadata"]["continue"] for page in first]
    rest = [
        json.loads(objects.page(each, {"limit": "2", "continue": token}))
        for each, token in zip(places, tokens, strict=True)
    ]
    assert [[item["metadata"]["name"] for item in page["items"]] for page in rest] == [["p2"], ["n2"]]


def test_what_is_stored_again_keeps_what_identifies_it() -> None:
    objects = Objects()
    kind, first = objects.put(PODS, pod("a"))
    stored = json.loads(first.content)
    again, second = objects.put(PODS, stored)
    assert (kind, again) == ("ADDED", "MODIFIED")
    assert json.loads(second.content)["metadata"]["uid"] == stored["metadata"]["uid"]
    assert second.version > first.version


def test_a_merge_patch_removes_what_is_null() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": None}, "d": [2], "e": {"f": None}}) == {
        "a": {"c": 2},
        "d": [2],
        "e": {},
    }


def test_what_goes_has_the_version_at_which_it_went() -> None:
    """A watch takes an earlier one for a restored etcd, and lists everything anew."""
    objects = Objects()
    _, stored = objects.put(PODS, pod("gone", "n1"))
    gone = objects.remove(Place(PODS, "default", "gone"))
    assert gone is not None
    assert gone.version == objects.version > stored.version
    assert json.loads(gone.content)["metadata"]["resourceVersion"] == str(gone.version)
    assert (gone.node, selected(objects)) == ("n1", [])
