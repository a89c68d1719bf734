"""Keys of mutual TLS: which are good, which are made anew, and who trusts whom."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from gpushare_hostctl.decide.scheduler.key_pairs import (
    AUTHORITY_FILE,
    AUTHORITY_LIFETIME,
    CLIENT_FILE,
    LIFETIME,
    SERVER_FILE,
    TRUSTED_FILE,
    KeyPair,
    Keys,
    decode,
    renew,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)
FIRST = renew({}, NOW)
FILES = FIRST.files()
SECOND = renew({}, NOW).files()


def changed(keys: Keys) -> set[str]:
    """Paths of the files that differ from the first ones."""
    return {path for path, content in keys.files().items() if content != FILES[path]}


def test_what_was_made_is_read_back_and_kept() -> None:
    assert changed(renew(FILES, NOW)) == set()
    assert changed(renew(FILES, NOW + LIFETIME * 0.6)) == set()


def test_a_key_file_holds_the_key_and_its_certificate() -> None:
    pair = decode(FILES[SERVER_FILE])

    assert pair is not None
    assert pair.certificate == FIRST.server.certificate


def test_the_extender_is_named_by_its_loopback_addresses() -> None:
    names = FIRST.server.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert {str(name.value) for name in names} == {"127.0.0.1", "::1", "localhost"}


@pytest.mark.parametrize(
    ("pair", "usage"),
    [
        pytest.param(FIRST.client, ExtendedKeyUsageOID.CLIENT_AUTH, id="kube-scheduler"),
        pytest.param(FIRST.server, ExtendedKeyUsageOID.SERVER_AUTH, id="the extender"),
    ],
)
def test_a_certificate_is_for_one_side_only(pair: KeyPair, usage: x509.ObjectIdentifier) -> None:
    usages = pair.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value

    assert list(usages) == [usage]
    pair.certificate.verify_directly_issued_by(FIRST.authority.certificate)


def test_they_are_renewed_when_a_third_of_the_lifetime_is_left() -> None:
    assert (
        timedelta(0) < FIRST.renew_after - (NOW + LIFETIME * 2 / 3) + timedelta(hours=1) < timedelta(hours=1)
    )
    assert changed(renew(FILES, FIRST.renew_after - timedelta(seconds=1))) == set()

    renewed = renew(FILES, FIRST.renew_after)

    assert changed(renewed) == {CLIENT_FILE, SERVER_FILE}
    assert renewed.authority.certificate == FIRST.authority.certificate
    assert renewed.renew_after > FIRST.renew_after


def test_a_new_authority_is_trusted_beside_the_one_before_until_that_ends() -> None:
    later = renew(FILES, NOW + AUTHORITY_LIFETIME * 0.7)
    assert changed(later) == {AUTHORITY_FILE, TRUSTED_FILE, CLIENT_FILE, SERVER_FILE}
    assert x509.load_pem_x509_certificates(later.trusted_pem) == [
        later.authority.certificate,
        FIRST.authority.certificate,
    ]

    much_later = renew(later.files(), NOW + AUTHORITY_LIFETIME + timedelta(days=1))
    assert x509.load_pem_x509_certificates(much_later.trusted_pem) == [later.authority.certificate]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: {**FILES, path: b""}, id="empty"),
        pytest.param(lambda path: {**FILES, path: b"\xff\x00"}, id="not PEM"),
        pytest.param(lambda path: {**FILES, path: FILES[path][:100]}, id="cut off"),
        pytest.param(lambda path: {name: FILES[name] for name in FILES if name != path}, id="missing"),
        pytest.param(lambda path: {**FILES, path: SECOND[path]}, id="of another set"),
    ],
)
@pytest.mark.parametrize(
    ("path", "new"),
    [
        pytest.param(CLIENT_FILE, {CLIENT_FILE}, id="kube-scheduler's"),
        pytest.param(SERVER_FILE, {SERVER_FILE}, id="the extender's"),
        pytest.param(AUTHORITY_FILE, set(FILES), id="the authority's"),
    ],
)
def test_a_damaged_file_is_made_anew(
    damage: Callable[[str], dict[str, bytes]], path: str, new: set[str]
) -> None:
    keys = renew(damage(path), NOW)

    assert changed(keys) == new
    for pair in (keys.client, keys.server):
        pair.certificate.verify_directly_issued_by(keys.authority.certificate)


def test_damaged_certificates_of_the_authority_are_written_anew() -> None:
    assert renew({**FILES, TRUSTED_FILE: b"x"}, NOW).files() == FILES


def test_a_key_beside_another_ones_certificate_is_no_pair() -> None:
    assert decode(FIRST.client.key_pem + FIRST.server.certificate_pem) is None


def test_the_certificate_of_the_other_side_does_not_do() -> None:
    assert changed(renew({**FILES, CLIENT_FILE: FILES[SERVER_FILE]}, NOW)) == {CLIENT_FILE}


def test_certificates_of_the_future_are_made_anew() -> None:
    assert changed(renew(FILES, NOW - timedelta(days=1))) == set(FILES)
