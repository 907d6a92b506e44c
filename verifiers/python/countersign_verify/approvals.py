"""Approvals of vaults by passkeys (WebAuthn, ES256) and by agents' keys (Ed25519). # policy-v1 §6"""

import json

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from .codec import canonical, sha256, tag, to_base64, u8, u64, un0x, unhex
from .crypto import verify_ed25519, verify_p256

KINDS = {"transaction": 1, "message": 2, "typed-data": 3, "revocation": 6}  # protocol "Client keys and owners"
REVOCATION_RULE = 255
MAX_CLIENT_DATA = 2048
MAX_CLIENT_DATA_DEPTH = 16
PASSKEY_MS = 24 * 3600 * 1000
AGENT_MS = 10 * 60 * 1000


class ApprovalFault(ValueError):
    """An approval that isn't valid, with a code."""

    def __init__(self, code: str):
        super().__init__(code)
        self.code = code


def _require(condition, code: str) -> None:
    if not condition:
        raise ApprovalFault(code)


def approvals_hash(approvals: list) -> bytes:
    return sha256(canonical(approvals))


def fields(vault: str, policy_hash: bytes, rule: int, kind: str, digest: bytes, expires_ms: int) -> bytes:
    """What follows the tag of a challenge or an agent's approval. # protocol "Tags" """
    return un0x(vault, 20) + policy_hash + u8(rule) + u8(KINDS[kind]) + digest + u64(expires_ms)


def check_approvals(policy, approvals: list, required: int, vault: str, rule: int, kind: str, digest: bytes, now_ms: int) -> None:
    """As many approvals as required, every one valid, in ascending order of approver. # policy-v1 §6"""
    order = [approval["approver"] for approval in approvals]
    _require(all(a < b for a, b in zip(order, order[1:])), "approvals_malformed")
    _require(len(approvals) >= required, "approvals_missing")
    for approval in approvals:
        index, is_passkey = approval["approver"], "authenticatorData" in approval
        _require(index < len(policy.approvers), "approver_not_allowed")
        approver = policy.approvers[index]
        listed = "any" if rule == REVOCATION_RULE else policy.rules[rule]["approvers"]
        _require(listed == "any" or index in listed, "approver_not_allowed")
        _require(approver["type"] == ("passkey" if is_passkey else "key"), "approver_not_allowed")
        _require(is_passkey or rule != REVOCATION_RULE, "approver_not_allowed")  # receipt-v2 §7
        _require(approval["expiresMs"] > now_ms, "approval_expired")
        _require(approval["expiresMs"] <= now_ms + (PASSKEY_MS if is_passkey else AGENT_MS), "approval_too_long")
        covered = fields(vault, policy.hash, rule, kind, digest, approval["expiresMs"])
        if is_passkey:
            _check_passkey(approver, approval, sha256(tag("approval/v1") + covered))
        else:
            key, signature = unhex(approver["publicKey"]), unhex(approval["signature"])
            _require(verify_ed25519(key, signature, tag("agent-approval/v1") + covered), "approval_signature_invalid")


def _check_passkey(approver: dict, approval: dict, challenge: bytes) -> None:
    client_data, authenticator = unhex(approval["clientDataJSON"]), unhex(approval["authenticatorData"])
    _check_client_data(client_data, approver, challenge)
    _require(len(authenticator) == 37, "authenticator_data_malformed")
    flags = authenticator[32]  # WebAuthn §6.1: UP 0, UV 2, BE 3, BS 4, AT 6, ED 7
    _require(authenticator[:32] == sha256(approver["rpId"].encode()), "rp_id_mismatch")
    _require(flags & 0b101 == 0b101, "user_not_verified")
    _require(not flags & 0b11000000 and flags & 0b11000 != 0b10000, "authenticator_data_malformed")
    r, s = _parse_der(unhex(approval["signature"]))
    _require(verify_p256(unhex(approver["publicKey"]), r, s, sha256(authenticator + sha256(client_data))), "approval_signature_invalid")


def _parse_der(signature: bytes) -> tuple[int, int]:
    """Strict DER of at most 72 bytes."""
    try:
        r, s = decode_dss_signature(signature)
        if len(signature) <= 72 and r > 0 and s > 0 and encode_dss_signature(r, s) == signature:
            return r, s
    except ValueError:
        pass
    raise ApprovalFault("approval_signature_invalid")


def _check_client_data(data: bytes, approver: dict, challenge: bytes) -> None:
    client = _parse_client_data(data)
    _require(isinstance(client.get("type"), str) and isinstance(client.get("challenge"), str), "client_data_malformed")
    _require(isinstance(client.get("origin"), str), "client_data_malformed")
    binding = client.get("tokenBinding", {"status": "supported"})
    status = binding.get("status") if isinstance(binding, dict) else None
    _require(isinstance(status, str) and status in ("present", "supported"), "client_data_malformed")
    _require(client["type"] == "webauthn.get", "client_data_type")
    _require(client["challenge"] == to_base64(challenge, url=True), "challenge_mismatch")
    _require(client["origin"] in approver["origins"], "origin_not_allowed")
    _require(client.get("crossOrigin", False) is False and "topOrigin" not in client, "cross_origin")


def _parse_client_data(data: bytes) -> dict:
    """One JSON object. Numbers of ignored members may have any form, and a member may be named __proto__."""

    def members(pairs):
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a member twice")
        return dict(pairs)

    def reject(_):
        raise ValueError("NaN or Infinity are not JSON")

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=members, parse_int=len, parse_float=len, parse_constant=reject)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # fails for unpaired surrogates
    except (ValueError, RecursionError):
        raise ApprovalFault("client_data_malformed") from None
    _require(isinstance(value, dict) and len(data) <= MAX_CLIENT_DATA and _is_shallow(value, MAX_CLIENT_DATA_DEPTH), "client_data_malformed")
    return value


def _is_shallow(value, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return True
    return levels > 0 and all(_is_shallow(child, levels - 1) for child in (value.values() if isinstance(value, dict) else value))
