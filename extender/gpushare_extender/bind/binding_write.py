"""Writing a Binding to the API server, until its outcome is certain."""

import logging
from dataclasses import dataclass, field
from http import HTTPStatus

from gpushare_core.json_object import Json
from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient, Request
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_extender.bind.binding import Binding, BindingOutcome, binding_outcome
from gpushare_extender.bind.deadlines import CALL_SECONDS, BindTiming

_log = logging.getLogger(__name__)


class NotBoundError(Exception):
    """The pod is not bound as asked and will not be; the text says why, for the scheduler's event."""


@dataclass(slots=True)
class BindingWrite:
    """One Binding on its way to the API server."""

    client: KubeClient
    binding: Binding
    timing: BindTiming
    _uncertain_until: float = field(default=0.0, init=False)
    """Until then a Binding sent earlier may still take effect, though the pod looks unbound."""
    _failure: str = field(default="", init=False)
    """The last one, for people."""

    async def ensure_bound(self) -> None:
        """Returns once the pod is surely bound by this Binding.

        While the caller waits for the answer an unclear failure is also met by sending again: the API server
        binds a pod once. Later it only reads, for the scheduler may have given the node's CPU away.

        Raises:
            NotBoundError: the pod is surely not bound by it, and will not be.
        """
        backoff = Backoff(sleep=self.timing.sleep)
        answer_due = self.timing.clock() + self.timing.answer_within
        while True:
            if await self._send() or await self._is_bound():
                return
            await backoff.wait()
            while self.timing.clock() >= answer_due:
                if await self._is_bound():
                    return
                await backoff.wait()

    async def _send(self) -> bool:
        """Returns whether the API server says that the pod is bound now."""
        sent = self.timing.clock()
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

    def _request(self) -> Request:
        return Request(
            method="POST",
            path=f"{self._pod_path}/binding",
            params={"timeout": f"{CALL_SECONDS}s"},
            body=self.binding.to_json(),
            timeout=float(CALL_SECONDS),
        )

    def _handle_refusal(self, error: ApiError, sent: float) -> None:
        """A conflict needs a look at the pod: an earlier Binding of ours may be what stands in the way."""
        self._failure = str(error)
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._set_uncertain(error, sent)
        elif error.is_final and not error.is_conflict:
            self._fail_if_certain(error)

    def _set_uncertain(self, error: Exception, sent: float) -> None:
        self._failure = str(error)
        self._uncertain_until = sent + self.timing.uncertain_for

    def _fail_if_certain(self, error: Exception) -> None:
        """Raises ``NotBoundError`` unless an earlier Binding may still take effect."""
        self._failure = str(error)
        if self.timing.clock() >= self._uncertain_until:
            raise NotBoundError(f"the pod was not bound: {error}")

    async def _is_bound(self) -> bool:
        """Returns whether the pod is bound by this Binding; False also stands for not known yet.

        Raises:
            NotBoundError: the pod is surely not bound by it, and will not be.
        """
        asked = self.timing.clock()
        try:
            outcome = binding_outcome(self.binding, await self._read_pod())
        except (ApiError, UnreachableError) as error:
            extra = {"pod": str(self.binding.pod), "node": self.binding.node}
            _log.warning("cannot tell yet whether the pod is bound, asking again: %s", error, extra=extra)
            return False
        if outcome is BindingOutcome.UNBOUND and asked < self._uncertain_until:
            return False
        if outcome is not BindingOutcome.BOUND:
            raise NotBoundError(f"the pod is {outcome.value}: {self._failure}")
        return True

    async def _read_pod(self) -> Json | None:
        try:
            return await self.client.get(self._pod_path)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    @property
    def _pod_path(self) -> str:
        return pod_path(self.binding.pod.namespace, self.binding.pod.name)
