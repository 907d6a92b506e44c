"""BLS12-381: points of G2, the keys of drand. # evidence §10, draft-irtf-cfrg-bls-signature, ZCash's encoding of points"""

from functools import lru_cache

Q = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


# Fields: numbers of Fq² are pairs (a, b) for a + b·u with u² = −1.


def mul2(a, b):
    return (a[0] * b[0] - a[1] * b[1]) % Q, (a[0] * b[1] + a[1] * b[0]) % Q


def sub2(a, b):
    return (a[0] - b[0]) % Q, (a[1] - b[1]) % Q


def add2(a, b):
    return (a[0] + b[0]) % Q, (a[1] + b[1]) % Q


def inv2(a):
    norm = pow(a[0] * a[0] + a[1] * a[1], -1, Q)
    return a[0] * norm % Q, -a[1] * norm % Q


def sqrt1(a: int) -> int | None:
    root = pow(a, (Q + 1) // 4, Q)
    return root if root * root % Q == a % Q else None


def sqrt2(a):
    if a[1] == 0:
        root = sqrt1(a[0])
        return (root, 0) if root is not None else (0, sqrt1(-a[0] % Q))
    norm = sqrt1((a[0] * a[0] + a[1] * a[1]) % Q)
    if norm is None:
        return None
    half = pow(2, -1, Q)
    x = sqrt1((a[0] + norm) * half % Q)
    if x is None:
        x = sqrt1((a[0] - norm) * half % Q)
    return x, a[1] * half * pow(x, -1, Q) % Q


# G2: y² = x³ + 4(1 + u), in affine coordinates; None is the point at infinity.


def add_g2(p, q):
    if p is None or q is None:
        return q if p is None else p
    if p[0] == q[0]:
        if p[1] != q[1] or p[1] == (0, 0):
            return None
        square = mul2(p[0], p[0])
        slope = mul2((3 * square[0], 3 * square[1]), inv2((2 * p[1][0], 2 * p[1][1])))
    else:
        slope = mul2(sub2(q[1], p[1]), inv2(sub2(q[0], p[0])))
    x = sub2(sub2(mul2(slope, slope), p[0]), q[0])
    return x, sub2(mul2(slope, sub2(p[0], x)), p[1])


def multiply_g2(p, k: int):
    total = None
    for bit in bin(k)[2:]:
        total = add_g2(total, total)
        if bit == "1":
            total = add_g2(total, p)
    return total


@lru_cache(256)
def decode_g2(data: bytes):
    """The point of a compressed encoding of 96 bytes, in the subgroup and not infinity; None for any other bytes."""
    if len(data) != 96 or data[0] >> 6 != 0b10:
        return None
    x = (int.from_bytes(data[48:], "big"), int.from_bytes(bytes([data[0] & 0x1F]) + data[1:48], "big"))
    if max(x) >= Q:
        return None
    y = sqrt2(add2(mul2(x, mul2(x, x)), (4, 4)))
    if y is None:
        return None
    is_larger = (y[1] or y[0]) > (Q - 1) // 2
    if is_larger != bool(data[0] & 0x20):
        y = (-y[0] % Q, -y[1] % Q)
    return (x, y) if multiply_g2((x, y), R) is None else None


def is_g2_key(key: bytes) -> bool:
    return decode_g2(key) is not None
