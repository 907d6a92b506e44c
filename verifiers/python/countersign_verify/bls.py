"""BLS12-381: drand's keys in G2 and signatures in G1. # evidence §10, RFC 9380, ZCash's encoding of points"""

from functools import lru_cache

from .codec import sha256

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

def slope_of(p, q):
    """The slope of the line through p and q, or of the tangent, which must not be vertical."""
    if p != q:
        return mul2(sub2(q[1], p[1]), inv2(sub2(q[0], p[0])))
    square = mul2(p[0], p[0])
    return mul2((3 * square[0], 3 * square[1]), inv2((2 * p[1][0], 2 * p[1][1])))

def add_g2(p, q):
    if p is None or q is None:
        return q if p is None else p
    if p[0] == q[0] and (p[1] != q[1] or p[1] == (0, 0)):
        return None
    slope = slope_of(p, q)
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

@lru_cache(256)
def decode_g1(data: bytes):
    """As decode_g2, for 48 bytes; the numbers are those of Fq², so that both groups share the formulas."""
    x = int.from_bytes(bytes([data[0] & 0x1F]) + data[1:], "big")
    y = sqrt1(x**3 + 4)
    if len(data) != 48 or data[0] >> 6 != 0b10 or x >= Q or y is None:
        return None
    y = y if (y > (Q - 1) // 2) == bool(data[0] & 0x20) else Q - y
    return ((x, 0), (y, 0)) if multiply_g2(((x, 0), (y, 0)), R) is None else None

# Hashing to G1: RFC 9380 §8.8.1, BLS12381G1_XMD:SHA-256_SSWU_RO_

DOMAIN = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
A = 0x144698A3B8E9433D693A02C96D4982B0EA985383EE66A8D8E8981AEFD881AC98936F8DA0E0F97F5CF428082D584C1D
B = 0x12E2908D11688030018B12E8753EEE3B2016C1F0F24F4070A0B9C14FCEF35EF55A23215A316CEAA5D1CC48E98E172BE0
# The isogeny of appendix E.2 has degree 11. It follows from its kernel, whose x coordinates are the roots of this polynomial, and a scale.
KERNEL = (
    0x133341FB0962A34CB0504A9C4FADA0A5090D38679B4C040D5D1C3AFB023A3409FCC0815FEA66D8B02BBEF9C8B5A66E07,
    0x264908AF037BCEDE00D054CF5D4775E83EB6CF63C76B969F8ED174FB59FCFF78D201F46F6CFC4ED6552E59CE75177B0,
    0x1335C502C1F54C49ACEEA65E87FD7203BA0F626F305FC0CFD606A5DAE9F3C8E81A4B3B69600129FABD307C69BF319D39,
    0x94440F65F408A6E930E16E3E92DD17BF60D6E9679A8D3D58593DE55AC23703042D609537EB3549AAC234D896CA82944,
    0x4AFE09D5CF4956A23B6B71F59D2B3407B415A774B7BE81BBB6FA99CBC798E0AC98BA725A5BC328016B1C268B4766E85,
    1,
)
SCALE = 0x17A3E1BDA8A2D1A38A19241A0EA1E2F25B552D6197903F96BAE690EF6BE6B1381BE22E8A72A9745CD7A1FFFFFFFFB26D
COFACTOR = 0xD201000000010001

def _field_elements(message: bytes) -> list[int]:
    """RFC 9380 §5.2 and §5.3.1: two numbers"""
    domain = DOMAIN + bytes([len(DOMAIN)])
    first = sha256(bytes(64) + message + (128).to_bytes(2, "big") + b"\0" + domain)
    blocks = [sha256(first + b"\x01" + domain)]
    for index in range(2, 5):
        blocks.append(sha256(bytes(a ^ b for a, b in zip(first, blocks[-1])) + bytes([index]) + domain))
    return [int.from_bytes(b"".join(blocks)[at:at + 64], "big") % Q for at in (0, 64)]

def _map_to_curve(u: int):
    """RFC 9380 §6.6.2 with Z = 11, then the isogeny by Kohel's formulas"""
    t = 11 * u * u % Q
    t1 = (t * t + t) % Q
    x = -B * pow(A, -1, Q) * (1 + pow(t1, -1, Q)) % Q if t1 else B * pow(11 * A, -1, Q) % Q
    y = sqrt1(x**3 + A * x + B)
    if y is None:
        x = t * x % Q
        y = sqrt1(x**3 + A * x + B)
    y = y if y & 1 == u & 1 else Q - y
    polynomials = [KERNEL]
    for _ in range(3):
        polynomials.append([index * value for index, value in enumerate(polynomials[-1])][1:])
    h, h1, h2, h3 = (sum(value * pow(x, index, Q) for index, value in enumerate(polynomial)) % Q for polynomial in polynomials)
    inverse = pow(h, -1, Q)
    s, f2, f4 = h1 * inverse % Q, 6 * x * x + 2 * A, 4 * (x**3 + A * x + B)
    s1, s2 = h2 * inverse - s * s, h3 * inverse - 3 * s * h2 * inverse + 2 * s**3
    image, slope = 11 * x + 2 * KERNEL[4] - f2 * s - f4 * s1, 11 - 12 * x * s - 3 * f2 * s1 - f4 * s2
    return (SCALE**2 * image % Q, 0), (SCALE**3 * y * slope % Q, 0)

def hash_to_g1(message: bytes):
    first, second = map(_map_to_curve, _field_elements(message))
    return multiply_g2(add_g2(first, second), COFACTOR)

# The pairing: numbers of Fq¹² are polynomials in w with w¹² = 2w⁶ − 2, and u = w⁶ − 1.

LOOP = 0xD201000000010000
G2 = decode_g2(bytes.fromhex(
    "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
))

def _mul12(a: list[int], b: list[int]) -> list[int]:
    product = [0] * 23
    for i, x in enumerate(a):
        if x:
            for j, y in enumerate(b):
                product[i + j] += x * y
    for i in range(22, 11, -1):
        product[i - 6] += 2 * product[i]
        product[i - 12] -= 2 * product[i]
    return [value % Q for value in product[:12]]

def _line(t, slope, p) -> list[int]:
    """The line through t, at p, times w³: the final power removes factors of a smaller field."""
    constant, square = sub2(mul2(slope, t[0]), t[1]), mul2((-slope[0], -slope[1]), p[0])
    value = [0] * 12
    for at, (a, b) in ((0, constant), (2, square), (3, p[1])):
        value[at], value[at + 6] = value[at] + a - b, b
    return value

def _miller(q, p) -> list[int]:
    f, t = [1] + [0] * 11, q
    for bit in bin(LOOP)[3:]:
        f, t = _mul12(_mul12(f, f), _line(t, slope_of(t, t), p)), add_g2(t, t)
        if bit == "1":
            f, t = _mul12(f, _line(t, slope_of(t, q), p)), add_g2(t, q)
    return f

@lru_cache(4096)
def verify(key: bytes, signature: bytes, message: bytes) -> bool:
    """e(−signature, generator) · e(hash, key) = 1"""
    public, point = decode_g2(key), decode_g1(signature)
    if public is None or point is None:
        return False
    minus = (point[0], (-point[1][0] % Q, 0))
    base, power = _mul12(_miller(G2, minus), _miller(public, hash_to_g1(message))), [1] + [0] * 11
    for bit in bin((Q**12 - 1) // R)[2:]:
        power = _mul12(power, power)
        power = _mul12(power, base) if bit == "1" else power
    return power == [1] + [0] * 11
