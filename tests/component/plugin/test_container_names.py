"""A pod is read once for a container that turns up; one that it does not list is given up."""

from collections.abc import AsyncIterator

import pytest
from tests.fakes.api_server import PODS, status
from tests.fakes.plugin_api import PluginApi, plugin_api
from tests.samples.plugin import container, name_of, pod_json

from gpushare_core.kube.client import KubeClient
from gpushare_plugin.cluster.container_names import ATTEMPTS, RETRY_AFTER, ContainerNames, container_ids
from gpushare_plugin.decide.use.cgroups import CgroupOwner

X, Y, BEFORE = "a" * 64, "b" * 64, "c" * 64
OF_X, OF_Y = CgroupOwner("uid-a", X), CgroupOwner("uid-a", Y)
STATUS = {
    "containerStatuses": [
        {
            "name": "x",
            "containerID": f"containerd://{X}",
            "lastState": {"terminated": {"containerID": f"containerd://{BEFORE}"}},
        },
        {"name": "waiting"},
    ],
    "initContainerStatuses": [{"name": "y", "containerID": f"cri-o://{Y}"}],
}


@pytest.fixture
async def api() -> AsyncIterator[PluginApi]:
    async with plugin_api() as api:
        api.put(PODS, {**pod_json("a", container("x")), "status": STATUS})
        yield api


@pytest.fixture
async def client(api: PluginApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials()) as client:
        yield client


def test_ids_are_those_of_all_containers_and_of_the_run_before() -> None:
    assert container_ids({"status": STATUS}) == {X: "x", BEFORE: "x", Y: "y"}
    assert container_ids({"metadata": {}}) == {}


async def test_one_read_tells_all_containers_of_a_pod(api: PluginApi, client: KubeClient) -> None:
    names = ContainerNames(client, clock=lambda: 0.0)
    await names.look_up({OF_X: name_of("a"), OF_Y: name_of("a")})
    assert names.known == {OF_X: "x", OF_Y: "y"}
    assert len(api.seen) == 1


async def test_a_container_that_is_not_listed_is_asked_for_now_and_then_and_given_up(
    api: PluginApi, client: KubeClient
) -> None:
    now = [0.0]
    names = ContainerNames(client, clock=lambda: now[0])
    strange = CgroupOwner("uid-a", "d" * 64)
    for attempt in range(1, ATTEMPTS + 1):
        assert strange not in names.known
        for _ in range(3):
            await names.look_up({strange: name_of("a")})
        assert len(api.seen) == attempt
        now[0] += RETRY_AFTER
    assert names.known == {strange: ""}


async def test_a_read_that_fails_is_no_attempt(api: PluginApi, client: KubeClient) -> None:
    now = [0.0]
    names = ContainerNames(client, clock=lambda: now[0])
    api.fail("GET", "/api/v1/namespaces/default/pods/a", *[status(403)] * ATTEMPTS)
    for _ in range(ATTEMPTS):
        await names.look_up({OF_X: name_of("a")})
        now[0] += RETRY_AFTER
    assert names.known == {}
    await names.look_up({OF_X: name_of("a")})
    assert names.known == {OF_X: "x"}


async def test_pods_that_are_gone_are_forgotten(client: KubeClient) -> None:
    names = ContainerNames(client)
    await names.look_up({OF_X: name_of("a")})
    names.forget({"uid-a"})
    assert names.known
    names.forget({"uid-b"})
    assert names.known == {}
