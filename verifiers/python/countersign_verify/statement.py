"""Statements, configurations and settings: what the hashes of a quote and of a release cover. # protocol"""

from .bls import is_g2_key
from .codec import canonical, parse_time, sha256, sha512, tag, u32, u64, unhex, utf16
from .crypto import address_of, is_ed25519_key, is_secp256k1_key
from .log import check_witnesses
from .policy import is_log_origin


def subject_hash(subject: dict) -> bytes:
    """# protocol "Tags" """
    return sha256(tag("subject/v1") + canonical(subject))


def report_data(size: int, root: bytes, batch: dict, config: dict) -> bytes:
    """# protocol "Tags": report data of a batch"""
    return sha512(tag("tdx-report/v1") + u32(size) + root + unhex(batch["bootId"], 16) + u64(batch["sequence"])
                  + unhex(batch["previous"], 32) + sha256(canonical(config)))


def coordinator_report_data(keys: tuple[str, str | None], config_hash: str) -> bytes:
    """# protocol "Tags": report data of a coordinator, by its Ed25519 key and (version 2) ML-DSA-65 key"""
    second = b"" if keys[1] is None else sha256(unhex(keys[1]))
    return sha512(tag("snp-report/v1" if keys[1] is None else "snp-report/v2") + unhex(keys[0], 32) + second + unhex(config_hash, 32))


def check_config(config: dict) -> None:
    """# protocol "Configuration": the order of issuers"""
    order = [(utf16(item["issuer"]), utf16(item["audience"])) for item in config["issuers"]]
    if any(a >= b for a, b in zip(order, order[1:])):
        raise ValueError("issuers out of order, or a pair twice")


def _check_ascending(items: list) -> None:
    if any(a >= b for a, b in zip(items, items[1:])):
        raise ValueError("a list out of order, or an item twice")


def check_settings(settings: dict) -> None:
    """# protocol "Settings" """
    _check_ascending([canonical(source) for source in settings["entropy"]])
    _check_ascending(settings["implementations"])
    for source in settings["entropy"]:
        if source["kind"] == "satellite" and not is_ed25519_key(unhex(source["key"])) or source["kind"] == "drand" and not is_g2_key(unhex(source["key"])):
            raise ValueError("invalid key of a source")
    if settings["log"] is not None:
        _check_ascending([utf16(origin) for origin in settings["log"]["origins"]])
        _check_ascending(settings["log"]["witnesses"])
        check_witnesses(settings["log"]["witnesses"], settings["log"]["quorum"])
        if not all(map(is_log_origin, settings["log"]["origins"])):
            raise ValueError("invalid origin")


def time_or_none(text: str) -> int | None:
    try:
        return parse_time(text)
    except ValueError:
        return None


def time_of(statement: dict) -> int | None:
    """The time of signing, from 1970, or None if it doesn't exist. # protocol "Statement" """
    time = time_or_none(statement["signedAt"])
    return None if time is None or time < 0 else time


def check_v1(receipt: dict) -> None:
    """# receipt-v1 §3, step statement"""
    transaction, signer, statement = receipt["transaction"], receipt["signer"], receipt["signer"]["statement"]
    if time_of(statement) is None:
        raise ValueError("the time of signing doesn't exist")
    stated = [statement[name] for name in ("keyId", "publicKey", "address", "digest", "signature", "txHash", "chainId", "signedAt", "signedAt")]
    if stated != [signer["keyId"], signer["publicKey"], *(transaction[name] for name in (
            "from", "digestSigned", "signature", "txHash", "chainId", "signedAt")), receipt["issuedAt"]]:
        raise ValueError("the statement is about another signature")


def check_v2(receipt: dict, settings: dict | None, opening_content: dict | None) -> None:
    """# receipt-v2 §4, "statement" passes if all of this holds. Without the batch there are no settings."""
    statement, subject, kind = receipt["signer"]["statement"], receipt["subject"], receipt["kind"]
    if time_of(statement) is None:
        raise ValueError("the time of signing doesn't exist")
    key = unhex(statement["publicKey"])
    if (statement["kind"], statement["signedAt"], statement["subject"]) != (kind, receipt["issuedAt"], subject_hash(subject).hex()):
        raise ValueError("another kind, time or subject")
    if not is_secp256k1_key(key) or address_of(key) != statement["address"]:
        raise ValueError("the address isn't that of the key")
    if kind == "transaction" and (subject["from"], subject["signedAt"]) != (statement["address"], statement["signedAt"]):
        raise ValueError("another sender or time")
    if (statement["policy"] is None) != ("policy" not in receipt):
        raise ValueError("only one of statement and receipt names a policy")
    if statement["policy"] is None:
        shown = [receipt, subject, opening_content or {}]
        if statement["approvals"] is not None or any("approvals" in item or "budget" in item for item in shown):
            raise ValueError("approvals or a budget without a policy")
    if kind == "address" and statement["approvals"] is not None:
        raise ValueError("approvals of an address")
    if kind in ("address", "revocation") and (subject["address"], subject["policy"]) != (statement["address"], statement["policy"]):
        raise ValueError("the subject has another address or policy")
    if (statement["rule"] is not None) != (statement["policy"] is not None and kind not in ("address", "revocation")):
        raise ValueError("a rule where there is none, or no rule")
    if statement["session"] == "none" and (statement["policy"] is None or kind == "address"):
        raise ValueError("no session for a wallet or an address")
    if settings is not None and settings["sessions"] == "bound" and statement["session"] == "cookie":
        raise ValueError("a session without a client key")
