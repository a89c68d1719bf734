"""Pods and policies as people get them wrong, and what has to be said of each: the rows of docs/why.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.e2e.kubernetes_features import POD_LEVEL_RESOURCES

from gpushare_core.text.json_object import Json

MEMORY = "gpushare.io/memory"
SLICE = "gpushare.io/slice"
CORDONED, TAINTED, BARE = "gpu-2", "control-plane-1", "gpu-3"
"""Nodes of the test's cluster: two that share cards and take no new pod, and one that shares none."""
QUOTA = 8
"""Units that the test's namespace may have."""
HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongPod:
    """A pod that does not get what its author meant."""

    written: str
    """What is wrong, as it stands in the manifest."""
    body: Json
    code: str
    """Of the finding that says so."""
    says: str
    """A part of its sentence."""
    advises: str
    """A part of its advice."""
    todo: str = "What it says."
    """For the page, where there is no advice beside the sentence."""
    is_stopped: bool = True
    """Whether it does not run for that reason."""
    feature: str = ""
    """Of Kubernetes: where it is off, the API server drops what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongPolicy:
    """A policy that the API server refuses."""

    written: str
    spec: Json
    says: str
    """A part of what the API server says."""
    todo: str
    """What to do about it."""


def pod(limits: Mapping[str, str] | None = None, *, container: Json | None = None, **spec: object) -> Json:
    resources = {"resources": {"limits": dict(limits)}} if limits else {}
    main = {"name": "main", "image": "busybox:stable", "command": ["sleep", "infinity"], **resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "wrong"},
        "spec": {"containers": [{**main, **(container or {})}], "terminationGracePeriodSeconds": 0, **spec},
    }


def annotated(body: Json, annotations: Mapping[str, str]) -> Json:
    return {**body, "metadata": {**body["metadata"], "annotations": dict(annotations)}}


def requiring(key: str, *values: str) -> Json:
    """A node affinity."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def spreading() -> Json:
    """A rule among pods."""
    return {
        "topologyKey": HOSTNAME,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "wrong"}},
    }


PODS: tuple[WrongPod, ...] = (
    WrongPod(
        written="aliyun.com/gpu-mem: 4",
        body=pod({"aliyun.com/gpu-mem": "4"}),
        code="OtherDialect",
        says="it is a name of the dialect aliyun.com, and the nodes that share cards speak gpushare.io",
        advises="Instead of aliyun.com/gpu-mem write gpushare.io/memory: 4.",
    ),
    WrongPod(
        written="gpushare.io/mem: 4",
        body=pod({"gpushare.io/mem": "4"}),
        code="UnknownResource",
        says="asks for gpushare.io/mem, and there is no such resource",
        advises="Do you mean gpushare.io/memory? Write gpushare.io/memory: 4",
    ),
    WrongPod(
        written="gpushare/memory: 4",
        body=pod({"gpushare/memory": "4"}),
        code="UnknownResource",
        says="there is no such resource: nodes serve gpushare.io/memory",
        advises="Write gpushare.io/memory: 4",
    ),
    WrongPod(
        written="nvidia.com/gpu: 1",
        body=pod({"nvidia.com/gpu": "1"}),
        code="OtherPlugin",
        says="no node offers that: nodes that share their cards serve gpushare.io/memory",
        advises="write gpushare.io/memory: N, with N for how many units of 1Gi it needs, 16 at most",
    ),
    WrongPod(
        written="gpushare.io/slice: 1, where nodes are in mode Memory",
        body=pod({SLICE: "1"}),
        code="OtherMode",
        says="it needs mode Slices or Mixed, and 3 nodes are in mode Memory",
        advises="Instead of gpushare.io/slice write gpushare.io/memory: N",
    ),
    WrongPod(
        written="gpushare.io/memory: 4Gi",
        body=pod({MEMORY: "4Gi"}),
        code="BytesForUnits",
        says="4Gi means 4294967296 of them",
        advises="Write gpushare.io/memory: 4. A unit is 1Gi.",
    ),
    WrongPod(
        written="gpushare.io/memory: 4096",
        body=pod({MEMORY: "4096"}),
        code="MebibytesForUnits",
        says="4,096 units of 1Gi are 4Ti",
        advises="If you mean 4,096 MiB, write gpushare.io/memory: 4.",
    ),
    WrongPod(
        written="gpushare.io/memory: 20, where cards have 16",
        body=pod({MEMORY: "20"}),
        code="CardsTooSmall",
        says="No card has 20 units (20Gi), not even an empty one",
        advises="",
        todo="Ask for less: below its reasons `why` names the largest amount that fits now.",
    ),
    WrongPod(
        written="gpushare.io/memory: 10, and 10 in a sidecar",
        body=pod(
            {MEMORY: "10"},
            initContainers=[
                {
                    "name": "proxy",
                    "image": "busybox:stable",
                    "restartPolicy": "Always",
                    "resources": {"limits": {MEMORY: "10"}},
                }
            ],
        ),
        code="InitContainersCount",
        says="init container proxy (restartPolicy: Always) keeps running",
        advises="Ask for less in the init container",
    ),
    WrongPod(
        written="gpushare.io/memory: 0.5",
        body=pod({MEMORY: "0.5"}),
        code="NotWhole",
        says="0.5 of gpushare.io/memory, which is counted in whole units",
        advises="Write a whole number, such as gpushare.io/memory: 1.",
    ),
    WrongPod(
        written="gpushare.io/memory: 0",
        body=pod({MEMORY: "0"}),
        code="AsksForNothing",
        says="asks for 0 of gpushare.io/memory: it gets no card",
        advises="write how many units",
    ),
    WrongPod(
        written="gpushare.io/memory: 4 in requests alone",
        body=pod(container={"resources": {"requests": {MEMORY: "4"}}}),
        code="NoLimit",
        says="has gpushare.io/memory in its requests and not in its limits",
        advises="Write gpushare.io/memory: 4 in resources.limits",
    ),
    WrongPod(
        written="gpushare.io/memory: 2 in requests, 4 in limits",
        body=pod(container={"resources": {"requests": {MEMORY: "2"}, "limits": {MEMORY: "4"}}}),
        code="LimitDiffers",
        says="2 of gpushare.io/memory in its requests and 4 in its limits",
        advises="Remove gpushare.io/memory from resources.requests",
    ),
    WrongPod(
        written="gpushare.io/memory: 4 and gpushare.io/slice: 1 in one container",
        body=pod({MEMORY: "4", SLICE: "1"}),
        code="Refused",
        says="asks for gpushare.io/memory and gpushare.io/slice; a container may ask for only one of these",
        advises="",
    ),
    WrongPod(
        written="resources.limit instead of limits",
        body=pod(container={"resources": {"limit": {MEMORY: "4"}}}),
        code="Refused",
        says='unknown field "spec.containers[0].resources.limit"',
        advises="kubectl explain pod.spec.containers --recursive",
    ),
    WrongPod(
        written="resources beside containers, not in one",
        body=pod(resources={"limits": {MEMORY: "4"}}),
        code="Refused",
        says="spec.resources.limits[gpushare.io/memory]: Unsupported value",
        advises="Write it into the container: spec.containers[].resources.limits.",
        feature=POD_LEVEL_RESOURCES,
    ),
    WrongPod(
        written="env NVIDIA_VISIBLE_DEVICES: all",
        body=pod({MEMORY: "4"}, container={"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}),
        code="SetsCards",
        says="sets NVIDIA_VISIBLE_DEVICES itself: it would see other cards than it is given",
        advises="Remove it from env",
    ),
    WrongPod(
        written="env CUDA_VISIBLE_DEVICES: 3",
        body=pod({MEMORY: "4"}, container={"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "3"}]}),
        code="ChoosesCards",
        says="It sees only cards that it is given, numbered from 0",
        advises="Remove CUDA_VISIBLE_DEVICES from env.",
        is_stopped=False,
    ),
    WrongPod(
        written="securityContext.privileged: true",
        body=pod({MEMORY: "4"}, container={"securityContext": {"privileged": True}}),
        code="Privileged",
        says="is privileged: it sees all cards of its node",
        advises="Remove privileged: true from its securityContext",
        is_stopped=False,
    ),
    WrongPod(
        written="annotation gpushare.io/allocation by hand",
        body=annotated(pod({MEMORY: "4"}), {"gpushare.io/allocation": '{"card": 0}'}),
        code="HandwrittenAnnotation",
        says="has the annotation gpushare.io/allocation. It has no effect",
        advises="Remove it",
        is_stopped=False,
    ),
    WrongPod(
        written="1,100 annotations",
        body=annotated(pod({MEMORY: "4"}), {f"example.com/{number}": "x" for number in range(1100)}),
        code="Refused",
        says="the pod has 1100 annotations; a pod that asks for a share of a card may have at most 1024",
        advises="",
    ),
    WrongPod(
        written="schedulerName: my-scheduler, which does not run",
        body=pod({MEMORY: "4"}, schedulerName="my-scheduler"),
        code="UnknownScheduler",
        says="has schedulerName: my-scheduler, but no scheduler of that name places pods by cards",
        advises="Write schedulerName: default-scheduler, or leave it out.",
    ),
    WrongPod(
        written="schedulerName: gpushare-scheduler, where the backend is KubeScheduler",
        body=pod({MEMORY: "4"}, schedulerName="gpushare-scheduler"),
        code="UnknownScheduler",
        says="has schedulerName: gpushare-scheduler",
        advises="Write schedulerName: default-scheduler",
    ),
    WrongPod(
        written="nodeName: gpu-1",
        body=pod({MEMORY: "4"}, nodeName="gpu-1"),
        code="NodeByHand",
        says="has spec.nodeName: gpu-1, which bypasses the scheduler",
        advises="Write nodeSelector: {kubernetes.io/hostname: gpu-1} instead",
        is_stopped=False,
    ),
    WrongPod(
        written="nodeSelector for a node that shares no cards",
        body=pod({MEMORY: "4"}, nodeSelector={HOSTNAME: BARE}),
        code="NodeNotShared",
        says="Node gpu-3 shares no cards: no policy selects it",
        advises="of those that share their cards: control-plane-1, gpu-1, gpu-2",
    ),
    WrongPod(
        written="nodeSelector for a node that is not there",
        body=pod({MEMORY: "4"}, nodeSelector={HOSTNAME: "gpu-9"}),
        code="NodeMissing",
        says="asks for node gpu-9, and there is no node of that name",
        advises="Do you mean gpu-",
    ),
    WrongPod(
        written="nodeSelector disktype: ssd, which no node has",
        body=pod({MEMORY: "4"}, nodeSelector={"disktype": "ssd"}),
        code="NodesBySelector",
        says="nodeSelector asks for disktype=ssd, which leaves out all 3 nodes with cards",
        advises="No node with cards has the label disktype",
    ),
    WrongPod(
        written="required node affinity for zones that no node is in",
        body=pod({MEMORY: "4"}, affinity=requiring("topology.kubernetes.io/zone", "a", "b")),
        code="NodesByAffinity",
        says="node affinity requires topology.kubernetes.io/zone in (a, b)",
        advises="kubectl get nodes -L topology.kubernetes.io/zone",
    ),
    WrongPod(
        written="no toleration for the taint of the node that it selects",
        body=pod({MEMORY: "4"}, nodeSelector={HOSTNAME: TAINTED}),
        code="NodesByTaint",
        says="Taint node-role.kubernetes.io/control-plane:NoSchedule keeps the pod off node control-plane-1",
        advises="give it the toleration {key: node-role.kubernetes.io/control-plane, operator: Exists",
    ),
    WrongPod(
        written="nodeSelector for a node that is cordoned",
        body=pod({MEMORY: "4"}, nodeSelector={HOSTNAME: CORDONED}),
        code="NodesByCordon",
        says="kubectl cordon keeps new pods off node gpu-2",
        advises="kubectl uncordon gpu-2",
    ),
    WrongPod(
        written="cpu: 1000",
        body=pod({MEMORY: "4", "cpu": "1000"}),
        code="NoCpu",
        says="asks for 1000 CPU",
        advises="no empty node has that much",
    ),
    WrongPod(
        written="memory: 10Ti",
        body=pod({MEMORY: "4", "memory": "10Ti"}),
        code="NoMemory",
        says="asks for 10Ti memory",
        advises="Ask for less memory",
    ),
    WrongPod(
        written="rdma/hca: 1, which no node offers",
        body=pod({MEMORY: "4", "rdma/hca": "1"}),
        code="NoResource",
        says="asks for 1 of rdma/hca, and no node whose cards have room offers any",
        advises="check that its device plugin runs",
    ),
    WrongPod(
        written="a volume of a PersistentVolumeClaim that is not there",
        body=pod(
            {MEMORY: "4"}, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "nowhere"}}]
        ),
        code="ClaimMissing",
        says="mounts PersistentVolumeClaim nowhere, and its namespace has none of that name",
        advises="correct claimName",
    ),
    WrongPod(
        written="a volume of a PersistentVolumeClaim that waits for its StorageClass",
        body=pod({MEMORY: "4"}, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]),
        code="ClaimNotBound",
        says="mounts PersistentVolumeClaim data, which is Pending",
        advises="kubectl describe pvc data",
        is_stopped=False,
    ),
    WrongPod(
        written="schedulingGates: example.com/approval",
        body=pod({MEMORY: "4"}, schedulingGates=[{"name": "example.com/approval"}]),
        code="Gated",
        says="has the scheduling gate example.com/approval: until it is gone no scheduler looks at it",
        advises="Whoever added it has to remove it.",
    ),
    WrongPod(
        written="gpushare.io/memory: 12, where the namespace may have 8",
        body=pod({MEMORY: "12"}),
        code="QuotaExceeded",
        says="ResourceQuota cards lets namespace",
        advises="Ask for 8 at most",
    ),
    WrongPod(
        written="priorityClassName: high, which is not there",
        body=pod({MEMORY: "4"}, priorityClassName="high"),
        code="Refused",
        says="no PriorityClass with name high was found",
        advises="kubectl get priorityclasses",
    ),
    WrongPod(
        written="topologySpreadConstraints with DoNotSchedule",
        body=pod({MEMORY: "4"}, topologySpreadConstraints=[spreading()]),
        code="NotComputed",
        says="This command does not check which nodes that leaves",
        advises="kube-scheduler's own Event",
        is_stopped=False,
    ),
)


@dataclass(frozen=True, slots=True)
class PolicyDraft:
    """A good policy, from which wrong ones are made."""

    rule: Json = field(
        default_factory=lambda: {
            "names": ["gpu-1"],
            "devices": {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]},
        }
    )

    def with_rule(self, **changes: object) -> Json:
        """``None`` takes a field out."""
        rule = {key: value for key, value in {**self.rule, **changes}.items() if value is not None}
        return {"nodes": [rule]}

    def with_spec(self, **changes: object) -> Json:
        return {"nodes": [self.rule], **changes}


_DRAFT = PolicyDraft()
POLICIES: tuple[WrongPolicy, ...] = (
    WrongPolicy(
        written="mode: Off, without quotes",
        spec=_DRAFT.with_rule(mode=False),
        says="spec.nodes[0].mode in body must be of type string",
        todo='Write mode: "Off": to YAML a bare Off is false.',
    ),
    WrongPolicy(
        written="mode: memory",
        spec=_DRAFT.with_rule(mode="memory"),
        says='Unsupported value: "memory": supported values: "Memory", "Slices", "Exclusive", "Mixed", "Off"',
        todo="Write mode: Memory.",
    ),
    WrongPolicy(
        written="memoryUnit: 1GB",
        spec=_DRAFT.with_spec(memoryUnit="1GB"),
        says="memoryUnit must be a whole number of M, G, Mi or Gi, such as 1Gi (default), 256Mi",
        todo="Write memoryUnit: 1G, or 1Gi.",
    ),
    WrongPolicy(
        written="memoryunit: 1Gi",
        spec=_DRAFT.with_spec(memoryunit="1Gi"),
        says='unknown field "spec.memoryunit"',
        todo="Write memoryUnit. kubectl explain gpusharepolicy.spec lists the fields.",
    ),
    WrongPolicy(
        written="an empty selector",
        spec=_DRAFT.with_rule(names=None, selector={}),
        says="an empty selector would select every node: give matchLabels or matchExpressions",
        todo="Select by a label that only nodes with cards have.",
    ),
    WrongPolicy(
        written="names and selector in one entry",
        spec=_DRAFT.with_rule(selector={"matchLabels": {"gpu": "yes"}}),
        says="each entry of nodes needs either names or a selector, and not both",
        todo="Make two entries of it, or take one out.",
    ),
    WrongPolicy(
        written="a node in two entries",
        spec={"nodes": [_DRAFT.rule, _DRAFT.rule]},
        says="a node is named by more than one entry of nodes: name each node once",
        todo="Remove it from one of them.",
    ),
    WrongPolicy(
        written="names: [gpu-*]",
        spec=_DRAFT.with_rule(names=["gpu-*"]),
        says="no node can have this name: give each name in full",
        todo="Name each node, or use a selector.",
    ),
    WrongPolicy(
        written="mode: Slices without slicesPerCard",
        spec=_DRAFT.with_rule(mode="Slices"),
        says="mode Slices or Mixed needs slicesPerCard",
        todo="Add slicesPerCard, from 2 to 64.",
    ),
    WrongPolicy(
        written="slicesPerCard with mode: Memory",
        spec=_DRAFT.with_rule(slicesPerCard=4),
        says="slicesPerCard only has a meaning with mode Slices or Mixed",
        todo="Take it out, or change the mode.",
    ),
    WrongPolicy(
        written="dialect: aliyun",
        spec=_DRAFT.with_spec(dialect="aliyun"),
        says='Unsupported value: "aliyun": supported values: "gpushare.io", "aliyun.com"',
        todo="Write dialect: aliyun.com.",
    ),
    WrongPolicy(
        written="backend: Volcano without dialect: volcano.sh",
        spec=_DRAFT.with_spec(scheduler={"backend": "Volcano"}),
        says="scheduler.backend Volcano needs dialect: volcano.sh",
        todo="Add dialect: volcano.sh.",
    ),
    WrongPolicy(
        written="extenderPort: 80",
        spec=_DRAFT.with_spec(scheduler={"extenderPort": 80}),
        says="should be greater than or equal to 1024",
        todo="Leave it out: the default 22766 is seldom taken.",
    ),
    WrongPolicy(
        written="isolation.memory: Hook with simulated cards",
        spec=_DRAFT.with_rule(isolation={"memory": "Hook"}),
        says="isolation.memory Hook needs devices.source NVML or Inventory",
        todo="Leave isolation.memory out: it is None then.",
    ),
    WrongPolicy(
        written="isolation.memory: Driver with source: Inventory",
        spec=_DRAFT.with_rule(devices={"source": "Inventory"}, isolation={"memory": "Driver"}),
        says="isolation.memory Driver needs devices.source NVML, because NVIDIA's driver limits the memory",
        todo="Write isolation.memory: Hook, or leave it out.",
    ),
    WrongPolicy(
        written="isolation.onExcess: Evict, where containers are not measured",
        spec=_DRAFT.with_rule(isolation={"onExcess": "Evict"}),
        says="isolation.onExcess Evict needs the memory use of containers",
        todo="Write plugin: {measurement: {scope: Containers}} beside nodes.",
    ),
    WrongPolicy(
        written="isolation.onExcess: Evict with source: Inventory",
        spec={
            **_DRAFT.with_rule(devices={"source": "Inventory"}, isolation={"onExcess": "Evict"}),
            "plugin": {"measurement": {"scope": "Containers"}},
        },
        says="isolation.onExcess Evict needs devices.source NVML",
        todo="Write isolation.onExcess: Report.",
    ),
    WrongPolicy(
        written="source: NVML with simulated cards",
        spec=_DRAFT.with_rule(devices={"source": "NVML", "simulated": [{"count": 1, "memory": "16Gi"}]}),
        says="simulated is only read with source: Simulated",
        todo="Take simulated out where there are real cards, else write source: Simulated.",
    ),
)
