"""What the auditor reads: an odd book is named, or says nothing, and the others are compared all the same."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import encoded, mutated, odd_texts
from tests.samples.audit import MEMORY_WORLD, MIXED_WORLD, NODE

from gpushare_core.audit.auditor import node_differences, released_early, status_differences
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.extender_report import (
    BELIEVED_FOR,
    ExtenderReport,
    decode_reports,
    encode_report,
    report_key,
)
from gpushare_core.audit.readers import read_environment, read_ledger, read_share_node
from gpushare_core.audit.records import ContainerKey, PodKey
from gpushare_core.text.json_object import Json

SHARE_NODE: Json = {
    "metadata": {"name": NODE},
    "status": {
        "memoryUnit": "1Gi, 1/4 card, 1 card",
        "dialect": "aliyun.com",
        "units": {"total": 21, "allocated": 4},
        "cards": [
            {
                "index": 0,
                "uuid": "GPU-0",
                "memory": "16Gi",
                "firstUnit": 0,
                "units": 16,
                "allocatedUnits": 4,
                "health": "Healthy",
                "lock": "Memory",
                "offers": {"memory": 16, "slice": 4, "card": 1},
                "pods": [
                    {"namespace": "default", "name": "a", "uid": "uid-a", "container": "main", "units": 4}
                ],
            }
        ],
    },
}
LEDGER: Json = {
    "nodes": [
        {
            "name": NODE,
            "unit": "1Gi",
            "cards": [
                {
                    "uuid": "GPU-0",
                    "units": 16,
                    "allocated": 4,
                    "lock": "memory",
                    "pods": [{"namespace": "default", "name": "a", "uid": "uid-a", "units": 4}],
                }
            ],
        }
    ]
}


def are_for_people(found: list[Difference]) -> bool:
    return all(difference.sentence and difference.node == NODE for difference in found)


@fuzzes(read_share_node, few=60)
@given(mutated(SHARE_NODE))
@example({"status": SHARE_NODE["status"]})
@example({"metadata": {"name": NODE}, "status": {"cards": [{"uuid": "G", "memory": "1e999", "units": 1}]}})
def test_whatever_a_status_says_is_compared_or_named(item: Any) -> None:
    book = read_share_node(item)
    assert status_differences(book) is not None
    for world in (MEMORY_WORLD, MIXED_WORLD):
        records = world.records()
        changed = replace(records, share_node=book)
        assert are_for_people(node_differences(changed))
        assert are_for_people(released_early(records, changed))


@fuzzes(read_ledger, few=60)
@given(mutated(LEDGER))
def test_whatever_an_extender_answers_is_compared_or_refused(answer: Any) -> None:
    try:
        ledgers = read_ledger(answer)
    except ValueError as error:
        assert str(error)
        return
    records = MIXED_WORLD.records()
    for ledger in ledgers.values():
        changed = replace(records, ledger=ledger)
        assert are_for_people(node_differences(changed))


@fuzzes(read_environment)
@given(
    st.dictionaries(
        st.sampled_from(["GPUSHARE_CARD", "GPUSHARE_UNITS", "GPUSHARE_UNIT", "NVIDIA_VISIBLE_DEVICES"]),
        odd_texts,
    )
)
def test_whatever_an_author_writes_into_an_environment(variables: dict[str, str]) -> None:
    records = MEMORY_WORLD.records()
    seen = read_environment(variables)
    key = ContainerKey(PodKey("default", "a", "uid-a"), "main")
    changed = replace(records, environments={key: seen})
    assert are_for_people(node_differences(changed))


NOW = datetime(2026, 1, 1, tzinfo=UTC)
REPORT = json.loads(encode_report(ExtenderReport(by="cp-1_1", at=NOW, nodes={NODE: "differs"})))


@fuzzes(decode_reports)
@given(st.one_of(odd_texts, encoded(mutated(REPORT)).map(lambda text: text.decode(errors="replace"))))
@example('{"by": "x", "at": "9999-12-31T23:59:59Z"}')
@example('{"by": "x", "at": "0001-01-01T00:00:00Z"}')
@example("[" * 100_000)
@example('{"by": "\ud800"}')
def test_whatever_stands_for_an_extenders_report(text: str) -> None:
    for report in decode_reports({report_key("cp-1_1"): text}).values():
        assert 0 <= report.seconds_left(NOW) <= BELIEVED_FOR.total_seconds()
