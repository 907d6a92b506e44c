"""Messages (EIP-191) and typed data (EIP-712) with the limits of the protocol. Malformed input raises ValueError."""

import re

from .codec import MAX_SAFE, canonical
from .crypto import keccak256

MAX_CONTENT = 32_768
MAX_NESTING = 16
MAX_BLOCKS = 4096
NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
RESERVED = re.compile("bool|address|string|function|bytes[0-9]*|u?int[0-9]*|u?fixed|u?fixed[0-9]+x[0-9]+")
ATOMIC = {"bool", "address", "string", "bytes", *(f"{kind}{8 * n}" for n in range(1, 33) for kind in ("uint", "int")), *(f"bytes{n}" for n in range(1, 33))}
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
    if not isinstance(primary, str) or primary not in types or primary == "EIP712Domain":
        _reject("its primary type")
    if not isinstance(domain, dict) or not domain or not set(domain) <= set(DOMAIN):  # rule 7
        _reject("its domain")
    listed = [{"name": name, "type": kind} for name, kind in DOMAIN.items() if name in domain]
    if types.get("EIP712Domain", listed) != listed:
        _reject("the type of its domain")
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
            if not isinstance(member, dict) or set(member) != {"name", "type"} or not isinstance(member["type"], str):
                _reject("a member of a struct")
            if not isinstance(member["name"], str) or not NAME.fullmatch(member["name"]) or member["type"].split("[")[0] == "EIP712Domain":
                _reject("a member of a struct")
        if len({member["name"] for member in members}) != len(members):
            _reject("a member twice")
    depths: dict[str, int] = {}
    for struct in types:
        _depth_of(struct, types, depths, 0)

def _depth_of(kind: str, types: dict, depths: dict, level: int) -> int:
    """How deep a type nests: each struct and each pair of brackets counts one. A struct that contains itself has no end."""
    match = BRACKETS.fullmatch(kind)
    if kind in ATOMIC:
        return 0
    if level == MAX_NESTING or not match and kind not in types:
        _reject("an unknown type, nested too deeply, or a struct in itself")
    if kind not in depths:
        inner = [match[1]] if match else [member["type"] for member in types[kind]]
        depths[kind] = 1 + max((_depth_of(name, types, depths, level + 1) for name in inner), default=0)
    if level + depths[kind] > MAX_NESTING:
        _reject("nested too deeply")
    return depths[kind]

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
        listed = ((struct, ",".join(f"{member['type']} {member['name']}" for member in self.types[struct])) for struct in found)
        return "".join(f"{struct}({members})" for struct, members in sorted(listed, key=lambda item: (item[0] != name, item[0])))

    def word(self, kind: str, value) -> bytes:
        if match := BRACKETS.fullmatch(kind):
            if not isinstance(value, list) or match[2] and str(len(value)) != match[2]:
                _reject("a list")
            return self.hash(b"".join(self.word(match[1], item) for item in value))
        if kind in self.types:
            return self.struct(kind, value)
        if kind in ("string", "bool") and type(value) is not (str if kind == "string" else bool):
            _reject(f"a {kind}")
        if kind in ("string", "bytes"):
            return self.hash(value.encode("utf-8") if kind == "string" else _bytes(value))
        if kind == "address":
            return bytes(12) + _bytes(value, 20)
        if kind.startswith("bytes"):
            return _bytes(value, int(kind[5:])).ljust(32, b"\0")
        return (int(value) if kind == "bool" else integer(value, kind) % (1 << 256)).to_bytes(32, "big")

def content_digest(kind: str, content) -> bytes:
    return message_digest(content) if kind == "message" else hash_typed_data(content)
