"""Events on pods, as ``events.k8s.io/v1`` has them."""

from datetime import UTC, datetime, timedelta

from tests.samples.plugin import name_of

from gpushare_plugin.decide.pod_events import PodEvent

NOW = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)
EVENT = PodEvent(pod=name_of("a"), uid="uid-a", reason="MemoryExceeded", note="too much", warning=True)


def test_an_event_names_its_pod_and_who_tells() -> None:
    body = EVENT.to_json("gpu-1", NOW)
    assert body["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "a",
        "uid": "uid-a",
    }
    assert (body["reportingController"], body["reportingInstance"]) == ("gpushare-plugin", "gpu-1")
    assert (body["type"], body["reason"], body["note"]) == ("Warning", "MemoryExceeded", "too much")
    assert (body["eventTime"], body["metadata"]["namespace"]) == ("2026-11-21T12:00:00.000005Z", "default")


def test_the_same_event_has_the_same_name_and_a_later_one_another() -> None:
    names = [EVENT.to_json("gpu-1", at)["metadata"]["name"] for at in (NOW, NOW, NOW + timedelta(seconds=1))]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("a.")


def test_a_note_is_no_longer_than_the_api_server_takes() -> None:
    long = PodEvent(pod=name_of("a"), uid="uid-a", reason="R", note="x" * 5000)
    assert len(long.to_json("gpu-1", NOW)["note"]) == 1024
