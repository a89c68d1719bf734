"""The commands, a row each, in the order in which ``--help`` lists them."""

from gpushare_cli.commands.command import Command
from gpushare_cli.commands.inspect import INSPECT_COMMAND
from gpushare_cli.commands.version import VERSION_COMMAND

COMMANDS: tuple[Command, ...] = (INSPECT_COMMAND, VERSION_COMMAND)
