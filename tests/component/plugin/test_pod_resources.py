"""What the kubelet's PodResources answer that is no answer: it is away, and the process goes on."""

from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from gpushare_plugin.kubelet.pod_resources import PodResources, PodResourcesUnavailableError


async def garbage(_: bytes, __: Any) -> bytes:
    return b"\x0a\xff\xff"


async def test_an_answer_that_cannot_be_decoded_is_none(tmp_path: Path) -> None:
    socket = tmp_path / "kubelet.sock"
    methods: dict[str, Any] = {"List": grpc.unary_unary_rpc_method_handler(garbage)}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", methods),))
    server.add_insecure_port(f"unix://{socket}")
    await server.start()
    try:
        async with PodResources(socket, ["gpushare.io/memory"]) as resources:
            with pytest.raises(PodResourcesUnavailableError, match="no list of pods"):
                await resources.assigned_devices(timeout=60)
    finally:
        await server.stop(None)
