"""Condition types and reasons of a GPUSharePolicy: part of the API, never rename.

Those for what this version does not serve are in ``gpushare_core.api.served``.
"""

READY = "Ready"
NODES_READY = "NodesReady"
SCHEDULER_CONFIGURED = "SchedulerConfigured"
CONFLICTED = "Conflicted"
UNIT_CHANGE_BLOCKED = "UnitChangeBlocked"
DEGRADED = "Degraded"
BOOKS_AGREE = "BooksAgree"

AS_EXPECTED = "AsExpected"
SERVING = "Serving"

ALL_NODES_READY = "AllNodesReady"
NODES_NOT_READY = "NodesNotReady"
NO_NODES_SELECTED = "NoNodesSelected"

CONFIGURED = "Configured"
NOT_NEEDED = "NoNodeShares"
EXTENDER_NOT_READY = "ExtenderNotReady"
INSTALLING = "Installing"
CONNECTION_LOST = "ConnectionLost"
HOSTS_UNLABELLED = "HostsUnlabelled"
HOSTS_LET_GO = "HostsLetGo"
INSTALL_FAILED = "InstallFailed"
RESTORING = "Restoring"
RESTORED = "Restored"
RESTORE_FAILED = "RestoreFailed"
NEEDS_ATTENTION = "NeedsAttention"
NO_CONTROL_PLANE = "NoControlPlane"
WAITING_FOR_CALLS = "WaitingForCalls"
CALLED = "Called"
DISCONNECTING = "DisconnectingFormerBackend"
CONFIG_MAP_MISSING = "ConfigMapMissing"
CONFIG_MAP_FORBIDDEN = "ConfigMapForbidden"
EDITING_CONFIG_MAP = "EditingConfigMap"
RIGHTS_MISSING = "RightsMissing"
SCHEDULER_NOT_READY = "SchedulerNotReady"

NODES_CLAIMED = "NodesClaimedByOlderPolicy"
SETTINGS_OVERRULED = "SchedulerSettingsOfOlderPolicy"
NO_CONFLICT = "NoConflict"

PODS_HOLD_UNITS = "PodsHoldUnits"
NOT_BLOCKED = "NotBlocked"

INVALID_SPEC = "InvalidSpec"
API_ERRORS = "ApiErrors"
WORKLOADS_REFUSED = "WorkloadsRefused"
CHANGES_CONTESTED = "ChangesContested"
UNIT_TOO_FINE = "UnitTooFine"
CARDS_UNHEALTHY = "CardsUnhealthy"
PODS_NOT_SCHEDULED = "PodsNotScheduled"
CARDS_OFFERED_TWICE = "CardsOfferedTwice"

BOOKS_SAY_THE_SAME = "BooksSayTheSame"
BOOKS_DIFFER = "BooksDiffer"
BOOKS_NOT_SEEN = "BooksNotSeen"
BOOKS_NOT_SEEN_SINCE = "BooksNotSeenSinceTheyDiffered"

DELETING = "Deleting"
