"""Cases drawn at random: small clusters, close enough to real ones that much fits, and odd enough."""

import json
from random import Random
from typing import Any

from tests.engine.draw_pods import annotations, pod_spec, quantity
from tests.engine.draw_share_nodes import NODES, Policy, policy, share_node, unit_text

from gpushare_core.text.json_object import Json

UIDS = ("u1", "u2", "u3", "u4", "u5", "u6")
KINDS = {"cluster": 12, "history": 6, "request": 4, "annotation": 3, "quantity": 2, "claim": 1, "unit": 1}
"""Kind of a case -> how often it is drawn."""


def draw(seed: int) -> Json:
    """Returns the case of ``seed``."""
    random = Random(seed)  # noqa: S311 - no secret, but repeatable
    (kind,) = random.choices([*KINDS], [*KINDS.values()])
    return {"name": f"seed {seed}", "kind": kind, "given": _DRAWN[kind](random)}


def _quantity(random: Random) -> list[str]:
    return [quantity(random) for _ in range(random.randint(0, 4))]


def _request(random: Random) -> Json:
    served = random.choice([[], ["nvidia.com/gpu"]])
    size = random.choice([0, random.randint(0, 300_000), random.randint(240_000, 262_144)])
    return {"pod": pod_spec(random, random.choice(["small", "odd", "huge"])), "served": served, "size": size}


def _annotation(random: Random) -> Json:
    node, uid = random.choice(NODES), random.choice(UIDS)
    written = annotations(random, node=node, uid=uid, is_odd=True)
    return {"text": written.get("gpushare.io/allocation", "{}"), "uid": uid}


def _claim(random: Random) -> Json:
    node, uid = random.choice(NODES), random.choice(UIDS)
    written = annotations(random, node=node, uid=uid, is_odd=True, legacy=1.0)
    if random.random() < 0.8:
        written.pop("gpushare.io/allocation", None)
    return {"annotations": written, "total": random.choice([0, 1, 2, 3, 7, 16, 1000])}


def _pod(random: Random, uid: str, asked: Policy, *, is_odd: bool) -> Json:
    node = random.choice(NODES)
    return {
        "uid": uid,
        "node": node,
        "annotations": annotations(random, node=node, uid=uid, is_odd=is_odd, units=asked.units),
        "spec": pod_spec(random, "small", asked.resources),
    }


def _ask(random: Random, uid: str, asked: Policy) -> Json:
    size = random.choices(["small", "odd", "huge"], [14, 1, 1])[0]
    return {"uid": uid, "spec": pod_spec(random, size, asked.resources)}


def _cluster(random: Random) -> Json:
    """Mostly all nodes are of one policy, and pods ask for what it serves."""
    nodes, most = random.sample(NODES, random.randint(1, len(NODES))), policy(random)
    policies = [most if random.random() < 0.8 else policy(random) for _ in nodes]
    use = random.choice([0.0, 0.2, 0.5, 1.0])
    shares = [
        share_node(random, name, UIDS, asked=asked, use=use)
        for name, asked in zip(nodes, policies, strict=True)
    ]
    pods = random.sample(UIDS, random.choice([0, 0, 1, 2, 3, 6]))
    asking = random.choice([["a0"], ["a0", "a1"], ["a0", "a1", "a2"], ["a0", random.choice(UIDS)]])
    return {
        "nodes": [_as_text(random, share) for share in shares],
        "pods": [_pod(random, uid, most, is_odd=random.random() < 0.1) for uid in pods],
        "asks": [_ask(random, uid, most) for uid in asking],
        "gone": random.sample(UIDS, random.choice([0, 0, 1, 2, 3])),
        "now": random.randint(0, 4_000_000_000_000_000),
    }


def _as_text(random: Random, share: Json) -> Json | str:
    """Now and then the text is what somebody else has written: with equal keys, and damaged."""
    if random.random() > 0.06:
        return share
    text = json.dumps(share)
    place = random.randrange(len(text))
    damage = random.choice(["", '"', "}", ",", "0", "1.5", "null", "-", "e5", '"units":7,', "\\u0041", "\\"])
    return text[:place] + damage + text[place + random.choice([0, 0, 1]) :]


def _history(random: Random) -> Json:
    """Times are in milliseconds, and as numbers with a point they are exact seconds."""
    steps: list[Json] = []
    now, asked = 0, policy(random)
    if random.random() < 0.8:
        steps += [{"share": share_node(random, name, UIDS, asked=asked, use=0.1), "at": 0} for name in NODES]
    for serial in range(random.randint(4, 24)):
        now += random.choice([0, 125, 500, 1000, 3875, 4000, 59_875, 60_000])
        steps.append(_step(random, serial, asked) | {"at": now})
    return {"nodes": [*NODES], "steps": steps}


def _step(random: Random, serial: int, asked: Policy) -> dict[str, Any]:
    uid = random.choice(UIDS)
    kind = random.choices(
        ["share", "pod", "gone", "expire", "drop", "reserve", "release"], [5, 8, 4, 3, 1, 5, 2]
    )[0]
    match kind:
        case "share":
            changed = asked if random.random() < 0.9 else policy(random)
            name, uids = random.choice(NODES), (*UIDS, "r1", "r2")
            return {"share": share_node(random, name, uids, asked=changed, is_open=0.95, use=0.4)}
        case "pod":
            return {"pod": _bound(random, uid, asked)}
        case "reserve":
            spec = pod_spec(random, "small", asked.resources)
            return {"reserve": {"uid": f"r{serial}", "node": random.choice(NODES), "spec": spec}}
        case "release":
            return {"release": f"r{random.randint(0, serial)}"}
        case "drop":
            return {"drop": random.choice(NODES)}
        case "expire":
            return {"expire": True}
    return {"gone": uid}


def _bound(random: Random, uid: str, asked: Policy) -> Json:
    """A pod is bound to one node for good; what its annotation says may change."""
    node = NODES[UIDS.index(uid) % len(NODES)]
    named = random.choices([node, random.choice(NODES)], [5, 1])[0]
    written = annotations(random, node=named, uid=uid, is_odd=random.random() < 0.1, units=asked.units)
    spec = pod_spec(random, "small", asked.resources)
    return {"uid": uid, "node": node, "annotations": written, "spec": spec}


_DRAWN = {
    "quantity": _quantity,
    "unit": lambda random: unit_text(random, is_odd=True),
    "request": _request,
    "annotation": _annotation,
    "claim": _claim,
    "cluster": _cluster,
    "history": _history,
}
