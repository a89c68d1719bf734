"""Manifests of kube-scheduler in many hands, its configurations, and what others do to them later."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import yaml
from hypothesis import strategies as st
from tests.samples.hostctl import KUBEADM

Edit = Callable[[str], str]

_COMMENTS = (
    "",
    "",
    "",
    "{0}# a comment\n",
    "\n",
    "{0}# - --config=/not/this\n\n",
    "{0}#\n",
    "   \n",
    "{0}# :-[]{{}} 'x\n",
)
_WORDS = (
    "--v=2",
    "--leader-elect=true",
    "--leader-elect",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
    "'--bind-address=127.0.0.1'",
    '"--authentication-kubeconfig=/etc/kubernetes/scheduler.conf"',
    "--feature-gates=A=true,B=false",
    "--profiling=false",
    "'--x=it''s'",
    '"--y=\\"a\\" #z"',
    "--e=",
    "--kube-api-qps=50 # fast",
    "--master  ",
    "-v=4",
)
_CONFIGS: tuple[tuple[str, ...], ...] = (
    (),
    (),
    ("--config=/etc/kubernetes/own/x.yaml",),
    ("--config", "/etc/kubernetes/own/x.yaml"),
    ('"--config=/etc/kubernetes/own/x.yaml"',),
    ("--config=/a.yaml", "--config=/etc/kubernetes/own/x.yaml"),
    ("--config=",),
)


def _commented(draw: st.DrawFn, indent: str) -> str:
    return draw(st.sampled_from(_COMMENTS)).format(indent)


def _words(draw: st.DrawFn) -> list[str]:
    flags = st.lists(st.sampled_from(_WORDS), max_size=3, unique=True)
    return [*draw(flags), *draw(st.sampled_from(_CONFIGS)), *draw(flags)]


def _block_list(draw: st.DrawFn, key: str, words: list[str], *, offset: str, indent: str = "    ") -> str:
    if not words:
        return f"{indent}{key}: []\n"
    lines = [_commented(draw, indent) + f"{indent}{offset}- {word}\n" for word in words]
    return f"{indent}{key}:{draw(st.sampled_from(['', ' ', ' # words']))}\n" + "".join(lines)


def _flow_list(draw: st.DrawFn, key: str, words: list[str], *, indent: str = "    ") -> str:
    plain = [word.split(" #")[0].strip() for word in words]
    quoted = [word if word[0] in "'\"" else f'"{word}"' for word in plain]
    if draw(st.booleans()):
        return f"{indent}{key}: [{', '.join(quoted)}]\n"
    inner = ",\n".join(f"{indent}  {word}" for word in quoted) + "\n"
    return f"{indent}{key}: [\n{inner}{indent}]\n"


def _command(draw: st.DrawFn, offset: str) -> list[str]:
    """The keys ``command`` and ``args``, in one of the ways in which flags are given."""
    words = _words(draw)
    as_list = _block_list if draw(st.booleans()) else _flow_list
    options = {"offset": offset} if as_list is _block_list else {}
    program = draw(st.sampled_from(["kube-scheduler", "/usr/local/bin/kube-scheduler", '"kube-scheduler"']))
    match draw(st.sampled_from(["command", "command", "split", "wrapped", "image"])):
        case "split":
            return [as_list(draw, "command", [program], **options), as_list(draw, "args", words, **options)]
        case "wrapped":
            return [as_list(draw, "command", ["/bin/nice", program, *words], **options)]
        case "image" if words:
            return [as_list(draw, "args", words, **options)]
    return [as_list(draw, "command", [program, *words], **options)]


_PROBE = """\
    livenessProbe:
      failureThreshold: 8
      httpGet: {host: 127.0.0.1, path: /livez, port: 10259, scheme: HTTPS}
"""
_VARIABLES = (
    "    env:\n    - name: NO_PROXY # theirs\n      value: .svc\n",
    "    env: [{name: NO_PROXY, value: .svc}]\n",
    "    imagePullPolicy: IfNotPresent\n",
    "    imagePullPolicy: Always\n",
)
_USERS = (
    "    securityContext:\n      readOnlyRootFilesystem: true # theirs\n",
    "    securityContext: {runAsUser: 0}\n",
    "    securityContext: {runAsUser: 1000, allowPrivilegeEscalation: false}\n",
    "    securityContext: {allowPrivilegeEscalation: false}\n",
)
_SIDECAR = "  - image: other:1\n    name: other\n    command: [sleep, infinity]\n"


@st.composite
def block_manifests(draw: st.DrawFn) -> str:
    """As people and tools write them: indentation, comments, order of keys."""
    offset = " " * draw(st.integers(0, 3))
    keys = [
        *_command(draw, offset),
        "    image: registry.k8s.io/kube-scheduler:v1.36.3 # pinned\n",
        "    name: kube-scheduler\n",
    ]
    keys += draw(st.sampled_from([[], [_PROBE], ["    resources:\n      requests:\n        cpu: 100m\n"]]))
    keys += draw(st.sampled_from([[], [], *([key] for key in _VARIABLES)]))
    keys += draw(st.sampled_from([[], [], *([key] for key in _USERS)]))
    mounts = draw(st.sampled_from(["none", "block", "flow", "empty", "null"]))
    keys += {
        "none": [],
        "block": [
            f"    volumeMounts:\n    {offset}- mountPath: /etc/kubernetes/own\n    {offset}  name: own\n"
        ],
        "flow": ["    volumeMounts: [{mountPath: /etc/kubernetes/own, name: own}]\n"],
        "empty": ["    volumeMounts: []\n"],
        "null": ["    volumeMounts:\n"],
    }[mounts]
    container = "".join(key + _commented(draw, "    ") for key in draw(st.permutations(keys)))
    others = draw(st.sampled_from(["", "", _SIDECAR]))
    # "-" alone on its line, so that any key may come first.
    spec = [
        f"  containers:\n{others}  -\n{container}",
        "  hostNetwork: true\n",
        "  priorityClassName: system-node-critical\n",
    ]
    volumes = (
        f"  volumes:\n  {offset}- hostPath:\n  {offset}    path: /etc/kubernetes/own\n  {offset}  name: own\n"
    )
    spec += {"none": [], "null": ["  volumes:\n"], "empty": ["  volumes: []\n"]}.get(mounts, [volumes])
    head = "apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {component: kube-scheduler}\n"
    body = "spec:\n" + "".join(field + _commented(draw, "  ") for field in draw(st.permutations(spec)))
    tail = draw(st.sampled_from(["", "status: {}\n", "# end\n", "...\n", "---\nkind: Other\n"]))
    return _wrapped(draw, head + body + tail)


def _wrapped(draw: st.DrawFn, text: str) -> str:
    """Line ends, what stands before the document, what is missing after it."""
    text = draw(st.sampled_from(["", "", "---\n", "# head\n\n", "%YAML 1.1\n---\n"])) + text
    text = draw(st.sampled_from([text, text, text.rstrip("\n"), text + "\n\n"]))
    text = draw(st.sampled_from([text, text, text.replace("\n", "\r\n")]))
    return draw(st.sampled_from([text, text, text, "\ufeff" + text]))


@st.composite
def dumped_manifests(draw: st.DrawFn) -> str:
    """As programs write them: JSON of several kinds, YAML with anchors, canonical YAML."""
    pod = yaml.safe_load(KUBEADM)
    pod["spec"]["containers"][0]["command"][1:1] = [word.strip("'\"").split(" #")[0] for word in _words(draw)]
    if draw(st.booleans()):
        labels = {"a": "b"}
        pod["metadata"]["labels"] = pod["metadata"]["annotations"] = labels
    match draw(st.sampled_from(["json", "json lines", "tabs", "yaml", "flow", "canonical", "wide"])):
        case "json":
            return json.dumps(pod)
        case "json lines":
            return json.dumps(pod, indent=draw(st.sampled_from([0, 1, 2, 4]))) + "\n"
        case "tabs":
            return json.dumps(pod, indent="\t")
        case "flow":
            return yaml.safe_dump(pod, default_flow_style=True, width=60)
        case "canonical":
            return yaml.dump(pod, canonical=True)
        case "wide":
            return yaml.safe_dump(pod, indent=6, width=30, explicit_start=True, explicit_end=True)
    return yaml.safe_dump(pod, sort_keys=draw(st.booleans()))


manifests: st.SearchStrategy[str] = st.one_of(
    block_manifests(), block_manifests(), dumped_manifests(), st.just(KUBEADM.decode())
)


@dataclass(frozen=True)
class ForeignEdit:
    """What somebody else does to a manifest, the same with and without our part in it."""

    name: str
    apply: Edit


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _before(mark: str, line: str) -> Edit:
    """``line`` before the first line that has ``mark``, as deep as that, with its line end."""

    def edit(text: str) -> str:
        lines = _lines(text)
        at = next((place for place, line in enumerate(lines) if mark in line), None)
        if at is None:
            return text
        found = lines[at]
        indent = found[: len(found) - len(found.lstrip())]
        end = "\r\n" if found.endswith("\r\n") else "\n"
        return "".join([*lines[:at], f"{indent}{line}{end}", *lines[at:]])

    return edit


def _replacing(old: str, new: str) -> Edit:
    return lambda text: text.replace(old, new)


FOREIGN_EDITS: dict[str, Edit] = {
    "nothing": lambda text: text,
    "another image": _replacing("v1.36.3", "v1.36.4"),
    "a longer image": _replacing("registry.k8s.io/", "registry.example.com:5000/mirror/"),
    "a flag changed": _replacing("--v=2", "--v=4"),
    "a flag more": _before("- --leader-elect", "- --new-flag=1"),
    "a flag gone": lambda text: "".join(
        line for line in _lines(text) if line.strip() != "- --leader-elect=true"
    ),
    "another program path": _replacing("/usr/local/bin/kube-scheduler", "/opt/bin/kube-scheduler"),
    "a comment before the image": _before("image:", "# somebody was here"),
    "a comment before the command": _before("command:", "# somebody was here"),
    "a comment before the volumes": _before("volumes:", "# somebody was here"),
    "a comment before the mounts": _before("volumeMounts:", "# somebody was here"),
    "a comment at the end": lambda text: (
        text + ("" if text.endswith("\n") or not text else "\n") + "# the end\n"
    ),
    "a comment at the head": lambda text: "# generated\n" + text,
    "a label": _replacing("component: kube-scheduler", "component: kube-scheduler, tier: x"),
    "a priority class": _replacing("system-node-critical", "system-cluster-critical"),
    "another probe": _replacing("failureThreshold: 8", "failureThreshold: 24"),
    "a status": _replacing("status: {}", "status: {phase: Pending}"),
    "more resources": _replacing("cpu: 100m", "cpu: 250m"),
    "windows' line ends": lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
    "unix's line ends": lambda text: text.replace("\r\n", "\n"),
    "a byte order mark": lambda text: text if text.startswith("\ufeff") else "\ufeff" + text,
    "no line end at the end": lambda text: text.rstrip("\r\n"),
    "blank lines at the end": lambda text: text.rstrip("\r\n") + "\n\n\n",
    "blanks behind a line": _replacing("hostNetwork: true", "hostNetwork: true   "),
    "another document": lambda text: text.rstrip("\r\n") + "\n---\nkind: Another\n",
    "no host network": _replacing("hostNetwork: true", "hostNetwork: false"),
    "tabs in a comment": lambda text: text.replace("# a comment", "#\ta\tcomment"),
}
"""By name. None of them touches a line of ours."""

CONFIG_HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_EXTENDERS = (
    "",
    "extenders: []\n",
    "extenders:\n",
    "extenders: null\n",
    "extenders:\n- urlPrefix: http://other:1\n  filterVerb: filter\n  nodeCacheCapable: false\n",
    "extenders:\n  - urlPrefix: http://other:1 # theirs\n    managedResources:\n    - name: example.com/x\n",
    "extenders: [{urlPrefix: 'http://other:1'}]\n",
    "extenders:\n- urlPrefix: http://127.0.0.1:32766/\n  filterVerb: old\n- urlPrefix: http://other:1\n",
    "extenders:\n- urlPrefix: http://other:1\n  bindVerb: bind\n",
    "extenders:\n- {urlPrefix: 'http://other:1', managedResources: [{name: gpushare.io/memory}]}\n",
    "extenders: 5\n",
    "extenders: [5]\n",
    "x: &e {urlPrefix: 'http://other:1'}\nextenders:\n- *e\n",
)
_SETTINGS = (
    "",
    "clientConnection: {kubeconfig: /k}\n",
    "percentageOfNodesToScore: 50\n",
    "delayCacheUntilActive: true\n",
    "leaderElection:\n  leaderElect: true\n",
    "# a comment\n\n",
)
_THEIR_FILTER = """\
  plugins:
    filter: # theirs
      enabled:
      - name: Theirs # first
      disabled:
      - name: '*'
    multiPoint:
        enabled:
          - name: Theirs
            weight: 3
"""
_KNOWN_RESOURCE = """\
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources:
      - gpushare.io/memory # known
"""
_PLUGINS = (
    "",
    "  plugins:\n",
    "  plugins: {}\n",
    "  plugins: {score: {disabled: [{name: '*'}]}}\n",
    "  plugins: {filter: , bind: {}, reserve: {disabled: [{name: '*'}]}}\n",
    _THEIR_FILTER,
    "  plugins:\n    postFilter:\n      disabled: [{name: Default}]\n    preFilter: {enabled: []}\n",
    "  plugins: 5\n",
    "  plugins: {bind: {enabled: [{name: GPUShare}]}}\n",
)
_ARGUMENTS = (
    "",
    "  pluginConfig: []\n",
    "  pluginConfig:\n  - name: Theirs\n    args: {a: 1}\n",
    "  pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy: {type: MostAllocated}\n",
    "  pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/x]}}]\n",
    _KNOWN_RESOURCE,
    "  pluginConfig:\n  - name: NodeResourcesFit\n    args:\n",
    "  pluginConfig:\n    - name: NodeResourcesFit\n",
    "  pluginConfig: {}\n",
    "  pluginConfig: [5]\n",
)


def _profiles(draw: st.DrawFn) -> str:
    """Some profiles; none in half of the cases."""
    lines = []
    for number in range(draw(st.sampled_from([0, 0, 1, 2]))):
        name = "- schedulerName: " + (
            "default-scheduler # first\n" if number == 0 else f"scheduler-{number}\n"
        )
        parts = draw(st.permutations([draw(st.sampled_from(_PLUGINS)), draw(st.sampled_from(_ARGUMENTS))]))
        lines += [name, *parts]
    empty = draw(st.sampled_from(["", "", "profiles:\n", "profiles: []\n"]))
    return "".join(("profiles:\n", *lines)) if lines else empty


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """KubeSchedulerConfigurations, most of which extender and plugin can be added to."""
    settings = draw(st.lists(st.sampled_from(_SETTINGS), max_size=3, unique=True))
    parts = [CONFIG_HEAD, *settings, _profiles(draw), draw(st.sampled_from(_EXTENDERS))]
    if draw(st.booleans()):
        document = yaml.safe_load("".join(parts))
        return json.dumps(document, indent=draw(st.sampled_from([None, 2])))
    return _wrapped(draw, "".join(draw(st.permutations(parts))))
