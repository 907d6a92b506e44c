"""The policy of a vault: its form, and which requests its rules allow. # policy-v1"""

import re
import unicodedata
from typing import NamedTuple

from . import schema
from .bls import is_g2_key
from .codec import canonical, parse_canonical, sha256, un0x, unhex
from .crypto import is_ed25519_key, p256_key
from .faults import require
from .log import check_witnesses
from .transaction import amount, transaction_digest
from .typed_data import content_digest, integer

MAX_POLICY = 16_384
SCHEMA = "policy/spec/policy-v1.schema.json"
LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# The last label is neither all digits nor 0x and hex digits.
HOST = re.compile(rf"(?:{LABEL}\.)*(?!(?:[0-9]+|0x[0-9a-f]*)$){LABEL}")
ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+)(?::([1-9][0-9]{0,4}))?")
X402_SPENDER = "0x402085c248eea27d92e8b30b2c58ed07f9e20001"
PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
MAX_VALIDITY_S = 3600

class Policy(NamedTuple):
    hash: bytes
    log: dict | None
    approvers: list
    rules: list
    budgets: list
    schedule: dict | None
    time: list

def parse_policy(data: bytes) -> Policy:
    """# policy-v1 §1 to §5"""
    try:
        value = parse_canonical(data, MAX_POLICY)
    except ValueError as error:
        raise ValueError(f"vault_policy_not_canonical: {error}") from None
    try:
        require(schema.matches(SCHEMA, value), "see policy-v1.schema.json")
        policy = Policy(sha256(data), value["log"], value["approvers"], value["rules"], value.get("budgets", []),
                        value.get("schedule"), value.get("time", []))
        _check_order(value)
        _check_policy(policy)
    except ValueError as error:
        raise ValueError(f"vault_policy_malformed: {error}") from None
    return policy

def _check_order(value) -> None:
    """Every list is in ascending order of the canonical bytes of its items, each once. # policy-v1 §1"""
    if isinstance(value, list):
        items = [canonical(item) for item in value]
        require(all(a < b for a, b in zip(items, items[1:])), "a list out of order, or with an item twice")
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        _check_order(child)

def _check_policy(policy: Policy) -> None:
    """What the schema can't express. # policy-v1 §1 to §5"""
    for approver in policy.approvers:
        key = unhex(approver["publicKey"])
        require(is_ed25519_key(key) if approver["type"] == "key" else p256_key(key), "the key of an approver")
        if approver["type"] == "passkey":
            require(_is_host(approver["rpId"]), "an rpId")
            require(all(_is_origin(origin, approver["rpId"]) for origin in approver["origins"]), "an origin")
    require(len({approver["publicKey"] for approver in policy.approvers}) == len(policy.approvers), "a key twice")
    if policy.log:
        check_witnesses(policy.log["witnesses"], policy.log["quorum"])
        require(is_log_origin(policy.log.get("origin", "-")), "the origin of its log")
    require(len({(b["chainId"], b["token"], b["periodS"]) for b in policy.budgets}) == len(policy.budgets), "an asset and period twice")
    for source in policy.time:
        key = unhex(source["key"])
        require(is_ed25519_key(key) if source["kind"] == "satellite" else is_g2_key(key), "the key of a source of time")
    require(policy.schedule is None or all(rule["kind"] == "transaction" for rule in policy.rules), "a schedule for other rules")
    for budget in policy.budgets:
        amount(budget["limit"])
    for rule in policy.rules:
        _check_rule(rule, policy)

def _is_host(text: str) -> bool:
    return len(text) <= 253 and HOST.fullmatch(text) is not None

def _is_origin(text: str, rp_id: str) -> bool:
    """# policy-v1 §2 "origins" """
    scheme, host, port = ORIGIN.fullmatch(text).groups()
    is_local = host == "localhost" or host.endswith(".localhost")
    return (
        _is_host(host) and (host == rp_id or host.endswith("." + rp_id)) and (scheme == "https" or is_local)
        and (port is None or int(port) <= 65535 and port != ("443" if scheme == "https" else "80"))
    )

def is_log_origin(text: str) -> bool:
    """# log-v1 §3, rule 1"""
    return 1 <= len(text.encode("utf-8")) <= 255 and not any(
        char in "+\ufeff" or char.isspace() or unicodedata.category(char) == "Cc" for char in text
    )

def _check_rule(rule: dict, policy: Policy) -> None:
    """# policy-v1 §3 and §5"""
    counted = range(len(policy.approvers)) if rule["approvers"] == "any" else rule["approvers"]
    require(all(index < len(policy.approvers) for index in counted) and rule["approvals"] <= len(counted), "the approvers of a rule")
    if rule["kind"] == "spend":
        spenders = rule.get("spenders", [X402_SPENDER])
        require(rule["payees"] == "any" or spenders == [X402_SPENDER], "payees that Permit2 doesn't enforce")
        coins = {budget["chainId"] for budget in policy.budgets if budget["token"] is None}
        require(not {"coin", "transfer"} & set(rule["forms"]) or coins >= set(rule["chainIds"]), "coins without a budget")
    elif policy.budgets:
        require(all(policy.approvers[index]["type"] == "passkey" for index in counted), "a rule of agents that doesn't spend")
    arguments = rule.get("arguments", [])
    require(len({item["at"] for item in arguments if item["at"] < rule["words"]}) == len(arguments), "the word of an argument")
    for name in {"maxValueWei", "maxFeeWei"} & set(rule):
        amount(rule[name])
    for item in arguments:
        if item["type"].startswith("uint"):
            for text in item.get("oneOf", [item.get("max", "0")]):
                amount(text, int(item["type"][4:]))

class Request(NamedTuple):
    """What a vault is to sign: the fields of a transaction, a message or typed data."""

    kind: str
    content: dict
    vault: str = ""
    now_ms: int = 0

def check_request(policy: Policy, index: int, request: Request, sample: tuple[dict, int] | None = None) -> list[dict]:
    """What the rule's payment spends, as { chainId, token, amount }; a ValueError with the codes of §7 otherwise.

    The sample is its source, one of `policy.time`, and its time. # policy-v1 §3 to §5
    """
    try:  # before any rule, the protocol's rules apply
        transaction_digest(request.content) if request.kind == "transaction" else content_digest(request.kind, request.content)
    except ValueError:
        raise ValueError("request_malformed") from None
    if index >= len(policy.rules):
        raise ValueError("rule_unknown")
    if policy.schedule:
        _check_schedule(policy, request, sample)
    rule = policy.rules[index]
    if rule["kind"] == "spend":
        return _spends(policy, rule, request)
    if rule["kind"] != request.kind:
        raise ValueError("kind_not_allowed")
    if request.kind != "message":
        _refuse((_transaction_codes if request.kind == "transaction" else _typed_data_codes)(rule, request.content))
    return []

def _refuse(codes: list[str]) -> None:
    if codes:
        raise ValueError(*codes)

def _failed(checks: dict[str, bool]) -> list[str]:
    return [code for code, passes in checks.items() if not passes]

def _check_schedule(policy: Policy, request: Request, sample) -> None:
    """# policy-v1 §4"""
    if sample is None:
        raise ValueError("sample_missing")
    if sample[0] not in policy.time:
        raise ValueError("sample_source_not_allowed")
    period = request.content.get("nonce", 0) // policy.schedule["count"]
    if sample[1] < policy.schedule["startsAtMs"] + period * policy.schedule["everyS"] * 1000:
        raise ValueError("nonce_not_due")

def _is_listed(value, allowed) -> bool:
    return allowed == "any" or value in allowed

def _fee(tx: dict) -> int:
    return int(tx["gas"]) * int(tx["maxFeePerGas"])

def _transaction_codes(rule: dict, tx: dict) -> list[str]:
    """# policy-v1 §3"""
    data = un0x(tx["data"])
    codes = _failed({
        "chain_not_allowed": _is_listed(tx["chainId"], rule["chainIds"]),
        "recipient_not_allowed": _is_listed(tx["to"], rule["to"]),
        "value_above_max": int(tx["value"]) <= int(rule["maxValueWei"]),
        "fee_above_max": _fee(tx) <= int(rule["maxFeeWei"]),
        "data_not_empty": "selectors" in rule or not data,
        "data_length": "selectors" not in rule or len(data) == 4 + 32 * rule["words"],
    })
    if "selectors" not in rule or "data_length" in codes:
        return codes
    codes += _failed({"selector_not_allowed": "0x" + data[:4].hex() in rule["selectors"]})
    for argument in rule.get("arguments", []):
        value = _decode(argument["type"], data[4 + 32 * argument["at"]:][:32])
        codes += ["argument_undecodable"] if value is None else _failed({
            "argument_not_allowed": "oneOf" not in argument or value in argument["oneOf"],
            "argument_above_max": "max" not in argument or int(value) <= int(argument["max"]),
        })
    return codes

def _decode(kind: str, word: bytes):
    """The word as a policy writes it, or None if its padding isn't zero."""
    number = int.from_bytes(word, "big")
    if kind == "bytes32":
        return "0x" + word.hex()
    bits = {"address": 160, "bool": 1}
    if number >> (bits[kind] if kind in bits else int(kind.removeprefix("uint"))):
        return None
    return "0x" + word[12:].hex() if kind == "address" else number == 1 if kind == "bool" else str(number)

def _typed_data_codes(rule: dict, content: dict) -> list[str]:
    domain = _normal_domain(content["domain"])
    return _failed({
        "domain_has_salt": "salt" not in domain,
        "domain_not_allowed": "salt" in domain or _is_listed(domain, rule["domains"]),
        "primary_type_not_allowed": _is_listed(content["primaryType"], rule["primaryTypes"]),
    })

def _normal_domain(domain: dict) -> dict:
    """Chain and contract count by value, in any spelling of the protocol."""
    normal = {"chainId": integer, "verifyingContract": str.lower}
    return {name: normal.get(name, str)(value) for name, value in domain.items()}

# Forms of payments. # policy-v1 §5

def _struct(text: str) -> list[dict]:
    return [dict(zip(("type", "name"), member.split(" "))) for member in text.split(",")]

EIP3009 = {"TransferWithAuthorization": _struct("address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce")}
X402_PERMIT2 = {
    "PermitWitnessTransferFrom": _struct("TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness"),
    "TokenPermissions": _struct("address token,uint256 amount"),
    "Witness": _struct("address to,uint256 validAfter"),
}

class Payment(NamedTuple):
    form: str
    chain_id: int
    payee: str
    token: str | None
    amount: int
    fee: int = 0
    payer: str | None = None
    spender: str | None = None
    valid_s: tuple[int, int] = (0, 0)  # after and until

def payment_of(request: Request) -> Payment | None:
    """The form of a request and what it pays, or None if it has none of the forms."""
    content = request.content
    if request.kind == "transaction":
        data, chain_id = un0x(content["data"]), content["chainId"]
        if not data:
            return Payment("coin", chain_id, content["to"], None, int(content["value"]) + _fee(content))
        if len(data) != 68 or data[:16] != bytes.fromhex("a9059cbb") + bytes(12) or int(content["value"]):
            return None
        return Payment("transfer", chain_id, "0x" + data[16:36].hex(), content["to"], int.from_bytes(data[36:], "big"), _fee(content))
    if request.kind != "typed-data":
        return None
    domain, message = _normal_domain(content["domain"]), content["message"]
    shape = content["primaryType"], {name: listed for name, listed in content["types"].items() if name != "EIP712Domain"}
    if shape == ("TransferWithAuthorization", EIP3009) and set(domain) == {"name", "version", "chainId", "verifyingContract"}:
        return Payment("eip3009", domain["chainId"], message["to"].lower(), domain["verifyingContract"], integer(message["value"]),
                       payer=message["from"].lower(), valid_s=(integer(message["validAfter"]), integer(message["validBefore"])))
    permit2 = {"name": "Permit2", "chainId": domain.get("chainId"), "verifyingContract": PERMIT2}
    if shape == ("PermitWitnessTransferFrom", X402_PERMIT2) and domain == permit2:
        witness, permitted = message["witness"], message["permitted"]
        return Payment("x402-permit2", domain["chainId"], witness["to"].lower(), permitted["token"].lower(), integer(permitted["amount"]),
                       spender=message["spender"].lower(), valid_s=(integer(witness["validAfter"]), integer(message["deadline"])))
    return None

def _spends(policy: Policy, rule: dict, request: Request) -> list[dict]:
    payment, now_s = payment_of(request), request.now_ms // 1000
    if payment is None or payment.form not in rule["forms"]:
        raise ValueError("form_not_allowed")
    _refuse(_failed({
        "chain_not_allowed": payment.chain_id in rule["chainIds"],
        "recipient_not_allowed": _is_listed(payment.payee, rule["payees"]),
        "payer_not_vault": payment.payer in (None, request.vault),
        "spender_not_allowed": payment.spender is None or payment.spender in rule["spenders"],
        "validity_not_allowed": payment.valid_s[0] <= now_s and payment.valid_s[1] <= now_s + MAX_VALIDITY_S,
    }))
    spends = [{"chainId": payment.chain_id, "token": payment.token, "amount": payment.amount}]
    if payment.fee:
        spends.append({"chainId": payment.chain_id, "token": None, "amount": payment.fee})
    budgeted = {(budget["chainId"], budget["token"]) for budget in policy.budgets}
    _refuse(_failed({"asset_without_budget": all((spend["chainId"], spend["token"]) in budgeted for spend in spends)}))
    return spends
