"""The command-line parser of every program."""

import argparse
from typing import Any

from gpushare_core.text.printable import printable_lines


class Parser(argparse.ArgumentParser):
    """Prints arguments, which people or scripts may have written, with control characters escaped."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable_lines(message), file)
