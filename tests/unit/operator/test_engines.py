"""Which engine places pods: what is chosen, what is run for it, and what policies say."""

from dataclasses import replace

import pytest
from msgspec import structs
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    cluster_actions,
    control_plane,
    dedicated,
    dedicated_policy,
    external_policy,
    installed,
    policy,
    scheduler_pods,
    server,
    serving,
    sharing,
    snapshot,
    volcano_policy,
)

from gpushare_core.api.enums import Engine
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.kubernetes_minors import KubernetesMinor
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import ApplyDeployment
from gpushare_operator.backends.dedicated.deployment import scheduler_deployment
from gpushare_operator.backends.engine_image import WITHOUT_OUR_IMAGE
from gpushare_operator.cluster.server import VERSION_SETTLES, ServerVersions, version_in_force
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import asked_connection
from gpushare_operator.main import parser
from gpushare_operator.policies.engine_choice import choose_engine
from gpushare_operator.policies.scheduler_settings import SchedulerSettings
from gpushare_operator.status.policy import can_wait, policy_status

PLUGIN, EXTENDER = Engine.PLUGIN, Engine.EXTENDER
BUILT = "this gpushare has its own kube-scheduler for Kubernetes 1.35 to 1.37, and none for API servers of"


def status_of(seen: ClusterSnapshot, name: str = "default") -> PolicyStatus:
    return policy_status(seen, seen.policies[name], INSTALLATION, now=NOW)


def connection(seen: ClusterSnapshot) -> str:
    (found,) = [each for each in status_of(seen).conditions if each.type == "SchedulerConfigured"]
    return f"{found.status} {found.reason}: {found.message}"


def pod_of(engine: Engine, version: str = "v1.36.3") -> Json:
    body = scheduler_deployment(INSTALLATION, SchedulerSettings(engine=engine), version)
    spec: Json = body["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(
    ("desired", "version", "minor", "why"),
    [
        pytest.param(PLUGIN, "v1.36.3", "1.36", "", id="the server's minor"),
        pytest.param(PLUGIN, "v1.38.0", "1.37", "", id="the minor before the server's"),
        pytest.param(PLUGIN, "v1.34.9", "None", f"{BUILT} 1.34", id="too old"),
        pytest.param(PLUGIN, "v1.39.1", "None", f"{BUILT} 1.39; a newer gpushare may have one", id="too new"),
        pytest.param(PLUGIN, "", "None", "", id="not known"),
        pytest.param(EXTENDER, "v1.36.3", "None", "", id="not asked for"),
        pytest.param(EXTENDER, "v1.39.1", "None", "", id="not asked for, too new"),
    ],
)
def test_the_engine_asked_for_serves_where_there_is_one_for_the_server(
    desired: Engine, version: str, minor: str, why: str
) -> None:
    choice = choose_engine(desired, version)
    assert (str(choice.minor), choice.fallback) == (minor, why)
    assert choice.engine is (EXTENDER if minor == "None" else PLUGIN)


@pytest.mark.parametrize(
    ("image", "chosen", "expected"),
    [
        ("gpushare:0.1.0", "", "gpushare-scheduler"),
        ("gpushare", "", "gpushare-scheduler"),
        ("localhost:5000/gpushare", "", "localhost:5000/gpushare-scheduler"),
        ("registry.example:5000/a/gpushare:dev", "", "registry.example:5000/a/gpushare-scheduler"),
        ("example.com/gpushare@sha256:00", "", "example.com/gpushare-scheduler"),
        ("example.com/gpushare:0.1.0@sha256:00", "", "example.com/gpushare-scheduler"),
        ("example.com/gpushare@sha256:00", "mirror.example:5000/ours", "mirror.example:5000/ours"),
    ],
)
def test_its_image_is_beside_the_operators_or_where_an_administrator_says(
    image: str, chosen: str, expected: str
) -> None:
    installation = replace(INSTALLATION, image=image, engine_image=chosen)
    assert installation.engine_image_for(KubernetesMinor(1, 37)) == f"{expected}:{VERSION}-1.37"


@pytest.mark.parametrize("image", ["ours:0.1.0", "a:5000/ours:1", "ours@sha256:00"])
def test_a_tag_is_refused_for_each_minor_has_another_one(
    image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args([f"--engine-image={image}"])
    assert f"the operator adds one such as {VERSION}-" in capsys.readouterr().err


def test_a_repository_is_taken_as_it_is() -> None:
    assert parser().parse_args(["--engine-image=a:5000/ours"]).engine_image == "a:5000/ours"
    assert parser().parse_args([]).engine_image == ""


def test_with_the_plugin_one_container_runs_and_hostctl_writes_no_keys() -> None:
    pod = pod_of(PLUGIN)
    (container,), (preparation,) = pod["containers"], pod["initContainers"]
    assert (container["name"], container["command"]) == ("kube-scheduler", ["kube-scheduler"])
    assert container["image"] == f"gpushare-scheduler:{VERSION}-1.36"
    assert container["args"] == ["--config=/run/gpushare/kube-scheduler.yaml", "--secure-port=10259"]
    assert preparation["args"] == [
        *("dedicated", "--folder", "/run/gpushare", "--scheduler-name", "gpushare-scheduler"),
        *("--lease-namespace", "gpushare-system", "--engine", "Plugin"),
        *("--managed-resource", "gpushare.io/memory", "--managed-resource", "gpushare.io/slice"),
        *("--managed-resource", "gpushare.io/card", "--weight", "5"),
    ]


def test_each_engine_has_an_account_of_its_own_and_all_else_of_the_pod_is_the_same() -> None:
    plugin, extender = pod_of(PLUGIN), pod_of(EXTENDER)
    assert plugin.keys() == extender.keys()
    different = {"containers", "initContainers", "serviceAccountName", "terminationGracePeriodSeconds"}
    assert {key for key in plugin if plugin[key] != extender[key]} == different
    assert plugin["serviceAccountName"] == "gpushare-scheduler"
    assert extender["serviceAccountName"] == "gpushare-scheduler-extender"
    ours, theirs = plugin["containers"][0], extender["containers"][0]
    assert {key for key in ours if ours[key] != theirs[key]} == {"image"}


def test_the_image_of_the_plugin_is_pulled_as_the_operators_is() -> None:
    installation = replace(INSTALLATION, pull_policy="Always")
    for engine, pulled in ((PLUGIN, "Always"), (EXTENDER, None)):
        body = scheduler_deployment(installation, SchedulerSettings(engine=engine), "v1.36.3")
        container = body["spec"]["template"]["spec"]["containers"][0]
        assert container.get("imagePullPolicy") == pulled


def deployed(seen: ClusterSnapshot) -> list[str]:
    actions = [action for action in cluster_actions(seen) if isinstance(action, ApplyDeployment)]
    pods = [action.body["spec"]["template"]["spec"] for action in actions]
    return [f"{pod['containers'][0]['image']} of {len(pod['containers'])}" for pod in pods]


OURS, THEIRS = f"gpushare-scheduler:{VERSION}-1.36 of 1", "registry.k8s.io/kube-scheduler:v1.36.3 of 2"


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(sharing(dedicated_policy(), server()), [OURS], id="nothing said"),
        pytest.param(sharing(dedicated_policy(engine=PLUGIN), server()), [OURS], id="Plugin"),
        pytest.param(sharing(dedicated_policy(engine=EXTENDER), server()), [THEIRS], id="Extender"),
        pytest.param(
            sharing(dedicated_policy(engine=EXTENDER), server(), dedicated()), [THEIRS], id="Plugin goes"
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated(engine=EXTENDER)), [OURS], id="Plugin comes"
        ),
        pytest.param(
            sharing(dedicated_policy(engine=EXTENDER), server(), dedicated(engine=EXTENDER)),
            [],
            id="Extender is there",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated("v1.38.0"), kubernetes="v1.38.4"),
            [],
            id="another patch of a server that is one minor newer",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated("v1.37.0"), kubernetes="v1.39.0"),
            ["registry.k8s.io/kube-scheduler:v1.39.0 of 2"],
            id="the server was upgraded beyond what there is",
        ),
    ],
)
def test_a_change_of_engine_is_a_change_of_the_one_deployment(
    seen: ClusterSnapshot, expected: list[str]
) -> None:
    assert deployed(seen) == expected


UNREADABLE = dedicated_policy(spec=None, error="unreadable")


@pytest.mark.parametrize("engine", [PLUGIN, EXTENDER])
def test_while_the_policy_cannot_be_read_the_engine_stays(engine: Engine) -> None:
    owner = dedicated_policy()
    seen = snapshot(serving(owner, "gpu-1"), server(), dedicated(engine=engine), UNREADABLE)
    assert deployed(replace(seen, policies={"default": UNREADABLE})) == []


def test_another_engine_is_another_connection() -> None:
    plugin, extender = (sharing(dedicated_policy(engine=engine), server()) for engine in (PLUGIN, EXTENDER))
    assert asked_connection(plugin) == asked_connection(sharing(dedicated_policy(), server()))
    assert asked_connection(plugin) != asked_connection(extender)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        pytest.param(
            sharing(dedicated_policy(engine=EXTENDER), server(), dedicated(engine=EXTENDER)),
            "True Configured: gpushare-scheduler (registry.k8s.io/kube-scheduler:v1.36.3, engine Extender)"
            " places pods; pods that ask for cards get its schedulerName when they are created",
            id="Extender",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated("v1.34.1", EXTENDER), kubernetes="v1.34.1"),
            "True Configured: gpushare-scheduler (registry.k8s.io/kube-scheduler:v1.34.1, engine Extender)"
            " places pods; pods that ask for cards get its schedulerName when they are created; engine"
            " Extender"
            f" is used in place of Plugin: {BUILT} 1.34",
            id="a server for which there is no plugin",
        ),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated(engine=EXTENDER), scheduler_pods(ready=False)),
            "False SchedulerNotReady: scheduler-a: it is not ready yet",
            id="a rollout",
        ),
        pytest.param(
            sharing(
                dedicated_policy(),
                server(),
                dedicated(is_rolled_out=False),
                scheduler_pods(ready=False, waiting="ImagePullBackOff: no such image"),
            ),
            "False SchedulerNotReady: scheduler-a: ImagePullBackOff: no such image; put an image for the"
            " node's architecture there, name another repository with the operator's option --engine-image,"
            " or"
            " set scheduler.engine to Extender, which does not need this image",
            id="no image of ours",
        ),
        pytest.param(
            sharing(
                dedicated_policy(),
                server(),
                dedicated(is_rolled_out=False),
                scheduler_pods(
                    ready=False, last_words="exec /usr/local/bin/kube-scheduler: exec format error"
                ),
            ),
            "False SchedulerNotReady: scheduler-a: exec /usr/local/bin/kube-scheduler: exec format error; "
            + WITHOUT_OUR_IMAGE,
            id="an image for another architecture",
        ),
        pytest.param(
            sharing(
                dedicated_policy(engine=EXTENDER),
                server(),
                dedicated(engine=EXTENDER, is_rolled_out=False),
                scheduler_pods(ready=False, waiting="ImagePullBackOff: no such image"),
            ),
            "False SchedulerNotReady: scheduler-a: ImagePullBackOff: no such image",
            id="no image of Kubernetes",
        ),
    ],
)
def test_the_condition_says_which_engine_serves_and_why(seen: ClusterSnapshot, said: str) -> None:
    assert connection(seen) == said


@pytest.mark.parametrize(
    ("seen", "engine"),
    [
        pytest.param(sharing(dedicated_policy(), server(), dedicated()), "Plugin", id="Plugin"),
        pytest.param(
            sharing(dedicated_policy(), server(), dedicated("v1.34.1", EXTENDER), kubernetes="v1.34.1"),
            "Extender",
            id="a fallback",
        ),
        pytest.param(snapshot(serving(policy(), "gpu-1")), "Extender", id="KubeScheduler"),
        pytest.param(sharing(external_policy()), "", id="External, not called yet"),
        pytest.param(sharing(volcano_policy()), "", id="Volcano"),
        pytest.param(sharing(dedicated_policy(), server()), "", id="not there yet"),
        pytest.param(snapshot(policy()), "", id="no node shares"),
        pytest.param(
            sharing(
                dedicated_policy(status=PolicyStatus(backend="Dedicated", engine="Extender")),
                server(),
                dedicated(is_rolled_out=False),
            ),
            "Extender",
            id="during a rollout the former one",
        ),
        pytest.param(
            sharing(
                dedicated_policy(status=PolicyStatus(backend="KubeScheduler", engine="Extender")),
                server(),
                dedicated(),
                control_plane(),
                installed(),
            ),
            "",
            id="during a change of backend none",
        ),
    ],
)
def test_the_status_says_which_engine_places_pods(seen: ClusterSnapshot, engine: str) -> None:
    assert status_of(seen).engine == engine


OF_OURS = "registry.example:5000/gpushare-scheduler:0.1.0-1."
OF_KUBERNETES = "registry.k8s.io/kube-scheduler:v1.36.3"


@pytest.mark.parametrize(
    ("own", "of_hosts", "version"),
    [
        pytest.param([f"{OF_OURS}36"], [OF_KUBERNETES], "v1.36.0", id="Dedicated, Plugin"),
        pytest.param([OF_KUBERNETES, "gpushare:0.1.0"], [], "v1.36.3", id="Dedicated, Extender"),
        pytest.param([], [f"{OF_OURS}36"], "v1.36.0", id="KubeScheduler, Plugin"),
        pytest.param(
            [],
            [f"{OF_OURS}37", f"{OF_OURS}36"],
            "v1.37.0",
            id="one host after the other: none is taken back",
        ),
        pytest.param([], [f"{OF_OURS}36@sha256:{'0' * 64}"], "v1.36.0", id="a digest behind the tag"),
        pytest.param([], [OF_KUBERNETES], "", id="a kube-scheduler that does not follow us"),
        pytest.param([], [], "", id="none"),
    ],
)
def test_the_version_that_our_kube_schedulers_follow_is_seen_in_their_images(
    own: list[str], of_hosts: list[str], version: str
) -> None:
    assert version_in_force(own, of_hosts) == version


@pytest.mark.parametrize(
    ("in_force", "reported", "lowest"),
    [
        pytest.param("v1.36.0", "v1.37.1", "v1.36.0", id="the minor before"),
        pytest.param("v1.37.0", "v1.37.1", "v1.37.0", id="the same minor"),
        pytest.param("v1.35.0", "v1.37.1", "v1.37.1", id="too old to be that of a replica"),
        pytest.param("v1.38.0", "v1.37.1", "v1.37.1", id="a newer one counts for nothing"),
        pytest.param("", "v1.37.1", "v1.37.1", id="none"),
        pytest.param("v1.36.0", "", "", id="a server that does not say it"),
    ],
)
def test_an_operator_that_begins_takes_the_version_in_force_for_one_that_a_replica_may_have(
    in_force: str, reported: str, lowest: str
) -> None:
    versions = ServerVersions()
    assert versions.lowest(reported, NOW, in_force=in_force) == lowest
    later = NOW + VERSION_SETTLES
    assert versions.lowest("v1.37.1", later, in_force="v1.36.0") == ("v1.37.1" if reported else "v1.36.0")


def test_another_engine_is_reported_at_once() -> None:
    before = status_of(sharing(dedicated_policy(), server(), dedicated()))
    assert not can_wait(before, structs.replace(before, engine="Extender"))


def test_a_younger_policy_with_another_engine_is_overruled() -> None:
    older = dedicated_policy("older", engine=EXTENDER)
    seen = sharing(older, dedicated_policy(created=1), server(), dedicated(engine=EXTENDER))
    (found,) = [each for each in status_of(seen).conditions if each.type == "Conflicted"]
    assert "the older policy older decides about the scheduler: engine Extender" in found.message
