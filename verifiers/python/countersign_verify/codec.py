"""Bytes and names: canonical JSON, hex, base64, times, tags, CIDs and CAR files. Malformed input raises ValueError."""

import base64
import hashlib
import json
import re
from datetime import datetime, timezone
from functools import lru_cache

from .faults import Fault, require

MAX_SAFE = 2**53 - 1
MAX_BLOCK = 262_144  # receipt-v2 §1
MAX_COLLATERAL = 8_388_608  # receipt-v1 §1

def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()

def sha512(data: bytes) -> bytes:
    return hashlib.sha512(data).digest()

def tag(name: str) -> bytes:
    """T(name). # protocol "Tags" """
    return b"countersign/" + name.encode() + b"\0"

def u8(value: int) -> bytes:
    return value.to_bytes(1, "big")

def u32(value: int) -> bytes:
    return value.to_bytes(4, "big")

def u64(value: int) -> bytes:
    require(0 <= value <= MAX_SAFE, f"invalid number: {value}")  # protocol "Conventions"
    return value.to_bytes(8, "big")

def unhex(text, length: int | None = None, prefix: str = "") -> bytes:
    """Lower-case hex to bytes; prefix is "0x" for Ethereum values. # receipt-v1 §1"""
    require(isinstance(text, str) and text.startswith(prefix) and re.fullmatch("(?:[0-9a-f]{2})*", text[len(prefix):]), "invalid hex")
    data = bytes.fromhex(text[len(prefix):])
    require(length is None or len(data) == length, f"invalid hex: expected {length} bytes, got {len(data)}")
    return data

def un0x(text, length: int | None = None) -> bytes:
    return unhex(text, length, "0x")

def unbase64(text: str, url: bool = False) -> bytes:
    """Base64 in its one canonical spelling: with padding, or base64url without it."""
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True) if url else base64.b64decode(text, validate=True)
    require(to_base64(data, url) == text, "invalid base64: not canonical")
    return data

def to_base64(data: bytes, url: bool = False) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=") if url else base64.b64encode(data).decode()

TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", re.ASCII)

@lru_cache(4096)
def parse_time(text: str) -> int:
    """Milliseconds since 1970 of a time that exists in the calendar. # protocol "Conventions" """
    require(TIME.fullmatch(text), "invalid time")
    # Python's calendar has no year 0: 400 years later it has the same days.
    shift = 400 if text < "0001" else 0
    moment = datetime.fromisoformat(f"{int(text[:4]) + shift:04}{text[4:-1]}").replace(tzinfo=timezone.utc)
    delta = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return delta.days * 86_400_000 + delta.seconds * 1000 + delta.microseconds // 1000 - shift // 400 * 146_097 * 86_400_000

def _integer(text: str) -> int:
    # protocol "Conventions": the form of RFC 8785, which has no -0.
    require(text != "-0" and len(text) <= 17 and abs(int(text)) <= MAX_SAFE, f"invalid number: {text[:40]}")
    return int(text)

def reject_number(text: str):
    raise ValueError(f"invalid number: {text[:40]}")

def _members(pairs: list) -> dict:
    members = dict(pairs)
    require(len(members) == len(pairs) and "__proto__" not in members, "invalid JSON: a member twice, or named __proto__")
    return members

def depth_of(value) -> int:
    """Levels of objects and arrays."""
    level, current = 0, [value]
    while current := [item for item in current if isinstance(item, (dict, list))]:
        level += 1
        current = [child for item in current for child in (item.values() if isinstance(item, dict) else item)]
    return level

def parse_json(data: bytes, limit: int = MAX_COLLATERAL, depth: int = 64):
    """Strict JSON in any spelling: no member twice, no byte order mark, canonical integers, no unpaired surrogates."""
    require(len(data) <= limit, f"invalid JSON: more than {limit} bytes")
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_members, parse_int=_integer, parse_float=reject_number, parse_constant=reject_number)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"invalid JSON: {error}") from None
    require(depth_of(value) <= depth, f"invalid JSON: more than {depth} levels")
    if "\\u" in text:
        canonical(value)  # rejects unpaired surrogates
    return value

def canonical(value) -> bytes:
    """RFC 8785 of a value without fractions."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
    if max(text) > "\ud7ff":  # sort members by UTF-16 code units, not by code points
        text = json.dumps(_sorted(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")

def _sorted(value):
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=utf16)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value

def utf16(text: str) -> bytes:
    """The key to sort texts by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")

def parse_canonical(data: bytes, limit: int = MAX_BLOCK):
    """A value whose canonical encoding is exactly these bytes. # receipt-v1 §1"""
    value = parse_json(data, limit)
    require(canonical(value) == data, "invalid JSON: not canonical")
    return value

CID_PREFIX = b"\x01\x55\x12\x20"

def cid_of(data: bytes) -> str:
    """CID version 1, codec raw, SHA-256, in base32. # receipt-v1 §1"""
    return cid_of_hash(sha256(data))

def cid_of_hash(digest: bytes) -> str:
    return "b" + base64.b32encode(CID_PREFIX + digest).decode().lower().rstrip("=")

def parse_cid(text: str) -> bytes:
    """The SHA-256 that a CID names. Another codec or hash, and set trailing bits, are no CID of a block. # receipt-v1 §3"""
    require(isinstance(text, str) and re.fullmatch("b[a-z2-7]{58}", text), "invalid CID")
    data = base64.b32decode(text[1:].upper() + "======")
    require(data[:4] == CID_PREFIX and cid_of_hash(data[4:]) == text, "invalid CID: not raw with SHA-256")
    return data[4:]

def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(3):  # receipt-v2 §1: at most 3 bytes, no longer than needed
        if at + index >= len(data):
            break
        byte = data[at + index]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            if index and not byte:
                break
            return value, at + index + 1
    raise Fault("invalid CAR: malformed length", "car_malformed")

def parse_car(data: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The root's block, and the others by role. # receipt-v2 §1 "CAR files" """
    start, end = bytes.fromhex("3aa265726f6f747381d82a582500"), b"\x67version\x01"
    require(data[:14] == start and data[14:18] == CID_PREFIX and data[50:59] == end, "invalid CAR: another header", "car_malformed")
    root, at, blocks = data[18:50], 59, {}
    while at < len(data):
        length, at = _varint(data, at)
        cid, block = data[at:at + 36], data[at + 36:at + length]
        # In this order, section by section.
        is_whole = 36 < length <= 36 + MAX_BLOCK and at + length <= len(data)
        require(is_whole, "invalid CAR: empty, oversized or incomplete block", "car_malformed")
        require(cid == CID_PREFIX + sha256(block), "invalid CAR: a block has another CID", "car_mismatch")
        require(cid[4:] not in blocks and len(blocks) < 16, "invalid CAR: a block twice, or more than 16 blocks", "car_malformed")
        blocks[cid[4:]] = block
        at += length
    require(root in blocks, "invalid CAR: no root", "car_mismatch")
    roles, named = find_roles(blocks[root], blocks)
    require(blocks.keys() <= {root, *named}, "invalid CAR: a block that no other names", "car_mismatch")
    return blocks[root], roles

def find_roles(receipt: bytes, blocks: dict[bytes, bytes]) -> tuple[dict[str, bytes], set[bytes]]:
    """The blocks that receipt and release name, by role, and all hashes that they name. # receipt-v2 §2"""
    release = blocks.get(_name(receipt, "coordinator", "release"), b"")
    named = {
        "release": _name(receipt, "coordinator", "release"), "batch": _name(receipt, "signer", "batch"), "policy": _name(receipt, "policy"),
        "collateral": _name(release, "collateral") or _name(receipt, "signer", "collateral"), "coordinator": _name(release, "coordinator"),
    }
    return {role: blocks[digest] for role, digest in named.items() if digest in blocks}, {*named.values(), _name(release, "batch")}

def _name(block: bytes, *path: str) -> bytes | None:
    try:
        value = parse_json(block)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return parse_cid(value)
    except ValueError:
        return None
