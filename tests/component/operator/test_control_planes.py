"""Three control planes in a random world: what may never happen, however policies and hosts come and go."""

import random
from datetime import datetime, timedelta

import pytest
from tests.fakes.control_planes import ControlPlanes
from tests.fakes.operator_cluster import Operator

from gpushare_core.kube import paths
from gpushare_operator.reconcile import SCHEDULERS

STEP = timedelta(seconds=10)
ROUNDS = 12
"""So often the queue may come back to everything within one step."""
TROUBLE = 0.2
"""How likely something happens from outside, in each step."""
MAX_WRITES = 90
"""In a minute: what three hosts and two policies can need when all changes at once."""


async def live(world: ControlPlanes, operator: Operator, *, minutes: float, trouble: float = 0.0) -> None:
    end = world.now + timedelta(minutes=minutes)
    began, writes = world.now, len(world.api.writes)
    while world.now < end:
        if world.chance.random() < trouble:
            world.disturb()
        world.excuse_let_go()
        world.go_on()
        await reconcile(world, operator)
        world.now += STEP
        if world.now - began >= timedelta(minutes=1):
            written = len(world.api.writes) - writes
            if written > MAX_WRITES:
                world.problems.append(f"{world.now:%H:%M:%S} {written} writes: {world.api.writes[-8:]}")
            began, writes = world.now, len(world.api.writes)
        assert not world.problems, "\n".join([*world.problems, *world.log[-40:]])


async def reconcile(world: ControlPlanes, operator: Operator) -> None:
    operator.now = world.now
    if is_half_minute(world.now):
        await operator.work(SCHEDULERS)
    for _ in range(ROUNDS):
        before = len(world.api.writes)
        await operator.resync()
        for key in operator.work_keys():
            await operator.work(key)
        if len(world.api.writes) == before:
            world.judge_conditions()
            return
    world.problems.append(f"{world.now:%H:%M:%S} it never rests: {world.api.writes[-8:]}")


def is_half_minute(now: datetime) -> bool:
    return now.second % 30 == 0


def new_world(seed: int) -> ControlPlanes:
    world = ControlPlanes(chance=random.Random(seed))  # noqa: S311
    for name in ("cp-1", "cp-2", "cp-3"):
        world.add_host(name)
    world.serve()
    for name in ("gpu-default", "gpu-later"):
        world.add_node(name)
    return world


@pytest.mark.parametrize("seed", range(140, 150))
async def test_whatever_happens_nothing_forbidden_does_and_deletion_ends(seed: int) -> None:
    world = new_world(seed)
    operator = Operator(world)
    await live(world, operator, minutes=40, trouble=TROUBLE)
    world.calm = True
    for host in world.hosts.values():
        if not host.up:
            world.revive(host)
    for name in list(world.api.of(paths.POLICIES)):
        world.delete_policy(name)
    await live(world, operator, minutes=75)
    assert not any(world.traces().values()), "\n".join([str(world.traces()), *world.log[-40:]])
    left = [host.name for host in world.hosts.values() if host.port is not None and not host.excused]
    assert left == [], "\n".join(world.log[-40:])
