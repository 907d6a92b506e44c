"""Statements, configurations and settings: what the hashes of a quote and of a release cover. # protocol"""

from .bls import is_g2_key
from .codec import canonical, parse_time, sha256, sha512, tag, u32, u64, unhex, utf16
from .crypto import address_of, is_ed25519_key, is_secp256k1_key
from .faults import require
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
    _check_ascending([(utf16(item["issuer"]), utf16(item["audience"])) for item in config["issuers"]])

def _check_ascending(items: list) -> None:
    require(not any(a >= b for a, b in zip(items, items[1:])), "a list out of order, or an item twice")

def check_settings(settings: dict) -> None:
    """# protocol "Settings" """
    _check_ascending([canonical(source) for source in settings["entropy"]])
    _check_ascending(settings["implementations"])
    for source in settings["entropy"]:
        is_key = {"satellite": is_ed25519_key, "drand": is_g2_key, "unsigned": lambda key: True}[source["kind"]]
        require(is_key(unhex(source.get("key", ""))), "invalid key of a source")
    if settings["log"] is not None:
        _check_ascending([utf16(origin) for origin in settings["log"]["origins"]])
        _check_ascending(settings["log"]["witnesses"])
        check_witnesses(settings["log"]["witnesses"], settings["log"]["quorum"])
        require(all(map(is_log_origin, settings["log"]["origins"])), "invalid origin")

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
    require(time_of(statement) is not None, "the time of signing doesn't exist")
    stated = [statement[name] for name in ("keyId", "publicKey", "address", "digest", "signature", "txHash", "chainId", "signedAt", "signedAt")]
    named = [transaction[name] for name in ("from", "digestSigned", "signature", "txHash", "chainId", "signedAt")]
    require(stated == [signer["keyId"], signer["publicKey"], *named, receipt["issuedAt"]], "the statement is about another signature")

def check_v2(receipt: dict, settings: dict | None, content: dict | None) -> None:
    """# receipt-v2 §4, "statement" passes if all of this holds. Without the batch there are no settings. `content` is that of the opening."""
    statement, subject, kind = receipt["signer"]["statement"], receipt["subject"], receipt["kind"]
    key, policy, has_policy = unhex(statement["publicKey"]), statement["policy"], statement["policy"] is not None
    require(time_of(statement) is not None, "the time of signing doesn't exist")
    require((statement["kind"], statement["signedAt"]) == (kind, receipt["issuedAt"]), "another kind or time")
    require(statement["subject"] == subject_hash(subject).hex(), "another subject")
    require(is_secp256k1_key(key) and address_of(key) == statement["address"], "the address isn't that of the key")
    if kind == "transaction":
        require((subject["from"], subject["signedAt"]) == (statement["address"], statement["signedAt"]), "another sender or time")
    require(has_policy == ("policy" in receipt), "only one of statement and receipt names a policy")
    if not has_policy:
        names = {*receipt, *subject, *(content or {})}
        require(statement["approvals"] is None and not names & {"approvals", "budget"}, "approvals or a budget without a policy")
    require(kind != "address" or statement["approvals"] is None, "approvals of an address")
    if kind in ("address", "revocation"):
        require((subject["address"], subject["policy"]) == (statement["address"], policy), "the subject has another address or policy")
    is_ruled = has_policy and kind not in ("address", "revocation")
    require((statement["rule"] is not None) == is_ruled, "a rule where there is none, or no rule")
    require(statement["session"] != "none" or has_policy and kind != "address", "no session for a wallet or an address")
    require(settings is None or settings["sessions"] != "bound" or statement["session"] != "cookie", "a session without a client key")
