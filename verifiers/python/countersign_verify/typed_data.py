"""Messages (EIP-191) and typed data (EIP-712) with the limits of the protocol. Malformed input raises ValueError."""

import re

from .codec import MAX_SAFE, canonical
from .crypto import keccak256

MAX_CONTENT = 32_768
MAX_NESTING = 16
MAX_BLOCKS = 4096
NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
RESERVED = re.compile("bool|address|string|function|bytes[0-9]*|u?int[0-9]*|u?fixed|u?fixed[0-9]+x[0-9]+")
SIZES = [str(size) for size in range(8, 257, 8)]
ATOMIC = {"bool", "address", "string", "bytes", *(f"bytes{n}" for n in range(1, 33)), *(f"{t}{n}" for t in ("uint", "int") for n in SIZES)}
BRACKETS = re.compile(r"(.*)\[([1-9][0-9]*)?\]", re.DOTALL)
INTEGER = re.compile("0|-?[1-9][0-9]{0,77}")
DOMAIN = {"name": "string", "version": "string", "chainId": "uint256", "verifyingContract": "address", "salt": "bytes32"}


def _reject(reason: str):
    raise ValueError(f"invalid typed data: {reason}")


def message_digest(content) -> bytes:
    """# protocol "Message" """
    if not isinstance(content, dict) or set(content) != {"message"} or len(canonical(content)) > MAX_CONTENT:
        raise ValueError("invalid message")
    message = _bytes(content["message"])
    return keccak256(b"\x19Ethereum Signed Message:\n" + str(len(message)).encode() + message)


def hash_typed_data(content) -> bytes:
    """# protocol "Typed data" """
    if not isinstance(content, dict) or set(content) != {"domain", "types", "primaryType", "message"}:
        _reject("its members")
    if len(canonical(content)) > MAX_CONTENT:
        _reject("too large")
    domain, types, primary = content["domain"], content["types"], content["primaryType"]
    _check_types(types)
    _check_domain(domain, types)
    if not isinstance(primary, str) or primary not in types or primary == "EIP712Domain":
        _reject("its primary type")
    listed = [{"name": name, "type": kind} for name, kind in DOMAIN.items() if name in domain]
    # Rule 4: the domain and its type have a separate budget.
    separator = _Hasher({"EIP712Domain": listed}).struct("EIP712Domain", domain)
    return keccak256(b"\x19\x01" + separator + _Hasher(types).struct(primary, content["message"]))


def _check_types(types) -> None:
    """# protocol "Typed data", rules 1 to 3"""
    if not isinstance(types, dict):
        _reject("its types")
    for struct, members in types.items():
        if not NAME.fullmatch(struct) or RESERVED.fullmatch(struct) or not isinstance(members, list):
            _reject("a struct")
        for member in members:
            if not isinstance(member, dict) or set(member) != {"name", "type"} or not all(isinstance(text, str) for text in member.values()):
                _reject("a member of a struct")
            if not NAME.fullmatch(member["name"]):
                _reject("the name of a member")
        if len({member["name"] for member in members}) != len(members):
            _reject("a member twice")
    depths: dict[str, int] = {}
    for struct in types:
        _depth_of(struct, types, depths, 0)


def _depth_of(kind: str, types: dict, depths: dict, level: int) -> int:
    """How deep a type nests: each struct and each pair of brackets counts one. A struct that contains itself has no end."""
    if level > MAX_NESTING:
        _reject("nested too deeply, or a struct in itself")
    if match := BRACKETS.fullmatch(kind):
        depth = 1 + _depth_of(match[1], types, depths, level + 1)
    elif kind in ATOMIC:
        return 0
    elif kind not in types:
        _reject(f"the type {kind[:40]}")
    elif kind not in depths:
        inner = [member["type"] for member in types[kind]]
        if "EIP712Domain" in (re.sub(r"\[.*", "", name, flags=re.DOTALL) for name in inner):  # rule 7
            _reject("a domain as a member")
        depth = depths[kind] = 1 + max((_depth_of(name, types, depths, level + 1) for name in inner), default=0)
    else:
        depth = depths[kind]
    if level + depth > MAX_NESTING:
        _reject("nested too deeply")
    return depth


def _check_domain(domain, types: dict) -> None:
    """# protocol "Typed data", rule 7"""
    if not isinstance(domain, dict) or not domain or not set(domain) <= set(DOMAIN):
        _reject("its domain")
    expected = [{"name": name, "type": kind} for name, kind in DOMAIN.items() if name in domain]
    if types.get("EIP712Domain", expected) != expected:
        _reject("the type of its domain")


def integer(value, kind: str = "uint256") -> int:
    """# protocol "Typed data", rule 6"""
    if type(value) is int and abs(value) <= MAX_SAFE:
        number = value
    elif isinstance(value, str) and INTEGER.fullmatch(value):
        number = int(value)
    elif isinstance(value, str) and re.fullmatch("0x[0-9a-fA-F]{1,64}", value):
        number = int(value, 16)
    else:
        _reject("an integer")
    bits = int(kind.lstrip("uint"))
    low, high = (0, 1 << bits) if kind[0] == "u" else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= number < high:
        _reject("an integer out of range")
    return number


def _bytes(value, length: int | None = None) -> bytes:
    if not isinstance(value, str) or not re.fullmatch("0x(?:[0-9a-fA-F]{2})*", value) or length not in (None, len(value) // 2 - 1):
        _reject("bytes")
    return bytes.fromhex(value[2:])


class _Hasher:
    """Hashes structs, and counts the blocks of Keccak-256. # protocol "Typed data", rules 4 and 5"""

    def __init__(self, types: dict):
        self.types, self.left, self.type_hashes = types, MAX_BLOCKS, {}

    def hash(self, data: bytes) -> bytes:
        self.left -= len(data) // 136 + 1
        if self.left < 0:
            _reject("too much to hash")
        return keccak256(data)

    def struct(self, name: str, value) -> bytes:
        members = self.types[name]
        if not isinstance(value, dict) or set(value) != {member["name"] for member in members}:
            _reject("the members of a struct")
        if name not in self.type_hashes:
            self.type_hashes[name] = self.hash(self.encode_type(name).encode())
        return self.hash(self.type_hashes[name] + b"".join(self.word(member["type"], value[member["name"]]) for member in members))

    def encode_type(self, name: str) -> str:
        found, pending = set(), [name]
        while pending:
            struct = pending.pop()
            if struct in self.types and struct not in found:
                found.add(struct)
                pending += [member["type"].split("[")[0] for member in self.types[struct]]
        return "".join(
            f"{struct}({','.join(member['type'] + ' ' + member['name'] for member in self.types[struct])})"
            for struct in [name, *sorted(found - {name})]
        )

    def word(self, kind: str, value) -> bytes:
        if match := BRACKETS.fullmatch(kind):
            if not isinstance(value, list) or match[2] and str(len(value)) != match[2]:
                _reject("a list")
            return self.hash(b"".join(self.word(match[1], item) for item in value))
        if kind in self.types:
            return self.struct(kind, value)
        if kind == "string":
            if not isinstance(value, str):
                _reject("a string")
            return self.hash(value.encode("utf-8"))
        if kind == "bytes":
            return self.hash(_bytes(value))
        if kind == "bool":
            if not isinstance(value, bool):
                _reject("a bool")
            return bytes(31) + bytes([value])
        if kind == "address":
            return bytes(12) + _bytes(value, 20)
        if kind.startswith("bytes"):
            return _bytes(value, int(kind[5:])).ljust(32, b"\0")
        return (integer(value, kind) % (1 << 256)).to_bytes(32, "big")


def content_digest(kind: str, content) -> bytes:
    return message_digest(content) if kind == "message" else hash_typed_data(content)
