"""Why a call to the API server failed, by what the caller can do about it."""

from http import HTTPStatus

from gpushare_core.text.whole_number import whole_number

MAX_RETRY_AFTER = 30.0
"""Seconds: API servers ask for one to 32, and who asks for hours must not stop a cluster's bookkeeping."""


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
        """Whether the object does not mean what its kind may mean."""
        return self.status == HTTPStatus.UNPROCESSABLE_ENTITY

    @property
    def is_final(self) -> bool:
        """Whether the server surely did not do what was asked (4xx), and repeating it will not help."""
        return (
            HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
            and self.status not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
        )


class UnreachableError(Exception):
    """No answer came: whether the server did what was asked is unknown."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        """``retry_after``: as of an ``ApiError`` that this stands for."""
        super().__init__(message)
        self.retry_after = retry_after


class NotSentError(UnreachableError):
    """No connection came about: the server surely did not do what was asked."""


class WatchEventTooLargeError(Exception):
    """A watch brought more than any event is long, and no end of a line. Asked for again it comes again."""


def asked_to_wait(error: BaseException) -> float:
    """Returns how many seconds the server wants to be left alone after ``error``; 0 where it did not say."""
    return error.retry_after if isinstance(error, ApiError | UnreachableError) else 0.0


def retry_after_seconds(status: int, header: str) -> float:
    """Returns what the ``Retry-After`` of a refusal asks for, as far as it is heeded.

    As client-go, of 429 and 5xx, and as a number of seconds alone: a date is one of another clock.
    """
    is_temporary = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return min(float(whole_number(header.strip())), MAX_RETRY_AFTER) if is_temporary else 0.0
