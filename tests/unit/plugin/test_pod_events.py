"""Events on pods, as ``events.k8s.io/v1`` has them."""

from datetime import UTC, datetime, timedelta

from tests.samples.plugin import name_of

from gpushare_plugin.decide.held.pod_events import PodEvent

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


def test_an_event_is_no_longer_than_the_api_server_takes() -> None:
    """Whatever pod and card are called: a longer one is refused, and nobody learns of anything."""
    long = PodEvent(pod=name_of("a" * 253), uid="uid-a", reason="R", note="\N{EURO SIGN}" * 5000)
    body = long.to_json("gpu-1", NOW)
    assert len(body["note"].encode()) == 1023
    assert len(body["metadata"]["name"]) == 253
    assert body["regarding"]["name"] == "a" * 253
