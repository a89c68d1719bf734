"""Each card has a limit of its own, found by the card's UUID and never by its number."""

import pytest
from tests.component.hook.conftest import MakeContainer
from tests.component.hook.share import FIRST, SECOND
from tests.fakes.cuda_container import CONTEXT_MEMORY
from tests.fakes.cuda_driver import GIB, CudaDriver
from tests.fakes.cuda_user import OUT, OUT_OF_MEMORY, created

SHARES = {FIRST: 4 * GIB, SECOND: 6 * GIB}


def test_each_card_has_its_limit(make_container: MakeContainer, driver: CudaDriver) -> None:
    user = make_container(limits=SHARES).user().open(device=0)
    assert user.info()[1] == 4 * GIB
    user.allocate(3 * GIB)
    user.use(device=1)
    assert user.info() == (6 * GIB - CONTEXT_MEMORY, 6 * GIB)
    user.allocate(5 * GIB)
    assert user.refused(GIB)
    assert [user.call("cuDeviceTotalMem_v2", OUT, device).value for device in (0, 1)] == [4 * GIB, 6 * GIB]
    assert driver.highest(card=0) <= 4 * GIB
    assert driver.highest(card=1) <= 6 * GIB


@pytest.mark.parametrize(
    ("visible", "totals"),
    [("1,0", [6, 4]), ("1", [6]), (SECOND, [6]), (f"{SECOND},{FIRST}", [6, 4]), ("0,1", [4, 6])],
)
def test_the_order_that_a_program_chooses_does_not_matter(
    visible: str, totals: list[int], make_container: MakeContainer
) -> None:
    user = make_container(limits=SHARES).user(environment={"CUDA_VISIBLE_DEVICES": visible})
    for device, gib in enumerate(totals):
        user.open(device=device)
        assert user.info() == (gib * GIB - CONTEXT_MEMORY, gib * GIB)
        assert user.refused(gib * GIB)
        user.allocate((gib - 1) * GIB)


def test_two_orders_in_two_processes_are_one_sum(make_container: MakeContainer, driver: CudaDriver) -> None:
    container = make_container(limits=SHARES)
    one, other = container.user(), container.user(environment={"CUDA_VISIBLE_DEVICES": "1,0"})
    one.open(device=0).allocate(2 * GIB)
    assert other.open(device=1).info()[0] == 2 * GIB - 2 * CONTEXT_MEMORY
    assert other.refused(GIB)
    assert driver.used(card=1) == 0


def test_a_card_that_is_not_the_containers_is_refused(
    make_container: MakeContainer, driver: CudaDriver
) -> None:
    user = make_container(limits={FIRST: 4 * GIB}).user().open(device=0)
    answer = user.call("cuDevicePrimaryCtxRetain", OUT, 1)
    assert answer.code == OUT_OF_MEMORY
    assert user.call("cuMemCreate", OUT, 2**21, created(card=1), 0).code == OUT_OF_MEMORY
    assert driver.used(card=1) == 0


def test_created_memory_is_of_the_card_that_it_names(
    make_container: MakeContainer, driver: CudaDriver
) -> None:
    user = make_container(limits=SHARES).user().open(device=0)
    assert user.call("cuMemCreate", OUT, 5 * GIB, created(card=0), 0).code == OUT_OF_MEMORY
    handle = user.call("cuMemCreate", OUT, 5 * GIB, created(card=1), 0).value
    assert user.info()[0] == 4 * GIB - CONTEXT_MEMORY
    assert driver.used(card=1) == 5 * GIB
    assert user.call("cuMemRelease", handle).code == 0
    assert user.call("cuMemCreate", OUT, 5 * GIB, created(card=1), 0).code == 0
