"""What the stand-in for the API server keeps, and how it is found."""

import json

import pytest
from bench.peers.objects import Objects, Place, field_terms, merged, place

from gpushare_core.json_object import Json

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
    for each in (pod("a", "n1"), pod("b", "n2"), pod("a", "n2", "other")):
        objects.put(PODS, each)
    selector = "spec.nodeName=n2,status.phase!=Succeeded"
    assert [(it.namespace, it.name) for it in objects.selected(Place(PODS), selector)] == [
        ("default", "b"),
        ("other", "a"),
    ]
    assert [it.namespace for it in objects.selected(Place(PODS, "other"), "")] == ["other"]
    assert field_terms("spec.nodeName!=,status.phase!=Failed") == {}


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
