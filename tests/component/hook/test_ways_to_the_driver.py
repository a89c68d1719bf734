"""A container is held to its share in whichever way its programs find the driver's functions."""

import pytest
from tests.component.hook.conftest import MakeContainer
from tests.component.hook.share import SHARE
from tests.fakes.cuda_container import CONTEXT_MEMORY, Container
from tests.fakes.cuda_driver import CONTEXT, GIB, MIB, CudaDriver

HOOK = "libgpushare-cuda.so"
WAYS = ("linked", "dlsym", "v1", "v2", "itself", "itself-thread", "thread", "ctypes")


@pytest.mark.parametrize("way", WAYS)
def test_a_program_gets_its_share_and_no_more(way: str, container: Container, driver: CudaDriver) -> None:
    user = container.user(way).open()
    assert user.fill(step=64 * MIB) == (SHARE - CONTEXT_MEMORY) // (64 * MIB) * 64 * MIB
    assert SHARE - 200 * MIB < driver.highest() <= SHARE
    assert user.end() == ""
    assert driver.processes() == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_program_sees_a_card_as_big_as_its_share(way: str, container: Container) -> None:
    user = container.user(way).open()
    assert user.info() == (SHARE - CONTEXT_MEMORY, SHARE)
    user.allocate(GIB)
    assert user.info() == (SHARE - CONTEXT_MEMORY - GIB, SHARE)
    assert user.call("cuDeviceTotalMem_v2", "&", 0).value == SHARE
    assert user.call("cuDeviceTotalMem", "&", 0).value == 2**32 - 1


@pytest.mark.parametrize("way", WAYS)
def test_what_is_freed_can_be_taken_again(way: str, container: Container, driver: CudaDriver) -> None:
    user = container.user(way).open()
    for _ in range(5):
        address = user.allocate(3 * GIB)
        assert user.refused(GIB)
        user.free(address)
    assert driver.used() == CONTEXT
    assert user.error_numbers == set()


@pytest.mark.parametrize("way", ["linked", "dlsym", "v1", "v2", "itself", "thread"])
def test_functions_that_take_no_memory_are_the_drivers_own(way: str, container: Container) -> None:
    user = container.user(way).open()
    assert user.source_of("cuMemAlloc_v2") == HOOK
    assert user.source_of("cuCtxPushCurrent_v2") == "libcuda.so.1"


def test_a_plugin_that_is_bound_to_its_own_libraries_gets_through(
    container: Container, driver: CudaDriver
) -> None:
    """The documentation says so: whoever means to get past the hook does, and is measured."""
    container.user("plugin").open().allocate(2 * SHARE)
    assert driver.used() == 2 * SHARE + CONTEXT


def test_a_static_program_gets_through(container: Container, driver: CudaDriver) -> None:
    folder = {"CUDA_STUB_FOLDER": str(driver.folder)}
    container.user("static", environment=folder).open().allocate(2 * SHARE)
    assert driver.used() == 2 * SHARE + CONTEXT


def test_a_container_without_isolation_takes_what_there_is(make_container: MakeContainer) -> None:
    user = make_container(hook=None).user().open()
    user.allocate(8 * GIB)
    assert user.info()[1] == 16 * GIB
    assert user.source_of("cuMemAlloc_v2") == "libcuda.so.1"
