"""Histories and books with each engine."""

import json
from collections import Counter
from typing import Any, cast

import pytest
from chaos.audit.scheduler_book import Replica, ready
from chaos.operations.api_faults import EXTENDER, OPERATOR, PLUGIN, SCHEDULER, with_engine
from chaos.operations.table import ALL_KINDS, KINDS, kinds_of
from chaos.plan.generator import history
from chaos.plan.history import read, write
from chaos.policies import DEFAULT
from chaos.proxy.fault import ApiFault, Manner
from chaos.world import OVERLAYS, World

from gpushare_core.api.enums import Engine
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster


def test_a_history_for_the_plugin_does_nothing_to_an_extender(tmp_path: Any) -> None:
    kinds = kinds_of(Engine.PLUGIN)
    steps = history(3, 20_000, kinds)
    drawn = Counter(step.operation.kind for step in steps)
    assert drawn.keys() == {kind.name for kind in kinds}
    assert {"scheduler.delete", "scheduler.oversleep", "policy.engine"} <= drawn.keys()
    assert not [name for name in drawn if name.startswith(("extender.", "manifest", "hostctl"))]
    write(tmp_path / "history.jsonl", steps[:2_000])
    assert read(tmp_path / "history.jsonl") == steps[:2_000]


def test_the_kinds_for_the_extender_are_those_of_earlier_seeds() -> None:
    assert kinds_of(Engine.EXTENDER) == KINDS
    assert len({kind.name for kind in ALL_KINDS}) == len(ALL_KINDS)


@pytest.mark.parametrize(
    ("fault", "programs"),
    [
        pytest.param(
            ApiFault(manner=Manner.RESET, programs=(PLUGIN, EXTENDER)), (PLUGIN, SCHEDULER), id="named"
        ),
        pytest.param(ApiFault(manner=Manner.RESET), (), id="whoever asks"),
        pytest.param(ApiFault(manner=Manner.HUNG), (OPERATOR, PLUGIN), id="hung, whoever asks"),
        pytest.param(
            ApiFault(manner=Manner.HUNG, programs=(EXTENDER,)), (OPERATOR, PLUGIN), id="hung, it alone"
        ),
        pytest.param(ApiFault(manner=Manner.HUNG, programs=(PLUGIN, EXTENDER)), (PLUGIN,), id="hung, it too"),
    ],
)
def test_faults_of_the_extender_hit_the_scheduler(fault: ApiFault, programs: tuple[str, ...]) -> None:
    assert with_engine(fault, Engine.PLUGIN).programs == programs
    assert with_engine(fault, Engine.EXTENDER) == fault


class Applied:
    """A cluster that keeps what is applied."""

    def __init__(self) -> None:
        self.bodies: list[Json] = []

    def kubectl(self, *_: str, stdin: str) -> None:
        self.bodies.append(json.loads(stdin))


async def test_a_policy_that_names_no_scheduler_has_that_of_the_run() -> None:
    nothing: Any = None
    applied = Applied()
    world = World(cast("LocalCluster", applied), nothing, nothing, Engine.PLUGIN)
    own = {"backend": "Dedicated", "engine": "Extender"}
    await world.apply_policy(DEFAULT)
    await world.apply_policy({**DEFAULT, "spec": {**DEFAULT["spec"], "scheduler": own}})
    assert [body["spec"]["scheduler"] for body in applied.bodies] == [
        {"backend": "Dedicated", "engine": "Plugin"},
        own,
    ]
    assert applied.bodies[0]["spec"]["nodes"] == DEFAULT["spec"]["nodes"]


@pytest.mark.parametrize("engine", [*Engine])
def test_what_is_installed_is_there(engine: Engine) -> None:
    assert (OVERLAYS[engine] / "kustomization.yaml").exists()


def pod(name: str, *, is_ready: bool, **metadata: str) -> Json:
    condition = {"type": "Ready", "status": "True" if is_ready else "False"}
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"nodeName": "gpu-1"},
        "status": {"conditions": [condition]},
    }


def test_only_replicas_that_serve_are_asked() -> None:
    listed = [
        pod("serves", is_ready=True),
        pod("starts", is_ready=False),
        pod("ends", is_ready=True, deletionTimestamp="2026-11-21T10:00:00Z"),
    ]
    assert [*ready(listed)] == [Replica("serves", "gpu-1")]
