"""The kubelet's calls are answered or refused with a reason; none of its files ends the plugin."""

import asyncio
import base64
import tempfile
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fakes.plugin_node import running_node
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies import kubelet
from tests.samples.plugin import container, pod_json

from gpushare_core.dialects.table import RESOURCES
from gpushare_plugin.decide.held.checkpoint import LIMITS_PATH, by_pod
from gpushare_plugin.decide.held.pod_assignment import ListedDevices
from gpushare_plugin.decide.held.pod_identity import identify
from gpushare_plugin.decide.units.unit_ids import UnknownUnitError, decode_id, encode_id, known_numbers
from gpushare_plugin.kubelet import wire
from gpushare_plugin.kubelet.checkpoint import FILE, CheckpointFile, CheckpointUnreadableError, stored_answers
from gpushare_plugin.kubelet.pod_resources import read_assigned
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api
from gpushare_plugin.kubelet.proto import podresources_pb2 as resources_api
from gpushare_plugin.kubelet.wire import pod_messages, preference_requests

REFUSALS = {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.FAILED_PRECONDITION}
RESPONSES = {"GetPreferredAllocation": api.PreferredAllocationResponse, "Allocate": api.AllocateResponse}


@fuzzes(decode_id, known_numbers)
@given(kubelet.unit_ids)
def test_a_unit_id_is_a_number_or_unknown(texts: list[str]) -> None:
    for text in texts:
        try:
            number = decode_id(text)
        except UnknownUnitError:
            continue
        assert encode_id(number) == text
    assert all(number >= 0 for number in known_numbers(texts))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("device-plugins")


ENTRY = (
    b'{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"gpushare.io/memory",'
    b'"DeviceIDs":{"-1":["AAB"]},"AllocResp":"%s"}]}}'
)


def _answering(*mounts: str, **variables: str) -> bytes:
    """``mounts``: paths on the node of what is at the path of limits in the container."""
    given = [api.Mount(container_path=LIMITS_PATH, host_path=path) for path in mounts]
    answer = api.ContainerAllocateResponse(envs=variables, mounts=given)
    return ENTRY % base64.b64encode(answer.SerializeToString())


@fuzzes(CheckpointFile.read, stored_answers, few=30)
@given(kubelet.checkpoints)
@example(_answering(GPUSHARE_CARD="GPU-0", GPUSHARE_CARD_INDEX="9" * 5000))
@example(_answering(GPUSHARE_CARD="GPU-0", GPUSHARE_MEMORY_MIB="9" * 5000))
@example(_answering(GPUSHARE_CARD=",," * 3, GPUSHARE_CARD_INDEX="²"))
@example(_answering(GPUSHARE_ISOLATION="Driver", NVIDIA_GPU_MEMORY_LIMIT="9" * 5000))
@example(_answering(GPUSHARE_ISOLATION="\N{SNOWMAN}"))
@example(_answering("/", "/../../etc/shadow", "/x/" + "f" * 33, GPUSHARE_ISOLATION="Hook"))
@example(b'{"Data":{"PodDeviceEntries":["\xff"]}}')
def test_a_checkpoint_is_read_or_lived_without(folder: Path, content: bytes) -> None:
    new = folder / "new"
    new.write_bytes(content)
    new.rename(folder / FILE)
    try:
        entries = CheckpointFile(folder).read(frozenset(RESOURCES))
    except CheckpointUnreadableError as error:
        assert str(error)
    else:
        assert by_pod(entries) is not None
        given = [entry.isolation for entry in entries if entry.isolation]
        assert all(len(isolation.identity) in (0, 32) for isolation in given)
    try:
        assert all(units.uid is not None for units, _ in stored_answers(content))
    except CheckpointUnreadableError as error:
        assert str(error)


def test_a_checkpoint_that_is_huge_is_not_read_into_memory(folder: Path) -> None:
    with (folder / FILE).open("wb") as file:
        file.truncate(2**34)
    tracemalloc.start()
    with pytest.raises(CheckpointUnreadableError, match="larger"):
        CheckpointFile(folder).read(frozenset(RESOURCES))
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
    (folder / FILE).unlink()


@fuzzes(read_assigned)
@given(kubelet.pod_resources)
def test_what_pod_resources_say_is_counted_whatever_it_is(response: Any) -> None:
    assigned = read_assigned(response.SerializeToString(), frozenset(RESOURCES))
    identify(assigned, [], assigned, {})
    assert all(number >= 0 for number in assigned.numbers())


@given(kubelet.pod_resources)
def test_runs_of_units_are_read_as_protobuf_reads_them(response: Any) -> None:
    named = [(pod.namespace, pod.name, pod.containers) for pod in response.pod_resources]
    messages = pod_messages(response.SerializeToString())
    listed = [message.read(frozenset(RESOURCES)) for message in messages]
    assert [(pod.namespace, pod.name) for pod in listed] == [(space, name) for space, name, _ in named]
    for pod, (_, _, containers) in zip(listed, named, strict=True):
        assert {name: _sorted(devices) for name, devices in pod.containers.items()} == {
            container.name: _sorted(_by_protobuf(container)) for container in containers
        }


def _by_protobuf(container: Any) -> dict[str, ListedDevices]:
    devices: dict[str, ListedDevices] = {}
    for device in container.devices:
        if device.resource_name in RESOURCES:
            devices.setdefault(device.resource_name, ListedDevices()).others.extend(device.device_ids)
    return devices


def _sorted(devices: dict[str, ListedDevices]) -> dict[str, Any]:
    return {
        resource: sorted([*units.others, *map(encode_id, units.numbers)])
        for resource, units in devices.items()
    }


@fuzzes(preference_requests)
@given(kubelet.preferred)
def test_what_the_kubelet_asks_for_is_read_as_protobuf_reads_it(message: Any) -> None:
    asked = preference_requests(message.SerializeToString())
    assert len(asked) == len(message.container_requests)
    for request, expected in zip(asked, message.container_requests, strict=True):
        assert request.units == expected.allocation_size
        assert sorted(request.available) == sorted(known_numbers(expected.available_deviceIDs))
        assert sorted(request.included) == sorted(known_numbers(expected.must_include_deviceIDs))


@given(kubelet.preferred | kubelet.pod_resources, st.data())
def test_bytes_that_are_no_message_are_refused_by_name(message: Any, data: st.DataObject) -> None:
    """As protobuf would, or read: where a byte is another one that may be a message as well."""
    content = bytearray(message.SerializeToString() or b"\x0a\x01\x0a")
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    for read in (preference_requests, lambda content: read_assigned(content, frozenset(RESOURCES))):
        with suppress(DecodeError):
            read(bytes(content))


def _assigned(content: bytes) -> Any:
    """Returns what ``content`` says of ours: unit numbers, and IDs that name no unit."""
    return [
        (pod.namespace, pod.name, {name: _told(devices) for name, devices in pod.containers.items()})
        for pod in (pod_message.read(frozenset(RESOURCES)) for pod_message in pod_messages(content))
    ]


def _told(devices: dict[str, ListedDevices]) -> dict[str, Any]:
    return {
        resource: (sorted([*units.numbers, *known_numbers(units.others)]), _unknown(units.others))
        for resource, units in devices.items()
    }


def _unknown(ids: list[str]) -> list[str]:
    return sorted(identifier for identifier in ids if not [*known_numbers([identifier])])


def _assigned_by_protobuf(content: bytes) -> Any:
    return [
        (
            pod.namespace,
            pod.name,
            {container.name: _told(_by_protobuf(container)) for container in pod.containers},
        )
        for pod in resources_api.ListPodResourcesResponse.FromString(content).pod_resources
    ]


def _preferred(content: bytes) -> Any:
    return [
        (sorted(preference_request.available), sorted(preference_request.included), preference_request.units)
        for preference_request in preference_requests(content)
    ]


def _preferred_by_protobuf(content: bytes) -> Any:
    return [
        (
            sorted(known_numbers(container_request.available_deviceIDs)),
            sorted(known_numbers(container_request.must_include_deviceIDs)),
            container_request.allocation_size,
        )
        for container_request in api.PreferredAllocationRequest.FromString(content).container_requests
    ]


def _outcome(read: Any, content: bytes) -> Any:
    try:
        return read(content)
    except DecodeError:
        return DecodeError


GROUP = b"\x0b\x0c"
"""Proto3 has none: we refuse it, and protobuf skips it."""
READERS = {
    "PodResources": (_assigned, _assigned_by_protobuf, kubelet.pod_resources_bytes),
    "GetPreferredAllocation": (_preferred, _preferred_by_protobuf, kubelet.preferred_bytes),
}


@pytest.mark.parametrize(("own", "protobuf", "contents"), READERS.values(), ids=READERS)
@pytest.mark.parametrize("small", [0, wire.SMALL], ids=["by runs", "as ever"])
@given(data=st.data())
def test_bytes_of_any_kind_are_read_as_protobuf_reads_them_or_refused(
    own: Any, protobuf: Any, contents: st.SearchStrategy[bytes], small: int, data: st.DataObject
) -> None:
    """What protobuf refuses is refused; groups, which proto3 does not have, are refused as well."""
    content = data.draw(contents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "SMALL", small)
        outcome = _outcome(own, content)
    assert outcome in (DecodeError, _outcome(protobuf, content))


@pytest.mark.parametrize(("own", "protobuf", "_"), READERS.values(), ids=READERS)
@pytest.mark.parametrize("field", kubelet.ODD_FIELDS, ids=bytes.hex)
def test_odd_fields_are_read_as_protobuf_reads_them_or_refused(
    own: Any, protobuf: Any, _: Any, field: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "SMALL", 0)
    for content in kubelet.odd_messages(field):
        expected = _outcome(protobuf, content)
        assert _outcome(own, content) in ((expected, DecodeError) if field == GROUP else (expected,))


def test_what_looks_like_a_unit_after_an_id_is_none() -> None:
    """It was read as two letters, and the numbers after it were none that a unit has."""
    content = kubelet.listed_with_units_in_their_tails([b"AAB", b"07"] * 12)
    assert len(content) > wire.SMALL
    assert _assigned(content) == _assigned_by_protobuf(content)


NAMED_TWICE = api.PreferredAllocationRequest(
    container_requests=[api.ContainerPreferredAllocationRequest(must_include_deviceIDs=["AAA", "AAA"])]
)
"""Units that have to be among those that are chosen."""


def require_choice(request: Any, chosen: list[str]) -> None:
    """As many as asked for, of those that are free or had to be among them."""
    included = set(known_numbers(request.must_include_deviceIDs))
    assert len(chosen) == max(request.allocation_size, len(included))
    assert set(known_numbers(chosen)) <= included | set(known_numbers(request.available_deviceIDs))


async def _call(node: Any, method: str, request: Any) -> Any:
    plugin = node.kubelet.plugin
    try:
        return await plugin.call(method, type(request), RESPONSES[method])(request)
    except grpc.aio.AioRpcError as error:
        assert error.code() in REFUSALS, f"{error.code()}: {error.details()} for {str(request)[:300]}"
        assert error.details()
        return None


def test_calls_of_the_kubelet_are_answered_or_refused_with_a_reason() -> None:
    """Afterwards a pod gets its units as ever."""
    runner, directory = asyncio.Runner(), tempfile.TemporaryDirectory(prefix="kubelet-")
    with runner, directory as folder:
        manager = running_node(Path(folder))
        node = runner.run(manager.__aenter__())
        runner.run(node.start_plugin())
        runner.run(node.until_registered())

        @fuzzes(few=30)
        @given(
            st.tuples(st.just("GetPreferredAllocation"), kubelet.preferred)
            | st.tuples(st.just("Allocate"), kubelet.allocate)
        )
        @example(("GetPreferredAllocation", NAMED_TWICE))
        def call(asked: tuple[str, Any]) -> None:
            answer = runner.run(_call(node, *asked))
            if answer is not None and asked[0] == "GetPreferredAllocation":
                for given_ids, container_request in zip(
                    answer.container_responses, asked[1].container_requests, strict=True
                ):
                    require_choice(container_request, list(given_ids.deviceIDs))

        try:
            call()
            runner.run(_settled(node))
        finally:
            runner.run(node.stop_plugin())
            runner.run(manager.__aexit__(None, None, None))


async def _settled(node: Any) -> None:
    """After a restart nothing is reserved any more for calls that never came to a pod."""
    await node.restart_plugin()
    admitted = await node.run_pod(pod_json("good", container(units=4)))
    assert admitted.variables["main"]["GPUSHARE_UNITS"] == "4"
