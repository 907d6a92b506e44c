"""Hashes and signature checks. All results of checks are memoised."""

import hashlib
from functools import lru_cache

from Cryptodome.Hash import keccak
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature

from .faults import require

def keccak256(data: bytes) -> bytes:
    return keccak.new(digest_bits=256, data=data).digest()

# Ed25519. # protocol "Conventions": RFC 8032, cofactored, canonical points and scalars, no key of small order

P25519 = 2**255 - 19
L25519 = 2**252 + 27742317777372353535851937790883648493
D25519 = -121665 * pow(121666, -1, P25519) % P25519
ROOT = pow(2, (P25519 - 1) // 4, P25519)

@lru_cache(1024)
def _decode_point(data: bytes):
    """Affine coordinates of a canonical encoding, or None. # RFC 8032 §5.1.3"""
    sign, y = data[31] >> 7, int.from_bytes(data, "little") & 2**255 - 1
    if y >= P25519:
        return None
    u, v = (y * y - 1) % P25519, (D25519 * y * y + 1) % P25519
    x = u * v**3 * pow(u * v**7, (P25519 - 5) // 8, P25519) % P25519
    if v * x * x % P25519 == -u % P25519:
        x = x * ROOT % P25519
    if v * x * x % P25519 != u or (x == 0 and sign):
        return None
    return (P25519 - x if x & 1 != sign else x), y

def _extend(point):
    return *point, 1, point[0] * point[1] % P25519

def _edwards_add(a, b):
    """RFC 8032 §5.1.4, in extended coordinates"""
    p = P25519
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    e, f, c, d = (y1 - x1) * (y2 - x2) % p, (y1 + x1) * (y2 + x2) % p, 2 * D25519 * t1 * t2 % p, 2 * z1 * z2 % p
    h, g, i, j = f + e, f - e, d - c, d + c
    return g * i % p, j * h % p, i * j % p, g * h % p

def _has_small_order(point) -> bool:
    for _ in range(3):
        point = _edwards_add(point, point)
    return point[0] == 0 and point[1] == point[2]

@lru_cache(1024)
def is_ed25519_key(key: bytes) -> bool:
    """A canonical point that has no small order."""
    point = _decode_point(key) if len(key) == 32 else None
    return point is not None and not _has_small_order(_extend(point))

BASE25519 = _decode_point(bytes.fromhex("58" + "66" * 31))

@lru_cache(65536)
def verify_ed25519(key: bytes, signature: bytes, message: bytes) -> bool:
    if len(signature) != 64 or not is_ed25519_key(key):
        return False
    s, r = int.from_bytes(signature[32:], "little"), _decode_point(signature[:32])
    if s >= L25519 or r is None:
        return False
    try:
        # OpenSSL's equation has no cofactor: what it accepts is valid, but it rejects some valid signatures.
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except InvalidSignature:
        k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L25519
        x, y = _decode_point(key)
        base, minus, total = _extend(BASE25519), _extend((-x % P25519, y)), (0, 1, 1, 0)
        points = (total, base, minus, _edwards_add(base, minus))
        for bit in range(252, -1, -1):
            total = _edwards_add(total, total)
            if choice := (s >> bit & 1) + 2 * (k >> bit & 1):
                total = _edwards_add(total, points[choice])
        return _has_small_order(_edwards_add(total, _extend((-r[0] % P25519, r[1]))))

# P-256, for passkeys and stamps

@lru_cache(1024)
def p256_key(key: bytes):
    """The key of 65 bytes, 04 ‖ x ‖ y, or None if it is no point of the curve."""
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key) if len(key) == 65 and key[0] == 4 else None
    except ValueError:
        return None

@lru_cache(65536)
def verify_p256(key: bytes, r: int, s: int, digest: bytes) -> bool:
    """ECDSA over a SHA-256 digest; both values of s are valid."""
    public = p256_key(key)
    if public is None or r < 1 or s < 1:
        return False
    try:
        public.verify(encode_dss_signature(r, s), digest, ec.ECDSA(Prehashed(hashes.SHA256())))
        return True
    except InvalidSignature:
        return False

# secp256k1: SEC 1 §4.1.6

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
     0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)

def _add(a, b):
    """The sum of two points; None is the point at infinity."""
    if a is None or b is None:
        return a or b
    if a[0] != b[0]:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    elif a[1] == b[1]:
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P)
    else:
        return None
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P

@lru_cache(65536)
def recover(digest: bytes, signature: bytes) -> bytes:
    """The key, 04 ‖ x ‖ y, of a signature in valid form. # protocol "Signature" """
    r, s, v = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big"), signature[64] - 27
    require(len(signature) == 65 and 1 <= r < N and 1 <= s <= (N - 1) // 2 and v in (0, 1), "invalid signature: r, s or v out of range")
    root = pow(r**3 + 7, (P + 1) // 4, P)
    require(root * root % P == (r**3 + 7) % P, "invalid signature: r is no point")
    point, inverse, total = (r, root if root & 1 == v else P - root), pow(r, -1, N), None
    a, b = -int.from_bytes(digest, "big") * inverse % N, s * inverse % N
    points = (None, G, point, _add(G, point))
    for bit in range(255, -1, -1):
        total = _add(_add(total, total), points[(a >> bit & 1) + 2 * (b >> bit & 1)])
    require(total, "invalid signature: no key")
    return b"\x04" + total[0].to_bytes(32, "big") + total[1].to_bytes(32, "big")

def is_secp256k1_key(key: bytes) -> bool:
    x, y = int.from_bytes(key[1:33], "big"), int.from_bytes(key[33:], "big")
    return len(key) == 65 and key[0] == 4 and x < P and y < P and (y * y - x**3 - 7) % P == 0

def address_of(key: bytes) -> str:
    return "0x" + keccak256(key[1:])[12:].hex()
