"""The commands, a row each, in the order in which ``--help`` lists them."""

from gpushare_cli.commands.audit import AUDIT_COMMAND
from gpushare_cli.commands.changing.cordon import CORDON_COMMAND, UNCORDON_COMMAND
from gpushare_cli.commands.changing.drain_card import DRAIN_CARD_COMMAND
from gpushare_cli.commands.changing.undo import UNDO_COMMAND
from gpushare_cli.commands.command import Command
from gpushare_cli.commands.completion import COMPLETION_COMMAND
from gpushare_cli.commands.inspect import INSPECT_COMMAND
from gpushare_cli.commands.installation.preflight import PREFLIGHT_COMMAND
from gpushare_cli.commands.installation.version import VERSION_COMMAND
from gpushare_cli.commands.namespaces import NAMESPACES_COMMAND
from gpushare_cli.commands.pods import PODS_COMMAND
from gpushare_cli.commands.simulate import SIMULATE_COMMAND
from gpushare_cli.commands.status import STATUS_COMMAND
from gpushare_cli.commands.top import TOP_COMMAND
from gpushare_cli.commands.web import WEB_COMMAND
from gpushare_cli.commands.why import WHY_COMMAND

COMMANDS: tuple[Command, ...] = (
    STATUS_COMMAND,
    INSPECT_COMMAND,
    PODS_COMMAND,
    NAMESPACES_COMMAND,
    WHY_COMMAND,
    SIMULATE_COMMAND,
    TOP_COMMAND,
    WEB_COMMAND,
    CORDON_COMMAND,
    UNCORDON_COMMAND,
    DRAIN_CARD_COMMAND,
    AUDIT_COMMAND,
    UNDO_COMMAND,
    PREFLIGHT_COMMAND,
    VERSION_COMMAND,
    COMPLETION_COMMAND,
)
