"""Approvals of vaults by passkeys (WebAuthn, ES256) and by agents' keys (Ed25519). # policy-v1 §6"""

import json

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from .codec import canonical, depth_of, sha256, tag, to_base64, u8, u64, un0x, unhex
from .crypto import verify_ed25519, verify_p256
from .faults import require

KINDS = {"transaction": 1, "message": 2, "typed-data": 3, "revocation": 6}  # protocol "Client keys and owners"
REVOCATION_RULE = 255
MAX_CLIENT_DATA = 2048
MAX_CLIENT_DATA_DEPTH = 16
MAX_PASSKEY_MS = 24 * 3600 * 1000
MAX_AGENT_MS = 10 * 60 * 1000

def approvals_hash(approvals: list) -> bytes:
    return sha256(canonical(approvals))

def fields(vault: str, policy_hash: bytes, rule: int, kind: str, digest: bytes, expires_ms: int) -> bytes:
    """What follows the tag of a challenge or an agent's approval. # protocol "Tags" """
    return un0x(vault, 20) + policy_hash + u8(rule) + u8(KINDS[kind]) + digest + u64(expires_ms)

def check_approvals(policy, approvals: list, required: int, vault: str, rule: int, kind: str, digest: bytes, now_ms: int) -> None:
    """As many approvals as required, every one valid, in ascending order of approver. # policy-v1 §6"""
    order = [approval["approver"] for approval in approvals]
    require(all(a < b for a, b in zip(order, order[1:])), "approvals_malformed")
    require(len(approvals) >= required, "approvals_missing")
    listed = "any" if rule == REVOCATION_RULE else policy.rules[rule]["approvers"]
    for approval in approvals:
        index, kind_of_key = approval["approver"], "passkey" if "authenticatorData" in approval else "key"
        require(index < len(policy.approvers) and (listed == "any" or index in listed), "approver_not_allowed")
        approver = policy.approvers[index]
        # No agent revokes a key. # receipt-v2 §7
        require(approver["type"] == kind_of_key and (kind_of_key == "passkey" or rule != REVOCATION_RULE), "approver_not_allowed")
        require(approval["expiresMs"] > now_ms, "approval_expired")
        require(approval["expiresMs"] <= now_ms + (MAX_PASSKEY_MS if kind_of_key == "passkey" else MAX_AGENT_MS), "approval_too_long")
        covered = fields(vault, policy.hash, rule, kind, digest, approval["expiresMs"])
        key, signature = unhex(approver["publicKey"]), unhex(approval["signature"])
        if kind_of_key == "passkey":
            _check_assertion(approver, approval, key, signature, sha256(tag("approval/v1") + covered))
        else:
            require(verify_ed25519(key, signature, tag("agent-approval/v1") + covered), "approval_signature_invalid")

def _check_assertion(approver: dict, approval: dict, key: bytes, signature: bytes, challenge: bytes) -> None:
    data, authenticator = unhex(approval["clientDataJSON"]), unhex(approval["authenticatorData"])
    client = _parse_client_data(data)
    binding = client.get("tokenBinding", {"status": "supported"})
    require(isinstance(binding, dict) and binding.get("status") in ("present", "supported"), "client_data_malformed")
    require(client.get("type") == "webauthn.get", "client_data_type")
    require(client.get("challenge") == to_base64(challenge, url=True), "challenge_mismatch")
    require(client.get("origin") in approver["origins"], "origin_not_allowed")
    require(client.get("crossOrigin", False) is False and "topOrigin" not in client, "cross_origin")
    flags = authenticator[32]  # WebAuthn §6.1: UP 0, UV 2, BE 3, BS 4, AT 6, ED 7
    require(len(authenticator) == 37 and authenticator[:32] == sha256(approver["rpId"].encode()), "rp_id_mismatch")
    require(flags & 0b101 == 0b101 and not flags & 0b11000000 and flags & 0b11000 != 0b10000, "authenticator_flags")
    try:
        r, s = decode_dss_signature(signature)
        is_strict = len(signature) <= 72 and encode_dss_signature(r, s) == signature
    except ValueError:
        is_strict = False
    require(is_strict and verify_p256(key, r, s, sha256(authenticator + sha256(data))), "approval_signature_invalid")

def _parse_client_data(data: bytes) -> dict:
    """One JSON object. Numbers of ignored members may have any form, and a member may be named __proto__."""

    def members(pairs):
        require(len(dict(pairs)) == len(pairs), "a member twice")
        return dict(pairs)

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=members, parse_int=len, parse_float=len, parse_constant=lambda name: require(False, name))
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # fails for unpaired surrogates
    except (ValueError, RecursionError):
        raise ValueError("client_data_malformed") from None
    require(isinstance(value, dict) and len(data) <= MAX_CLIENT_DATA and depth_of(value) <= MAX_CLIENT_DATA_DEPTH, "client_data_malformed")
    return value
