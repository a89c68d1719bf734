"""Which pods may be gone."""

import pytest
from chaos.model.census import Census, lost_pods
from chaos.operation import Operation
from chaos.operations.pod_shapes import Ask, PodShape
from chaos.operations.pods import CreateBurst, CreatePod, DeletePod, EvictPod

from gpushare_core.text.json_object import Json

SHAPE = PodShape(asks=(Ask(),))
MADE = (CreatePod(name="a", shape=SHAPE), True)


def pod(name: str, *conditions: str) -> Json:
    return {
        "metadata": {"name": name},
        "status": {"conditions": [{"type": condition} for condition in conditions]},
    }


@pytest.mark.parametrize(
    ("last_seen", "operations", "lost"),
    [
        pytest.param(pod("a"), [MADE], 1, id="gone without a word"),
        pytest.param(None, [MADE], 1, id="never seen"),
        pytest.param(pod("a", "DisruptionTarget"), [MADE], 0, id="preempted"),
        pytest.param(pod("a"), [MADE, (DeletePod(name="a"), True)], 0, id="deleted"),
        pytest.param(pod("a"), [MADE, (EvictPod(name="a"), False)], 0, id="perhaps evicted"),
        pytest.param(None, [(CreatePod(name="a", shape=SHAPE), False)], 0, id="not created"),
        pytest.param(None, [(CreateBurst(names=("a", "b"), shape=SHAPE), True)], 2, id="a burst"),
    ],
)
def test_a_pod_that_is_gone(
    last_seen: Json | None, operations: list[tuple[Operation, bool]], lost: int
) -> None:
    census = Census()
    if last_seen:
        census.see(pod("a"))
        census.lose(last_seen)
    assert len(list(lost_pods(census, operations))) == lost


def test_a_pod_that_is_there_is_not_lost() -> None:
    census = Census()
    census.listed([pod("a")])
    assert not list(lost_pods(census, [MADE]))


def test_a_pod_that_went_while_nobody_watched_is_remembered_as_it_was() -> None:
    census = Census()
    census.see(pod("a", "DisruptionTarget"))
    census.listed([])
    assert not list(lost_pods(census, [MADE]))
