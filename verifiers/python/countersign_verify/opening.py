"""Openings of off-chain signatures and of the owners of addresses, and the step `opening`."""

from typing import NamedTuple

from . import schema
from .codec import canonical, parse_json, sha256, tag, un0x, unhex
from .crypto import N
from .faults import require

SCHEMA = "protocol/spec/opening-v1.schema.json"
MAX_OPENING = 262_144
MAX_DEPTH = 24

class Opening(NamedTuple):
    """An opening that matches its receipt. A half that is withheld is None; so are both for the owner of an address."""

    content: dict | None = None
    signature: bytes | None = None
    identity: dict | None = None
    has_valid_approvals: bool = True  # whether each is as in the schema

def check_signature_form(signature: bytes) -> None:
    """# protocol "Signature": r in range, low s, v 27 or 28"""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    require(1 <= r < N and 1 <= s <= (N - 1) // 2 and signature[64] in (27, 28), "invalid signature: r, s or v out of range")

def _has_form(value, with_approvals: bool) -> bool:
    """Whether it is as in the schema. What later steps check is left out."""
    content, others = value.get("content") if isinstance(value, dict) else None, {}
    if isinstance(content, dict):
        if isinstance(content.get("approvals"), list) and not with_approvals:  # receipt-v2 §4: fails vault-approvals
            others["approvals"] = []
        budget = content.get("budget")
        if isinstance(budget, dict) and type(budget.get("sequence")) is int and budget["sequence"] == 0:  # receipt-v2 §6: fails vault-budget
            others["budget"] = {**budget, "sequence": 1}
        value = {**value, "content": {**content, **others}}
    return schema.matches(SCHEMA, value)

def parse_opening(data: bytes) -> tuple[bytes, Opening]:
    """The commitment of an opening, and what it shows. # protocol "Opening" """
    value = parse_json(data, MAX_OPENING, MAX_DEPTH)
    require(_has_form(value, with_approvals=False), "invalid opening: see opening-v1.schema.json")
    is_valid = _has_form(value, with_approvals=True)
    content, signature = value["content"], value["signature"]
    if isinstance(content, str):
        content_hash, content = unhex(content), None
    else:
        covered = canonical({name: item for name, item in content.items() if name != "salt"})
        content_hash = sha256(tag("opening-content/v1") + unhex(content["salt"]) + covered)
    if isinstance(signature, str):
        signature_hash, signature = unhex(signature), None
    else:
        salt, signature = unhex(signature["salt"]), un0x(signature["signature"])
        check_signature_form(signature)
        signature_hash = sha256(tag("opening-signature/v1") + salt + signature)
    return sha256(tag("opening/v1") + content_hash + signature_hash), Opening(content, signature, None, is_valid)

def parse_owner_opening(data: bytes) -> tuple[bytes, Opening]:
    """The commitment to the owner of an address, and the owner. # protocol "Client keys and owners" """
    value = parse_json(data, MAX_OPENING, MAX_DEPTH)
    identity = value["identity"] if isinstance(value, dict) and set(value) == {"salt", "identity"} else None
    require(isinstance(identity, dict) and set(identity) == {"issuer", "subject", "email"}, "invalid opening: unknown or missing members")
    require(all(isinstance(item, str) or item is None and name == "email" for name, item in identity.items()), "invalid opening: its identity")
    return sha256(tag("owner/v1") + unhex(value["salt"], 32) + canonical(identity)), Opening(identity=identity)

def check_opening(receipt: dict, data: bytes) -> Opening:
    """The step `opening`. # receipt-v2 §4"""
    kind, subject = receipt["kind"], receipt["subject"]
    require(kind in ("address", "off-chain"), f"a receipt of the kind {kind} has no opening")
    commitment, opening = parse_owner_opening(data) if kind == "address" else parse_opening(data)
    require(commitment.hex() == subject["owner" if kind == "address" else "commitment"], "it doesn't open the receipt's commitment")
    return opening
