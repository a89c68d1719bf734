"""Pods drawn at random: what they ask for, and what is written on them."""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json

MEMORY, SLICE, CARD = "gpushare.io/memory", "gpushare.io/slice", "gpushare.io/card"
NAMES = ("main", "side", "init", "warm", "log", "last")
UNITS = ("1Gi", "2Gi", "512Mi", "1024Mi", "1/2 card", "1/3 card", "1 card", "300Mi", "what", "1G")
_SUFFIXES = (
    "",
    "",
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E-2",
    "e+1",
)
_ODD = (
    "",
    ".",
    "+",
    "-",
    "1.",
    ".5",
    "+3",
    "-0",
    "-1",
    "00",
    "007",
    "1e",
    "e5",
    "1E",
    "1E5",
    "1Ei",
    "1ei",
    "0x10",
    "1 ",
    " 1",
    "NaN",
    "inf",
    "1e99999999999",
    "1e-99999999999",
    "1e9999999999999999999",
    "9223372036854775807",
    "9223372036854775808",
    "9223372036854775807.5",
    "0.000000001",
    "0.0000000001",
    "1" * 70,
    "0." + "0" * 70 + "1",
    "1" * 70 + "e-60",
    "٣",
    "1_0",
    "1e2147483648",
    "1e-2147483649",
    "4294967297e-9",
)


def quantity(random: Random) -> str:
    """Returns an amount such as people write, or one that hardly anybody does."""
    if random.random() < 0.35:
        return random.choice(_ODD)
    number = str(random.choice([0, 1, 2, 3, 10, 500, 1024, random.getrandbits(20), random.getrandbits(70)]))
    if random.random() < 0.3:
        number += "." + str(random.getrandbits(random.choice([2, 10, 40])))
    return random.choice(["", "", "", "+"]) + number + random.choice(_SUFFIXES)


def amount(random: Random, size: str) -> Any:
    if size == "small":
        return str(random.choice([1, 1, 1, 1, 2, 2, 3, 4, 6, 12]))
    if size == "huge":
        return random.choice(["9223372036854775807", "8Ei", "9e18", "65536", "65535", "40000", "32768", "1"])
    return random.choice([quantity(random), random.randint(0, 20)])


def pod_spec(random: Random, size: str, served: Sequence[str] = ()) -> Json:
    """Returns a PodSpec: one class mostly, sometimes several, in containers of several kinds. Nine of ten ask
    for what is ``served``."""
    names = _some(random, served) if served and random.random() < 0.9 else _resources(random)
    count = max(random.choices([1, 2, 3, 5, 6], [8, 4, 2, 1, 1])[0], len(names))
    containers = [
        _container(
            random, NAMES[place], [names[place % len(names)]] if random.random() < 0.95 else names, size
        )
        for place in range(count)
    ]
    if random.random() < 0.03:
        containers[-1]["name"] = containers[0]["name"]
    inits = random.randint(0, count - 1) if random.random() < 0.5 else 0
    for container in containers[:inits]:
        if random.random() < 0.4:
            container["restartPolicy"] = random.choice(["Always", "Always", "Never"])
    spec: Json = {"containers": containers[inits:]}
    if inits:
        spec["initContainers"] = containers[:inits]
    return spec


def _some(random: Random, served: Sequence[str]) -> list[str]:
    return random.sample([*served], random.choices(range(1, len(served) + 1), [3, 2, 1][: len(served)])[0])


def _resources(random: Random) -> list[str]:
    kind = random.choices(["one", "ours", "any"], [6, 3, 1])[0]
    if kind == "one":
        return [random.choice([MEMORY, MEMORY, SLICE, CARD])]
    if kind == "ours":
        return random.sample([MEMORY, SLICE, CARD], random.randint(1, 3))
    return random.sample([*RESOURCES, "nvidia.com/other", "cpu"], random.randint(1, 2))


def _container(random: Random, name: str, names: list[str], size: str) -> Json:
    limits: Json = {}
    for resource in names:
        if random.random() < 0.9:
            limits[resource] = amount(random, size)
    requests: Json = {}
    for resource in ("cpu", "memory"):
        for where in (limits, requests):
            if random.random() < 0.3:
                where[resource] = random.choice(["500m", "1", "2", "256Mi", "1Gi", "1.5Gi", quantity(random)])
    container: Json = {"name": name}
    if limits or requests:
        container["resources"] = (
            {"limits": limits} if random.random() < 0.5 else {"limits": limits, "requests": requests}
        )
    return container


def annotations(
    random: Random, *, node: str, uid: str, is_odd: bool, legacy: float = 0.2, units: Sequence[str] = UNITS
) -> dict[str, str]:
    """Returns what is written on a bound pod: mostly our annotation, with one of ``units``; sometimes that of
    a replaced system."""
    written: dict[str, str] = {}
    if random.random() < legacy:
        written |= _legacy(random)
    if random.random() < 0.5 or not written:
        written["gpushare.io/allocation"] = _allocation(random, node, uid, units, is_odd=is_odd)
    if random.random() < 0.05:
        written = {"unrelated": "x"}
    return written


def _legacy(random: Random) -> dict[str, str]:
    def number() -> str:
        return random.choice(
            ["0", "1", "2", "0", "1", "2", "3", "02", "7", "-1", "", "x", "9" * 18, "9" * 19]
        )

    return random.choice(
        [
            {"ALIYUN_COM_GPU_MEM_IDX": number(), "ALIYUN_COM_GPU_MEM_POD": number()},
            {"ALIYUN_COM_GPU_MEM_IDX": number()},
            {"enflame.com/gcu-device-id": number(), "enflame.com/gcu-device-memory-request": number()},
            {"volcano.sh/gpu-index": ",".join(number() for _ in range(random.randint(1, 3)))},
            {"scheduler.framework.gpushare.allocation": _containers(random)},
        ]
    )


def _containers(random: Random) -> str:
    shares = {
        name: {
            random.choice(["0", "1", "01", "x"]): random.choice([0, 1, 2, 5, -1, 10**30, 1.5])
            for _ in range(2)
        }
        for name in random.sample(NAMES, random.randint(0, 2))
    }
    return random.choice(
        [json.dumps(shares), json.dumps(shares), '{"main":{"0":1},"main":{"1":2}}', "{", "[]", '{"a":null}']
    )


def _allocation(random: Random, node: str, uid: str, units: Sequence[str], *, is_odd: bool) -> str:
    cards = [f"{node}-{random.randint(0, 3)}" for _ in range(random.choices([1, 2, 3], [6, 2, 1])[0])]
    if random.random() < 0.05:
        cards.append(random.choice(["n1-0", "elsewhere", 'odd "\\\x7f\u2028é\U0001f600\n\x01']))

    amounts = [0, 1, 2, 16, 16, 3, 10**25, 2**48, 2**63, -1] if is_odd else [1, 1, 1, 2, 2, 3, 4, 8]
    containers = {
        name: {card: random.choice(amounts) for card in random.sample(cards, random.randint(0, len(cards)))}
        for name in random.sample(NAMES, random.randint(0, 2))
    }
    allocation = Allocation(
        node=node,
        uid=uid if random.random() < 0.95 else "another",
        at="2026-11-26T10:00:00Z",
        unit=random.choice(units if random.random() < 0.9 else UNITS),
        containers=containers,
        resource=random.choice([*ResourceClass]),
        cards={card: random.choice(amounts) for card in cards} if random.random() < 0.8 else {},
        cpu="500m",
        memory="1Gi",
        other_units={card: random.choice(units) for card in cards[1:]} if random.random() < 0.3 else {},
    )
    text = encode_allocation(allocation)
    return _damaged(random, text) if is_odd and random.random() < 0.6 else text


def _damaged(random: Random, text: str) -> str:
    place = random.randrange(len(text))
    damage = random.choice(
        [
            "",
            "",
            " ",
            '"',
            ",",
            "}",
            "{",
            "null",
            "1.5",
            "-",
            "0",
            "\\",
            "\\u0041",
            "\\ud83d\\ude00",
            "\\ud800",
            "\x01",
            "é",
            "\ufeff",
        ]
    )
    return random.choice(
        [
            text[:place] + damage + text[place + random.choice([0, 0, 1, 3]) :],
            text[:place],
            text[:-1] + ',"unit":"2Gi","cards":{"n1-0":1,"n1-0":3}}',
            text[:-1] + ',"uid":"another"}',
            text[:-1] + ',"later":[1,{"a":[true,false,null,-1.5e+3]}]}',
            text.replace('"uid"', '"at":"","uid"', 1),
            text + " ",
            " " + text,
            text.replace('"cpu":"500m"', '"cpu":null'),
            text.replace('"cpu":"500m",', ""),
            text.replace('"unit":', '"Unit":'),
            text.replace('"resource":"', '"resource":"x'),
        ]
    )
