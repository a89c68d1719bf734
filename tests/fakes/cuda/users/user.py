"""What ``user.c`` is, in Python: finds functions by ``ctypes``, and knows ``call``, ``echo``, ``random`` and
``cost``."""

import ctypes
import random
import sys
import time

HELD = 64
OUT_OF_MEMORY = 2


def main() -> None:
    driver = ctypes.CDLL("libcuda.so.1", use_errno=True)
    for line in iter(sys.stdin.readline, ""):
        command, *rest = line.split()
        print(answer(driver, command, rest), flush=True)


def answer(driver: ctypes.CDLL, command: str, rest: list[str]) -> str:
    if command == "call":
        return called(driver, *rest)
    if command == "random":
        return at_random(driver, *map(int, rest))
    if command == "cost":
        return cost(driver, *map(int, rest))
    return " ".join(rest)


def at_random(driver: ctypes.CDLL, seed: int, times: int, most: int) -> str:
    chance = random.Random(seed)  # noqa: S311
    held = [0] * HELD
    refused = wrong = 0
    for _ in range(times):
        one = chance.randrange(HELD)
        if held[one]:
            wrong += driver.cuMemFree_v2(ctypes.c_uint64(held[one])) != 0
            held[one] = 0
            continue
        address = ctypes.c_uint64()
        code = driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(chance.randint(1, most)))
        refused += code == OUT_OF_MEMORY
        wrong += code not in (0, OUT_OF_MEMORY)
        held[one] = 0 if code else address.value
    wrong += sum(driver.cuMemFree_v2(ctypes.c_uint64(address)) != 0 for address in held if address)
    return f"0 0 {refused} {wrong}"


def cost(driver: ctypes.CDLL, times: int, size: int) -> str:
    address, asked = ctypes.c_uint64(), ctypes.c_size_t(size)
    place = ctypes.byref(address)
    begun = time.perf_counter_ns()
    code = sum(driver.cuMemAlloc_v2(place, asked) or driver.cuMemFree_v2(address) for _ in range(times))
    return f"{code} 0 {(time.perf_counter_ns() - begun) // times}"


def called(driver: ctypes.CDLL, symbol: str, _name: str, _version: str, *texts: str) -> str:
    variables = [ctypes.c_uint64() if text == "&" else None for text in texts]
    arguments = [argument(text, variable) for text, variable in zip(texts, variables, strict=True)]
    ctypes.set_errno(77)
    code = getattr(driver, symbol)(*arguments)
    number = ctypes.get_errno()
    values = [str(variable.value) for variable in variables if variable is not None]
    return " ".join([str(code), str(0 if number == 77 else number), *values])


def argument(text: str, variable: ctypes.c_uint64 | None) -> object:
    if variable is not None:
        return ctypes.byref(variable)
    if text == "null":
        return None
    if text.startswith("x:"):
        return ctypes.create_string_buffer(bytes.fromhex(text[2:]))
    return ctypes.c_uint64(int(text, 0))


if __name__ == "__main__":
    main()
