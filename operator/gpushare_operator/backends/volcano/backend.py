"""Backend Volcano: its row in the table, and how it is taken back."""

from gpushare_core.api.enums import Backend
from gpushare_operator.backends.backend import SchedulerBackend
from gpushare_operator.backends.teardown_step import connection_step
from gpushare_operator.backends.volcano.condition import condition, disconnected, disconnecting
from gpushare_operator.backends.volcano.connection import connect, edited_location, restore

VOLCANO = SchedulerBackend(
    name=Backend.VOLCANO,
    connect=connect,
    condition=condition,
    engine=lambda _: None,
    disconnecting=disconnecting,
    disconnected=disconnected,
    needed_by_others="Volcano's scheduler stays as it is",
    is_in_force=lambda snapshot: edited_location(snapshot) is not None,
    teardown_steps=(
        # The backup goes last: it says what was there before.
        connection_step(
            "Volcano's ConfigMap restored",
            left=edited_location,
            actions=lambda situation: restore(situation.snapshot),
        ),
    ),
)
