"""How a request to the API server fails, by what the caller can do about it."""

from http import HTTPStatus

from gpushare_core.text.whole_number import whole_number

MAX_RETRY_AFTER = 30.0
"""Seconds. API servers ask for 1 to 32; a request for hours must not stop a cluster's bookkeeping."""


class ApiError(Exception):
    """The API server answered, and refused."""

    def __init__(self, status: int, reason: str, message: str, *, retry_after: float = 0.0) -> None:
        """``retry_after``: seconds before which the server does not want to be asked again."""
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def is_not_found(self) -> bool:
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        return self.status == HTTPStatus.CONFLICT

    @property
    def is_forbidden(self) -> bool:
        return self.status == HTTPStatus.FORBIDDEN

    @property
    def is_invalid(self) -> bool:
        """Whether the object breaks a rule of its kind."""
        return self.status == HTTPStatus.UNPROCESSABLE_ENTITY

    @property
    def is_final(self) -> bool:
        """Whether the server surely did nothing (4xx), and repeating the request will not help."""
        return (
            HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
            and self.status not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
        )


class UnreachableError(Exception):
    """No response came: whether the server carried out the request is unknown."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        """``retry_after``: of the ``ApiError`` that this error stands for."""
        super().__init__(message)
        self.retry_after = retry_after


class NotSentError(UnreachableError):
    """The request was not sent: the server surely did nothing."""


class WatchEventTooLargeError(Exception):
    """A watch sent more bytes than any event has, without the end of a line. The same watch would send them
    again."""


def asked_to_wait(error: BaseException) -> float:
    """Returns the seconds for which the server wants no requests after ``error``; 0 where it did not say."""
    return error.retry_after if isinstance(error, ApiError | UnreachableError) else 0.0


def retry_after_seconds(status: int, header: str) -> float:
    """Returns the seconds in ``Retry-After``, at most ``MAX_RETRY_AFTER``.

    As in client-go, only those of 429 and 5xx count, and no dates: a date is by another clock.
    """
    is_temporary = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return min(float(whole_number(header.strip())), MAX_RETRY_AFTER) if is_temporary else 0.0
