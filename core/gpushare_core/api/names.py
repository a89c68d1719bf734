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
ISOLATION_READY = "IsolationReady"
ISOLATION_IN_FORCE = "IsolationInForce"
SHARE_TOO_SMALL = "ShareTooSmall"
"""Reason of that condition where it is True, and of an Event: no program can use the card."""
"""Condition types of a GPUShareNode: its plugin writes them, operator and extender read them."""

SIMULATE_ANNOTATION = f"{GROUP}/simulate"
"""On a GPUShareNode with simulated cards, by people: what shall happen to the cards."""

CORDON_ANNOTATION = f"{GROUP}/cordon"
"""On a GPUShareNode, by people: cards that shall take no new pods, by UUID or index, with commas."""
CORDON_REASON_ANNOTATION = f"{GROUP}/cordon-reason"
"""On a GPUShareNode, by people, for people: why cards are cordoned, a line for each as ``UUID: reason``."""
CLEAR_FAULT_ANNOTATION = f"{GROUP}/clear-fault"
"""On a GPUShareNode, by people: faults of cards that they have mended, each as ``UUID@LASTSEEN``."""
SIMULATED_LOAD_ANNOTATION = f"{GROUP}/simulated-load"
"""On a pod with simulated cards, by people: how much of their memory its containers use."""

ADMISSION_LABEL = f"{GROUP}/admission"
"""On the one policy that admission policies look at: the strictest ``admission.visibleDevices`` of all."""
SERVED_ANNOTATION = f"{GROUP}/served"
"""On that policy: the extended resources that nodes offer by the names of dialects, with commas."""
ISOLATION_ADMISSION_LABEL = f"{GROUP}/isolation-admission"
"""On that policy, where a rule asks for isolation: the strictest ``admission.isolationBypass`` of those."""
ISOLATED_ANNOTATION = f"{GROUP}/isolated"
"""On that policy: those of the extended resources that are served with isolation, with commas."""

NAMESPACE = "gpushare-system"
FINALIZER = f"{GROUP}/restore"

POLICY_LABEL = f"{GROUP}/policy"
"""On nodes and on everything the operator makes for a policy: the policy's name. Programs do not trust it on
nodes: a kubelet may set it on its own node."""
PLUGIN_NODE_LABEL = f"{GROUP}.node-restriction.kubernetes.io/policy"
"""On nodes: the policy whose plugin runs there. No kubelet may set a label with this prefix. Otherwise any
node could get itself a plugin, and with it a token that lists all pods."""
MODE_LABEL = f"{GROUP}/mode"
"""On nodes: the mode as the API writes it, for people and selectors."""
DIALECT_LABEL = f"{GROUP}/dialect"
"""On nodes: the dialect in force. Resources with its names are ours on that node."""
SCHEDULER_LABEL = f"{GROUP}.node-restriction.kubernetes.io/scheduler"
"""On control-plane nodes, from before their kube-scheduler is edited until it is restored. No kubelet may set
a label with this prefix. Otherwise a worker could get itself an extender, and a run of hostctl."""
EXTERNAL_SCHEDULER_LABEL = f"{GROUP}.node-restriction.kubernetes.io/kube-scheduler"
"""On nodes, by people: with backend External the extender runs there, and on the control planes."""
STARTUP_TAINT = "startup-taint.cluster-autoscaler.kubernetes.io/gpushare"
"""On new nodes, by whoever makes them. The cluster autoscaler takes a node with this prefix for starting."""
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""By Kubernetes, on the mirror of a static pod: the UID by which its kubelet knows the pod."""
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
COMPONENT_LABEL = "app.kubernetes.io/component"
VERSION_LABEL = "app.kubernetes.io/version"
CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"

FIELD_MANAGER = "gpushare-operator"

EXTENDER_LEASE = "gpushare-extender"
"""The Lease that is held by whoever binds pods to cards: an extender, or a kube-scheduler with the plugin."""
KUBE_SCHEDULER_USER = "system:kube-scheduler"
"""By which static pods of kube-scheduler log in (``/etc/kubernetes/scheduler.conf``)."""
CALLS_LEASE = "gpushare-extender-calls"
"""The Lease by which the extender shows that a kube-scheduler called it, and the component label of it."""
CALLS_COMPONENT = "extender-calls"
CALLED_PORT_ANNOTATION = f"{GROUP}/called-port"
"""On that Lease: the port at which the extender was called."""

OTHER_SCHEDULERS_ANNOTATION = f"{GROUP}/other-schedulers"
"""On that Lease: number, and names of some, of the pods that ask for our resources and are placed by a
scheduler that does not ask the extender; with blanks between."""
ASKING_ANNOTATION = f"{GROUP}/asking-schedulers"
"""On that Lease: the ``schedulerName`` of each scheduler that has asked an extender, with blanks between."""

BOOKS_LEASE = "gpushare-extender-books"
"""The Lease on which extenders report where their ledger differs from the other books."""
BOOKS_ANNOTATION_PREFIX = f"books.{GROUP}/"
"""On that Lease: one annotation for each extender, see ``audit.extender_report``."""

DEDICATED_SCHEDULER = "gpushare-scheduler"
"""With backend Dedicated: the ``schedulerName`` of our own kube-scheduler, and the name of its Deployment, of
its Lease, and with engine Plugin of its ServiceAccount."""
DEDICATED_EXTENDER_ACCOUNT = "gpushare-scheduler-extender"
"""With backend Dedicated and engine Extender: the ServiceAccount of kube-scheduler and the extender beside
it."""

EDIT_REVISION = 3
"""Counts up when hostctl writes something else for the same arguments: then an upgrade edits hosts again that
an earlier version has edited. 2: ``preemptVerb``. 3: ``GPUShareGate``."""

HOST_ADDRESS_VARIABLE = "HOST_IP"
"""In an extender's container: the address of its host, at which the extender serves its metrics."""

EXTENDER_PORT = 22766
"""On the loopback address of every control-plane node, unless a policy says otherwise; the next port is for
the kubelet's probes. It is neither a NodePort (30000 to 32767) nor a port for outgoing connections of Linux
(from 32768): a Service, or by chance a client, would take over kube-scheduler's requests."""
