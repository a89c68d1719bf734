"""The edit of kube-scheduler's manifest and its way back, for manifests of every hand and edits of others.

What must hold: what is put back is what was there, byte for byte, with what others did to it meanwhile. Where
that is impossible the edit is refused with a reason before anything is written.
"""

import dataclasses

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.manifests import FOREIGN_EDITS, configurations, manifests
from tests.fuzz.strategies.yaml_text import damaged_yaml
from tests.samples.hostctl import EXTENDER, PATHS, PLUGIN, WITH_CONFIG, file, performed

from gpushare_core.text.json_object import Json
from gpushare_hostctl.decide.run import plan
from gpushare_hostctl.decide.run.snapshot import HostSnapshot
from gpushare_hostctl.decide.scheduler import health_endpoint, manifest, manifest_edit, scheduler_config
from gpushare_hostctl.decide.scheduler.scheduler_config import EngineEntry
from gpushare_hostctl.errors import NeedsPersonError

NEXT = dataclasses.replace(EXTENDER, url="http://127.0.0.1:40000")
NEXT_IMAGE = dataclasses.replace(PLUGIN, image="registry.example:5000/gpushare-scheduler@sha256:" + 64 * "a")
"""What a later version of the operator asks for."""
engines = st.sampled_from([EXTENDER, PLUGIN])
later = st.sampled_from([NEXT, PLUGIN, NEXT_IMAGE])


def snapshot_of(text: str) -> HostSnapshot:
    return HostSnapshot(paths=PATHS, manifest=file(text.encode("utf-8", "surrogatepass")), files={})


def installed(snapshot: HostSnapshot, engine: EngineEntry = EXTENDER) -> HostSnapshot:
    """The host after an installation. Raises NeedsPersonError where none is possible."""
    base = manifest.parse(plan.base_manifest(snapshot).content)
    source = file(CONFIG) if plan.config_source(base) else None
    made = performed(plan.install(snapshot, source=source, engine=engine))
    return dataclasses.replace(made, files={**snapshot.files, **made.files})


PLUGIN_ITEM = {"name": "GPUShare"}
CONFIG = b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def restored(snapshot: HostSnapshot) -> bytes:
    """The manifest after a restoration."""
    found = plan.restore(snapshot).manifest or snapshot.manifest
    assert found is not None
    return found.content


def edited(snapshot: HostSnapshot, name: str) -> HostSnapshot:
    """The host after somebody else's edit."""
    assert snapshot.manifest
    content = FOREIGN_EDITS[name](snapshot.manifest.content.decode()).encode()
    return dataclasses.replace(snapshot, manifest=dataclasses.replace(snapshot.manifest, content=content))


def applied(text: str, engine: EngineEntry = EXTENDER) -> HostSnapshot:
    """The host after an installation, of a manifest that takes one."""
    try:
        return installed(snapshot_of(text), engine)
    except NeedsPersonError as error:
        assert str(error)
        assume(condition=False)
        raise


@fuzzes(plan.install, plan.restore, few=12)
@given(manifests, engines)
def test_restoring_gives_back_the_same_bytes(text: str, engine: EngineEntry) -> None:
    assert restored(applied(text, engine)) == text.encode()


@fuzzes(manifest_edit.add, manifest_edit.remove, few=12)
@given(manifests, engines)
def test_without_backup_and_record_the_bytes_come_back_all_the_same(text: str, engine: EngineEntry) -> None:
    bare = dataclasses.replace(applied(text, engine), files={})
    assert restored(bare) == text.encode()


def edited_and_restored(text: str, names: list[str], engine: EngineEntry) -> bytes | None:
    """None where taking our part out was refused."""
    snapshot = applied(text, engine)
    for name in names:
        snapshot = edited(snapshot, name)
    try:
        return restored(snapshot)
    except NeedsPersonError as error:
        assert str(error)
        return None


def touches_only_theirs(text: str, names: list[str]) -> bool:
    """Whether none of the edits needs a line that only ours would be: a key that was not there before us."""
    needed = {"a comment before the volumes": "volumes:", "a comment before the mounts": "volumeMounts:"}
    return all(needed[name] in text for name in names if name in needed)


foreign = st.lists(st.sampled_from(sorted(FOREIGN_EDITS)), min_size=1, max_size=3)


@fuzzes(plan.restore, few=24)
@given(manifests, foreign, engines)
def test_what_others_did_in_between_stays_byte_for_byte(
    text: str, names: list[str], engine: EngineEntry
) -> None:
    assume(touches_only_theirs(text, names))
    back = edited_and_restored(text, names, engine)
    expected = text
    for name in names:
        expected = FOREIGN_EDITS[name](expected)
    if back is None:  # nobody can edit what nobody can read, with our part or without
        with pytest.raises(NeedsPersonError):
            manifest.parse(expected.encode())
    else:
        assert back == expected.encode()


@fuzzes(plan.install, few=8)
@given(manifests, engines)
def test_an_edit_made_twice_is_made_once(text: str, engine: EngineEntry) -> None:
    once = applied(text, engine)
    twice = installed(once, engine)
    assert twice.manifest == once.manifest
    assert dict(twice.files) == dict(once.files)


@fuzzes(plan.install, few=8)
@given(manifests, foreign, engines, later)
def test_a_later_version_edits_anew_and_what_comes_back_is_the_same(
    text: str, names: list[str], engine: EngineEntry, then: EngineEntry
) -> None:
    assume(touches_only_theirs(text, names))
    first = applied(text, engine)
    try:
        snapshot = installed(first, then)
    except NeedsPersonError:
        assume(condition=False)
        raise
    assert restored(snapshot) == text.encode()
    expected = text
    for name in names:
        snapshot, expected = edited(snapshot, name), FOREIGN_EDITS[name](expected)
    try:
        snapshot = installed(snapshot, engine)
    except NeedsPersonError:
        return
    assert restored(snapshot) == expected.encode()


@fuzzes(manifest.parse, health_endpoint.find, few=12)
@given(damaged_yaml(manifests), engines)
def test_a_damaged_manifest_is_edited_exactly_or_refused_with_a_reason(
    text: str, engine: EngineEntry
) -> None:
    try:
        snapshot = installed(snapshot_of(text), engine)
        health_endpoint.find(manifest.parse(text.encode()), config=CONFIG)
    except NeedsPersonError as error:
        assert str(error)
    else:
        assert restored(snapshot) == text.encode()


@fuzzes(scheduler_config.merge, scheduler_config.delays_cache_until_active, few=12)
@given(configurations() | damaged_yaml(configurations()), st.binary(max_size=2))
def test_a_configuration_gets_the_extender_and_loses_nothing_or_is_refused(text: str, end: bytes) -> None:
    content = text.encode("utf-8", "surrogatepass") + end
    try:
        merged = scheduler_config.merge(content, EXTENDER)
        scheduler_config.delays_cache_until_active(content)
    except NeedsPersonError as error:
        assert str(error)
        return
    before, after = yaml.safe_load(content), yaml.safe_load(merged)
    urls = [str(extender.get("urlPrefix")).rstrip("/") for extender in after.pop("extenders")]
    assert urls.count(EXTENDER.url) == 1
    before.pop("extenders", None)
    assert after == before
    assert scheduler_config.merge(merged, EXTENDER) == merged


def plugin_places(profile: Json) -> list[str]:
    """The extension points of a profile at which the plugin comes first."""
    plugins = profile["plugins"]
    return [point for point, lists in plugins.items() if PLUGIN_ITEM in (lists or {}).get("enabled", [])[:1]]


def without_plugin(profile: Json) -> Json:
    """A profile as kube-scheduler reads it, less what is ours."""
    plugins = {
        point: {
            key: rest
            for key, names in (lists or {}).items()
            if (rest := [name for name in names or [] if not name["name"].startswith("GPUShare")])
        }
        for point, lists in (profile.get("plugins") or {}).items()
    }
    arguments = {entry["name"]: dict(entry.get("args") or {}) for entry in profile.get("pluginConfig") or []}
    arguments.pop("GPUShare", None)
    fit = arguments.setdefault("NodeResourcesFit", {})
    for name in ("apiVersion", "kind"):
        fit.pop(name, None)
    ignored = set(fit.pop("ignoredResources", None) or ()) - set(PLUGIN.resources)
    return {
        **profile,
        "plugins": {point: lists for point, lists in plugins.items() if lists},
        "pluginConfig": {**arguments, "ignored": ignored},
    }


@fuzzes(scheduler_config.merge, few=16)
@given(configurations() | damaged_yaml(configurations()))
def test_every_profile_gets_the_plugin_and_loses_nothing_or_the_text_is_refused(text: str) -> None:
    content = text.encode("utf-8", "surrogatepass")
    try:
        merged = scheduler_config.merge(content, PLUGIN)
    except NeedsPersonError as error:
        assert str(error)
        return
    before, after = yaml.safe_load(content), yaml.safe_load(merged)
    theirs = before.pop("profiles", None) or [{"schedulerName": "default-scheduler"}]
    profiles = after.pop("profiles")
    assert after == before
    assert [without_plugin(profile) for profile in profiles] == [without_plugin(each) for each in theirs]
    for profile in profiles:
        assert {"preFilter", "filter", "postFilter", "bind"} <= {*plugin_places(profile)}
        assert profile["plugins"]["multiPoint"]["enabled"][-1] == {"name": "GPUShare", "weight": 5}
        assert profile["plugins"]["preEnqueue"]["enabled"][0] == {"name": "GPUShareGate"}
    with pytest.raises(NeedsPersonError, match="GPUShare already"):
        scheduler_config.merge(merged, PLUGIN)


def test_every_foreign_edit_changes_some_manifest() -> None:
    """An edit that never takes hold would prove nothing."""
    unused = {name for name in FOREIGN_EDITS if name != "nothing"}

    @fuzzes(few=150)
    @given(manifests)
    def look(text: str) -> None:
        unused.difference_update([name for name in unused if FOREIGN_EDITS[name](text) != text])

    look()
    assert not unused


@pytest.mark.parametrize(
    "volume",
    ["hostPath: /etc/kubernetes/own", "hostPath: [x]", "hostPath: {path: 5}", "hostPath:", "emptyDir: {}"],
)
def test_a_volume_that_is_odd_holds_no_configuration(volume: str) -> None:
    text = WITH_CONFIG.decode().replace("hostPath: {path: /etc/kubernetes/own}", volume)
    assert text != WITH_CONFIG.decode()
    with pytest.raises(NeedsPersonError, match="mount it from the host"):
        installed(snapshot_of(text))


def test_a_mount_without_a_path_holds_no_configuration() -> None:
    text = WITH_CONFIG.decode().replace("mountPath: /config}", "mountPath: 5}")
    with pytest.raises(NeedsPersonError, match="mount it from the host"):
        installed(snapshot_of(text))
