"""ML-DSA-65: verification as in FIPS 204, pure, with an empty context."""

from functools import lru_cache
from hashlib import shake_128, shake_256

# FIPS 204 §4, table 1
Q, D, TAU, K, L, BETA, OMEGA = 8_380_417, 13, 49, 6, 5, 196, 55
GAMMA1, GAMMA2 = 2**19, (Q - 1) // 32
KEY_LENGTH, SIGNATURE_LENGTH = 1952, 3309
ZETAS = [pow(1753, int(f"{i:08b}"[::-1], 2), Q) for i in range(256)]

def _ntt(values: list[int]) -> list[int]:
    """FIPS 204 algorithm 41"""
    w, index, length = list(values), 0, 128
    while length:
        for start in range(0, 256, 2 * length):
            index += 1
            zeta = ZETAS[index]
            for j in range(start, start + length):
                t = zeta * w[j + length] % Q
                w[j + length] = w[j] - t
                w[j] += t
        length >>= 1
    return [value % Q for value in w]

def _inverse_ntt(values: list[int]) -> list[int]:
    """FIPS 204 algorithm 42"""
    w, index, length = list(values), 256, 1
    while length < 256:
        for start in range(0, 256, 2 * length):
            index -= 1
            zeta = -ZETAS[index]
            for j in range(start, start + length):
                t = w[j]
                w[j] = t + w[j + length]
                w[j + length] = zeta * (t - w[j + length]) % Q
        length <<= 1
    return [value * 8_347_681 % Q for value in w]

def _unpack(data: bytes, bits: int) -> list[int]:
    # Eight values at a time: shifting one long number 256 times is slow.
    parts = (int.from_bytes(data[at:at + bits], "little") for at in range(0, len(data), bits))
    return [part >> bits * i & (1 << bits) - 1 for part in parts for i in range(8)]

def _sample_polynomial(seed: bytes) -> list[int]:
    """FIPS 204 algorithm 30: RejNTTPoly"""
    found, size = [], 840
    while len(found) < 256:
        stream, found = shake_128(seed).digest(size), []
        for i in range(0, size, 3):
            value = stream[i] | stream[i + 1] << 8 | (stream[i + 2] & 127) << 16
            if value < Q:
                found.append(value)
        size += 840
    return found[:256]

def _sample_in_ball(seed: bytes) -> list[int]:
    """FIPS 204 algorithm 29"""
    stream = shake_256(seed).digest(1024)
    signs, at, c = int.from_bytes(stream[:8], "little"), 8, [0] * 256
    for i in range(256 - TAU, 256):
        while stream[at] > i:
            at += 1
        c[i], c[stream[at]] = c[stream[at]], 1 - 2 * (signs >> (i + TAU - 256) & 1)
        at += 1
    return c

def _unpack_hint(data: bytes) -> list[set[int]] | None:
    """FIPS 204 algorithm 21: None if malformed"""
    hints, at = [], 0
    for end in data[OMEGA:]:
        positions = data[at:end]
        if end < at or end > OMEGA or any(a >= b for a, b in zip(positions, positions[1:])):
            return None
        hints.append(set(positions))
        at = end
    return None if any(data[at:OMEGA]) else hints

def _use_hint(hint: bool, value: int) -> int:
    """FIPS 204 algorithms 36 and 40"""
    low = value % (2 * GAMMA2)
    low = low - 2 * GAMMA2 if low > GAMMA2 else low
    high = 0 if value - low == Q - 1 else (value - low) // (2 * GAMMA2)
    low = low - 1 if value - low == Q - 1 else low
    return (high + (1 if low > 0 else -1)) % 16 if hint else high

@lru_cache(64)
def _expand(key: bytes):
    """The matrix, NTT(t1 · 2^d) and the hash of a key."""
    rho = key[:32]
    matrix = [[_sample_polynomial(rho + bytes([s, r])) for s in range(L)] for r in range(K)]
    t1 = [_ntt([value << D for value in _unpack(key[at:at + 320], 10)]) for at in range(32, KEY_LENGTH, 320)]
    return matrix, t1, shake_256(key).digest(64)

@lru_cache(4096)
def verify(key: bytes, signature: bytes, message: bytes) -> bool:
    """FIPS 204 algorithms 3 and 8"""
    if len(key) != KEY_LENGTH or len(signature) != SIGNATURE_LENGTH:
        return False
    z = [[GAMMA1 - value for value in _unpack(signature[at:at + 640], 20)] for at in range(48, 48 + 640 * L, 640)]
    hints = _unpack_hint(signature[48 + 640 * L:])
    if hints is None or any(abs(value) >= GAMMA1 - BETA for polynomial in z for value in polynomial):
        return False
    matrix, t1, key_hash = _expand(key)
    mu = shake_256(key_hash + b"\0\0" + message).digest(64)
    c, z = _ntt(_sample_in_ball(signature[:48])), [_ntt(polynomial) for polynomial in z]
    encoded = bytearray()
    for row, t, hint in zip(matrix, t1, hints):
        product = [-a * b for a, b in zip(c, t)]
        for a, b in zip(row, z):
            product = [p + x * y for p, x, y in zip(product, a, b)]
        high = [_use_hint(i in hint, value) for i, value in enumerate(_inverse_ntt(product))]
        encoded += bytes(high[i] | high[i + 1] << 4 for i in range(0, 256, 2))
    return shake_256(mu + encoded).digest(48) == signature[:48]
