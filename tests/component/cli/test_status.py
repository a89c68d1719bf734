"""``status`` and ``version`` read a cluster, whole or in part, and print one page."""

import io
import json
from collections.abc import AsyncIterator, Iterable

import pytest
from tests.component.cli.commands import printed, run_command
from tests.fakes.api_server import LEASES, SHARE_NODES, FakeApi, running_api, status
from tests.fakes.status_facts import (
    condition,
    deployment_object,
    lease_object,
    node_object,
    policy_object,
    program_object,
    unplaced_object,
)

from gpushare_cli.decide.status import StatusReport
from gpushare_cli.decide.version import VersionReport
from gpushare_cli.errors import CannotLookError
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import PODS, POLICIES
