"""Openings of off-chain signatures and of the owners of addresses, and the step `opening`."""

from dataclasses import dataclass

from .codec import canonical, parse_json, sha256, tag, un0x, unhex
from .faults import Fault
from .transaction import DECIMAL, natural
from .typed_data import content_digest

MAX_OPENING = 262_144
MAX_DEPTH = 24
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


@dataclass
class Opening:
    """An opening that matches its receipt. A half that is withheld is None; so are both for the owner of an address."""

    content: dict | None = None
    signature: bytes | None = None
    identity: dict | None = None


def members(value, required: str, optional: str = "") -> dict:
    """An object with exactly these members. # protocol "Conventions" """
    if not isinstance(value, dict) or not set(required.split()) <= set(value) <= {*required.split(), *optional.split()}:
        raise ValueError("unknown or missing members")
    return value


def check_approval_form(approval) -> None:
    """# opening-v1.schema.json, the same form as in receipt-v2.attestation.schema.json"""
    if isinstance(approval, dict) and "authenticatorData" in approval:
        members(approval, "approver authenticatorData clientDataJSON signature expiresMs")
        unhex(approval["authenticatorData"], 37)
        if not 1 <= len(unhex(approval["clientDataJSON"])) <= 2048 or not 1 <= len(unhex(approval["signature"])) <= 72:
            raise ValueError("invalid approval: a length")
    else:
        unhex(members(approval, "approver signature expiresMs")["signature"], 64)
    natural(approval["approver"]), natural(approval["expiresMs"])


def check_budget_form(budget) -> None:
    """# receipt-v2 §6, opening-v1.schema.json"""
    members(budget, "time sequence isRepeated items")
    budget["time"] is None or natural(budget["time"])
    natural(budget["sequence"], 1)
    if not isinstance(budget["isRepeated"], bool) or not isinstance(budget["items"], list):
        raise ValueError("invalid budget")
    for item in budget["items"]:
        members(item, "budget window before after")
        natural(item["budget"]), natural(item["window"])
        for amount in (item["before"], item["after"]):
            if not isinstance(amount, str) or not DECIMAL.fullmatch(amount):
                raise ValueError("invalid amount")


def check_signature_form(signature: bytes) -> None:
    """# protocol "Signature": r in range, low s, v 27 or 28"""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    if not 1 <= r < N or not 1 <= s <= (N - 1) // 2 or signature[64] not in (27, 28):
        raise ValueError("invalid signature: r, s or v out of range")


def parse_opening(data: bytes) -> tuple[bytes, dict | None, bytes | None]:
    """The commitment of an opening, and what it shows: content and signature. # protocol "Opening" """
    opening = members(parse_json(data, MAX_OPENING, MAX_DEPTH), "content signature")
    content, signature = opening["content"], opening["signature"]
    if isinstance(content, str) and isinstance(signature, str):
        raise ValueError("invalid opening: both halves withheld")
    if isinstance(content, str):
        content_hash, content = unhex(content, 32), None
    else:
        members(content, "salt kind digest content", "approvals budget")
        if content["kind"] not in ("message", "typed-data") or not isinstance(content.get("approvals", []), list):
            raise ValueError("invalid opening: its content")
        un0x(content["digest"], 32), content_digest(content["kind"], content["content"])
        for approval in content.get("approvals", []):
            check_approval_form(approval)
        "budget" in content and check_budget_form(content["budget"])
        covered = canonical({name: value for name, value in content.items() if name != "salt"})
        content_hash = sha256(tag("opening-content/v1") + unhex(content["salt"], 32) + covered)
    if isinstance(signature, str):
        signature_hash, signature = unhex(signature, 32), None
    else:
        salt, signature = unhex(members(signature, "salt signature")["salt"], 32), un0x(signature["signature"], 65)
        check_signature_form(signature)
        signature_hash = sha256(tag("opening-signature/v1") + salt + signature)
    return sha256(tag("opening/v1") + content_hash + signature_hash), content, signature


def parse_owner_opening(data: bytes) -> tuple[bytes, dict]:
    """The commitment to the owner of an address, and the owner. # protocol "Client keys and owners" """
    opening = members(parse_json(data, MAX_OPENING, MAX_DEPTH), "salt identity")
    identity = members(opening["identity"], "issuer subject email")
    if not all(isinstance(value, str) or (value is None and name == "email") for name, value in identity.items()):
        raise ValueError("invalid opening: its identity")
    return sha256(tag("owner/v1") + unhex(opening["salt"], 32) + canonical(identity)), identity


def check_opening(receipt: dict, data: bytes) -> Opening:
    """The step `opening`. # receipt-v2 §4"""
    kind, subject = receipt["kind"], receipt["subject"]
    try:
        if kind == "address":
            commitment, identity = parse_owner_opening(data)
            opening = Opening(identity=identity)
        elif kind == "off-chain":
            commitment, content, signature = parse_opening(data)
            opening = Opening(content, signature)
        else:
            raise Fault("opening", None, f"a receipt of kind {kind} has no opening")
    except ValueError as error:
        raise Fault("opening", "opening_malformed", str(error)) from None
    if commitment.hex() != subject["owner" if kind == "address" else "commitment"]:
        raise Fault("opening", None, "it doesn't open the receipt's commitment")
    return opening
