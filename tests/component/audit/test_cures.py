"""The auditor sees each defect that was mended when its cure is taken out again, and else nothing."""

import pytest
from tests.component.audit.bind_cures import BIND_CURES
from tests.component.audit.cures import CURES, Cure
from tests.component.audit.kubelet_cures import KUBELET_CURES
from tests.component.audit.scene import Scene

from gpushare_core.audit.difference import Difference

every_cure = pytest.mark.parametrize(
    "cure", [*CURES, *BIND_CURES, *KUBELET_CURES], ids=lambda cure: cure.name
)


@every_cure
def test_without_its_cure_the_auditor_names_the_difference(
    cure: Cure, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    cure.take_out(monkeypatch)
    cure.provoke(scene)
    seen = [*scene.seen, *scene.differences()]
    assert any(is_named(cure, difference) for difference in seen), f"{cure.was}; seen: {texts(seen)}"


@every_cure
def test_with_its_cure_nothing_is_different(cure: Cure) -> None:
    scene = Scene()
    cure.provoke(scene)
    assert texts([*scene.seen, *scene.differences()]) == []


def is_named(cure: Cure, difference: Difference) -> bool:
    return (difference.kind, difference.node, difference.card, difference.pod) == (
        cure.kind,
        cure.node,
        cure.card,
        cure.pod,
    )


def texts(seen: list[Difference]) -> list[str]:
    return sorted({f"{difference} [card {difference.card}, pod {difference.pod}]" for difference in seen})
