"""The kubelet's checkpoint is read as it is written, and lived without."""

import base64
import json
from array import array
from pathlib import Path
from typing import Any

import pytest
from tests.samples.plugin import RESOURCE, ids

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredCard
from gpushare_plugin.kubelet.checkpoint import CheckpointFile, CheckpointUnreadableError
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api

VARIABLES = {
    "GPUSHARE_CARD": "GPU-1",
    "GPUSHARE_CARD_INDEX": "1",
    "GPUSHARE_MEMORY_MIB": "2048",
    "GPUSHARE_CARD_MEMORY_MIB": "16384",
}

NAMES = frozenset(GPUSHARE.resources)


def entry(devices: Any, *, resource: str = RESOURCE, **variables: str) -> dict[str, Any]:
    answer = api.ContainerAllocateResponse(envs=variables).SerializeToString()
    return {
        "PodUID": "uid-a",
        "ContainerName": "main",
        "ResourceName": resource,
        "DeviceIDs": devices,
        "AllocResp": base64.b64encode(answer).decode(),
    }


def write(folder: Path, *entries: dict[str, Any]) -> None:
    data = {"PodDeviceEntries": list(entries) or None, "RegisteredDevices": {RESOURCE: ids(1, 2, 3)}}
    written = folder / "new"
    written.write_text(json.dumps({"Data": data, "Checksum": 123, "BootID": "x"}))
    written.rename(folder / "kubelet_internal_checkpoint")


def test_entries_of_the_resource_are_read_with_what_was_answered(tmp_path: Path) -> None:
    own = entry({"0": ids(17, 16), "1": ids(16)}, **VARIABLES)
    write(tmp_path, own, entry({"-1": ["x"]}, resource="example.com/gpu"))
    assert CheckpointFile(tmp_path).read(NAMES) == (
        CheckpointEntry(
            uid="uid-a",
            container="main",
            numbers=array("I", [16, 17]),
            name=RESOURCE,
            cards=(
                StoredCard(
                    uuid="GPU-1", numbers=array("I", [16, 17]), index=1, memory=2048, card_memory=16384
                ),
            ),
        ),
    )


FOREIGN = "nvidia.com/gpu"
"""On this node another plugin's, though one dialect has it."""


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param({**entry({}, resource=FOREIGN), "AllocResp": None}, id="no answer"),
        pytest.param({**entry({}, resource=FOREIGN), "AllocResp": "not base64!"}, id="another answer"),
        pytest.param({**entry({}, resource=FOREIGN), "PodUID": 7, "ContainerName": None}, id="other fields"),
        pytest.param({"ResourceName": FOREIGN}, id="no other fields"),
        pytest.param({**entry({}), "ResourceName": None}, id="no resource"),
    ],
)
def test_what_is_odd_of_another_resource_is_none_of_ours(tmp_path: Path, foreign: dict[str, Any]) -> None:
    write(tmp_path, foreign, entry({"-1": ids(3)}, **VARIABLES), foreign)
    assert [container.uid for container in CheckpointFile(tmp_path).read(NAMES)] == ["uid-a"]


def test_each_of_several_cards_is_read_with_its_unit(tmp_path: Path) -> None:
    variables = {
        "GPUSHARE_CARD": "GPU-0,GPU-1",
        "GPUSHARE_CARD_INDEX": "0,1",
        "GPUSHARE_MEMORY_MIB": "8192,4096",
        "GPUSHARE_CARD_MEMORY_MIB": "16384,8192",
    }
    write(tmp_path, entry({"-1": ids(3, 1)}, resource="gpushare.io/slice", **variables))
    (read,) = CheckpointFile(tmp_path).read(NAMES)
    assert read.resource is ResourceClass.SLICE
    assert read.cards == (
        StoredCard(uuid="GPU-0", numbers=array("I", [1]), index=0, memory=8192, card_memory=16384),
        StoredCard(uuid="GPU-1", numbers=array("I", [3]), index=1, memory=4096, card_memory=8192),
    )
    assert read.shares(array("I", [3])) == {"GPU-0": 0, "GPU-1": 1}


def test_an_answer_of_more_cards_than_units_is_no_evidence(tmp_path: Path) -> None:
    write(tmp_path, entry({"-1": ids(3)}, GPUSHARE_CARD="GPU-0,GPU-1"))
    (read,) = CheckpointFile(tmp_path).read(NAMES)
    assert read.cards == ()


def test_an_answer_that_names_no_card_is_no_evidence(tmp_path: Path) -> None:
    write(tmp_path, entry({"-1": ids(3)}, GPUSHARE_CARD_INDEX="none"))
    (read,) = CheckpointFile(tmp_path).read(NAMES)
    assert read.cards == ()


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path)
    write(tmp_path)
    assert file.read(NAMES) == ()
    write(tmp_path, entry({"-1": ids(3)}, **VARIABLES))
    assert len(file.read(NAMES)) == 1
    assert file.read(NAMES) is file.read(NAMES)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"Data": {}}', id="no entries"),
        pytest.param(
            json.dumps({"Data": {"PodDeviceEntries": [entry(["AAA"])]}}).encode(), id="IDs as a list"
        ),
        pytest.param(
            json.dumps(
                {
                    "Data": {
                        "PodDeviceEntries": [{**entry({}), "AllocResp": base64.b64encode(b"\xff").decode()}]
                    }
                }
            ).encode(),
            id="another answer",
        ),
        pytest.param(b'{"Data": {"PodDeviceEntries": [{"Resource": "gpushare.io/memory"}]}}', id="renamed"),
        pytest.param(b'{"Data": {"PodDeviceEntries": [null]}}', id="no entry"),
        pytest.param(
            json.dumps({"Data": {"PodDeviceEntries": [{**entry({}), "AllocResp": 7}]}}).encode(),
            id="an answer of ours that is none",
        ),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"Data": {"PodDeviceEntries": [{"PodUID": "\xff"}]}}', id="not text"),
    ],
)
def test_another_format_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kubelet_internal_checkpoint").write_bytes(content)
    file = CheckpointFile(tmp_path)
    for _ in range(2):
        with pytest.raises(CheckpointUnreadableError, match="unknown format"):
            file.read(NAMES)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointUnreadableError, match="No such file"):
        CheckpointFile(tmp_path).read(NAMES)


def test_entries_that_stay_as_they_were_are_the_same_objects(tmp_path: Path) -> None:
    """With each admission the kubelet writes all of them."""
    one, other = entry({"0": ids(1)}, **VARIABLES), {**entry({"0": ids(2)}), "PodUID": "uid-b"}
    file = CheckpointFile(tmp_path)
    write(tmp_path, one)
    (before,) = file.read(NAMES)
    write(tmp_path, other, one)
    added, after = file.read(NAMES)
    assert after is before
    assert (added.uid, [*added.numbers]) == ("uid-b", [2])
    write(tmp_path, {**one, "DeviceIDs": {"0": ids(3)}})
    (changed,) = file.read(NAMES)
    assert [*changed.numbers] == [3]


def test_what_could_not_be_read_is_looked_at_again_when_it_matters(tmp_path: Path) -> None:
    """It was another plugin's; now it is ours, and the file is the same."""
    write(tmp_path, {**entry({"0": ["x"]}, resource=FOREIGN), "AllocResp": "//"})
    file = CheckpointFile(tmp_path)
    assert file.read(NAMES) == ()
    with pytest.raises(CheckpointUnreadableError):
        file.read(NAMES | {FOREIGN})
