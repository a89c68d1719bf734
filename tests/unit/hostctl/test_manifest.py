"""The surgical edit of kube-scheduler's static pod, over the ways people write such a manifest."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samples import hostctl as samples

from gpushare_core.text.json_object import Json
from gpushare_hostctl.decide.scheduler import manifest, manifest_edit
from gpushare_hostctl.errors import NeedsPersonError

KUBEADM = samples.KUBEADM.decode()
FOLDER = samples.PATHS.folder
CONFIG = f"{FOLDER}/scheduler-config-0123456789ab.yaml"


def pod(container: str, *, spec: str = "") -> str:
    """Returns a manifest around a container whose lines are given at the container's own indentation."""
    lines = "".join(f"    {line}\n" for line in container.splitlines())
    return f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  -\n{lines}{spec}"


def added(text: str) -> str:
    return manifest_edit.add(manifest.parse(text.encode()), config=CONFIG).decode()


IMAGE = "registry.example:5000/gpushare-scheduler:0.1.0-1.36"


def swapped(text: str) -> str:
    return manifest_edit.add(manifest.parse(text.encode()), config=CONFIG, image=IMAGE).decode()


def removed(text: str) -> str:
    return manifest_edit.remove(manifest.parse(text.encode()), folder=FOLDER).decode()


def container_of(text: str) -> Json:
    container: Json = next(yaml.safe_load_all(text))["spec"]["containers"][0]
    return container


WRITTEN = [
    pytest.param(KUBEADM, id="kubeadm"),
    pytest.param(KUBEADM.rstrip("\n"), id="no line end at the end"),
    pytest.param(KUBEADM.replace("\n", "\r\n"), id="carriage returns"),
    pytest.param("\ufeff" + KUBEADM, id="byte order mark"),
    pytest.param("# head\n---\n" + KUBEADM + "# tail\n", id="document start and comments around"),
    pytest.param(KUBEADM + "---\nanother: document\n", id="a second document"),
    pytest.param(KUBEADM.replace("  - hostPath", "  # why\n  - hostPath"), id="a comment above the volume"),
    pytest.param(
        KUBEADM.replace("    - kube-scheduler\n", "    - kube-scheduler # it\n"), id="comment at it"
    ),
    pytest.param(KUBEADM.replace("    - --", "    -   --"), id="wide dashes"),
    pytest.param(
        KUBEADM.replace("kube-scheduler\n    - --", "kube-scheduler\n    # f\n    - --"), id="comment"
    ),
    pytest.param(yaml.safe_dump(yaml.safe_load(KUBEADM), default_flow_style=True), id="flow style"),
    pytest.param(json.dumps(yaml.safe_load(KUBEADM)), id="JSON on one line"),
    pytest.param(json.dumps(yaml.safe_load(KUBEADM), indent=2), id="JSON"),
    pytest.param(json.dumps(yaml.safe_load(KUBEADM), indent="\t"), id="JSON indented with tabs"),
    pytest.param(pod("command:\n- kube-scheduler\n- --leader-elect=true\n"), id="no volumes at all"),
    pytest.param(pod("command:\n  - kube-scheduler\n  - --v=2\n"), id="indented lists and no volumes"),
    pytest.param(pod("command: [kube-scheduler, --v=2]\n"), id="flow command in a block pod"),
    pytest.param(pod("command: [kube-scheduler]\nargs:\n- --v=2\n"), id="flags in args"),
    pytest.param(pod("command:\n- kube-scheduler\nargs: []\n"), id="empty args"),
    pytest.param(pod("name: kube-scheduler\nargs:\n- --v=2\n"), id="the image's entry point"),
    pytest.param(
        pod("command:\n- /go-runner\nargs:\n- --log-file=/x\n- /usr/local/bin/kube-scheduler\n- --v=2\n"),
        id="behind a runner",
    ),
    pytest.param(pod("command:\n- 'kube-scheduler'\n- \"--v=2\"\n"), id="quoted words"),
    pytest.param(
        pod("command:\n- kube-scheduler\nvolumeMounts: []\n", spec="  volumes: []\n"), id="empty lists"
    ),
    pytest.param(pod("command:\n- kube-scheduler\nvolumeMounts:\n", spec="  volumes: null\n"), id="nulls"),
    pytest.param(
        pod("command:\n- kube-scheduler\n", spec="  hostNetwork: true\n"), id="a key behind the list"
    ),
    pytest.param(
        pod("command:\n- kube-scheduler\n", spec="  - name: beside\n    command: [sleep]\n"), id="one beside"
    ),
    pytest.param(
        pod("name: beside\ncommand: [sleep]\n", spec="  - command: [kube-scheduler]\n"),
        id="the second container",
    ),
    pytest.param(pod("command:\n- kube-scheduler\n- --config=\n"), id="an empty --config"),
    pytest.param(pod("command:\n- kube-scheduler\n- --config=/x.yaml\n"), id="--config joined"),
    pytest.param(pod("command:\n- kube-scheduler\n- --config\n- /x.yaml\n"), id="--config as two words"),
    pytest.param(pod("command:\n- kube-scheduler\n- '--config=/x.yaml'\n"), id="--config in single quotes"),
    pytest.param(pod('command: [kube-scheduler, "--config", "/x.yaml"]\n'), id="--config in a flow list"),
    pytest.param(pod("command:\n- kube-scheduler\n- --config=/a\n- --config=/x.yaml\n"), id="--config twice"),
    pytest.param(pod("command:\n- kube-scheduler\nenv:\n- {name: A, value: on}\n"), id="an old boolean"),
]


@pytest.mark.parametrize("text", WRITTEN)
def test_removing_what_was_added_gives_the_same_bytes(text: str) -> None:
    back = removed(added(text))

    # Where a null was filled that is written out, an empty list stays.
    assert back == text.replace("null", "[]")


@pytest.mark.parametrize("text", WRITTEN)
def test_removing_what_was_added_with_keys_gives_the_same_bytes(text: str) -> None:
    edited = manifest_edit.add(
        manifest.parse(text.encode()), config=CONFIG, keys=f"{FOLDER}/scheduler"
    ).decode()

    back = removed(edited)

    assert (
        manifest.host_path(manifest.parse(edited.encode()), f"{FOLDER}/scheduler/x")
        == f"{FOLDER}/scheduler/x"
    )
    assert back == text.replace("null", "[]")


@pytest.mark.parametrize("text", WRITTEN)
def test_the_edited_scheduler_reads_our_mounted_file(text: str) -> None:
    scheduler = manifest.parse(added(text).encode())

    assert scheduler.config == CONFIG
    assert manifest.host_path(scheduler, CONFIG) == CONFIG
    assert manifest_edit.has_our_edit(scheduler, folder=FOLDER)


@pytest.mark.parametrize("text", WRITTEN)
def test_the_kubelets_own_reading_finds_only_our_additions(text: str) -> None:
    before, after = (next(yaml.safe_load_all(version.replace("\t", " "))) for version in (text, added(text)))
    for owner in (after["spec"], *after["spec"]["containers"]):
        for key in ("volumes", "volumeMounts"):
            owner[key] = [
                entry for entry in owner.get(key) or [] if entry["name"] != manifest_edit.VOLUME_NAME
            ]
    for spec in (before["spec"], after["spec"]):
        for container in spec["containers"]:
            words = container.get("command", []) + container.get("args", [])
            container["words"] = [word for word in words if "config" not in word and word != "/x.yaml"]
            container.pop("command", None)
            container.pop("args", None)

    assert _without_empty(after) == _without_empty(before)


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items() if item not in ([], None)}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def test_the_edit_of_a_kubeadm_manifest_is_eight_lines() -> None:
    old, new = KUBEADM.splitlines(), added(KUBEADM).splitlines()

    assert [line for line in new if line not in old] == [
        f"    - --config={CONFIG}",
        f"    - mountPath: {CONFIG}",
        f"      name: {manifest_edit.VOLUME_NAME}",
        f"      path: {CONFIG}",
        "      type: File",
        f"    name: {manifest_edit.VOLUME_NAME}",
    ]
    assert len(new) == len(old) + 8


def test_the_new_flag_stands_before_every_other() -> None:
    assert container_of(added(KUBEADM))["command"][:2] == ["kube-scheduler", f"--config={CONFIG}"]


@pytest.mark.parametrize(
    ("flags", "edited"),
    [
        pytest.param(["--config=/x.yaml"], ["--config=/x.yaml", f"--config={CONFIG}"], id="joined"),
        pytest.param(
            ["--config", "/x.yaml", "--v=2"],
            ["--config", "/x.yaml", f"--config={CONFIG}", "--v=2"],
            id="two words",
        ),
    ],
)
def test_their_configuration_stays_and_ours_counts(flags: list[str], edited: list[str]) -> None:
    text = added(pod(f"command: {json.dumps(['kube-scheduler', *flags])}\n"))

    assert container_of(text)["command"] == ["kube-scheduler", *edited]
    assert manifest.parse(text.encode()).config == CONFIG


def test_an_edit_by_others_in_between_is_kept() -> None:
    edited = added(KUBEADM).replace("v1.36.3", "v1.36.4").replace("cpu: 100m", "cpu: 200m # more")

    back = removed(edited)

    assert back == KUBEADM.replace("v1.36.3", "v1.36.4").replace("cpu: 100m", "cpu: 200m # more")


def test_our_part_is_found_after_a_rewrite_in_another_style() -> None:
    rewritten = json.dumps(yaml.safe_load(added(KUBEADM)), indent=1)

    assert json.loads(removed(rewritten)) == yaml.safe_load(KUBEADM)


def test_a_flag_that_others_changed_since_stays_theirs() -> None:
    edited = added(KUBEADM).replace(f"--config={CONFIG}", "--config=/theirs.yaml")

    assert "--config=/theirs.yaml" in container_of(removed(edited))["command"]


def test_two_words_of_ours_go_together() -> None:
    edited = added(KUBEADM).replace(f"- --config={CONFIG}", f"- --config\n    - {CONFIG}")

    assert removed(edited) == KUBEADM


def test_a_manifest_without_us_carries_nothing() -> None:
    assert not manifest_edit.has_our_edit(manifest.parse(KUBEADM.encode()), folder=FOLDER)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "not a Pod", id="empty"),
        pytest.param(b"kind: Deployment\nspec: {}\n", "not a Pod", id="not a pod"),
        pytest.param(b"kind: Pod\nspec: []\n", "not a Pod", id="a spec that is a list"),
        pytest.param(b"kind: Pod\nspec: {containers: 1}\n", "exactly one", id="containers that are none"),
        pytest.param(b"kind: Pod\nspec: {containers: [1]}\n", "exactly one", id="a container that is none"),
        pytest.param(pod("command: [etcd]").encode(), "exactly one", id="another program"),
        pytest.param(
            pod('command: [sh, -c, "exec kube-scheduler --v=2"]').encode(), "not by a shell", id="a shell"
        ),
        pytest.param(
            pod("command: [kube-scheduler]", spec="  - command: [kube-scheduler]\n").encode(),
            "exactly one",
            id="two schedulers",
        ),
        pytest.param(pod("command: [kube-scheduler, 5]").encode(), "not a string", id="a number as a word"),
        pytest.param(b"a: [", "not valid YAML", id="not YAML"),
        pytest.param(b"\xff\xfe\x00", "not UTF-8", id="not text"),
    ],
)
def test_what_is_no_scheduler_pod_needs_a_person(content: bytes, message: str) -> None:
    with pytest.raises(NeedsPersonError, match=message):
        manifest.parse(content)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            pod("command: &c\n- kube-scheduler\n", spec="  initContainers:\n  - args: *c\n"),
            id="an anchored command that another container shares",
        ),
        pytest.param(
            "x: &x\n- kube-scheduler\nkind: Pod\nspec:\n  containers:\n  - command: *x\n",
            id="a command that is an alias",
        ),
        pytest.param(pod("command:\n- kube-scheduler\n- --config\n"), id="a --config without a value"),
    ],
)
def test_what_cannot_be_edited_alone_needs_a_person(text: str) -> None:
    with pytest.raises(NeedsPersonError):
        added(text)


def test_an_edit_that_differs_from_what_was_meant_is_refused() -> None:
    scheduler = manifest.parse(KUBEADM.encode())

    with pytest.raises(NeedsPersonError, match="without changing something else"):
        manifest_edit.verify(scheduler, KUBEADM.replace("100m", "200m"), expected=scheduler.pod)


MOUNTS = """command: [kube-scheduler]
volumeMounts:
- {name: folder, mountPath: /config}
- {name: file, mountPath: /config/file.yaml}
- {name: part, mountPath: /part, subPath: sub}
- {name: expression, mountPath: /expression, subPathExpr: $(X)}
- {name: map, mountPath: /map}
- {name: nowhere, mountPath: /nowhere}
"""
VOLUMES = """  volumes:
  - {name: folder, hostPath: {path: /etc/kubernetes/folder}}
  - {name: file, hostPath: {path: /etc/kubernetes/other.yaml}}
  - {name: part, hostPath: {path: /etc/kubernetes/whole}}
  - {name: expression, hostPath: {path: /etc/kubernetes/whole}}
  - {name: map, configMap: {name: m}}
"""


@pytest.mark.parametrize(
    ("path", "host_path"),
    [
        pytest.param("/config/a/b.yaml", "/etc/kubernetes/folder/a/b.yaml", id="in a mounted folder"),
        pytest.param("/config/file.yaml", "/etc/kubernetes/other.yaml", id="a mounted file inside it"),
        pytest.param("/part/b.yaml", "/etc/kubernetes/whole/sub/b.yaml", id="below a sub path"),
    ],
)
def test_a_path_in_the_container_is_found_on_the_host(path: str, host_path: str) -> None:
    assert manifest.host_path(manifest.parse(pod(MOUNTS, spec=VOLUMES).encode()), path) == host_path


@pytest.mark.parametrize("path", ["/other/x.yaml", "/configuration", "/expression/x", "/map/x", "/nowhere/x"])
def test_a_path_that_is_not_on_the_host_needs_a_person(path: str) -> None:
    with pytest.raises(NeedsPersonError, match="mount it from the host"):
        manifest.host_path(manifest.parse(pod(MOUNTS, spec=VOLUMES).encode()), path)


FLAGS = st.lists(
    st.sampled_from(
        ["--v=2", "--leader-elect", "--kubeconfig=/k", "'--bind-address=::'", '"--x=a b"', "--y=#z", "--e="]
    ),
    max_size=4,
)


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """kube-scheduler pods in many hands: indentation, comments, order of keys, line ends."""
    offset = " " * draw(st.integers(0, 3))
    noise = st.sampled_from(["", "    # a comment\n", "\n", "    # - --config=/not/this\n\n"])
    config = draw(
        st.sampled_from([[], ["--config=/x.yaml"], ["--config", "/x.yaml"], ['"--config=/x.yaml"']])
    )
    words = ["kube-scheduler", *draw(FLAGS), *config, *draw(FLAGS)]
    command = "    command:\n" + "".join(draw(noise) + f"    {offset}- {word}\n" for word in words)
    keys = [command, "    image: i # v1\n", "    name: kube-scheduler\n"]
    if draw(st.booleans()):
        keys.append(f"    volumeMounts:\n    {offset}- mountPath: /k\n    {offset}  name: k\n")
    container = "".join(key + draw(noise) for key in draw(st.permutations(keys)))
    spec = [f"  containers:\n  -\n{container}", "  hostNetwork: true\n"]
    if draw(st.booleans()):
        spec.append(f"  volumes:\n  {offset}- name: k\n  {offset}  hostPath: {{path: /k}}\n")
    text = (
        "kind: Pod\nspec:\n"
        + "".join(draw(st.permutations(spec)))
        + draw(st.sampled_from(["", "status: {}\n"]))
    )
    text = draw(st.sampled_from([text, text.rstrip("\n")]))
    return draw(st.sampled_from([text, text.replace("\n", "\r\n")]))


@settings(deadline=None, max_examples=60)
@given(manifests())
def test_however_it_is_written_adding_and_removing_gives_the_same_bytes(text: str) -> None:
    edited = added(text)

    assert removed(edited) == text
    assert _is_subsequence(text, edited)


def _is_subsequence(part: str, whole: str) -> bool:
    """Returns whether nothing of ``part`` was lost or moved in ``whole``."""
    rest = iter(whole)
    return all(character in rest for character in part)


@given(st.text(max_size=60))
def test_no_text_makes_the_parser_fail_otherwise(text: str) -> None:
    content = text.encode("utf-8", "surrogatepass")
    with pytest.raises(NeedsPersonError):
        manifest.parse(content)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, len(KUBEADM)), st.sampled_from(["\n", "[", "{", "'", "&a ", "*a", "- ", ": ", "#", "\t"])
)
def test_a_damaged_manifest_is_edited_exactly_or_refused(place: int, damage: str) -> None:
    text = KUBEADM[:place] + damage + KUBEADM[place:]
    try:
        back = removed(added(text))
    except NeedsPersonError:
        return
    assert list(yaml.safe_load_all(back)) == list(yaml.safe_load_all(text))


def test_another_image_adds_seven_lines_more_and_says_what_was_there() -> None:
    plain, new = added(KUBEADM).splitlines(), swapped(KUBEADM).splitlines()

    assert [line for line in plain if line not in new] == [
        "    image: registry.k8s.io/kube-scheduler:v1.36.3"
    ]
    assert [line for line in new if line not in plain] == [
        f"    image: {IMAGE}",
        "    securityContext:",
        "      runAsUser: 0",
        "    env:",
        "    - name: GPUSHARE_IMAGE",
        f"      value: {IMAGE}",
        "    - name: GPUSHARE_IMAGE_BEFORE",
        "      value: registry.k8s.io/kube-scheduler:v1.36.3",
        "    - name: GPUSHARE_RUNS_AS_ROOT",
        "      value: 'true'",
    ]


RUNNING = """\
command: [/usr/local/bin/kube-scheduler]
image: here/kube-scheduler:v1.36.3 # ours
"""


@pytest.mark.parametrize(
    ("container", "user"),
    [
        pytest.param(RUNNING, 0, id="no user"),
        pytest.param(RUNNING + "securityContext: {readOnlyRootFilesystem: true}", 0, id="no user, but more"),
        pytest.param(RUNNING + "securityContext: {runAsUser: 1000}", 1000, id="a user"),
        pytest.param(RUNNING + "securityContext:\n  runAsUser: 0", 0, id="root"),
        pytest.param(
            RUNNING + "securityContext: {runAsNonRoot: true}", None, id="the image's user, not root"
        ),
        pytest.param(RUNNING + "env:\n- {name: NO_PROXY, value: .svc}", 0, id="variables"),
        pytest.param(RUNNING.replace("here/kube-scheduler:v1.36.3", "'a@sha256:0'"), 0, id="a quoted digest"),
    ],
)
def test_kube_scheduler_keeps_its_user_and_gets_its_image_back(container: str, user: int | None) -> None:
    text = pod(container)
    edited = swapped(text)

    assert container_of(edited)["image"] == IMAGE
    assert container_of(edited).get("securityContext", {}).get("runAsUser") == user
    assert removed(edited) == text


def test_the_user_of_the_whole_pod_is_kept() -> None:
    text = pod(RUNNING, spec="  securityContext: {runAsUser: 65531}\n")

    assert "securityContext" not in container_of(swapped(text))
    assert removed(swapped(text)) == text


def test_an_image_that_others_have_written_since_stays() -> None:
    edited = swapped(KUBEADM).replace(f"image: {IMAGE}", "image: registry.k8s.io/kube-scheduler:v1.36.4")

    assert removed(edited) == KUBEADM.replace("v1.36.3", "v1.36.4")


@pytest.mark.parametrize(
    "left",
    [
        pytest.param("GPUSHARE_IMAGE", id="the variables"),
        pytest.param("GPUSHARE_RUNS_AS_ROOT", id="one of them"),
    ],
)
def test_what_is_left_of_an_image_swap_is_seen(left: str) -> None:
    text = pod(RUNNING + f"env: [{{name: {left}, value: x}}]")

    assert manifest_edit.mentions_us(text.encode(), folder=FOLDER)
    assert manifest_edit.has_our_edit(manifest.parse(text.encode()), folder=FOLDER)
    assert removed(text) == pod(RUNNING)


@pytest.mark.parametrize(
    ("container", "message"),
    [
        pytest.param("command: [kube-scheduler]", "no image", id="no image"),
        pytest.param(RUNNING + "imagePullPolicy: Always", "IfNotPresent", id="pulled at each start"),
        pytest.param(RUNNING.replace("[/usr", "[/go-runner, /usr"), "'/go-runner'", id="a wrapper"),
        pytest.param(RUNNING.replace("/usr/local", "/opt"), "'/opt/bin/kube-scheduler'", id="another path"),
        pytest.param(
            RUNNING.replace("command", "name: kube-scheduler\nargs").replace("/usr/local/bin/kube-", "--"),
            "with None",
            id="the image's own command",
        ),
    ],
)
def test_our_image_is_refused_where_kube_scheduler_would_not_start_with_it(
    container: str, message: str
) -> None:
    assert added(pod(container))
    with pytest.raises(NeedsPersonError, match=message):
        swapped(pod(container))
