"""The scheduler backends, in the order in which they are taken back."""

from collections.abc import Mapping

from gpushare_core.api.enums import Backend
from gpushare_operator.backends.backend import SchedulerBackend
from gpushare_operator.backends.dedicated.backend import DEDICATED
from gpushare_operator.backends.external.backend import EXTERNAL
from gpushare_operator.backends.kube_scheduler.backend import KUBE_SCHEDULER
from gpushare_operator.backends.volcano.backend import VOLCANO

BACKENDS: Mapping[Backend, SchedulerBackend] = {
    backend.name: backend for backend in (KUBE_SCHEDULER, EXTERNAL, DEDICATED, VOLCANO)
}
