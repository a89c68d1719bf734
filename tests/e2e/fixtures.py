"""The product on the shared local cluster: installed once, with a policy per module that needs one."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from tests.e2e.books import read_books
from tests.e2e.connection import Connection
from tests.e2e.observe import PATIENCE, PODS, SHARE_NODES, Json, get, watch_until
from tests.e2e.product import Product, policy
from tests.e2e.workloads import create_namespace

from gpushare_core.kube.errors import ApiError
from gpushare_core.kubernetes_minors import KubernetesMinor, engine_minor
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

WORKERS = ["gpu-1", "gpu-2", "gpu-3"]


@pytest.fixture(scope="session")
def connection(cluster: LocalCluster) -> Connection:
    """The product's connection to the schedulers, installed from its manifests."""
    installed = Product(cluster)
    installed.install()
    return Connection(installed)


@pytest.fixture(scope="module")
def product(connection: Connection, request: pytest.FixtureRequest) -> Iterator[Product]:
    """The product, without a policy on any node.

    For modules with the mark ``connected`` the schedulers are connected all the time; all others find them as
    they are without us. A policy that a failed test leaves is taken back: the next module would meet it.
    """
    if request.node.get_closest_marker("connected"):
        connection.keep()
    else:
        connection.release()
    yield connection.product
    if left := connection.policies_of_others():
        connection.product.cluster.kubectl(
            "delete", "gpusharepolicy", *left, "--ignore-not-found", "--timeout=240s", timeout=260
        )


def applied(product: Product, *, cards: int) -> Iterator[None]:
    with product.in_force(policy("default", nodes=WORKERS, cards=cards)):
        yield


@pytest.fixture(scope="module")
def shared_policy(product: Product) -> Iterator[None]:
    """Three workers of eight cards of 16 units."""
    yield from applied(product, cards=8)


@pytest.fixture(scope="module")
def tight_policy(product: Product) -> Iterator[None]:
    """Three workers of six cards of 16 units."""
    yield from applied(product, cards=6)


@pytest.fixture
def namespace(cluster: LocalCluster) -> Iterator[str]:
    """A namespace of the test's own; afterwards all its pods are gone, and their cards free."""
    with own_namespace(cluster) as name:
        yield name


@contextmanager
def own_namespace(cluster: LocalCluster) -> Iterator[str]:
    """As the fixture ``namespace``, for those that live longer than a test."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    create_namespace(cluster, name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
    # Nobody makes new ones any more, and Kubernetes itself would begin with the pods five seconds later.
    cluster.kubectl("delete", "pods", "--all", "-n", name, "--wait=false")
    watch_until(
        cluster,
        PODS.format(namespace=name),
        lambda pods: not pods,
        what=f"no pods left in {name}",
        seconds=240,
    )
    await_released(cluster, name)


def await_released(cluster: LocalCluster, namespace: str) -> None:
    """Wait until plugins count nothing more for pods of ``namespace``, which are gone.

    Until then the extender takes their cards to be in use, and puts the next pod elsewhere."""

    def holders(share_nodes: Sequence[Json]) -> list[str]:
        cards = (card for node in share_nodes for card in node.get("status", {}).get("cards", ()))
        shares = (share for card in cards for share in card.get("pods", ()))
        return [share["name"] for share in shares if share["namespace"] == namespace]

    if is_installed(cluster):
        watch_until(
            cluster,
            SHARE_NODES,
            lambda share_nodes: not holders(share_nodes),
            what=f"all that pods of {namespace} had is free",
            describe=holders,
        )


def is_installed(cluster: LocalCluster) -> bool:
    """Whether the API server knows our objects."""
    try:
        get(cluster, SHARE_NODES)
    except ApiError as error:
        if error.is_not_found:
            return False
        raise
    return True


@pytest.fixture
def books_agree(cluster: LocalCluster, namespace: str) -> Iterator[None]:
    """After the test, annotation, PodResources, environment and status say the same of every container."""
    yield
    await_agreement(cluster, namespace)


def await_agreement(cluster: LocalCluster, namespace: str) -> None:
    """Wait until the four books say the same of every container of ``namespace``."""
    wait_until(
        "the four books agree",
        lambda: not read_books(cluster, namespace).disagreements(),
        timeout=PATIENCE,
        interval=0.5,
        explain=lambda: "; ".join(read_books(cluster, namespace).disagreements()),
    )


def minor_of(cluster: LocalCluster) -> KubernetesMinor:
    return KubernetesMinor(cluster.kubernetes.major, cluster.kubernetes.number)


@pytest.fixture
def has_engine(cluster: LocalCluster) -> None:
    if engine_minor(minor_of(cluster)) is None:
        pytest.skip(f"there is no kube-scheduler of ours for {cluster.kubernetes.name}")
