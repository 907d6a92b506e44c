"""Strict DER (X.690). Malformed input raises ValueError. # evidence §3.1"""

import re
from functools import cached_property

from .codec import parse_time
from .faults import require

BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, NULL, OID, ENUMERATED = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0A
UTF8_STRING, PRINTABLE_STRING, IA5_STRING, UTC_TIME, GENERALIZED_TIME, SEQUENCE, SET = 0x0C, 0x13, 0x16, 0x17, 0x18, 0x30, 0x31
MAX_DEPTH = 32  # far above certificates and lists; bounds the memory

class Node:
    """One element: its tag, its content, and its whole encoding."""

    def __init__(self, tag: int, value: bytes, raw: bytes, depth: int):
        self.tag, self.value, self.raw, self.depth = tag, value, raw, depth
        require(depth < MAX_DEPTH, "invalid DER: nested too deep")
        if tag & 0x20:
            _ = self.children  # checks everything inside
        require(tag not in _FORMS or _FORMS[tag](value), f"invalid DER: malformed value of tag {tag:#04x}")

    @cached_property
    def children(self) -> list["Node"]:
        found, at = [], 0
        while at < len(self.value):
            node = _read(self.value, at, self.depth + 1)
            found.append(node)
            at += len(node.raw)
        return found

    def expect(self, tag: int, length: int | None = None) -> "Node":
        require(self.tag == tag, f"invalid DER: expected tag {tag:#04x}, got {self.tag:#04x}")
        require(length in (None, len(self.value)), f"invalid DER: expected {length} bytes, got {len(self.value)}")
        return self

    def items(self, minimum: int = 0, maximum: int | None = None, tag: int = SEQUENCE) -> list["Node"]:
        """The members of a SEQUENCE, or of another constructed element."""
        members = self.expect(tag).children
        require(len(members) >= minimum and (maximum is None or len(members) <= maximum), f"invalid DER: {len(members)} members in a sequence")
        return members

    def integer(self, maximum: int | None = None, tag: int = INTEGER) -> int:
        number = int.from_bytes(self.expect(tag).value, "big")
        require(maximum is None or number <= maximum, f"invalid DER: expected an integer up to {maximum}, got {number}")
        return number

    def oid(self) -> str:
        number, parts = 0, []
        for byte in self.expect(OID).value:
            number = number << 7 | byte & 0x7F
            if byte < 0x80:
                parts.append(number)
                number = 0
        first = min(parts[0] // 40, 2)
        return ".".join(map(str, [first, parts[0] - 40 * first, *parts[1:]]))

    def bits(self) -> bytes:
        """A BIT STRING without unused bits: a key or a signature."""
        require(not self.expect(BIT_STRING).value[0], "invalid DER: unused bits")
        return self.value[1:]

    def flags(self) -> set[int]:
        """The set bits of a list of named bits. Its unused bits and trailing zeros are not checked."""
        data = self.expect(BIT_STRING).value[1:]
        return {8 * index + bit for index, byte in enumerate(data) for bit in range(8) if byte << bit & 0x80}

    def time(self) -> int:
        """Milliseconds since 1970."""
        text = self.value.decode("ascii", "replace")
        if self.tag == UTC_TIME:
            text = ("20" if text < "50" else "19") + text
        match = re.fullmatch("([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})Z", text)
        require(match is not None and self.tag in (UTC_TIME, GENERALIZED_TIME), "invalid DER: malformed time")
        return parse_time("{}-{}-{}T{}:{}:{}.000Z".format(*match.groups()))

def parse(data: bytes) -> Node:
    """The one element that data consists of."""
    node = _read(data, 0, 0)
    require(len(node.raw) == len(data), "invalid DER: bytes after the element")
    return node

def _read(data: bytes, at: int, depth: int) -> Node:
    header = data[at:at + 5]
    require(len(header) >= 2, "invalid DER: incomplete element")
    tag, length, start = header[0], header[1], at + 2
    # One byte for the tag; of the universal types, exactly SEQUENCE and SET are constructed.
    is_constructed = tag & 0x20 != 0
    is_expected = is_constructed == (tag & 0x1F in (0x10, 0x11)) if tag < 0x40 else True
    require(tag & 0x1F != 0x1F and tag != 0 and is_expected, f"invalid DER: tag {tag:#04x}")
    if length >= 0x80:
        size = length & 0x7F
        digits = data[start:start + size]
        length, start = int.from_bytes(digits, "big"), start + size
        require(1 <= size <= 3 and len(digits) == size and digits[0] != 0 and length >= 0x80, "invalid DER: length not in its shortest form")
    require(start + length <= len(data), "invalid DER: incomplete element")
    return Node(tag, data[start:start + length], data[at:start + length], depth)

def _is_integer(value: bytes) -> bool:
    return len(value) > 0 and value[0] < 0x80 and not (len(value) > 1 and value[0] == 0 and value[1] < 0x80)

def _is_oid(value: bytes) -> bool:
    # A part that starts with 80 is longer than needed.
    return value != b"" and value[-1] < 0x80 and all(a >= 0x80 or b != 0x80 for a, b in zip(b"\0" + value, value))

_FORMS = {
    BOOLEAN: lambda value: value in (b"\x00", b"\xff"), NULL: lambda value: not value,
    INTEGER: _is_integer, ENUMERATED: _is_integer, BIT_STRING: lambda value: value and value[0] < (8 if len(value) > 1 else 1), OID: _is_oid,
}
