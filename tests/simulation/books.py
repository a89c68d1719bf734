"""What the books of a simulated node say at one instant."""

from collections.abc import Iterator, Mapping

from tests.fakes.book_readings import GivenContainer, KubeletBooks
from tests.fakes.books import Given
from tests.simulation.known_pod import KnownPod
from tests.simulation.kubelet import SimulatedKubelet

from gpushare_core.audit.records import PodKey


def kubelet_books(kubelet: SimulatedKubelet) -> KubeletBooks:
    """Also of one that is down: what it has on disk it will say."""
    pods = [*kubelet.pods.values()]
    return KubeletBooks(
        listed=[container for pod in pods for container in _containers(pod, pod.held)],
        stored=[*_stored(kubelet)],
        running=[container for pod in pods if pod.is_running for container in _containers(pod, pod.seen)],
    )


def _containers(pod: KnownPod, given: Mapping[str, list[Given]]) -> Iterator[GivenContainer]:
    for container, grants in given.items():
        is_init = container in pod.request.init_containers
        key = PodKey(*pod.name, pod.uid)
        yield GivenContainer(pod=key, container=container, given=tuple(grants), is_init=is_init)


def _stored(kubelet: SimulatedKubelet) -> Iterator[GivenContainer]:
    containers: dict[tuple[str, str], list[Given]] = {}
    for uid, container, given in kubelet.checkpoint:
        containers.setdefault((uid, container), []).append(given)
    for (uid, container), grants in containers.items():
        yield GivenContainer(pod=PodKey("", "", uid), container=container, given=tuple(grants))
