"""What ``user.c`` is, in Python: functions found by ``ctypes``, and its commands ``call`` and ``echo``."""

import ctypes
import sys


def main() -> None:
    driver = ctypes.CDLL("libcuda.so.1", use_errno=True)
    for line in iter(sys.stdin.readline, ""):
        command, *rest = line.split()
        print(called(driver, *rest) if command == "call" else " ".join(rest), flush=True)


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
