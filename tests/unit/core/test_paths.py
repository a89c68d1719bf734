"""Where things are in the API."""

from gpushare_core.kube.paths import pod_path


def test_names_cannot_escape_from_the_path() -> None:
    assert (
        pod_path("default", "../../nodes/n1?x=")
        == "/api/v1/namespaces/default/pods/..%2F..%2Fnodes%2Fn1%3Fx%3D"
    )
