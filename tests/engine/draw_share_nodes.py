"""GPUShareNodes drawn at random: modes, cards of several sizes, what kubelets gave out, what is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from gpushare_core.scheduling.objects.share_node import SERVED
from gpushare_core.text.json_object import Json

NODES = ("n1", "n2", "n3")
_MODES = ("Memory", "Memory", "Slices", "Exclusive", "Mixed", "Mixed")
_MEMORY_UNITS = ("1Gi", "1Gi", "1Gi", "2Gi", "512Mi", "1G", "1024Mi")
_DIALECTS = ("gpushare.io",) * 6 + ("aliyun.com", "volcano.sh", "enflame.com", "tuya.com")
_MESSAGES = (
    "",
    "wait",
    "a\x1b[31m\nb\u202ec",
    "x" * 1100,
    "é" * 600,
    "\x00" * 300,
    "a: b",
    "y" * 1020 + "\x00z",
)


def unit_text(random: Random, *, is_odd: bool = False) -> str:
    """Returns the unit of a node as its status writes it."""
    memory, slices = random.choice(_MEMORY_UNITS), f"1/{random.choice([1, 2, 2, 3, 7])} card"
    texts = [memory, slices, "1 card", f"{memory}, {slices}, 1 card"]
    if is_odd:
        texts += [
            "",
            "what",
            "0",
            "1/0 card",
            "1/100 card",
            "1/02 card",
            f"{memory}, {slices}",
            f"{memory}, 1 card, 1 card",
        ]
        texts += [
            "1 card, 1 card",
            "1.5Gi",
            "1.5",
            "0.5Ki",
            "9" * 40 + "Pi",
            "9" * 41,
            "1m",
            "1Ei",
            "1e3",
            "-1Gi",
            f"{memory},{slices}",
        ]
        texts += [
            f"{slices}, {memory}, 1 card",
            f"{memory}, {slices}, {slices}",
            "1Gi, 1Gi, 1 card",
            " 1Gi",
            "1Gi ",
            "1024Ki",
            "1.000Mi",
        ]
    return random.choice(texts)


@dataclass(frozen=True)
class Policy:
    """What a policy asks of nodes."""

    mode: str
    memory: str
    slices: int
    dialect: str
    strategy: str

    @property
    def unit(self) -> str:
        """As the status of a node writes it."""
        return ", ".join(self.units)

    @property
    def units(self) -> list[str]:
        slices = f"1/{self.slices} card"
        every = {"Memory": [self.memory], "Slices": [slices], "Exclusive": ["1 card"]}
        return every.get(self.mode) or [self.memory, slices, "1 card"]

    @property
    def resources(self) -> list[str]:
        """Names of extended resources that its nodes serve."""
        return [*SERVED[self.dialect, self.mode]]


def policy(random: Random) -> Policy:
    return Policy(
        random.choice(_MODES),
        random.choice(_MEMORY_UNITS),
        random.choice([1, 2, 2, 3, 7]),
        random.choice(_DIALECTS),
        random.choice(["Binpack", "Binpack", "Spread"]),
    )


def share_node(
    random: Random, name: str, uids: Sequence[str], *, asked: Policy, is_open: float = 0.85, use: float = 0.3
) -> Json:
    """Returns a GPUShareNode whose kubelet gave units of its cards to some of ``uids``, each card with the
    probability ``use``."""
    spec: Json = {"policy": "p", "mode": asked.mode, "memoryUnit": asked.memory, "dialect": asked.dialect}
    spec |= {"slicesPerCard": asked.slices, "strategy": asked.strategy}
    number, unit, dialect = random.choice([1, 2, 2, 4, 4, 8]), asked.unit, asked.dialect
    cards = [_card(random, name, place, asked, uids, use) for place in range(number)]
    if random.random() < 0.2:
        random.shuffle(cards)
    status: Json = {"memoryUnit": unit, "dialect": dialect, "cards": cards}
    status["conditions"] = [{"type": "Registered", "status": "True", "reason": "Registered", "message": ""}]
    share: Json = {"metadata": {"name": name}, "spec": spec, "status": status}
    if random.random() > is_open:
        for _ in range(random.randint(1, 2)):
            random.choice(_OFTEN if random.random() < 0.6 else _ODD)(random, share)
    return share


def _card(random: Random, node: str, place: int, asked: Policy, uids: Sequence[str], use: float) -> Json:
    mode, slices, memory_units = asked.mode, asked.slices, random.choice([4, 8, 8, 16, 16, 24])
    offers = {"memory": memory_units, "slice": slices, "card": 1}
    is_used = random.random() < use
    lock = random.choice(["Memory", "Slices", "Exclusive"]) if mode == "Mixed" and is_used else ""
    units = {"Memory": memory_units, "Slices": slices, "Exclusive": 1}.get(lock or mode, memory_units)
    card: Json = {
        "uuid": f"{node}-{place}",
        "index": place,
        "memory": f"{memory_units}Gi",
        "units": units,
        "computeScore": random.choice([70, 80, 80, 90]),
        "health": random.choices(["Healthy", "Unhealthy"], [15, 1])[0],
    }
    if mode == "Mixed":
        card |= {"lock": lock, "offers": offers}
    if random.random() < 0.06:
        card["cordoned"] = True
    if random.random() < 0.6:
        card |= {"numaNode": random.randint(0, 1)}
    if random.random() < 0.4:
        card |= {"linkGroup": random.randint(0, 1)}
    if is_used:
        card |= _given(random, uids, units)
    return card


def _given(random: Random, uids: Sequence[str], units: int) -> Json:
    """Returns what the kubelet gave out of a card: sometimes init containers lend, or more than there is."""
    pods: list[Json] = []
    for uid in random.sample(uids, random.randint(0, min(3, len(uids)))):
        for container in range(random.choice([1, 1, 1, 2])):
            given = random.choice([1, 1, 1, 2, 3, units])
            pods.append(
                {"uid": uid, "units": given, "namespace": "d", "name": uid, "container": f"c{container}"}
            )
    total = sum(pod["units"] for pod in pods)
    allocated = random.choices([total, max(0, total - 1), total + 1, 0, -1], [8, 2, 1, 1, 0.2])[0]
    return {"allocatedUnits": allocated, "pods": pods}


def _change(path: Sequence[str], *values: Any) -> Any:
    def changed(random: Random, share: Json) -> None:
        place: Any = share
        for step in path[:-1]:
            place = place.get(step) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[path[-1]] = random.choice(values)

    return changed


def _listed(share: Json, field: str) -> list[Any]:
    """Returns a list of the status; one of its own where an earlier change took it away."""
    status = share.get("status")
    found = status.get(field) if isinstance(status, dict) else None
    return found if isinstance(found, list) else []


def _change_card(field: str, values: Sequence[Any]) -> Any:
    def changed(random: Random, share: Json) -> None:
        cards = [card for card in _listed(share, "cards") if isinstance(card, dict)]
        if cards:
            random.choice(cards)[field] = random.choice(values)

    return changed


def _condition(type_: str, status: str) -> Any:
    def changed(random: Random, share: Json) -> None:
        condition = {"type": type_, "status": status, "message": random.choice(_MESSAGES)}
        conditions = _listed(share, "conditions")
        conditions.insert(random.randint(0, len(conditions)), condition)

    return changed


_OFTEN = (
    _change(["metadata", "deletionTimestamp"], "2026-11-26T10:00:00Z", "", None),
    _change(
        ["status", "conditions"], None, [], [{"type": "Registered", "status": "False", "message": "a: b"}]
    ),
    _change(["spec", "mode"], "Off", "", "New"),
    _change(["spec", "dialect"], "new.io", "aliyun.com"),
    _change(["status", "dialect"], "new.io", "", "aliyun.com"),
    _change(["spec", "memoryUnit"], "3Gi", "what", "1Gi"),
    _change(["spec", "slicesPerCard"], None, 4, 0, -1, 100),
    _change(["spec", "unitChange"], "Keep", "Drain", "New"),
    _change(["spec", "isolation"], {"memory": "Hook"}, {"memory": "None"}, {}),
    _change(["status", "isolation"], "Hook", "None"),
    _condition("Registered", "False"),
    _condition("Registered", "Unknown"),
    _condition("UnitTooFine", "True"),
    _condition("IsolationReady", "False"),
    _change(["status", "memoryUnit"], "", "what", "2Gi", "1/2 card", "1Gi, 1 card, 1 card"),
    _change(["spec", "preemption"], "Disabled", "Enabled"),
    _change_card("health", ["Unhealthy", ""]),
    _change_card("cordoned", [True]),
)
_ODD = (
    _change(["status", "cards"], None, [], {}, "x", [{}], [{"uuid": "x"}], [None]),
    _change(["status"], None, [], "x", 5, {}),
    _change(["spec"], None, {}, 1.5),
    _change(["metadata"], None, {}, {"name": None}, {"name": "n1"}),
    _change(["spec", "candidates"], None, 3, "x", 1.5),
    _change(["spec", "isolation"], None, [], {"memory": 1}),
    _change(["spec", "strategy"], None, "New", ""),
    _change(["metadata", "deletionTimestamp"], 5),
    _change_card("units", [0, -3, 1.5, "8", None, True, 2**30, -(10**25)]),
    _change_card("index", [0, 7, 7, -1, 1.0]),
    _change_card("uuid", ["n1-0", "n2-0", "n3-1", "", 5]),
    _change_card("offers", [None, {}, {"memory": 3}, {"new": 5}, {"slice": 0, "card": 1.5}, []]),
    _change_card(
        "pods",
        [None, [], [{}], [{"uid": "u1", "units": 10**25}], [{"uid": "u1", "units": -4}], [{"units": 1}]],
    ),
    _change_card("allocatedUnits", [-5, 10**25, None, 1e300]),
    _change_card("lock", ["Mixed", "Memory", "New", None]),
    _change_card("linkGroup", [-1, None, 0]),
    _change_card("computeScore", [-5, 0, 10**9]),
    _change_card("cordoned", [1, None, "true"]),
    _change_card("firstUnit", [None, 3, "x"]),
    _change_card("memory", ["what", 5]),
    _change_card("health", [None, "New"]),
)
