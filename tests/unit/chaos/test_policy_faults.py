"""What policies' faults take back, in which order."""

from dataclasses import dataclass, field
from typing import Any, cast

from chaos.operations.policies import OVERLAPPING, Overlap
from chaos.world import World

from gpushare_core.json_object import Json
from gpushare_core.kube.errors import ApiError


def named(name: str) -> Json:
    return {"metadata": {"name": name}}


@dataclass
class FinalizingServer:
    """A policy that was deleted is there for two more looks; what is applied to it meanwhile goes with it."""

    present: dict[str, int] = field(default_factory=dict)
    """Name -> looks until it is gone; negative while it is not deleted."""

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
