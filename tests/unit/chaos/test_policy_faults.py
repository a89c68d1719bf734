"""What policies' faults take back, in which order."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from chaos.operations.policies import OVERLAPPING, DeleteWithoutManifest, Overlap
from chaos.world import World

from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json


def named(name: str) -> Json:
    return {"metadata": {"name": name}}


@dataclass
class FinalizingServer:
    """A policy that was deleted is there for two more looks; what is applied to it meanwhile goes with it."""

    present: dict[str, int] = field(default_factory=dict)
    """Name -> looks until it is gone; negative while it is not deleted."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def client(self) -> "FinalizingServer":
        return self

    async def apply_policy(self, policy: Json) -> None:
        self.present.setdefault(policy["metadata"]["name"], -1)

    async def delete(self, path: str) -> None:
        self.present[path.rpartition("/")[2]] = 2

    async def get(self, path: str) -> Json:
        name = path.rpartition("/")[2]
        left = self.present.get(name, 0)
        if left == 0:
            raise ApiError(404, f"GET {path}", "NotFound")
        if left > 0:
            self.present[name] = left - 1
            if left == 1:
                del self.present[name]
        return {"metadata": {"name": name, **({"deletionTimestamp": "2026"} if left > 0 else {})}}


async def test_an_older_policy_that_goes_while_another_overlaps_it_is_back_in_the_end() -> None:
    server = FinalizingServer({"old": -1})
    world = cast("Any", server)
    fault = Overlap(seconds=1.0, policies=(named(OVERLAPPING),), back=(named("old"),), replaced="old")
    await fault.run(cast("World", world))
    await fault.heal(cast("World", world))
    for _ in range(3):
        try:
            await server.get("x/old")
        except ApiError:
            break
    assert server.present == {"old": -1}


async def test_a_manifest_that_was_away_while_the_last_policy_went_is_back_before_anybody_waits(
    tmp_path: Path,
) -> None:
    """Its restoration waits for it, and the policy for that."""
    manifest = tmp_path / "kube-scheduler.yaml"
    manifest.write_text("with our part")

    class Server(FinalizingServer):
        def node_file(self, node: str, path: str) -> Path:
            assert (node, Path(path).name) == ("control-plane-1", manifest.name)
            return manifest

        async def get(self, path: str) -> Json:
            assert manifest.read_text() == "with our part"
            return await super().get(path)

    server = Server({"last": -1})
    world = cast("Any", server)
    fault = DeleteWithoutManifest(seconds=1.0, policies=(), back=(named("last"),), node="control-plane-1")
    await fault.run(cast("World", world))
    assert not manifest.exists()
    assert server.present == {"last": 2}
    await fault.heal(cast("World", world))
    assert server.present == {"last": -1}
