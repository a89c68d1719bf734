"""Nodes and pods of every dialect, short to write."""

from collections.abc import Mapping

from gpushare_core.text.json_object import Json

MEMORY_RESOURCE = {
    "gpushare.io": "gpushare.io/memory",
    "aliyun.com": "aliyun.com/gpu-mem",
    "volcano.sh": "volcano.sh/gpu-memory",
    "enflame.com": "enflame.com/gcu-memory",
    "tuya.com": "tuya.com/vcuda-memory",
}
"""By dialect, as the systems publish it."""


def dialect_node(
    name: str = "n1",
    dialect: str = "aliyun.com",
    *cards: int,
    mode: str = "Memory",
    unit: str = "1Gi",
    reported: dict[int, dict[str, int]] | None = None,
) -> Json:
    """A GPUShareNode with a card for each of ``cards`` (units), named ``<node>-<index>``; two of 16 if
    none is given. ``reported``: index -> pod -> units that its plugin reports."""
    pods = {
        index: [
            {"namespace": "default", "name": pod, "uid": f"uid-{pod}", "container": "main", "units": units}
            for pod, units in by_pod.items()
        ]
        for index, by_pod in (reported or {}).items()
    }
    return {
        "metadata": {"name": name},
        "spec": {"mode": mode, "memoryUnit": unit, "dialect": dialect, "strategy": "Binpack"},
        "status": {
            "memoryUnit": unit,
            "conditions": [{"type": "Registered", "status": "True", "message": ""}],
            "cards": [
                {
                    "index": index,
                    "uuid": f"{name}-{index}",
                    "units": units,
                    "health": "Healthy",
                    "allocatedUnits": sum((reported or {}).get(index, {}).values()),
                    "pods": pods.get(index, []),
                }
                for index, units in enumerate(cards or (16, 16))
            ],
        },
    }


def mixed_node(name: str, dialect: str, *cards: int, unit: str = "1Gi") -> Json:
    """A GPUShareNode in mode Mixed: each card is two slices, or so many units, or one card."""
    node = dialect_node(name, dialect, *cards, mode="Mixed", unit=f"{unit}, 1/2 card, 1 card")
    for card in node["status"]["cards"]:
        card["offers"] = {"memory": card["units"], "slice": 2, "card": 1}
    return node


def asking(
    amounts: Mapping[str, int],
    name: str = "a",
    *,
    node: str = "",
    annotations: dict[str, str] | None = None,
    phase: str = "",
) -> Json:
    """A pod whose only container asks for ``amounts`` of resources; a dialect stands for its memory."""
    limits = {MEMORY_RESOURCE.get(key, key): str(amount) for key, amount in amounts.items()}
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-11-21T09:59:00Z",
            "annotations": annotations or {},
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"limits": limits}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": phase or ("Running" if node else "Pending")},
    }


def left_by(system: str, *, card: int = 0, units: int = 4, total: int = 16) -> dict[str, str]:
    """What ``system`` left on a pod that it bound and whose card its plugin has given out."""
    return {
        "aliyun.com": {
            "ALIYUN_COM_GPU_MEM_IDX": str(card),
            "ALIYUN_COM_GPU_MEM_POD": str(units),
            "ALIYUN_COM_GPU_MEM_DEV": str(total),
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1763719200000000000",
        },
        "volcano.sh": {
            "volcano.sh/gpu-index": str(card),
            "volcano.sh/predicate-time": "1763719200000000000",
            "volcano.sh/gpu-assigned": "true",
        },
        "enflame.com": {
            "enflame.com/gcu-device-id": str(card),
            "enflame.com/gcu-device-memory": str(total),
            "enflame.com/gcu-device-memory-request": str(units),
            "enflame.com/gcu-device-assigned": "true",
            "enflame.com/gcu-device-assign-time": "1763719200000000000",
        },
    }[system]
