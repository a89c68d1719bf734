"""Names that all programs agree on: API group, labels, annotations, objects of the installation."""

GROUP = "gpushare.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

POLICY_KIND = "GPUSharePolicy"
POLICY_PLURAL = "gpusharepolicies"
NODE_KIND = "GPUShareNode"
NODE_PLURAL = "gpusharenodes"

REGISTERED = "Registered"
CARDS_HEALTHY = "CardsHealthy"
CARDS_CORDONED = "CardsCordoned"
LEDGER_IN_SYNC = "LedgerInSync"
UNIT_TOO_FINE = "UnitTooFine"
UNIT_CHANGE_BLOCKED = "UnitChangeBlocked"
MEMORY_EXCEEDED = "MemoryExceeded"
"""Condition types of a GPUShareNode: its plugin writes them, operator and extender read them."""

SIMULATE_ANNOTATION = f"{GROUP}/simulate"
"""On a GPUShareNode whose cards are simulated: what is to happen to them. Written by people."""

CORDON_ANNOTATION = f"{GROUP}/cordon"
"""On a GPUShareNode, by people: cards to which no new pod shall come, by UUID or index, with commas."""
CLEAR_FAULT_ANNOTATION = f"{GROUP}/clear-fault"
"""On a GPUShareNode, by people: faults of cards that are over by their word, each as ``UUID@LASTSEEN``."""
SIMULATED_LOAD_ANNOTATION = f"{GROUP}/simulated-load"
"""On a pod whose cards are simulated: how much of their memory its containers use. Written by people."""

ADMISSION_LABEL = f"{GROUP}/admission"
"""On the one policy that admission policies look at: the strictest ``admission.visibleDevices`` of all."""
SERVED_ANNOTATION = f"{GROUP}/served"
"""On that policy: the extended resources that nodes offer by the names of dialects, with commas."""

NAMESPACE = "gpushare-system"
FINALIZER = f"{GROUP}/restore"

POLICY_LABEL = f"{GROUP}/policy"
"""On nodes and on everything the operator makes for a policy: the policy's name. On nodes it is for people
and their selectors: a kubelet may set it on its own node."""
PLUGIN_NODE_LABEL = f"{GROUP}.node-restriction.kubernetes.io/policy"
"""On nodes: the policy whose plugin runs there. By this prefix no kubelet may set it: any node would get
itself a plugin, and with it a token that lists all pods."""
MODE_LABEL = f"{GROUP}/mode"
"""On nodes: the mode as the API writes it, for people and selectors."""
DIALECT_LABEL = f"{GROUP}/dialect"
"""On nodes: the dialect in force, by which names of others are known to be ours there."""
SCHEDULER_LABEL = f"{GROUP}.node-restriction.kubernetes.io/scheduler"
"""On control-plane nodes, from before their kube-scheduler is edited until it was restored. By this prefix no
kubelet may set it: a worker would get itself an extender, and a run of hostctl."""
EXTERNAL_SCHEDULER_LABEL = f"{GROUP}.node-restriction.kubernetes.io/kube-scheduler"
"""On nodes, by people: with backend External, the extender runs there besides the control planes."""
STARTUP_TAINT = "startup-taint.cluster-autoscaler.kubernetes.io/gpushare"
"""On new nodes, by whoever makes them. By this prefix the cluster autoscaler knows that they are starting."""
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""Kubernetes' own, on the API server's picture of a static pod: the UID that its kubelet knows it by."""
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
COMPONENT_LABEL = "app.kubernetes.io/component"
VERSION_LABEL = "app.kubernetes.io/version"
CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"

FIELD_MANAGER = "gpushare-operator"

CALLS_LEASE = "gpushare-extender-calls"
"""The Lease by which the extender makes known that a kube-scheduler called it, and its label."""
CALLS_COMPONENT = "extender-calls"
CALLED_PORT_ANNOTATION = f"{GROUP}/called-port"
"""On that Lease: where it was called."""

OTHER_SCHEDULERS_ANNOTATION = f"{GROUP}/other-schedulers"
"""On that Lease: how many pods ask for our resources and are placed by a scheduler that does not ask the
extender, and the names of some, with blanks in between."""
ASKING_ANNOTATION = f"{GROUP}/asking-schedulers"
"""On that Lease: the schedulers that have asked any extender, by ``schedulerName``, with blanks between."""

BOOKS_LEASE = "gpushare-extender-books"
"""The Lease on which extenders make known where their ledger differs from the other books."""
BOOKS_ANNOTATION_PREFIX = f"books.{GROUP}/"
"""On that Lease: one annotation for each extender, see ``audit.extender_report``."""

DEDICATED_SCHEDULER = "gpushare-scheduler"
"""With backend Dedicated: name of the kube-scheduler of our own, as pods write it in ``schedulerName``. Its
Deployment, its account and its Lease are called so, too."""

EDIT_REVISION = 2
"""Of what hostctl writes for given arguments: it counts up when that changes, so that an upgrade edits hosts
again that an earlier version has edited. 2: ``preemptVerb``."""

HOST_ADDRESS_VARIABLE = "HOST_IP"
"""In an extender's container: the address of its host, at which it answers for its metrics."""

EXTENDER_PORT = 22766
"""On the loopback address of every control-plane node, unless a policy says otherwise; the next port is for
the kubelet's probes. Neither a NodePort (30000 to 32767) nor one that Linux gives to outgoing connections
(from 32768): a Service, or a client by chance, would take over kube-scheduler's calls."""
