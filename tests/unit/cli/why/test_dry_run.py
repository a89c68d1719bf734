"""What the API server would make of a manifest, and what is known where it does not say."""

import asyncio
from collections.abc import Sequence

from tests.samples.why import memory_pod

from gpushare_cli.gather.why.admission import PodAdmission, admitted
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, NotSentError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json


class Server(KubeClient):
    """Answers with what it is given, one after the other; with the pod itself where that is all."""

    def __init__(self, *answers: Exception) -> None:
        self.answers = [*answers]
        self.requests: list[ApiRequest] = []

    async def send(self, request: ApiRequest) -> Json:
        self.requests.append(request)
        if self.answers:
            raise self.answers.pop(0)
        body = request.body or {}
        return {**body, "spec": {**body["spec"], "schedulerName": "gpushare-scheduler"}}


def asked(*answers: Exception) -> tuple[PodAdmission, Sequence[ApiRequest]]:
    server = Server(*answers)
    return asyncio.run(admitted(server, memory_pod(4))), server.requests


def test_nothing_is_created() -> None:
    _, (request,) = asked()
    assert request.method == "POST"
    assert request.path == "/api/v1/namespaces/ml/pods"
    assert request.params["dryRun"] == "All"


def test_the_pod_is_as_admission_makes_it() -> None:
    admission, _ = asked()
    assert admission.pod["spec"]["schedulerName"] == "gpushare-scheduler"
    assert (admission.refusal, admission.unread) == ("", "")


def test_a_refusal_is_kept_in_the_servers_words() -> None:
    admission, _ = asked(ApiError(422, "Invalid", "must be an integer"))
    assert admission.refusal == "must be an integer"
    assert admission.pod == memory_pod(4)


def test_of_a_name_that_is_taken_another_one_is_asked_about() -> None:
    admission, (_, second) = asked(ApiError(409, "AlreadyExists", 'pods "train" already exists'))
    assert admission.refusal == ""
    assert second.body is not None
    assert "name" not in second.body["metadata"]
    assert second.body["metadata"]["generateName"] == "train-"


def test_who_may_create_no_pods_is_told_that_nobody_knows() -> None:
    message = (
        'pods is forbidden: User "ann" cannot create resource "pods" in API group "" in the namespace "ml"'
    )
    admission, _ = asked(ApiError(403, "Forbidden", message))
    assert (admission.refusal, admission.unread) == ("", message)


def test_a_server_that_fails_has_refused_nothing() -> None:
    for error in (ApiError(500, "InternalError", "failed calling webhook"), NotSentError("no connection")):
        admission, _ = asked(error)
        assert admission.refusal == ""
        assert admission.unread
