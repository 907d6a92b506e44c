"""Messages (EIP-191) and typed data (EIP-712) with the limits of the protocol. Malformed input raises ValueError."""

import re

from .codec import MAX_SAFE, canonical
from .crypto import keccak256
from .faults import require

MAX_CONTENT = 32_768
MAX_NESTING = 16
MAX_BLOCKS = 4096
NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
RESERVED = re.compile("bool|address|string|function|bytes[0-9]*|u?int[0-9]*|u?fixed|u?fixed[0-9]+x[0-9]+")
ATOMIC = {"bool", "address", "string", "bytes", *(f"{kind}{8 * n}" for n in range(1, 33) for kind in ("uint", "int")), *(f"bytes{n}" for n in range(1, 33))}
BRACKETS = re.compile(r"(.*)\[([1-9][0-9]*)?\]", re.DOTALL)
INTEGER = re.compile("0|-?[1-9][0-9]{0,77}")
DOMAIN = {"name": "string", "version": "string", "chainId": "uint256", "verifyingContract": "address", "salt": "bytes32"}

def message_digest(content) -> bytes:
    """# protocol "Message" """
    require(isinstance(content, dict) and set(content) == {"message"} and len(canonical(content)) <= MAX_CONTENT, "invalid message")
    message = _bytes(content["message"])
    return keccak256(b"\x19Ethereum Signed Message:\n" + str(len(message)).encode() + message)

def hash_typed_data(content) -> bytes:
    """# protocol "Typed data" """
    require(isinstance(content, dict) and set(content) == {"domain", "types", "primaryType", "message"}, "invalid typed data: its members")
    require(len(canonical(content)) <= MAX_CONTENT, "message_too_large")
    domain, types, primary = content["domain"], content["types"], content["primaryType"]
    _check_types(types)
    require(isinstance(primary, str) and primary in types and primary != "EIP712Domain", "invalid typed data: its primary type")
    require(isinstance(domain, dict) and domain and set(domain) <= set(DOMAIN), "invalid typed data: its domain")  # rule 7
    listed = [{"name": name, "type": kind} for name, kind in DOMAIN.items() if name in domain]
    require(types.get("EIP712Domain", listed) == listed, "invalid typed data: the type of its domain")
    # Rule 4: the domain and its type have a separate budget.
    separator = _Hasher({"EIP712Domain": listed}).struct("EIP712Domain", domain)
    return keccak256(b"\x19\x01" + separator + _Hasher(types).struct(primary, content["message"]))

def _check_types(types) -> None:
    """# protocol "Typed data", rules 1 to 3"""
    require(isinstance(types, dict), "invalid typed data: its types")
    for struct, members in types.items():
        require(NAME.fullmatch(struct) and not RESERVED.fullmatch(struct) and isinstance(members, list), "invalid typed data: a struct")
        for member in members:
            is_text = isinstance(member, dict) and set(member) == {"name", "type"} and all(isinstance(text, str) for text in member.values())
            require(is_text and NAME.fullmatch(member["name"]), "invalid typed data: a member of a struct")
            require(member["type"].split("[")[0] != "EIP712Domain", "invalid typed data: a domain in a struct")  # rule 7
        require(len({member["name"] for member in members}) == len(members), "invalid typed data: a member twice")
    depths: dict[str, int] = {}
    for struct in types:
        _depth_of(struct, types, depths, 0)

def _depth_of(kind: str, types: dict, depths: dict, level: int) -> int:
    """How deep a type nests: each struct and each pair of brackets counts one. A struct that contains itself has no end."""
    match = BRACKETS.fullmatch(kind)
    if kind in ATOMIC:
        return 0
    require(level < MAX_NESTING and (match or kind in types), "invalid typed data: an unknown type, or nested too deeply")
    if kind not in depths:
        inner = [match[1]] if match else [member["type"] for member in types[kind]]
        depths[kind] = 1 + max((_depth_of(name, types, depths, level + 1) for name in inner), default=0)
    require(level + depths[kind] <= MAX_NESTING, "invalid typed data: nested too deeply")
    return depths[kind]

def integer(value, kind: str = "uint256") -> int:
    """# protocol "Typed data", rule 6"""
    is_number, text = type(value) is int and abs(value) <= MAX_SAFE, value if isinstance(value, str) else ""
    is_hex = re.fullmatch("0x[0-9a-fA-F]{1,64}", text) is not None
    require(is_number or is_hex or INTEGER.fullmatch(text), "invalid typed data: an integer")
    number, bits = int(text, 16) if is_hex else int(value), int(kind.lstrip("uint"))
    low = 0 if kind[0] == "u" else -(1 << bits - 1)
    require(low <= number < low + (1 << bits), "invalid typed data: an integer out of range")
    return number

def _bytes(value, length: int | None = None) -> bytes:
    require(isinstance(value, str) and re.fullmatch("0x(?:[0-9a-fA-F]{2})*", value), "invalid typed data: bytes")
    require(length in (None, len(value) // 2 - 1), "invalid typed data: the length of bytes")
    return bytes.fromhex(value[2:])

class _Hasher:
    """Hashes structs, and counts the blocks of Keccak-256. # protocol "Typed data", rules 4 and 5"""

    def __init__(self, types: dict):
        self.types, self.left, self.type_hashes = types, MAX_BLOCKS, {}

    def hash(self, data: bytes) -> bytes:
        self.left -= len(data) // 136 + 1
        require(self.left >= 0, "invalid typed data: too much to hash")
        return keccak256(data)

    def struct(self, name: str, value) -> bytes:
        members = self.types[name]
        require(isinstance(value, dict) and set(value) == {member["name"] for member in members}, "invalid typed data: members of a struct")
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
            require(isinstance(value, list) and match[2] in (None, str(len(value))), "invalid typed data: a list")
            return self.hash(b"".join(self.word(match[1], item) for item in value))
        if kind in self.types:
            return self.struct(kind, value)
        require(kind not in ("string", "bool") or type(value) is {"string": str, "bool": bool}[kind], f"invalid typed data: a {kind}")
        if kind in ("string", "bytes"):
            return self.hash(value.encode("utf-8") if kind == "string" else _bytes(value))
        if kind == "address":
            return bytes(12) + _bytes(value, 20)
        if kind.startswith("bytes"):
            return _bytes(value, int(kind[5:])).ljust(32, b"\0")
        return (int(value) if kind == "bool" else integer(value, kind) % (1 << 256)).to_bytes(32, "big")

def content_digest(kind: str, content) -> bytes:
    return message_digest(content) if kind == "message" else hash_typed_data(content)
