"""Why a call to the API server failed, by what the caller can do about it."""

from http import HTTPStatus


class ApiError(Exception):
    """The API server answered, and refused."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message

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
    def is_final(self) -> bool:
        """Whether the server surely did not do what was asked (4xx), and repeating it will not help."""
        return (
            HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
            and self.status not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
        )


class UnreachableError(Exception):
    """No answer came: whether the server did what was asked is unknown."""


class NotSentError(UnreachableError):
    """No connection came about: the server surely did not do what was asked."""
