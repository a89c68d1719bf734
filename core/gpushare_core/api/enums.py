"""The choices that the API offers by name."""

from enum import StrEnum


class Mode(StrEnum):
    """How the cards of a node are shared."""

    MEMORY = "Memory"
    SLICES = "Slices"
    EXCLUSIVE = "Exclusive"
    MIXED = "Mixed"
    OFF = "Off"


class Preemption(StrEnum):
    """Whether pods are evicted to free a card for a pod of higher priority."""

    ENABLED = "Enabled"
    DISABLED = "Disabled"


class Source(StrEnum):
    """Where a node's plugin learns of its cards."""

    NVML = "NVML"
    SIMULATED = "Simulated"
    INVENTORY = "Inventory"


class Injection(StrEnum):
    """How a container gets at its cards."""

    ENVIRONMENT = "Environment"
    CDI = "CDI"


class Backend(StrEnum):
    """How the cluster's scheduler is connected to the extender."""

    KUBE_SCHEDULER = "KubeScheduler"
    DEDICATED = "Dedicated"
    VOLCANO = "Volcano"
    EXTERNAL = "External"


class Engine(StrEnum):
    """Which program knows of cards when a pod is placed."""

    PLUGIN = "Plugin"
    """A plugin inside kube-scheduler (``scheduler/``)."""
    EXTENDER = "Extender"
    """An HTTP extender beside kube-scheduler."""


class DialectName(StrEnum):
    """Whose names of resources, labels, annotations and variables are used."""

    GPUSHARE = "gpushare.io"
    ALIYUN = "aliyun.com"
    VOLCANO = "volcano.sh"
    ENFLAME = "enflame.com"
    TUYA = "tuya.com"


class MeasurementScope(StrEnum):
    """Of what it is measured how much memory is in use."""

    OFF = "Off"
    CARDS = "Cards"
    CONTAINERS = "Containers"


class MemoryIsolation(StrEnum):
    """What keeps a container from taking more of a card's memory than it asked for."""

    NONE = "None"
    HOOK = "Hook"
    DRIVER = "Driver"


class OnExcess(StrEnum):
    """What becomes of a pod that has more of a card's memory than it asked for."""

    REPORT = "Report"
    EVICT = "Evict"


class StartupTaintHandling(StrEnum):
    """What becomes of the taint by which autoscalers know that a node is still starting."""

    IGNORE = "Ignore"
    REMOVE = "Remove"


class UnitChange(StrEnum):
    """What becomes of nodes on which pods are in the way of another unit or mode."""

    DRAIN = "Drain"
    KEEP = "Keep"


class AdmissionAnswer(StrEnum):
    """What becomes of new pods in which an admission policy has found something. Ordered by strictness."""

    ALLOW = "Allow"
    WARN = "Warn"
    DENY = "Deny"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class SelectorOperator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Health(StrEnum):
    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"


class ClearedBy(StrEnum):
    """What made a card return."""

    QUIET_TIME = "QuietTime"
    ADMINISTRATOR = "Administrator"
