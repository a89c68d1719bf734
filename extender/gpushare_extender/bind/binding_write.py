"""Writing a Binding to the API server, until its outcome is certain."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from gpushare_core.dialects.annotation_room import lack_of_room
from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError
from gpushare_core.kube.lease_holder import NotHeldError
from gpushare_core.kube.paths import pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.scheduling.objects.pod import ANY_VERSION, PodVersion
from gpushare_extender.bind.binding import Binding, BindingOutcome, binding_outcome
from gpushare_extender.bind.deadlines import CALL_SECONDS, BindTiming
from gpushare_extender.decide.pod_state import PodState

_log = logging.getLogger(__name__)


class NotBoundError(Exception):
    """The pod is not bound as asked and will not be; the text says why, for the scheduler's Event."""


class BoundBeforeError(NotBoundError):
    """The pod may have been bound for a while, and is not any more: the kubelet may have admitted it."""


@dataclass(slots=True, kw_only=True)
class BindingWrite:
    """One Binding that is written to the API server."""

    client: KubeClient
    binding: Binding
    timing: BindTiming
    permit: Callable[[], Awaitable[int]]
    """As the ``Binder``'s."""
    holding: int
    """What ``permit`` returned before the card was chosen."""
    answer_due: float
    """When the caller gives up; nothing is sent after it."""
    version: PodVersion = ANY_VERSION
    """Of the pod as last seen. The Binding is sent for this version, if its annotations fit there."""
    uncertain_until: float | None = None
    """Until then an earlier Binding may still take effect, though the pod looks unbound; None: there is no
    Binding of unknown outcome."""
    _failure: str = field(default="", init=False)
    """For people."""
    _is_outdated: bool = field(default=False, init=False)
    """Whether the pod may have another version by now: it has to be read before anything is sent again."""
    _asked_to_wait: float = field(default=0.0, init=False)
    """Seconds before which the API server does not want to be asked again."""

    async def ensure_bound(self) -> None:
        """Returns once the pod is surely bound by this Binding.

        After an unclear failure the Binding is sent again: the API server binds a pod once. For a pod that
        was changed meanwhile it is sent as soon as the pod was read: during a pause it may be changed again.

        Raises:
            NotBoundError: the pod is surely not bound by it, and will not be.
            BoundBeforeError: the same, and it may have been bound before.
        """
        backoff = Backoff(sleep=self.timing.sleep)
        while not (await self._send() or await self._is_bound()):
            await backoff.wait(self._seconds_to_heed())

    def _seconds_to_heed(self) -> float:
        """As long as the API server asks for, at most half of the time that is left. A backoff adds up to
        half of that by chance: then there is still time for one more attempt."""
        return min(self._asked_to_wait, max(0.0, self.answer_due - self.timing.clock()) / 2)

    async def _send(self) -> bool:
        """Returns whether the API server says that the pod is bound now."""
        if self._is_outdated or not await self._may_send():
            return False
        sent, self._asked_to_wait = self.timing.clock(), 0.0
        try:
            await self.client.send(self._request())
        except NotSentError as error:
            self._fail_if_certain(error)
        except UnreachableError as error:
            self._set_uncertain(error, sent)
        except ApiError as error:
            self._handle_refusal(error, sent)
        else:
            return True
        return False

    async def _may_send(self) -> bool:
        """Not once kube-scheduler has given up: it may give the node's CPU to another pod."""
        if lacking := lack_of_room(self.version.annotations_size, self.binding.room):
            self._fail_if_certain(lacking)
            return False
        if self.timing.clock() < self.answer_due:
            try:
                await self._require_same_holding()
            except NotHeldError as error:
                self._fail_if_certain(error)
                return False
        in_time = self.timing.clock() < self.answer_due
        if not in_time:
            self._fail_if_certain(self._failure or "it took too long, and kube-scheduler has given up")
        return in_time

    async def _require_same_holding(self) -> None:
        """Another extender may have bound pods meanwhile, such as while this machine was suspended."""
        if await self.permit() != self.holding:
            raise NotHeldError("another extender may have bound pods since the card was chosen")

    def _request(self) -> ApiRequest:
        return ApiRequest(
            method="POST",
            path=f"{self._pod_path}/binding",
            params={"timeout": f"{CALL_SECONDS}s"},
            body=self.binding.to_json(self.version.resource_version),
            timeout=float(CALL_SECONDS),
        )

    def _handle_refusal(self, error: ApiError, sent: float) -> None:
        """After a conflict the pod has to be read: an earlier Binding of ours may be in the way, or the pod
        was changed."""
        self._failure, self._asked_to_wait = str(error), error.retry_after
        self._is_outdated = error.is_conflict
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._set_uncertain(error, sent)
        elif error.is_final and not error.is_conflict:
            self._fail_if_certain(error)

    def _set_uncertain(self, error: Exception, sent: float) -> None:
        self._failure = str(error)
        self.uncertain_until = sent + self.timing.uncertain_for

    def _fail_if_certain(self, why: object) -> None:
        """Raises ``NotBoundError`` unless an earlier Binding may have taken effect: then the pod is read."""
        self._failure = str(why)
        if self.uncertain_until is None:
            raise NotBoundError(f"the pod was not bound: {why}")

    async def _is_bound(self) -> bool:
        """Returns whether the pod is bound by this Binding; False where that is not known yet, too.

        Raises:
            NotBoundError: the pod is surely not bound by it, and will not be.
            BoundBeforeError: the same, and it may have been bound before.
        """
        asked = self.timing.clock()
        try:
            pod = await self._read_pod()
        except (ApiError, UnreachableError) as error:
            extra = {"pod": str(self.binding.pod), "node": self.binding.node}
            _log.warning("cannot read whether the pod is bound, trying again: %s", error, extra=extra)
            return False
        self._is_outdated = False
        outcome = binding_outcome(self.binding, pod)
        if outcome is BindingOutcome.UNBOUND and self._is_changed(pod):
            return await self._send()
        if outcome is BindingOutcome.UNBOUND and asked < (self.uncertain_until or 0.0):
            return False
        if outcome is BindingOutcome.BOUND:
            return True
        had_effect = self.uncertain_until is not None and outcome is not BindingOutcome.UNBOUND
        refusal = BoundBeforeError if had_effect else NotBoundError
        raise refusal(f"the pod is {outcome.value}: {self._failure}")

    def _is_changed(self, pod: PodState | None) -> bool:
        """Returns whether ``pod`` has another version than the Binding was sent for, and there is time to
        send it for this version."""
        if pod is None or not self.version.resource_version or pod.version == self.version:
            return False
        self.version = pod.version
        self._failure = "somebody changes it again and again while it is being bound"
        return self.timing.clock() < self.answer_due

    async def _read_pod(self) -> PodState | None:
        try:
            return await self.client.read(ApiRequest(path=self._pod_path), shape=PodState)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    @property
    def _pod_path(self) -> str:
        return pod_path(self.binding.pod.namespace, self.binding.pod.name)
