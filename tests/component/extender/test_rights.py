"""The extender's roles allow exactly what it does: following, binding, waking, preempting."""

from pathlib import Path
from typing import Any

import yaml
from tests.component.extender.test_main import post, running
from tests.fakes.api_server import EVENTS, PODS, SHARE_NODES, Seen, fake_api
from tests.samples.extender import holder_json, pod_json, share_node_json
from tests.samples.rights import Right, allowed, group_and_parts

from gpushare_core.text.json_object import Json

MANIFEST = Path(__file__).resolve().parents[3] / "manifests" / "rbac-extender.yaml"


def used(seen: Seen) -> set[Right]:
    """What one request asks for. A PUT and server-side apply may create."""
    group, rest = group_and_parts(seen.path)
    resource = "/".join([rest[0], *rest[2:]])
    read = "watch" if seen.is_watch else "get" if len(rest) > 1 else "list"
    verbs = {"GET": [read], "POST": ["create"], "PUT": ["update", "create"], "PATCH": ["patch", "create"]}
    return {(group, resource, verb) for verb in verbs[seen.method]}


def preemptor(name: str = "p") -> Json:
    pod = pod_json(name, units=10)
    pod["spec"]["priority"] = 10
    return pod


async def test_the_roles_name_exactly_the_verbs_in_use(tmp_path: Path, unused_tcp_port: int) -> None:
    async with fake_api() as api:
        api.put(SHARE_NODES, share_node_json("n1", cards=1))
        api.put(PODS, pod_json("a", units=4))
        api.put(PODS, holder_json("x", units=10))
        api.put(PODS, preemptor())
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(kubeconfig(api.credentials().server)))
        async with running(path, unused_tcp_port):
            bind = {"PodName": "a", "PodNamespace": "default", "PodUID": "uid-a", "Node": "n1"}
            assert await post(unused_tcp_port, "/gpushare/bind", bind) == {"Error": ""}
            body = {"Pod": preemptor(), "NodeNames": ["n1"]}
            assert (await post(unused_tcp_port, "/gpushare/filter", body))["NodeNames"] == []
            await api.wait_for("the Events", lambda: len(api.objects[EVENTS]) == 2)
            api.delete(PODS, "x", "default")
            patched = "kube-scheduler is woken"
            await api.wait_for(patched, lambda: any("csistorage" in s.path for s in api.seen))
    rights: set[Any] = set()
    for seen in api.seen:
        rights |= used(seen)
    assert rights == allowed(MANIFEST)


def kubeconfig(server: str) -> Json:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "c", "user": {"token": "t"}}],
    }
