"""The keys of mutual TLS between kube-scheduler and the extender, and when they are made anew.

A certificate authority of this host alone signs one certificate for each side. The extender trusts whom the
authority signed as a client, kube-scheduler whom it signed as a server, and nobody else has its key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME = timedelta(days=3650)
LIFETIME = timedelta(days=365)
"""Of the two sides' certificates; renewing kube-scheduler's restarts it."""

_BACKDATED = timedelta(hours=1)
"""A clock that is set right must not make a new certificate one of the future."""

AUTHORITY_FILE = "keys/authority.pem"
CLIENT_FILE = "keys/client.pem"
SERVER_FILE = "extender/server.pem"
TRUSTED_FILE = "extender/authorities.pem"
"""Paths in our folder. The first three hold a key and its certificate, the last one certificates only."""
KEY_FILES = (AUTHORITY_FILE, TRUSTED_FILE, CLIENT_FILE, SERVER_FILE)


@dataclass(frozen=True)
class KeyPair:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def key_pem(self) -> bytes:
        """Unencrypted."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def encode(self) -> bytes:
        """Both in one file, so that nobody ever reads a key beside another key's certificate."""
        return self.key_pem + self.certificate_pem


@dataclass(frozen=True)
class Keys:
    """All keys of one host. ``earlier`` are authorities still trusted while the sides change over."""

    authority: KeyPair
    client: KeyPair
    server: KeyPair
    earlier: tuple[x509.Certificate, ...] = ()

    @property
    def trusted_pem(self) -> bytes:
        """Certificates of the authorities that both sides trust."""
        earlier = (certificate.public_bytes(serialization.Encoding.PEM) for certificate in self.earlier)
        return b"".join((self.authority.certificate_pem, *earlier))

    @property
    def renew_after(self) -> datetime:
        """When the first key is to be renewed."""
        pairs = (self.authority, self.client, self.server)
        return min(_renewal(pair.certificate) for pair in pairs)

    def files(self) -> dict[str, bytes]:
        """Path in our folder -> content, in the order in which to write them."""
        return {
            AUTHORITY_FILE: self.authority.encode(),
            TRUSTED_FILE: self.trusted_pem,
            CLIENT_FILE: self.client.encode(),
            SERVER_FILE: self.server.encode(),
        }


@dataclass(frozen=True)
class _Side:
    """What a certificate is for."""

    name: str
    usage: x509.ObjectIdentifier
    names: tuple[x509.GeneralName, ...]


_CLIENT = _Side("kube-scheduler", ExtendedKeyUsageOID.CLIENT_AUTH, (x509.DNSName("kube-scheduler"),))
_SERVER = _Side(
    "gpushare-extender",
    ExtendedKeyUsageOID.SERVER_AUTH,
    (
        x509.IPAddress(ip_address("127.0.0.1")),
        x509.IPAddress(ip_address("::1")),
        x509.DNSName("localhost"),
    ),
)


def for_pod(now: datetime) -> Keys:
    """Returns new keys for two containers of one pod. The keys end with the pod: nobody renews them."""
    authority = _new_authority(now)
    return Keys(
        authority=authority,
        client=_new_pair(_CLIENT, authority, now, lifetime=AUTHORITY_LIFETIME),
        server=_new_pair(_SERVER, authority, now, lifetime=AUTHORITY_LIFETIME),
    )


def renew(stored: Mapping[str, bytes], now: datetime) -> Keys:
    """Returns the stored keys, with new ones for those that are missing, damaged or near their end.

    A certificate is near its end with less than a third of its lifetime left. ``stored``: as ``Keys.files``.
    While the authority lasts both sides trust old and new certificates. A new authority is trusted beside
    the one before; without the earlier authority's key everything is made anew.
    """
    before = decode(stored.get(AUTHORITY_FILE, b""))
    authority = before if before and _is_fresh(before, now) else _new_authority(now)
    earlier = _earlier(stored.get(TRUSTED_FILE, b""), authority, now) if before else ()
    return Keys(
        authority=authority,
        client=_renewed(stored.get(CLIENT_FILE, b""), _CLIENT, authority, now),
        server=_renewed(stored.get(SERVER_FILE, b""), _SERVER, authority, now),
        earlier=earlier,
    )


def decode(content: bytes) -> KeyPair | None:
    """Returns None unless ``content`` has a key and that key's certificate."""
    try:
        key = serialization.load_pem_private_key(content, password=None)
        certificate = x509.load_pem_x509_certificate(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        return None
    return KeyPair(key=key, certificate=certificate)


def _renewal(certificate: x509.Certificate) -> datetime:
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - lifetime / 3


def _is_fresh(pair: KeyPair, now: datetime) -> bool:
    return pair.certificate.not_valid_before_utc <= now < _renewal(pair.certificate)


def _earlier(trusted: bytes, authority: KeyPair, now: datetime) -> tuple[x509.Certificate, ...]:
    try:
        certificates = x509.load_pem_x509_certificates(trusted)
    except ValueError:
        return ()
    return tuple(
        certificate
        for certificate in certificates
        if certificate != authority.certificate and now < certificate.not_valid_after_utc
    )


def _renewed(content: bytes, side: _Side, authority: KeyPair, now: datetime) -> KeyPair:
    pair = decode(content)
    if pair and _is_fresh(pair, now) and _is_issued(pair, side, authority):
        return pair
    return _new_pair(side, authority, now)


def _is_issued(pair: KeyPair, side: _Side, authority: KeyPair) -> bool:
    try:
        pair.certificate.verify_directly_issued_by(authority.certificate)
        extensions = pair.certificate.extensions
        usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return list(usage) == [side.usage] and list(names) == list(side.names)


def _new_authority(now: datetime) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("gpushare authority of this host")
    builder = (
        _builder(name, key, now, AUTHORITY_LIFETIME)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
    )
    return KeyPair(key=key, certificate=builder.sign(key, hashes.SHA256()))


def _new_pair(side: _Side, authority: KeyPair, now: datetime, *, lifetime: timedelta = LIFETIME) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        _builder(_name(side.name), key, now, lifetime)
        .issuer_name(authority.certificate.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([side.usage]), critical=False)
        .add_extension(x509.SubjectAlternativeName(side.names), critical=False)
        .add_extension(issuer, critical=False)
    )
    return KeyPair(key=key, certificate=builder.sign(authority.key, hashes.SHA256()))


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "gpushare"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
