"""``--as`` and its like become headers of every request."""

import pytest
from tests.unit.cli.login.options import login_options

from gpushare_cli.login.impersonation import impersonation_headers
from gpushare_core.kube.credentials import NoCredentialsError

ALL = ("--as", "anna", "--as-group", "a", "--as-group", "b", "--as-uid", "7", "--as-user-extra", "Of/x=1=2")


def test_nobody_is_impersonated_by_itself() -> None:
    assert impersonation_headers(login_options(), {}) == ()


def test_user_groups_uid_and_more_are_headers() -> None:
    assert impersonation_headers(login_options(*ALL), {}) == (
        ("Impersonate-User", "anna"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-Of%2Fx", "1=2"),
    )


def test_a_kubeconfig_may_say_it_and_arguments_replace_it() -> None:
    stored = {"as": "bob", "as-groups": ["c"], "as-user-extra": {"k": ["v", "w"]}, "token": "t"}
    assert impersonation_headers(login_options("--as", "anna"), stored) == (
        ("Impersonate-User", "anna"),
        ("Impersonate-Group", "c"),
        ("Impersonate-Extra-k", "v"),
        ("Impersonate-Extra-k", "w"),
    )


@pytest.mark.parametrize(
    ("arguments", "stored", "said"),
    [
        (["--as-group", "a"], {}, "need --as"),
        (["--as-uid", "7"], {}, "need --as"),
        (["--as", "a", "--as-user-extra", "k"], {}, "takes KEY=VALUE, not 'k'"),
        ([], {"as-groups": ["a"]}, "need --as"),
        ([], {"as": ["a"]}, r"says wrongly as whom to act: .*\$\.as"),
    ],
)
def test_half_of_it_is_refused(arguments: list[str], stored: dict[str, object], said: str) -> None:
    with pytest.raises(NoCredentialsError, match=said):
        impersonation_headers(login_options(*arguments), stored)
