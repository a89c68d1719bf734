"""All processes of a container together have its share, however they begin and end."""

import os
import random

import pytest
from tests.component.hook.conftest import MakeContainer
from tests.component.hook.share import FIRST, SHARE
from tests.fakes.cuda_container import CONTEXT_MEMORY, Container
from tests.fakes.cuda_driver import CONTEXT, GIB, MIB, CudaDriver

NOBODY = 65534
UNCOUNTED = CONTEXT - 100 * MIB
"""What each process has more than is counted, where ``contextMemory`` is 100Mi."""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="other users are for root alone")


def test_two_processes_share_it(container: Container, driver: CudaDriver) -> None:
    one, other = container.user("linked").open(), container.user("v2").open()
    one.allocate(2 * GIB)
    assert other.refused(GIB)
    assert other.info() == (SHARE - 2 * CONTEXT_MEMORY - 2 * GIB, SHARE)
    one.end()
    other.allocate(2 * GIB)
    assert driver.highest() <= SHARE


def test_six_processes_at_random_never_have_more(container: Container, driver: CudaDriver) -> None:
    driver.context = CONTEXT_MEMORY
    driver.write()
    users = [container.user(way).open() for way in ("linked", "dlsym", "v1", "v2", "itself", "thread")]
    for number, user in enumerate(users):
        user.tell(f"random {number} 1000 {64 * MIB}")
    answers = [user.answer().split() for user in users]
    assert {wrong for _, _, _, wrong in answers} == {"0"}
    assert sum(int(refused) for _, _, refused, _ in answers) > 0, "the share was never reached"
    assert SHARE - GIB < driver.highest() <= SHARE
    assert driver.used() == 6 * CONTEXT_MEMORY
    for user in users:
        user.end()
    assert driver.processes() == 0


def test_a_context_that_is_bigger_than_counted_is_all_that_is_over(
    make_container: MakeContainer, driver: CudaDriver
) -> None:
    container = make_container(context=100 * MIB)
    users = [container.user().open() for _ in range(4)]
    for user in users:
        user.fill(step=32 * MIB)
    assert SHARE < driver.highest() <= SHARE + 4 * UNCOUNTED


def test_processes_killed_at_random_leave_nothing(container: Container, driver: CudaDriver) -> None:
    chance = random.Random(26)  # noqa: S311
    for _ in range(8):
        users = [container.user(chance.choice(("linked", "v2"))).open() for _ in range(3)]
        for user in users:
            user.tell(f"random {chance.randrange(1000)} 1000000 {64 * MIB}")
        for user in users:
            user.kill()
    assert driver.highest() <= SHARE
    assert driver.processes() == 0
    assert container.user().open().info()[0] == SHARE - CONTEXT_MEMORY


def test_a_killed_process_gives_back_all(container: Container, driver: CudaDriver) -> None:
    for _ in range(5):
        user = container.user().open()
        user.allocate(3 * GIB)
        user.kill()
    user = container.user().open()
    assert user.info()[0] == SHARE - CONTEXT_MEMORY
    user.allocate(3 * GIB)
    assert driver.used() == 3 * GIB + CONTEXT


def test_a_child_is_a_process_of_its_own(container: Container, driver: CudaDriver) -> None:
    user = container.user().open()
    user.allocate(GIB)
    user.fork()
    user.open()
    assert user.info()[0] == SHARE - GIB - 2 * CONTEXT_MEMORY
    assert user.refused(2 * GIB)
    user.allocate(GIB)
    assert driver.used() == 2 * (GIB + CONTEXT)
    user.end()
    assert container.user().open().info()[0] == SHARE - CONTEXT_MEMORY


def test_a_child_that_takes_nothing_leaves_its_parents_use(container: Container) -> None:
    """As a data loader of PyTorch does."""
    user = container.user().open()
    user.allocate(2 * GIB)
    user.fork()
    other = container.user().open()
    assert other.info()[0] == SHARE - 2 * GIB - 2 * CONTEXT_MEMORY
    assert other.refused(2 * GIB)


def test_a_process_that_becomes_another_program_has_nothing(container: Container, driver: CudaDriver) -> None:
    user = container.user().open()
    user.allocate(3 * GIB)
    user.exec()
    user.open()
    assert user.info()[0] == SHARE - CONTEXT_MEMORY
    user.allocate(3 * GIB)
    assert user.refused(GIB)
    assert driver.used() == 3 * GIB + CONTEXT


def test_an_empty_environment_changes_nothing(container: Container) -> None:
    user = container.user(wrapped_in=["env", "-i"]).open()
    assert user.refused(SHARE)
    assert user.info()[1] == SHARE


@needs_root
def test_other_users_are_held_to_it_too(container: Container, driver: CudaDriver) -> None:
    root, nobody = container.user().open(), container.user(uid=NOBODY).open()
    root.allocate(GIB)
    nobody.allocate(GIB)
    assert nobody.refused(GIB)
    assert root.refused(GIB)
    assert root.info() == nobody.info()
    assert driver.highest() <= SHARE


@needs_root
def test_root_is_held_to_it_where_another_user_was_first(container: Container) -> None:
    container.user(uid=NOBODY).open().allocate(2 * GIB)
    assert container.user().open().refused(GIB)


@needs_root
def test_a_process_that_gives_up_being_root_is_held_to_it(container: Container) -> None:
    user = container.user().open()
    user.allocate(GIB)
    assert user.ask(f"setuid {NOBODY}") == "0 0"
    user.allocate(GIB)
    assert user.refused(2 * GIB)
    other = container.user().open()
    assert other.info()[0] == SHARE - 2 * GIB - 2 * CONTEXT_MEMORY


@needs_root
def test_a_setuid_program_is_held_to_it(container: Container) -> None:
    """The loader ignores LD_PRELOAD for it, but not /etc/ld.so.preload."""
    program = container.folder / "opt" / "setuid"
    program.write_bytes((container.programs / "linked").read_bytes())
    program.chmod(0o4755)
    user = container.user(uid=NOBODY, program=["/opt/setuid"], environment={"LD_PRELOAD": ""}).open()
    assert user.refused(SHARE)


def test_a_restarted_container_has_its_whole_share(container: Container, driver: CudaDriver) -> None:
    for _ in range(3):
        container.user().open().allocate(3 * GIB)
        container.restart()
    user = container.user().open()
    assert user.info()[0] == SHARE - CONTEXT_MEMORY
    user.allocate(3 * GIB)
    assert driver.highest() <= SHARE


def test_two_containers_of_a_card_are_each_held(make_container: MakeContainer, driver: CudaDriver) -> None:
    one = make_container()
    other = make_container(identity="f" * 32, limits={FIRST: 2 * SHARE})
    assert one.user().open().fill(step=128 * MIB) < SHARE
    assert other.user().open().fill(step=128 * MIB) > SHARE
    assert SHARE - GIB < driver.highest(group=0) <= SHARE
    assert 2 * SHARE - GIB < driver.highest(group=1) <= 2 * SHARE


def test_containers_of_a_pod_that_share_dev_shm_have_a_ledger_each(make_container: MakeContainer) -> None:
    one = make_container()
    other = make_container(identity="f" * 32, pod_shm=one.shm)
    one.user().open().allocate(3 * GIB)
    assert other.user().open().info() == (SHARE - CONTEXT_MEMORY, SHARE)
    assert one.ledger.exists()
    assert other.ledger.exists()


def test_a_ledger_full_of_dead_processes_has_room(container: Container) -> None:
    for _ in range(4):
        users = [container.user() for _ in range(20)]
        for user in users:
            user.tell("call cuInit cuInit 2000 0")
            user.tell("call cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRetain 7000 & 0")
        for user in users:
            user.kill()
    assert container.user().open().info()[0] == SHARE - CONTEXT_MEMORY
