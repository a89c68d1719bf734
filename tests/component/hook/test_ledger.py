"""The ledger in /dev/shm: under a lock, and no harm to the process where it cannot be what it should be."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.component.hook.conftest import MakeContainer
from tests.component.hook.share import SHARE
from tests.fakes.cuda_container import CONTEXT_MEMORY, Container
from tests.fakes.cuda_driver import CONTEXT, GIB, MIB, CudaDriver

FREE = SHARE - CONTEXT_MEMORY
Plant = Callable[[Path], object]
"""Puts something where the ledger is to be."""

SMALL = {
    "read-only": "ro,mode=1777",
    "one page": "size=4k,mode=1777",
    "no inode": "nr_inodes=1,mode=1777",
}


@pytest.mark.parametrize("options", SMALL.values(), ids=SMALL.keys())
def test_where_no_ledger_fits_each_process_is_held(
    options: str, make_container: MakeContainer, driver: CudaDriver
) -> None:
    container = make_container(shm_options=options)
    user = container.user().open()
    assert user.info() == (FREE, SHARE)
    user.fill(step=256 * MIB)
    assert SHARE - GIB < driver.highest() <= SHARE
    assert user.end() == ""
    container.user().open().allocate(3 * GIB)


def _plant_huge_file(ledger: Path) -> None:
    ledger.touch()
    os.truncate(ledger, 2**40)


PLANTED: dict[str, Plant] = {
    "link to a file": lambda ledger: ledger.symlink_to("/etc/passwd"),
    "link to itself": lambda ledger: ledger.symlink_to(ledger.name),
    "link to nowhere": lambda ledger: ledger.symlink_to("/opt/new"),
    "folder": lambda ledger: ledger.mkdir(),
    "pipe": lambda ledger: os.mkfifo(ledger, 0o666),
    "empty file": lambda ledger: ledger.touch(),
    "short file": lambda ledger: ledger.write_bytes(b"x"),
    "another file": lambda ledger: ledger.write_bytes(os.urandom(200_000)),
    "file of ones": lambda ledger: ledger.write_bytes(b"\xff" * 200_000),
    "huge file": _plant_huge_file,
    "locked-up file": lambda ledger: ledger.touch(mode=0),
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED.keys())
def test_what_lies_in_its_place_does_no_harm(plant: Plant, container: Container, driver: CudaDriver) -> None:
    passwd = (container.folder / "etc/passwd").read_bytes()
    plant(container.ledger)
    user = container.user().open()
    user.fill(step=256 * MIB)
    assert driver.highest() <= SHARE
    assert user.end() == ""
    assert (container.folder / "etc/passwd").read_bytes() == passwd
    assert not (container.folder / "opt/new").exists()


def test_a_ledger_that_is_cut_off_crashes_nobody(container: Container, driver: CudaDriver) -> None:
    user = container.user().open()
    user.allocate(GIB)
    os.truncate(container.ledger, 0)
    address = user.allocate(GIB)
    assert user.info()[1] == SHARE
    user.free(address)
    other = container.user().open()
    other.allocate(GIB)
    os.truncate(container.ledger, 1)
    other.allocate(GIB)
    assert user.end() == ""
    assert other.end() == ""
    assert driver.processes() == 0


def test_a_ledger_that_is_removed_crashes_nobody(container: Container) -> None:
    user = container.user().open()
    address = user.allocate(GIB)
    container.ledger.unlink()
    assert user.refused(3 * GIB)
    user.free(address)
    user.allocate(2 * GIB)
    assert container.user().open().info()[1] == SHARE
    assert user.end() == ""


def test_anything_written_into_the_ledger_crashes_nobody(container: Container) -> None:
    user = container.user().open()
    for content in (b"\0", b"\xff", os.urandom(64)):
        size = container.ledger.stat().st_size
        with container.ledger.open("r+b") as file:
            file.write((content * size)[:size])
        user.call("cuMemAlloc_v2", "&", MIB)
        user.call("cuMemGetInfo_v2", "&", "&")
        other = container.user()
        other.call("cuInit", 0)
        other.call("cuDevicePrimaryCtxRetain", "&", 0)
        assert other.end() == ""
    assert user.end() == ""


def test_without_proc_processes_are_held_and_give_back(
    make_container: MakeContainer, driver: CudaDriver
) -> None:
    container = make_container(has_proc=False)
    one, other = container.user().open(), container.user().open()
    one.allocate(2 * GIB)
    assert other.refused(GIB)
    one.kill()
    other.allocate(2 * GIB)
    assert driver.highest() <= SHARE


def test_the_ledger_takes_little_room(container: Container) -> None:
    users = [container.user().open() for _ in range(4)]
    for user in users:
        user.ask(f"random 1 2000 {MIB}")
    assert container.ledger.stat().st_size < MIB
    assert [path.name for path in container.shm.iterdir()] == [container.ledger.name]
    assert container.ledger.stat().st_mode & 0o777 == 0o666


def test_a_process_that_only_lists_cards_leaves_no_ledger(container: Container) -> None:
    """As nvidia-smi's wrappers, and everything that only imports a framework, do."""
    user = container.user()
    assert user.call("cuInit", 0).code == 0
    assert user.call("cuDeviceTotalMem_v2", "&", 0).value == SHARE
    user.end()


def test_all_is_given_back_when_processes_end_in_any_order(container: Container, driver: CudaDriver) -> None:
    users = [container.user().open() for _ in range(4)]
    for user in users:
        user.allocate(256 * MIB)
    for user in (users[2], users[0], users[3]):
        user.end()
    assert users[1].info()[0] == FREE - 256 * MIB
    assert driver.used() == 256 * MIB + CONTEXT


def test_a_program_that_becomes_another_one_gives_back_all(container: Container, driver: CudaDriver) -> None:
    """As a script does that tries its card, and then executes a server."""
    user, other = container.user().open(), container.user().open()
    user.allocate(2 * GIB)
    user.exec()
    other.allocate(2 * GIB)
    assert other.info()[0] == FREE - 2 * GIB
    assert driver.used() == 2 * GIB + CONTEXT


@pytest.mark.parametrize("inner", [[], ["unshare", "--pid", "--fork", "--mount-proc"]], ids=["", "namespace"])
def test_a_program_that_closes_the_ledger_stays_counted(inner: list[str], container: Container) -> None:
    user, other = container.user(wrapped_in=inner).open(), container.user().open()
    user.allocate(GIB)
    assert user.call("close_range", 900, 4096, 0).code == 0
    user.allocate(GIB)
    assert other.refused(GIB)
    assert other.info()[0] == FREE - CONTEXT_MEMORY - 2 * GIB
