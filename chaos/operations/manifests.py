"""kube-scheduler's manifest is edited by people, written anew by upgrades, and cannot be read for a while.

``World.before`` is kept as what every file would be without us: with each edit it changes, too.
kube-scheduler restarts with every change, and does not run on its node while its manifest cannot be read:
pods wait for the other one to lead, 15 s and more.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.operation import Fault, Kind, Operation
from chaos.operations.manifest_edits import EDITS, TextEdit
from chaos.plan.known import CONTROL_PLANES, Known
from chaos.world import KUBERNETES, World

MANIFEST = "manifests/kube-scheduler.yaml"
STAGED = "kube-scheduler.chaos"
"""A file beside the manifest folder, which an upgrade writes and then moves in."""
LASTS = (1.0, 3.0, 8.0)
"""Seconds."""
INVALID = b"\tthis: [is, no\n  manifest"


class _Manifest(Fault, frozen=True, kw_only=True):
    node: str

    @property
    def touches(self) -> frozenset[str]:
        """One at a time, as people who care for kube-scheduler do it."""
        return frozenset({"manifests"})

    def path(self, world: World) -> Path:
        return world.node_file(self.node, f"{KUBERNETES}/{MANIFEST}")

    def without_us(self, world: World) -> str:
        return world.before[self.node][MANIFEST].decode()

    def expect(self, world: World, text: str) -> None:
        world.before = {**world.before, self.node: {**world.before[self.node], MANIFEST: text.encode()}}

    def move_in(self, world: World, text: str) -> None:
        staged = world.node_file(self.node, f"{KUBERNETES}/{STAGED}")
        staged.write_text(text)
        staged.chmod(0o600)
        staged.rename(self.path(world))


class EditManifest(_Manifest, frozen=True, kw_only=True, tag="manifest.edit"):
    """An administrator edits the manifest, our part included, and saves it in place or by renaming."""

    edit: TextEdit
    in_place: bool

    async def run(self, world: World) -> None:
        edited = self.edit.apply(self.path(world).read_text())
        self.expect(world, self.edit.apply(self.without_us(world)))
        if self.in_place:
            self.path(world).write_text(edited)
        else:
            self.move_in(world, edited)


class UpgradeManifest(_Manifest, frozen=True, kw_only=True, tag="manifest.upgrade"):
    """An upgrade writes the manifest anew, without our part."""

    edit: TextEdit

    async def run(self, world: World) -> None:
        upgraded = self.edit.apply(self.without_us(world))
        self.expect(world, upgraded)
        self.move_in(world, upgraded)


class _Unreadable(_Manifest, frozen=True, kw_only=True):
    """Nobody can read the manifest for a while; then it is as it was."""

    def broken(self, content: bytes) -> bytes | None:
        """What is there meanwhile; None: nothing."""
        raise NotImplementedError

    async def run(self, world: World) -> None:
        path = self.path(world)
        content = path.read_bytes()
        world.facts[self._key] = content
        if (broken := self.broken(content)) is None:
            path.unlink()
        else:
            path.write_bytes(broken)

    async def heal(self, world: World) -> None:
        path = self.path(world)
        content = world.facts.pop(self._key, None)
        if content is None:
            return
        # What somebody else has put there meanwhile is not overwritten.
        if (path.read_bytes() if path.exists() else None) == self.broken(content):
            path.write_bytes(content)

    @property
    def _key(self) -> str:
        return f"manifests/{self.node}"


class TruncateManifest(_Unreadable, frozen=True, kw_only=True, tag="manifest.truncated"):
    """Only a part of the manifest is there, as while somebody writes it slowly or the disk is full."""

    share: float

    def broken(self, content: bytes) -> bytes | None:
        return content[: int(len(content) * self.share)]


class SpoilManifest(_Unreadable, frozen=True, kw_only=True, tag="manifest.invalid"):
    """What is there is no YAML."""

    def broken(self, content: bytes) -> bytes | None:
        return INVALID + content


class TakeManifestAway(_Unreadable, frozen=True, kw_only=True, tag="manifest.absent"):
    """The manifest is moved out of its folder and back, as people do to stop a static pod, such as for
    renewing certificates."""

    @property
    def touches(self) -> frozenset[str]:
        """Deleting the last policy waits until the manifest is back, perhaps for minutes."""
        return frozenset({"manifests", "policies"})

    def broken(self, _: bytes) -> bytes | None:
        return None


def draw_edit(random: Random, _: Known) -> Operation:
    return EditManifest(
        node=random.choice(CONTROL_PLANES), edit=any_edit(random), in_place=random.random() < 0.5
    )


def draw_upgrade(random: Random, _: Known) -> Operation:
    return UpgradeManifest(node=random.choice(CONTROL_PLANES), edit=any_edit(random))


def draw_truncate(random: Random, _: Known) -> Operation:
    return TruncateManifest(
        node=random.choice(CONTROL_PLANES),
        share=random.choice((0.0, 0.3, 0.5, 0.9)),
        seconds=random.choice(LASTS),
    )


def draw_spoil(random: Random, _: Known) -> Operation:
    return SpoilManifest(node=random.choice(CONTROL_PLANES), seconds=random.choice(LASTS))


def draw_take_away(random: Random, _: Known) -> Operation:
    return TakeManifestAway(node=random.choice(CONTROL_PLANES), seconds=random.choice(LASTS))


def any_edit(random: Random) -> TextEdit:
    return TextEdit(what=random.choice(list(EDITS)), value=random.randint(1, 9))


KINDS: Sequence[Kind] = (
    Kind(operation=EditManifest, weight=0.6, draw=draw_edit, at_most=12),
    Kind(operation=UpgradeManifest, weight=0.4, draw=draw_upgrade, at_most=8),
    Kind(operation=TruncateManifest, weight=0.3, draw=draw_truncate, at_most=6),
    Kind(operation=SpoilManifest, weight=0.3, draw=draw_spoil, at_most=4),
    Kind(operation=TakeManifestAway, weight=0.3, draw=draw_take_away, at_most=4),
)
