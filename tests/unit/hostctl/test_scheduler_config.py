"""The KubeSchedulerConfiguration with the extender in it."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml
from tests.samples.hostctl import CONFIG_HEAD, EXTENDER, PLUGIN

from gpushare_core.api.names import EDIT_REVISION
from gpushare_core.text.json_object import Json
from gpushare_hostctl.decide.run.record import checksum
from gpushare_hostctl.decide.scheduler.extender_entry import ClientTls, ExtenderEntry
from gpushare_hostctl.decide.scheduler.plugin_entry import PluginEntry
from gpushare_hostctl.decide.scheduler.scheduler_config import delays_cache_until_active, from_flags, merge
from gpushare_hostctl.decide.scheduler.scheduler_flags import SchedulerFlags
from gpushare_hostctl.errors import NeedsPersonError

OURS = replace(EXTENDER, managed_resources=("gpushare.io/memory", "gpushare.io/card"))


def built(*flags: str, extender: ExtenderEntry = OURS) -> Json:
    document: Json = yaml.safe_load(from_flags(SchedulerFlags(flags), extender))
    return document


def merged(text: str) -> str:
    return merge(text.encode(), OURS).decode()


def test_the_entry_is_what_kube_scheduler_reads() -> None:
    assert OURS.to_mapping() == {
        "urlPrefix": "http://127.0.0.1:32766",
        "filterVerb": "filter",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "nodeCacheCapable": True,
        "ignorable": False,
        "httpTimeout": "5s",
        "managedResources": [
            {"name": "gpushare.io/memory", "ignoredByScheduler": False},
            {"name": "gpushare.io/card", "ignoredByScheduler": False},
        ],
    }


WRITTEN = {3: ("152af64d4f96a9c1", "a834fe23a69f4041")}
"""Revision -> checksums of what it writes: with the extender, with the plugin."""


def test_what_is_written_for_the_same_arguments_changes_with_its_revision_only() -> None:
    """Where this fails: count up ``EDIT_REVISION``, or hosts keep what the version before wrote there."""
    entry = replace(
        OURS,
        url="https://127.0.0.1:22766/gpushare",
        prioritize_verb="prioritize",
        tls=ClientTls(client="/client.pem", trusted="/authorities.pem"),
        ignored_resources=("tuya.com/vcuda-core",),
    )
    flags = SchedulerFlags(("--kubeconfig=/etc/kubernetes/scheduler.conf", "--kube-api-qps=7"))
    written = [from_flags(flags, engine) + merge(CONFIG_HEAD.encode(), engine) for engine in (entry, PLUGIN)]
    assert {EDIT_REVISION: tuple(checksum(each)[:16] for each in written)} == WRITTEN


def test_what_no_node_offers_is_left_to_the_extender() -> None:
    entry = replace(OURS, ignored_resources=("tuya.com/vcuda-core",)).to_mapping()
    assert entry["managedResources"][-1] == {"name": "tuya.com/vcuda-core", "ignoredByScheduler": True}


def test_a_verb_for_scores_comes_with_the_weight_it_needs() -> None:
    entry = ExtenderEntry(
        url="http://x", managed_resources=(), prioritize_verb="score", weight=3
    ).to_mapping()

    assert (entry["prioritizeVerb"], entry["weight"]) == ("score", 3)


def test_without_flags_there_is_only_the_extender() -> None:
    assert built() == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [OURS.to_mapping()],
    }


@pytest.mark.parametrize(
    ("flag", "section", "value"),
    [
        pytest.param("--kubeconfig=/etc/k", ("clientConnection", "kubeconfig"), "/etc/k", id="kubeconfig"),
        pytest.param("--kube-api-qps=12.5", ("clientConnection", "qps"), 12.5, id="qps"),
        pytest.param("--kube-api-qps=0", ("clientConnection", "qps"), 5.0, id="qps 0 meant client-go's 5"),
        pytest.param("--kube-api-burst=7", ("clientConnection", "burst"), 7, id="burst"),
        pytest.param(
            "--kube-api-burst=0", ("clientConnection", "burst"), 10, id="burst 0 meant client-go's 10"
        ),
        pytest.param(
            "--kube-api-content-type=application/json",
            ("clientConnection", "contentType"),
            "application/json",
            id="content type",
        ),
        pytest.param(
            "--kube-api-content-type=",
            ("clientConnection", "contentType"),
            "application/json",
            id="no content type meant JSON",
        ),
        pytest.param("--profiling=false", ("enableProfiling",), False, id="profiling"),
        pytest.param(
            "--contention-profiling", ("enableContentionProfiling",), True, id="contention profiling"
        ),
    ],
)
def test_a_flag_that_config_switches_off_is_carried_over(
    flag: str, section: tuple[str, ...], value: object
) -> None:
    carried: Any = built(flag)
    for key in section:
        carried = carried[key]

    assert carried == value


@pytest.mark.parametrize(
    "flag",
    [
        "--leader-elect=false",
        "--leader-elect-resource-name=other",
        "--pod-max-in-unschedulable-pods-duration=1m",
        "--authentication-kubeconfig=/etc/k",
        "--master=https://m",
        "--v=4",
    ],
)
def test_a_flag_that_still_counts_beside_config_is_left_alone(flag: str) -> None:
    assert built(flag) == built()


@pytest.mark.parametrize("flag", ["--kube-api-qps=fast", "--kube-api-burst=1.5", "--kubeconfig=$(K)"])
def test_a_flag_that_cannot_be_carried_over_needs_a_person(flag: str) -> None:
    with pytest.raises(NeedsPersonError):
        built(flag)


THEIRS = f"""# ours since 2023
{CONFIG_HEAD}profiles:
  - schedulerName: default-scheduler   # the only one
    plugins: {{score: {{disabled: [{{name: NodeResourcesFit}}]}}}}
extenders:
  - urlPrefix: "http://other"
    filterVerb: filter
    httpTimeout: 10s
parallelism: 8
"""


def test_their_configuration_stays_to_the_byte_and_ours_comes_last() -> None:
    text = merged(THEIRS)

    assert [line for line in THEIRS.splitlines() if line not in text.splitlines()] == []
    assert yaml.safe_load(text)["extenders"] == [*yaml.safe_load(THEIRS)["extenders"], OURS.to_mapping()]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CONFIG_HEAD, id="no extenders"),
        pytest.param(CONFIG_HEAD + "extenders: []\n", id="an empty list"),
        pytest.param(CONFIG_HEAD + "extenders:\n", id="a null"),
        pytest.param(CONFIG_HEAD.rstrip("\n"), id="no line end at the end"),
        pytest.param(json.dumps(yaml.safe_load(CONFIG_HEAD)), id="JSON"),
        pytest.param(json.dumps(yaml.safe_load(THEIRS), indent="\t"), id="JSON with tabs"),
        pytest.param(CONFIG_HEAD.replace("\n", "\r\n"), id="carriage returns"),
        pytest.param(CONFIG_HEAD.replace("v1\n", "v1beta3\n"), id="an older version"),
    ],
)
def test_the_extender_is_added_however_theirs_is_written(text: str) -> None:
    before = yaml.safe_load(text.replace("\t", " "))

    after = yaml.safe_load(merged(text).replace("\t", " "))

    assert after == {**before, "extenders": [*(before.get("extenders") or []), OURS.to_mapping()]}


def test_an_entry_with_our_url_is_replaced_and_not_doubled() -> None:
    text = THEIRS.replace("http://other", "http://127.0.0.1:32766/")

    assert yaml.safe_load(merged(text))["extenders"] == [OURS.to_mapping()]


def test_merging_twice_changes_nothing_more() -> None:
    once = merged(THEIRS)

    assert yaml.safe_load(merged(once)) == yaml.safe_load(once)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "not a KubeSchedulerConfiguration", id="empty"),
        pytest.param("- a\n", "not a KubeSchedulerConfiguration", id="a list"),
        pytest.param(
            CONFIG_HEAD.replace("kubescheduler", "kubelet"),
            "not a KubeSchedulerConfiguration",
            id="other group",
        ),
        pytest.param("a: [", "not valid YAML", id="not YAML"),
        pytest.param(CONFIG_HEAD + "extenders: 1\n", "not a list", id="extenders that are none"),
        pytest.param(CONFIG_HEAD + "extenders: [1]\n", "not a list", id="an extender that is none"),
        pytest.param(
            CONFIG_HEAD + "extenders: [{urlPrefix: http://b, bindVerb: bind}]\n",
            "only one may bind",
            id="another binder",
        ),
        pytest.param(
            CONFIG_HEAD
            + "extenders: [{urlPrefix: http://b, managedResources: [{name: gpushare.io/card}]}]\n",
            "gpushare.io/card",
            id="a resource that another manages",
        ),
        pytest.param(
            CONFIG_HEAD + "a: &a\n- b: 1\nextenders: *a\n", "aliases", id="extenders that are an alias"
        ),
    ],
)
def test_what_kube_scheduler_would_refuse_needs_a_person(text: str, message: str) -> None:
    with pytest.raises(NeedsPersonError, match=message):
        merged(text)


def test_bytes_that_are_no_text_need_a_person() -> None:
    with pytest.raises(NeedsPersonError, match="not UTF-8"):
        merge(b"\xff", OURS)


@pytest.mark.parametrize(
    ("text", "idle"),
    [
        pytest.param(CONFIG_HEAD, False, id="by default it is ready at once"),
        pytest.param(CONFIG_HEAD + "delayCacheUntilActive: true\n", True, id="with a late cache it is not"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_a_late_cache_is_noticed(text: str, idle: bool) -> None:  # noqa: FBT001
    assert delays_cache_until_active(text.encode()) is idle


def profiles(text: str, engine: PluginEntry = PLUGIN) -> list[Json]:
    merged: list[Json] = yaml.safe_load(merge(text.encode(), engine))["profiles"]
    return merged


def test_without_profiles_the_plugin_is_in_the_one_of_all_ordinary_pods() -> None:
    (profile,) = yaml.safe_load(from_flags(SchedulerFlags(()), PLUGIN))["profiles"]

    assert profile == {"schedulerName": "default-scheduler", **PLUGIN.profile()}
    assert profiles(CONFIG_HEAD) == profiles(CONFIG_HEAD + "profiles: []\n") == [profile]


def test_every_profile_has_the_plugin_and_keeps_what_it_had() -> None:
    text = (
        CONFIG_HEAD + "profiles:\n- schedulerName: default-scheduler # all\n- schedulerName: batch # night\n"
        "  percentageOfNodesToScore: 10\n"
    )
    merged = merge(text.encode(), PLUGIN).decode()

    assert [line for line in text.splitlines() if line not in merged.splitlines()] == []
    assert yaml.safe_load(merged)["profiles"] == [
        {"schedulerName": "default-scheduler", **PLUGIN.profile()},
        {"schedulerName": "batch", "percentageOfNodesToScore": 10, **PLUGIN.profile()},
    ]


def test_an_extender_of_theirs_stays_and_ours_is_not_added() -> None:
    assert yaml.safe_load(merge(THEIRS.encode(), PLUGIN))["extenders"] == yaml.safe_load(THEIRS)["extenders"]


PARTICULAR = """\
profiles:
- schedulerName: default-scheduler
  plugins:
    filter: {enabled: [{name: Theirs}]}
    multiPoint: {enabled: [{name: Theirs, weight: 2}], disabled: [{name: ImageLocality}]}
    score: {disabled: [{name: '*'}]}
    reserve: {disabled: [{name: VolumeBinding}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {ignoredResources: [example.com/x, gpushare.io/memory], scoringStrategy: {type: MostAllocated}}
"""


def test_the_plugin_comes_first_and_wherever_a_profile_switches_all_others_off() -> None:
    engine = replace(PLUGIN, resources=("gpushare.io/memory", "gpushare.io/card", "nvidia.com/gpu"))
    (profile,) = profiles(CONFIG_HEAD + PARTICULAR, engine)
    own = [{"name": "GPUShare"}]

    assert profile["plugins"] == {
        "filter": {"enabled": [*own, {"name": "Theirs"}]},
        "multiPoint": {
            "enabled": [{"name": "Theirs", "weight": 2}, {"name": "GPUShare", "weight": 5}],
            "disabled": [{"name": "ImageLocality"}],
        },
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "GPUShare", "weight": 5}]},
        "reserve": {"disabled": [{"name": "VolumeBinding"}]},
        "preEnqueue": {"enabled": [{"name": "GPUShareGate"}]},
        **{point: {"enabled": own} for point in ("preFilter", "postFilter", "bind")},
    }
    fit, ours = profile["pluginConfig"]
    assert ours == {"name": "GPUShare", "args": {"extenderLeaseNamespace": "gpushare-system"}}
    assert fit["args"] == {
        "ignoredResources": ["example.com/x", "gpushare.io/memory", "gpushare.io/card"],
        "scoringStrategy": {"type": "MostAllocated"},
    }


@pytest.mark.parametrize(
    ("part", "message"),
    [
        pytest.param("profiles: 5\n", "profiles in .* is not a list", id="no profiles"),
        pytest.param("profiles: [a]\n", "not a list of mappings", id="a profile that is none"),
        pytest.param("profiles: [{plugins: 5}]\n", "profiles.0.plugins in .* not a mapping", id="no plugins"),
        pytest.param("profiles: [{plugins: {bind: 5}}]\n", "profiles.0.plugins.bind", id="no plugin set"),
        pytest.param("profiles: [{pluginConfig: 5}]\n", "pluginConfig in .* not a list", id="no arguments"),
        pytest.param(
            "profiles: [{pluginConfig: [{name: GPUShare}]}]\n", "arguments of the plugin GPUShare", id="ours"
        ),
        pytest.param(
            "profiles: [{plugins: {bind: {enabled: [{name: GPUShare}]}}}]\n", "has the plugin", id="it"
        ),
        pytest.param(
            "profiles:\n- plugins: &a {bind: {}}\n- plugins: *a\n", "plainly", id="what two profiles share"
        ),
        pytest.param(
            "extenders: [{urlPrefix: http://b, bindVerb: bind}]\n", "only one may bind", id="another binder"
        ),
        pytest.param(
            "extenders: [{urlPrefix: http://b, managedResources: [{name: gpushare.io/memory}]}]\n",
            "manages gpushare.io/memory already",
            id="another that decides of our resources",
        ),
    ],
)
def test_where_the_plugin_would_not_decide_a_person_is_needed(part: str, message: str) -> None:
    with pytest.raises(NeedsPersonError, match=message):
        profiles(CONFIG_HEAD + part)


def test_an_extender_that_binds_other_pods_is_none_of_our_business() -> None:
    theirs = "extenders: [{urlPrefix: http://b, bindVerb: bind, managedResources: [{name: example.com/x}]}]\n"

    assert profiles(CONFIG_HEAD + theirs)
