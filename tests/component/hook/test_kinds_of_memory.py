"""Whatever takes a card's memory is counted, and given back with it; memory of the host is not counted."""

import random
from collections.abc import Callable

import pytest
from tests.component.hook.conftest import MakeContainer
from tests.component.hook.share import FIRST, SHARE
from tests.fakes.cuda_container import CONTEXT_MEMORY, Container
from tests.fakes.cuda_driver import CONTEXT, GIB, MIB, CudaDriver
from tests.fakes.cuda_user import (
    NULL,
    ON_HOST,
    OUT,
    OUT_OF_MEMORY,
    Answer,
    User,
    created,
    flat,
    pool,
    shape,
)

FREE = SHARE - CONTEXT_MEMORY
INVALID_VALUE = 1
Take = Callable[[User, int], Answer]
"""Takes so many MiB."""


def _first_of_pool(user: User, mib: int) -> Answer:
    made = user.call("cuMemPoolCreate", OUT, pool()).value
    return user.call("cuMemAllocFromPoolAsync", OUT, mib * MIB, made, 0)


TAKES: dict[str, tuple[Take, str]] = {
    "cuMemAlloc_v2": (lambda user, mib: user.call("cuMemAlloc_v2", OUT, mib * MIB), "cuMemFree_v2"),
    "cuMemAlloc": (lambda user, mib: user.call("cuMemAlloc", OUT, mib * MIB), "cuMemFree"),
    "cuMemAllocPitch_v2": (
        lambda user, mib: user.call("cuMemAllocPitch_v2", OUT, OUT, 1000, mib * 1024, 4),
        "cuMemFree_v2",
    ),
    "cuMemAllocPitch": (
        lambda user, mib: user.call("cuMemAllocPitch", OUT, OUT, 1000, mib * 1024, 4),
        "cuMemFree",
    ),
    "cuMemAllocManaged": (
        lambda user, mib: user.call("cuMemAllocManaged", OUT, mib * MIB, 1),
        "cuMemFree_v2",
    ),
    "cuMemAllocAsync": (lambda user, mib: user.call("cuMemAllocAsync", OUT, mib * MIB, 0), "cuMemFreeAsync"),
    "cuMemAllocAsync_ptsz": (
        lambda user, mib: user.call("cuMemAllocAsync_ptsz", OUT, mib * MIB, 0),
        "cuMemFreeAsync_ptsz",
    ),
    "cuMemAllocFromPoolAsync": (_first_of_pool, "cuMemFreeAsync"),
    "cuMemCreate": (lambda user, mib: user.call("cuMemCreate", OUT, mib * MIB, created(), 0), "cuMemRelease"),
    "cuArrayCreate_v2": (
        lambda user, mib: user.call("cuArrayCreate_v2", OUT, flat(1024, mib * 1024)),
        "cuArrayDestroy",
    ),
    "cuArray3DCreate_v2": (
        lambda user, mib: user.call("cuArray3DCreate_v2", OUT, shape(1024, 1024, mib)),
        "cuArrayDestroy",
    ),
    "cuMipmappedArrayCreate": (
        lambda user, mib: user.call("cuMipmappedArrayCreate", OUT, shape(1024, 1024, mib), 1),
        "cuMipmappedArrayDestroy",
    ),
}
WAYS = ("dlsym", "v2")


@pytest.mark.parametrize("function", TAKES)
@pytest.mark.parametrize("way", WAYS)
def test_it_is_counted_refused_and_given_back(
    way: str, function: str, container: Container, driver: CudaDriver
) -> None:
    take, give_back = TAKES[function]
    user = container.user(way).open()
    taken = take(user, 1024).value
    assert FREE - GIB - 64 * MIB <= user.info()[0] <= FREE - GIB + 64 * MIB
    assert take(user, 3 * 1024).code == OUT_OF_MEMORY
    assert user.call(give_back, taken, 0).code == 0
    assert user.call("cuCtxSynchronize").code == 0
    assert user.info()[0] == FREE
    assert take(user, 3 * 1024).code == 0
    assert driver.highest() <= SHARE
    assert user.error_numbers == set()


@pytest.mark.parametrize("function", TAKES)
def test_what_the_driver_refuses_is_not_counted(
    function: str, container: Container, driver: CudaDriver
) -> None:
    take, _ = TAKES[function]
    user = container.user().open()
    for code in (OUT_OF_MEMORY, 999):
        driver.fail(function, code)
        assert take(user, 1024).code == code
        assert user.info()[0] == FREE


@pytest.mark.parametrize("function", TAKES)
def test_without_a_place_for_the_answer_the_driver_says_so(function: str, container: Container) -> None:
    user = container.user().open()
    values: list[int | str | bytes] = [GIB, 0, 0, 4]
    if function == "cuMemCreate":
        values = [GIB, created(), 0]
    if function == "cuArrayCreate_v2":
        values = [flat(64)]
    if "3D" in function or "Mipmapped" in function:
        values = [shape(64), 1]
    if "Pitch" in function:
        values = [NULL, 64, 64, 4]
    assert user.call(function, NULL, *values).code == INVALID_VALUE
    assert user.info()[0] == FREE


def test_either_place_for_memory_info_may_be_missing(container: Container) -> None:
    """OptiX asks so."""
    user = container.user().open()
    assert user.call("cuMemGetInfo_v2", NULL, OUT).value == SHARE
    assert user.call("cuMemGetInfo_v2", OUT, NULL).value == FREE
    assert user.call("cuMemGetInfo_v2", NULL, NULL).code == 0
    assert user.call("cuDeviceTotalMem_v2", NULL, 0).code == INVALID_VALUE


def test_calls_without_a_context_are_the_drivers_to_answer(container: Container) -> None:
    user = container.user()
    assert user.call("cuInit", 0).code == 0
    assert user.call("cuMemAlloc_v2", OUT, MIB).code == 201
    assert user.call("cuMemGetInfo_v2", OUT, OUT).code == 201
    assert user.call("cuMemFree_v2", 0).code == 0


def test_sizes_that_overflow_are_refused(container: Container) -> None:
    user = container.user().open()
    for size in (2**64 - 1, 2**63, 2**64 - CONTEXT_MEMORY):
        assert user.call("cuMemAlloc_v2", OUT, size).code == OUT_OF_MEMORY
    assert user.call("cuMemAlloc_v2", OUT, 0).code == INVALID_VALUE
    assert user.call("cuArray3DCreate_v2", OUT, shape(2**40, 2**40, 2**40)).code != 0
    assert user.info()[0] == FREE


@pytest.mark.parametrize(
    "size", [(1000, 1000, 1000), (1000, 2000, 0), (1, 1, 1), (7, 3000, 0), (63, 17, 999), (10_000_000, 0, 0)]
)
def test_arrays_of_any_shape_count_what_they_take(
    size: tuple[int, int, int], container: Container, driver: CudaDriver
) -> None:
    user = container.user().open()
    assert user.call("cuArray3DCreate_v2", OUT, shape(*size)).code == 0
    assert driver.used() - CONTEXT <= FREE - user.info()[0]


def test_what_was_not_allocated_frees_nothing(container: Container) -> None:
    user = container.user().open()
    address = user.allocate(GIB)
    assert user.call("cuMemFree_v2", address + 512).code == INVALID_VALUE
    user.free(address)
    assert user.call("cuMemFree_v2", address).code == INVALID_VALUE
    assert user.info()[0] == FREE


def test_a_free_that_the_driver_refuses_stays_counted(container: Container, driver: CudaDriver) -> None:
    user = container.user().open()
    address = user.allocate(GIB)
    driver.fail("cuMemFree_v2", 999)
    assert user.call("cuMemFree_v2", address).code == 999
    assert user.info()[0] == FREE - GIB
    user.free(address)
    assert user.info()[0] == FREE


# Created memory: it lives as long as a handle or a mapping.


def _mapped(user: User, size: int) -> tuple[int, int]:
    handle = user.call("cuMemCreate", OUT, size, created(), 0).value
    address = user.call("cuMemAddressReserve", OUT, size, 0, 0, 0).value
    assert user.call("cuMemMap", address, size, 0, handle, 0).code == 0
    return handle, address


def test_created_memory_counts_until_it_is_neither_held_nor_mapped(container: Container) -> None:
    user = container.user("v2").open()
    handle, address = _mapped(user, GIB)
    assert user.call("cuMemRelease", handle).code == 0
    assert user.info()[0] == FREE - GIB
    assert user.call("cuMemUnmap", address, GIB).code == 0
    assert user.info()[0] == FREE


def test_created_memory_counts_while_its_handle_is_kept(container: Container) -> None:
    user = container.user().open()
    handle, address = _mapped(user, GIB)
    assert user.call("cuMemUnmap", address, GIB).code == 0
    assert user.info()[0] == FREE - GIB
    assert user.call("cuMemRelease", handle).code == 0
    assert user.info()[0] == FREE


def test_a_handle_that_is_asked_for_again_keeps_created_memory(container: Container) -> None:
    user = container.user().open()
    handle, address = _mapped(user, GIB)
    again = user.call("cuMemRetainAllocationHandle", OUT, address).value
    assert user.call("cuMemRelease", handle).code == 0
    assert user.call("cuMemUnmap", address, GIB).code == 0
    assert user.info()[0] == FREE - GIB
    assert user.call("cuMemRelease", again).code == 0
    assert user.info()[0] == FREE


def test_several_mappings_end_at_once(container: Container, driver: CudaDriver) -> None:
    """PyTorch's expandable segments do so."""
    user = container.user().open()
    start = user.call("cuMemAddressReserve", OUT, GIB, 0, 0, 0).value
    step = 256 * MIB
    for number in range(4):
        handle = user.call("cuMemCreate", OUT, step, created(), 0).value
        assert user.call("cuMemMap", start + number * step, step, 0, handle, 0).code == 0
        assert user.call("cuMemRelease", handle).code == 0
    assert user.info()[0] == FREE - GIB
    assert user.call("cuMemUnmap", start, GIB).code == 0
    assert user.info()[0] == FREE
    assert driver.used() == CONTEXT


def test_a_handle_mapped_twice_counts_once(container: Container) -> None:
    user = container.user().open()
    handle, first = _mapped(user, GIB)
    second = user.call("cuMemAddressReserve", OUT, GIB, 0, 0, 0).value
    assert user.call("cuMemMap", second, GIB, 0, handle, 0).code == 0
    assert user.call("cuMemRelease", handle).code == 0
    assert user.call("cuMemUnmap", first, GIB).code == 0
    assert user.info()[0] == FREE - GIB
    assert user.call("cuMemUnmap", second, GIB).code == 0
    assert user.info()[0] == FREE


def test_created_memory_of_the_host_is_no_cards(container: Container, driver: CudaDriver) -> None:
    """NCCL takes some, of many GiB."""
    user = container.user().open()
    for kind in (ON_HOST, 3, 4):
        assert user.call("cuMemCreate", OUT, 8 * GIB, created(kind=kind), 0).code == 0
    assert user.call("cuMemHostAlloc", OUT, 64 * MIB, 0).code == 0
    assert user.info()[0] == FREE
    assert driver.used() == CONTEXT


# Pools grow by chunks, and keep what they have.


def test_a_pool_counts_what_it_reserves(container: Container, driver: CudaDriver) -> None:
    user = container.user().open()
    made = user.call("cuMemPoolCreate", OUT, pool()).value
    assert user.call("cuMemPoolSetAttribute", made, 4, (2**63).to_bytes(8, "little")).code == 0
    first = user.call("cuMemAllocFromPoolAsync", OUT, 10 * MIB, made, 0).value
    assert user.info()[0] == FREE - 32 * MIB
    second = user.call("cuMemAllocFromPoolAsync", OUT, 10 * MIB, made, 0).value
    assert user.info()[0] == FREE - 32 * MIB
    for address in (first, second):
        assert user.call("cuMemFreeAsync", address, 0).code == 0
    assert user.info()[0] == FREE - 32 * MIB, "the pool keeps it"
    assert user.call("cuMemPoolTrimTo", made, 0).code == 0
    assert user.info()[0] == FREE
    assert driver.used() == CONTEXT


def test_a_pool_that_is_destroyed_gives_back_what_it_kept(container: Container, driver: CudaDriver) -> None:
    user = container.user().open()
    made = user.call("cuMemPoolCreate", OUT, pool()).value
    assert user.call("cuMemPoolSetAttribute", made, 4, (2**63).to_bytes(8, "little")).code == 0
    address = user.call("cuMemAllocFromPoolAsync", OUT, GIB, made, 0).value
    assert user.call("cuMemFreeAsync", address, 0).code == 0
    assert user.call("cuMemPoolDestroy", made).code == 0
    assert driver.used() == CONTEXT
    assert user.info()[0] == FREE


def test_a_destroyed_pool_counts_until_what_it_gave_is_freed(
    container: Container, driver: CudaDriver
) -> None:
    """Or a program would get past its share by pools that it destroys."""
    user = container.user().open()
    made = user.call("cuMemPoolCreate", OUT, pool()).value
    addresses = [user.call("cuMemAllocFromPoolAsync", OUT, GIB, made, 0).value for _ in range(2)]
    assert user.call("cuMemPoolDestroy", made).code == 0
    assert user.info()[0] == FREE - 2 * GIB
    assert user.refused(2 * GIB)
    for address in addresses:
        assert user.call("cuMemFreeAsync", address, 0).code == 0
    assert user.call("cuCtxSynchronize").code == 0
    assert user.info()[0] == FREE
    assert driver.used() == CONTEXT
    assert driver.highest() <= SHARE


def test_pools_together_are_held_to_the_share(container: Container, driver: CudaDriver) -> None:
    driver.context = CONTEXT_MEMORY
    driver.write()
    user = container.user().open()
    pools = [user.call("cuMemPoolCreate", OUT, pool()).value for _ in range(4)]
    codes = [
        user.call("cuMemAllocFromPoolAsync", OUT, 100 * MIB, made, 0).code
        for _ in range(12)
        for made in pools
    ]
    assert set(codes) == {0, OUT_OF_MEMORY}
    assert SHARE - GIB < driver.highest() <= SHARE


def test_threads_whose_pool_grows_are_not_refused_while_all_fits(
    container: Container, driver: CudaDriver
) -> None:
    user = container.user().open()
    _, _, refused, wrong = user.ask(f"pools 3 500 {1024 * MIB}").split()
    assert (refused, wrong) == ("0", "0")
    assert user.info()[0] == FREE
    assert driver.highest() <= SHARE


def test_a_pool_of_the_host_is_no_cards(container: Container) -> None:
    user = container.user().open()
    made = user.call("cuMemPoolCreate", OUT, pool(kind=ON_HOST)).value
    assert user.call("cuMemAllocFromPoolAsync", OUT, 8 * GIB, made, 0).code == 0
    assert user.info()[0] == FREE


def test_what_is_recorded_for_a_graph_is_not_counted(container: Container, driver: CudaDriver) -> None:
    """It takes memory when the graph is launched: the driver's figures show it."""
    user = container.user().open()
    stream = user.call("cuStreamCreate", OUT, 0).value
    assert user.call("cuStreamBeginCapture_v2", stream, 0).code == 0
    assert user.call("cuMemAllocAsync", OUT, 2 * SHARE, stream).code == 0
    assert user.call("cuStreamEndCapture", stream, OUT).code == 0
    assert user.info()[0] == FREE
    assert driver.used() == CONTEXT


def test_what_a_pool_gave_may_be_freed_at_once(container: Container) -> None:
    user = container.user().open()
    address = user.call("cuMemAllocAsync", OUT, GIB, 0).value
    assert user.call("cuMemFree_v2", address).code == 0
    assert user.info()[0] == FREE


# Contexts.


@pytest.mark.parametrize(
    ("create", "arguments"),
    [
        ("cuCtxCreate", [0, 0]),
        ("cuCtxCreate_v2", [0, 0]),
        ("cuCtxCreate_v3", [NULL, 0, 0, 0]),
        ("cuCtxCreate_v4", [NULL, 0, 0]),
    ],
)
def test_a_second_context_counts_as_the_first_does(
    create: str, arguments: list[int | str], container: Container, driver: CudaDriver
) -> None:
    user = container.user().open()
    context = user.call(create, OUT, *arguments).value
    assert user.info()[0] == FREE - CONTEXT_MEMORY
    user.allocate(GIB)
    assert driver.used() == 2 * CONTEXT + GIB
    assert user.call("cuCtxDestroy_v2", context).code == 0
    assert user.info()[0] == FREE, "its memory ends with it"
    assert driver.used() == CONTEXT


def test_contexts_are_refused_where_the_share_has_no_room(container: Container, driver: CudaDriver) -> None:
    user = container.user().open()
    user.allocate(FREE - 100 * MIB)
    assert user.call("cuCtxCreate_v2", OUT, 0, 0).code == OUT_OF_MEMORY
    assert container.user().call("cuInit", 0).code == 0
    other = container.user()
    assert other.call("cuInit", 0).code == 0
    assert other.call("cuDevicePrimaryCtxRetain", OUT, 0).code == OUT_OF_MEMORY
    assert driver.highest() <= SHARE


def test_a_primary_context_counts_once_and_ends_with_its_last_user(
    container: Container, driver: CudaDriver
) -> None:
    user = container.user().open()
    user.use()
    user.use()
    assert user.info()[0] == FREE
    user.allocate(GIB)
    for _ in range(3):
        assert user.call("cuDevicePrimaryCtxRelease_v2", 0).code == 0
    assert driver.used() == 0
    assert container.user().open().info()[0] == FREE


def test_a_reset_ends_what_a_context_had(container: Container, driver: CudaDriver) -> None:
    user = container.user().open()
    user.use()
    user.allocate(3 * GIB)
    assert user.call("cuDevicePrimaryCtxReset_v2", 0).code == 0
    assert driver.used() == 0
    user.use()
    user.allocate(3 * GIB)
    assert user.info()[0] == FREE - 3 * GIB


def test_a_context_that_fails_is_not_counted(container: Container, driver: CudaDriver) -> None:
    user = container.user().open()
    for function in ("cuCtxCreate_v2", "cuCtxCreate"):
        driver.fail(function, 999)
        assert user.call(function, OUT, 0, 0).code == 999
    assert user.call("cuDevicePrimaryCtxRelease_v2", 0).code == 0
    driver.fail("cuDevicePrimaryCtxRetain", 999)
    assert user.call("cuDevicePrimaryCtxRetain", OUT, 0).code == 999
    assert user.use().info()[0] == FREE


def test_threads_of_a_process_are_held_together(container: Container, driver: CudaDriver) -> None:
    driver.context = CONTEXT_MEMORY
    driver.write()
    user = container.user().open()
    _, _, refused, wrong = user.ask(f"threads 8 2000 {64 * MIB}").split()
    assert wrong == "0"
    assert int(refused) > 0, "the share was never reached"
    assert driver.highest() <= SHARE
    assert driver.used() == CONTEXT_MEMORY
    assert user.info()[0] == FREE


def test_small_ones_that_leave_holes_are_not_a_way_past_the_share(
    make_container: MakeContainer, driver: CudaDriver
) -> None:
    """The driver keeps a page of 2 MiB while anything is in it."""
    driver.context = CONTEXT_MEMORY
    driver.write()
    share = CONTEXT_MEMORY + 64 * MIB
    user = make_container(limits={FIRST: share}).user().open()
    addresses = [user.allocate(64 * 1024) for _ in range(900)]
    for number, address in enumerate(addresses):
        if number % 32:
            user.free(address)
    user.fill(step=4 * MIB)
    assert driver.highest() <= share
    for address in addresses[::32]:
        user.free(address)


def test_everything_at_random_stays_inside_the_share_and_is_given_back(
    container: Container, driver: CudaDriver
) -> None:
    driver.context = CONTEXT_MEMORY
    driver.write()
    chance = random.Random(26)  # noqa: S311
    users = [container.user(way).open() for way in ("dlsym", "v2")]
    held: list[tuple[User, str, int]] = []
    kinds = [
        kind for kind in TAKES if kind not in ("cuMemAlloc", "cuMemAllocPitch")
    ]  # of addresses below 4 GiB
    for _ in range(600):
        if held and chance.random() < 0.4:
            user, give_back, taken = held.pop(chance.randrange(len(held)))
            assert user.call(give_back, taken, 0).code == 0
            continue
        user, kind = chance.choice(users), chance.choice(kinds)
        take, give_back = TAKES[kind]
        answer = take(user, 2 * chance.choice((1, 2, 8, 64, 256)))
        assert answer.code in (0, OUT_OF_MEMORY), kind
        if answer.code == 0:
            held.append((user, give_back, answer.values[0]))
        if chance.random() < 0.05:
            assert chance.choice(users).call("cuCtxSynchronize").code == 0
    assert SHARE - GIB < driver.highest() <= SHARE
    for user, give_back, taken in held:
        assert user.call(give_back, taken, 0).code == 0
    for user in users:
        assert user.call("cuCtxSynchronize").code == 0
    assert driver.used() == 2 * CONTEXT_MEMORY
    assert users[0].info()[0] == SHARE - 2 * CONTEXT_MEMORY


def test_many_allocations_are_all_given_back(make_container: MakeContainer) -> None:
    user = make_container(limits={FIRST: SHARE}).user().open()
    for _ in range(3):
        addresses = [user.allocate(4096) for _ in range(2000)]
        for address in addresses:
            user.free(address)
    assert user.info()[0] == FREE
