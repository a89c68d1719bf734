"""The driver of the hook's tests itself."""

import ctypes
from pathlib import Path

from tests.fakes.cuda_driver import CudaDriver
from tests.fakes.cuda_user import exported, versions


def test_each_version_of_a_function_has_its_own_address(tmp_path: Path) -> None:
    """As a real driver's have: the hook tells them apart by it."""
    driver = CudaDriver(tmp_path)
    driver.install()
    library = ctypes.CDLL(str(driver.library))
    addresses = {ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value for symbol in versions()}
    assert len(addresses) == len(versions()) > 100


def test_a_name_has_the_newest_version_that_was_asked_for() -> None:
    assert exported("cuCtxCreate", 3010, 0) == "cuCtxCreate"
    assert exported("cuCtxCreate", 12000, 0) == "cuCtxCreate_v3"
    assert exported("cuMemAllocAsync", 12000, 0) == "cuMemAllocAsync"
    assert exported("cuMemAllocAsync", 12000, 2) == "cuMemAllocAsync_ptsz"
    assert exported("cuMemAllocAsync", 11010, 2) is None
