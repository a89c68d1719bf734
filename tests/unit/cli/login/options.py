"""The options of a command line, as the login reads them."""

from argparse import Namespace

from gpushare_cli.arguments import parse


def login_options(*arguments: str) -> Namespace:
    return parse(["pods", *arguments])
