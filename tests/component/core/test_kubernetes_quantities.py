"""An amount is to us what it is to Kubernetes: compared with its own parser, text by text."""

import json
import random
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import pytest

from gpushare_core.placement.quantity import MAX_AMOUNT, read_amount
from gpushare_localcluster.build.binary import ensure_binary
from gpushare_localcluster.cluster import to_stderr

SUFFIXES = (
    *("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"),
    *(
        "e",
        "e3",
        "E3",
        "e+3",
        "e-3",
        "E-9",
        "e-12",
        "e000",
        "e40",
        "e-40",
        "e4294967298",
        "e-4294967295",
        "e9" * 9,
    ),
    *("i", "ki", "K", "mi", "mm", "Mii", "e3k", "e3.5", " ", "\n"),
)
SIGNS = ("", "", "", "+", "-", "++", "- ")
DIGITS = (
    "0",
    "4",
    "20",
    "000",
    "9" * 19,
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551620",
    "4" + 45 * "0",
)
SUFFIX_ALONE = re.compile(r"[+-]?\.?[A-Za-z]+([+-]?[0-9]+)?")
SEED = 22
DRAWN = 20_000


@dataclass(frozen=True, slots=True)
class Reading:
    """What Kubernetes makes of a text."""

    amount: Fraction | None
    """None when it refuses the text."""
    value: int
    """What the scheduler and the kubelet count."""


def kubernetes_readings(texts: Sequence[str]) -> list[Reading]:
    program = ensure_binary(report=to_stderr).path
    lines = "".join(f"{json.dumps(text)}\n" for text in texts)
    done = subprocess.run(
        [program, "quantities"], input=lines, capture_output=True, text=True, timeout=120, check=True
    )
    readings = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        Reading(Fraction(reading["amount"]) if reading["amount"] else None, reading["value"])
        for reading in readings
    ]


def drawn_texts() -> list[str]:
    choose = random.Random(SEED)  # noqa: S311  # the same texts each time

    def digits() -> str:
        drawn = str(choose.randrange(10 ** choose.choice((1, 3, 12, 40))))
        return choose.choice((*DIGITS, drawn, drawn, drawn, drawn))

    def number() -> str:
        point = choose.choice(("", "", "", ".", "..", f".{digits()}", f".{digits()}", f".000{digits()}"))
        return choose.choice(("", *[f"{digits()}"] * 20)) + point

    return [choose.choice(SIGNS) + number() + choose.choice(SUFFIXES) for _ in range(DRAWN)]


TOLD = (
    *("+4", "+20", "4e000", "4" + 45 * "0"),
    *("", "0", "-0", ".5", "5.", "1E", "1e", "four", "0x10", "٣"),
)


@pytest.fixture(scope="module")
def read_by_kubernetes() -> dict[str, Reading]:
    texts = [*dict.fromkeys((*TOLD, *drawn_texts()))]
    return dict(zip(texts, kubernetes_readings(texts), strict=True))


def test_what_kubernetes_takes_is_read_as_the_same_amount(read_by_kubernetes: dict[str, Reading]) -> None:
    taken = {
        text: reading.amount for text, reading in read_by_kubernetes.items() if reading.amount is not None
    }
    assert len(taken) > DRAWN / 4
    expected = {
        text: min(amount, MAX_AMOUNT) if amount >= 0 else MAX_AMOUNT for text, amount in taken.items()
    }
    assert {text: read_amount(text) for text in taken} == expected


def test_so_many_units_are_counted_as_by_scheduler_and_kubelet(
    read_by_kubernetes: dict[str, Reading],
) -> None:
    """Beyond 64 bits their numbers begin anew, and ours stay too much for every card."""
    counted = {
        text: reading.value
        for text, reading in read_by_kubernetes.items()
        if reading.amount is not None and 0 <= reading.amount <= MAX_AMOUNT
    }
    assert len(counted) > DRAWN / 8
    assert {text: ceil(read_amount(text)) for text in counted} == counted


def test_what_kubernetes_refuses_is_more_than_there_is(read_by_kubernetes: dict[str, Reading]) -> None:
    """A suffix without a number is nothing to it, or refused: that depends on the suffix."""
    refused = [
        text
        for text, reading in read_by_kubernetes.items()
        if reading.amount is None and not SUFFIX_ALONE.fullmatch(text)
    ]
    assert len(refused) > DRAWN / 16
    assert {read_amount(text) for text in refused} == {MAX_AMOUNT}
