"""The command line of every program."""

import argparse
from typing import Any

from gpushare_core.text.printable import printable_lines


class Parser(argparse.ArgumentParser):
    """Prints what people have typed, or a script for them, as text and nothing else."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable_lines(message), file)
