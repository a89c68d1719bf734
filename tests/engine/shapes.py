"""Shapes of GPUShareNodes, pods and cases that are made by hand."""

from collections.abc import Mapping
from typing import Any

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json

MEMORY, SLICE, CARD = "gpushare.io/memory", "gpushare.io/slice", "gpushare.io/card"
MIXED_UNIT = "1Gi, 1/2 card, 1 card"
UNITS = {"Memory": "1Gi", "Slices": "1/2 card", "Exclusive": "1 card", "Mixed": MIXED_UNIT}
SIZES = {"Memory": 16, "Slices": 2, "Exclusive": 1, "Mixed": 16}
NOW = 1_789_000_000_123_456


def card(uuid: str, units: int, **fields: Any) -> Json:
    index = int(uuid.rpartition("-")[2])
    return {"uuid": uuid, "index": index, "units": units, "health": "Healthy", "computeScore": 80, **fields}


def cards(name: str, *units: int, **fields: Any) -> list[Json]:
    return [card(f"{name}-{place}", amount, **fields) for place, amount in enumerate(units)]


def node(name: str, mode: str, written: list[Json], *, spec: Json | None = None, **status: Any) -> Json:
    asked = {"mode": mode, "memoryUnit": "1Gi", "slicesPerCard": 2, "strategy": "Binpack"}
    conditions = [{"type": "Registered", "status": "True"}]
    found = {"memoryUnit": UNITS[mode], "conditions": conditions, "cards": written}
    return {"metadata": {"name": name}, "spec": asked | (spec or {}), "status": found | status}


def mixed(name: str, *locks: str, **fields: Any) -> list[Json]:
    """Returns cards of mode Mixed, each with its lock; those with one have something given out."""
    units = {"": 16, "Memory": 16, "Slices": 2, "Exclusive": 1}
    offers = {"memory": 16, "slice": 2, "card": 1}
    return [
        card(
            f"{name}-{place}",
            units[lock],
            lock=lock,
            offers=offers,
            **(given("other", 1) if lock else {}),
            **fields,
        )
        for place, lock in enumerate(locks)
    ]


def given(uid: str, *units: int, allocated: int | None = None) -> Json:
    """Returns what the kubelet gave to the containers of one pod."""
    pods = [
        {"uid": uid, "namespace": "d", "name": uid, "container": f"c{place}", "units": amount}
        for place, amount in enumerate(units)
    ]
    return {"allocatedUnits": sum(units) if allocated is None else allocated, "pods": pods}


def container(name: str, limits: Json, **fields: Any) -> Json:
    return {"name": name, "resources": {"limits": limits}, **fields}


def spec(*containers: Json, init: tuple[Json, ...] = ()) -> Json:
    return {"containers": [*containers], **({"initContainers": [*init]} if init else {})}


def one(resource: str, amount: Any) -> Json:
    return spec(container("main", {resource: str(amount)}))


def pod(
    uid: str, where: str, shares: Mapping[str, int], *, unit: str = "1Gi", named: str = "", **fields: Any
) -> Json:
    """Returns a bound pod with an annotation; ``named`` is the node in it where that is another one."""
    allocation = Allocation(
        node=named or where,
        uid=uid,
        at="2026-11-26T10:00:00Z",
        unit=unit,
        containers={"main": dict(shares)},
        cards=dict(shares),
        resource=ResourceClass.CARD
        if unit == "1 card"
        else ResourceClass.SLICE
        if "/" in unit
        else ResourceClass.MEMORY,
        **fields,
    )
    return {
        "uid": uid,
        "node": where,
        "annotations": {Dialect.allocation_annotation: encode_allocation(allocation)},
    }


def cluster(
    name: str, nodes: list[Any], *asks: Json, pods: tuple[Json, ...] = (), gone: tuple[str, ...] = ()
) -> Json:
    waiting = [{"uid": f"a{place}", "spec": asked} for place, asked in enumerate(asks)]
    given = {"nodes": nodes, "pods": [*pods], "asks": waiting, "gone": [*gone], "now": NOW}
    return {"name": name, "kind": "cluster", "given": given}


def history(name: str, *steps: Json) -> Json:
    timed = [{"at": place * 1000, **step} for place, step in enumerate(steps)]
    return {"name": name, "kind": "history", "given": {"nodes": ["n1", "n2"], "steps": timed}}
