"""X.509 certificates, revocation lists and chains. Invalid input raises ValueError. # evidence §3"""

import base64
import re
from collections import namedtuple
from functools import lru_cache

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from . import der
from .codec import sha256
from .faults import require
from .roots import Root

MAX_CERTIFICATE, MAX_LIST, MAX_SERIAL = 16_384, 4_194_304, 2**160 - 1  # evidence §3.1, §3.3

# evidence §3.3: the three algorithm identifiers
_P = "a00f300d06096086480165030402020500a11c301a06092a864886f70d010108300d06096086480165030402020500"
ALGORITHMS = {
    bytes.fromhex("300a06082a8648ce3d040302"): "ecdsa",
    bytes.fromhex("304106092a864886f70d01010a3034" + _P + "a203020130"): "pss",
    bytes.fromhex("304606092a864886f70d01010a3039" + _P + "a203020130a303020101"): "pss",
}
# RFC 5480 and RFC 3279: the algorithms of public keys
_KEYS = {
    bytes.fromhex("301306072a8648ce3d020106082a8648ce3d030107"): "P-256",
    bytes.fromhex("301006072a8648ce3d020106052b81040022"): "P-384",
    bytes.fromhex("300d06092a864886f70d0101010500"): "RSA",
}
_CURVES = {"P-256": (ec.SECP256R1, 32, hashes.SHA256), "P-384": (ec.SECP384R1, 48, hashes.SHA384)}
TEXTS = {der.UTF8_STRING: "utf-8", der.PRINTABLE_STRING: "ascii", der.IA5_STRING: "ascii"}
COMMON_NAME, KEY_USAGE, BASIC_CONSTRAINTS = "2.5.4.3", "2.5.29.15", "2.5.29.19"
DIGITAL_SIGNATURE, KEY_CERT_SIGN, CRL_SIGN = 0, 5, 6  # RFC 5280 §4.2.1.3

# kind is "P-256", "P-384" or "RSA"; data is the point, or the DER of modulus and exponent.
Key = namedtuple("Key", "kind data")
# `signed` are the bytes that the signature covers; names and key_info are the bytes of their fields.
Certificate = namedtuple("Certificate", [
    "raw", "signed", "algorithm", "signature", "serial", "issuer", "subject", "common_name", "not_before", "not_after",
    "key_info", "key", "is_authority", "path_length", "usage", "extensions"])
RevocationList = namedtuple("RevocationList", "signed algorithm signature issuer this_update next_update serials")

@lru_cache(512)
def parse_certificate(data: bytes) -> Certificate:
    """evidence §3.3"""
    require(len(data) <= MAX_CERTIFICATE, "invalid certificate: more than 16,384 bytes")
    body, algorithm, signature = _signed(data)
    members = body.items(7)
    require(members[0].items(1, 1, 0xA0)[0].integer() == 2, "invalid certificate: expected version 3")
    serial, inner, issuer, validity, subject, key_info = members[1:7]
    require(inner.raw == algorithm, "invalid certificate: two signature algorithms")
    # No unique identifiers: only extensions may follow.
    rest = members[7:]
    extensions = _extensions(rest[0].items(1, 1, 0xA3)[0]) if rest else {}
    require(len(rest) <= 1, "invalid certificate: members after the extensions")
    is_authority, path_length = _constraints(extensions)
    not_before, not_after = (item.time() for item in validity.items(2, 2))
    _common_name(issuer)
    return Certificate(
        raw=data, signed=body.raw, algorithm=ALGORITHMS[algorithm], signature=signature, serial=serial.integer(MAX_SERIAL),
        issuer=issuer.raw, subject=subject.raw, common_name=_common_name(subject),
        not_before=not_before, not_after=not_after, key_info=key_info.raw, key=_key(key_info),
        is_authority=is_authority, path_length=path_length,
        usage=frozenset(der.parse(extensions[KEY_USAGE]).flags() if KEY_USAGE in extensions else ()),
        extensions=extensions,
    )

@lru_cache(64)
def parse_list(data: bytes) -> RevocationList:
    """evidence §3.5"""
    require(len(data) <= MAX_LIST, "invalid revocation list: more than 4,194,304 bytes")
    body, algorithm, signature = _signed(data)
    members = body.items(5, 7)
    require(members[0].integer() == 1 and members[1].raw == algorithm, "invalid revocation list: expected version 2, and one algorithm")
    _common_name(members[2])
    rest, serials = members[5:], set()
    if rest and rest[0].tag == der.SEQUENCE:
        for entry in rest.pop(0).items():
            parts = entry.items(2, 3)
            serials.add(parts[0].integer(MAX_SERIAL))
            parts[1].time()
    if rest:
        _extensions(rest[0].items(1, 1, 0xA0)[0], ())
    require(len(rest) <= 1, "invalid revocation list: members after the extensions")
    return RevocationList(
        signed=body.raw, algorithm=ALGORITHMS[algorithm], signature=signature, issuer=members[2].raw,
        this_update=members[3].time(), next_update=members[4].time(), serials=frozenset(serials),
    )

def _signed(data: bytes) -> tuple[der.Node, bytes, bytes]:
    body, algorithm, signature = der.parse(data).items(3, 3)
    require(algorithm.raw in ALGORITHMS, "invalid certificate or list: unknown signature algorithm")
    return body, algorithm.raw, signature.bits()

def _common_name(name: der.Node) -> str | None:
    found = []
    for group in name.items():
        for pair in group.items(tag=der.SET):
            kind, value = pair.items(2, 2)
            if kind.oid() == COMMON_NAME:
                require(value.tag in TEXTS, "invalid name: expected a text")
                found.append(value.value.decode(TEXTS[value.tag]))
    require(len(found) <= 1, "invalid name: two common names")
    return found[0] if found else None

def _extensions(node: der.Node, understood=(KEY_USAGE, BASIC_CONSTRAINTS)) -> dict[str, bytes]:
    found = {}
    for item in node.items():
        kind, *critical, value = item.items(2, 3)
        # `critical` has the default FALSE, so DER leaves it out. # evidence §3.1
        is_critical = bool(critical) and critical[0].expect(der.BOOLEAN).value == b"\xff"
        require(kind.oid() not in found and is_critical == bool(critical), f"invalid extension {kind.oid()}: twice, or an encoded default")
        require(not is_critical or kind.oid() in understood, f"unknown critical extension {kind.oid()}")
        found[kind.oid()] = value.expect(der.OCTET_STRING).value
    return found

def _constraints(extensions: dict[str, bytes]) -> tuple[bool, int | None]:
    """RFC 5280 §4.2.1.9"""
    if BASIC_CONSTRAINTS not in extensions:
        return False, None
    members = list(der.parse(extensions[BASIC_CONSTRAINTS]).items(0, 2))
    is_authority = bool(members) and members[0].tag == der.BOOLEAN
    if is_authority:
        require(members.pop(0).value == b"\xff", "invalid basic constraints: an encoded default")
    path_length = members.pop(0).integer() if members else None
    require(not members and (is_authority or path_length is None), "invalid basic constraints")
    return is_authority, path_length

def _key(info: der.Node) -> Key:
    algorithm, bits = info.items(2, 2)
    require(algorithm.raw in _KEYS, "invalid public key: unknown algorithm")
    key = Key(_KEYS[algorithm.raw], bits.bits())
    load_key(key)
    return key

@lru_cache(512)
def load_key(key: Key):
    """A key object. The point is uncompressed and on the curve. # evidence §3.3"""
    if key.kind == "RSA":
        modulus, exponent = (item.integer() for item in der.parse(key.data).items(2, 2))
        return rsa.RSAPublicNumbers(exponent, modulus).public_key()
    curve, size, _ = _CURVES[key.kind]
    require(len(key.data) == 1 + 2 * size and key.data[0] == 4, "invalid public key: expected an uncompressed point")
    return ec.EllipticCurvePublicKey.from_encoded_point(curve(), key.data)

@lru_cache(4096)
def is_signed(key: Key, r: int, s: int, data: bytes) -> bool:
    """ECDSA with SHA-256 on P-256, or SHA-384 on P-384. A high s is valid. # evidence §3.3"""
    try:  # OpenSSL rejects r and s of 0, and from n.
        load_key(key).verify(utils.encode_dss_signature(r, s), data, ec.ECDSA(_CURVES[key.kind][2]()))
        return True
    except InvalidSignature:
        return False

@lru_cache(512)
def _is_pss_signed(key: Key, signature: bytes, data: bytes) -> bool:
    try:
        scheme = padding.PSS(mgf=padding.MGF1(hashes.SHA384()), salt_length=48)
        load_key(key).verify(signature, data, scheme, hashes.SHA384())
        return True
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False

def check_signature(item: Certificate | RevocationList, key: Key) -> None:
    if item.algorithm == "pss":
        is_valid = key.kind == "RSA" and _is_pss_signed(key, item.signature, item.signed)
    else:
        r, s = (part.integer() for part in der.parse(item.signature).items(2, 2))
        is_valid = key.kind == "P-256" and is_signed(key, r, s, item.signed)
    require(is_valid, "invalid signature of a certificate or list")

def check_chain(chain: list[Certificate], at: int, roots: tuple[Root, ...], vendor: str) -> Root:
    """The trusted root that the chain ends in, leaf first. # evidence §3.4"""
    for index, item in enumerate(chain):
        require(item.not_before <= at <= item.not_after, f"certificate not valid at this time: {item.common_name}")
        if index + 1 == len(chain):
            break
        issuer = chain[index + 1]
        require(item.issuer == issuer.subject, f"certificate of another issuer: {item.common_name}")
        require(issuer.is_authority and KEY_CERT_SIGN in issuer.usage, f"certificate is no authority: {issuer.common_name}")
        require(issuer.path_length is None or index <= issuer.path_length, f"certificate chain longer than allowed: {issuer.common_name}")
        check_signature(item, issuer.key)
    for root in roots:
        if root.vendor == vendor and root.sha256 == sha256(chain[-1].raw):
            return root
    raise ValueError(f"certificate chain without a trusted root: {chain[-1].common_name}")

def check_list(item: RevocationList, authority: Certificate, at: int) -> None:
    """evidence §3.5"""
    require(item.this_update <= at <= item.next_update, "revocation list not valid at this time")
    require(item.issuer == authority.subject, "revocation list of another issuer")
    require(authority.is_authority and CRL_SIGN in authority.usage, "revocation list by a certificate that is no authority")
    check_signature(item, authority.key)

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----\n((?:[A-Za-z0-9+/]{64}\n)*[A-Za-z0-9+/=]{1,64})\n-----END CERTIFICATE-----(?:\n|\Z)")

def parse_pem(data: bytes) -> list[Certificate]:
    """A chain in its one spelling. # evidence §3.2"""
    found, at = [], 0
    while at < len(data):
        match = _PEM.match(data, at)
        require(match is not None, "invalid PEM")
        text = match[1].replace(b"\n", b"")
        certificate = base64.b64decode(text, validate=True)
        require(base64.b64encode(certificate) == text, "invalid PEM: base64 not canonical")
        found.append(parse_certificate(certificate))
        at = match.end()
    require(found, "invalid PEM: no certificate")
    return found
