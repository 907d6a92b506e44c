"""The policy of a vault: its form, and which requests its rules allow. # policy-v1"""

import re
import unicodedata
from dataclasses import dataclass

from .bls import is_g2_key
from .codec import canonical, parse_canonical, sha256, un0x, unhex
from .crypto import is_ed25519_key, p256_key
from .faults import Fault
from .opening import members
from .transaction import amount, natural, transaction_digest
from .typed_data import content_digest, integer

MAX_POLICY = 16_384
LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
HOST = re.compile(rf"(?:{LABEL}\.)*(?!(?:[0-9]+|0x[0-9a-f]*)$){LABEL}")
ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+)(?::([1-9][0-9]{0,4}))?")
UINT = re.compile("uint(?:%s)" % "|".join(map(str, range(8, 257, 8))))
TYPE_NAME = re.compile("[A-Za-z_][0-9A-Za-z_]*")
FORMS = {"coin", "eip3009", "transfer", "x402-permit2"}
X402_SPENDER = "0x402085c248eea27d92e8b30b2c58ed07f9e20001"
PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
MAX_VALIDITY_S = 3600


@dataclass
class Policy:
    hash: bytes
    log: dict | None
    approvers: list
    rules: list
    budgets: list
    schedule: dict | None
    time: list


class Refusal(ValueError):
    """A request that a policy doesn't allow, with the codes of policy-v1 §7."""

    def __init__(self, *codes: str):
        super().__init__(", ".join(codes))
        self.codes = codes


def _require(condition, reason: str) -> None:
    if not condition:
        raise ValueError(f"invalid policy: {reason}")


def parse_policy(data: bytes) -> Policy:
    """# policy-v1 §1 to §5"""
    try:
        value = parse_canonical(data, MAX_POLICY)
    except ValueError as error:
        raise Fault("vault-policy", "vault_policy_not_canonical", str(error)) from None
    try:
        return _parse(value, sha256(data))
    except (ValueError, TypeError) as error:
        raise Fault("vault-policy", "vault_policy_malformed", str(error)) from None


def _parse(value, digest: bytes) -> Policy:
    members(value, "version log approvers rules", "budgets schedule time")
    _require(natural(value["version"]) == 1, "its version")
    _check_order(value)
    approvers, log, budgets, rules = value["approvers"], value["log"], value.get("budgets"), value["rules"]
    _list(approvers, 0, 32, _check_approver)
    _require(len({approver["publicKey"] for approver in approvers}) == len(approvers), "a key twice")
    _require(budgets is not None or all(approver["type"] == "passkey" for approver in approvers), "an agent without budgets")
    if log is not None:
        _check_log(log, budgets is not None)
    if budgets is not None:
        _require(log is not None and "schedule" not in value, "budgets without a log, or with a schedule")
        _list(budgets, 1, 8, _check_budget)
        _require(len({(b["chainId"], b["token"], b["periodS"]) for b in budgets}) == len(budgets), "an asset and period twice")
    _list(rules, 1, 255, lambda rule: _check_rule(rule, approvers, budgets))
    _require(any(rule["kind"] == "spend" for rule in rules) == (budgets is not None), "budgets or rules that spend, without the other")
    _require(("schedule" in value) == ("time" in value), "schedule or time, without the other")
    if "schedule" in value:
        schedule = members(value["schedule"], "startsAtMs everyS count")
        natural(schedule["startsAtMs"]), natural(schedule["everyS"], 1), natural(schedule["count"], 1)
        _list(value["time"], 1, MAX_POLICY, _check_time_source)
        _require(all(rule["kind"] == "transaction" for rule in rules), "a schedule for other rules than transactions")
    return Policy(digest, log, approvers, rules, budgets or [], value.get("schedule"), value.get("time", []))


def _check_order(value) -> None:
    """Every list is in ascending order of the canonical bytes of its items, each once. # policy-v1 §1"""
    if isinstance(value, list):
        items = [canonical(item) for item in value]
        _require(all(a < b for a, b in zip(items, items[1:])), "a list out of order, or with an item twice")
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        _check_order(child)


def _list(value, minimum: int, maximum: int, check) -> None:
    _require(isinstance(value, list) and minimum <= len(value) <= maximum, "a list")
    for item in value:
        check(item)


def _any_or_list(value, check) -> None:
    value == "any" or _list(value, 1, MAX_POLICY, check)


def _address(value) -> None:
    un0x(value, 20)


def _positive(value) -> None:
    natural(value, 1)


def _check_approver(approver) -> None:
    """# policy-v1 §2"""
    if isinstance(approver, dict) and approver.get("type") == "key":
        members(approver, "type publicKey")
        _require(is_ed25519_key(unhex(approver["publicKey"], 32)), "the key of an agent")
        return
    members(approver, "type publicKey rpId origins")
    _require(approver["type"] == "passkey" and p256_key(unhex(approver["publicKey"], 65)) is not None, "a passkey")
    _require(_is_host(approver["rpId"]), "an rpId")
    _list(approver["origins"], 1, MAX_POLICY, lambda origin: _require(_is_origin(origin, approver["rpId"]), "an origin"))


def _is_host(text) -> bool:
    return isinstance(text, str) and len(text) <= 253 and HOST.fullmatch(text) is not None


def _is_origin(text, rp_id: str) -> bool:
    """# policy-v1 §2 "origins" """
    match = ORIGIN.fullmatch(text) if isinstance(text, str) else None
    if not match:
        return False
    scheme, host, port = match.groups()
    is_local = host == "localhost" or host.endswith(".localhost")
    return (
        _is_host(host) and (host == rp_id or host.endswith("." + rp_id)) and (scheme == "https" or is_local)
        and (port is None or int(port) <= 65535 and port != ("443" if scheme == "https" else "80"))
    )


def is_log_origin(text) -> bool:
    """# log-v1 §3, rule 1"""
    return isinstance(text, str) and 1 <= len(text.encode("utf-8")) <= 255 and not any(
        char in "+\ufeff" or char.isspace() or unicodedata.category(char) == "Cc" for char in text
    )


def _check_log(log, has_budgets: bool) -> None:
    members(log, "witnesses quorum origin" if has_budgets else "witnesses quorum")
    _list(log["witnesses"], 1, 32, lambda key: _require(is_ed25519_key(unhex(key, 32)), "the key of a witness"))
    _require(len(log["witnesses"]) < 2 * natural(log["quorum"]) <= 2 * len(log["witnesses"]), "its quorum")
    _require(not has_budgets or is_log_origin(log["origin"]), "the origin of its log")


def _check_budget(budget) -> None:
    """# policy-v1 §5"""
    members(budget, "chainId token limit periodS")
    natural(budget["chainId"], 1), amount(budget["limit"])
    budget["token"] is None or un0x(budget["token"], 20)
    _require(natural(budget["periodS"], 0, 31_536_000) == 0 or budget["periodS"] >= 3600, "a period")


def _check_time_source(source) -> None:
    """# protocol "Settings", policy-v1 §2 "time" """
    if isinstance(source, dict) and source.get("kind") == "satellite":
        _require(is_ed25519_key(unhex(members(source, "kind key")["key"], 32)), "the key of a satellite")
        return
    members(source, "kind key chainHash genesisS periodS")
    _require(source["kind"] == "drand", "a source of time")
    unhex(source["chainHash"], 32), natural(source["genesisS"]), natural(source["periodS"], 1)
    _require(is_g2_key(unhex(source["key"], 96)), "the key of drand")


def _check_rule(rule, approvers: list, budgets: list | None) -> None:
    """# policy-v1 §3 and §5"""
    kind = rule.get("kind") if isinstance(rule, dict) else None
    least = 0
    if kind == "transaction":
        members(rule, "kind chainIds to maxValueWei maxFeeWei approvals approvers", "selectors words arguments")
        _any_or_list(rule["chainIds"], _positive), _any_or_list(rule["to"], _address)
        amount(rule["maxValueWei"]), amount(rule["maxFeeWei"])
        _require(("selectors" in rule) == ("words" in rule) >= ("arguments" in rule), "selectors, words or arguments")
        if "selectors" in rule:
            _list(rule["selectors"], 1, MAX_POLICY, lambda selector: un0x(selector, 4))
            natural(rule["words"], 0, 4095)
        if "arguments" in rule:
            _list(rule["arguments"], 1, 4095, lambda argument: _check_argument(argument, rule["words"]))
            _require(len({argument["at"] for argument in rule["arguments"]}) == len(rule["arguments"]), "a word limited twice")
    elif kind == "message":
        members(rule, "kind approvals approvers")
        least = 1
    elif kind == "typed-data":
        members(rule, "kind domains primaryTypes approvals approvers")
        _any_or_list(rule["domains"], _check_domain)
        _any_or_list(rule["primaryTypes"], lambda name: _require(isinstance(name, str) and TYPE_NAME.fullmatch(name), "a type"))
        least = 1
    else:
        _require(kind == "spend" and budgets is not None, "a rule's kind")
        _check_spend_rule(rule, budgets)
        least = 0 if rule["session"] else 1
    counted = rule["approvers"]
    if kind == "spend":  # never "any"; empty if no approval is needed
        _list(counted, 0, 32, lambda index: natural(index, 0, len(approvers) - 1))
    else:
        _any_or_list(counted, lambda index: natural(index, 0, len(approvers) - 1))
        if budgets is not None:  # otherwise the rule could spend what the budgets limit
            least = 1
            _require(counted != "any" and all(approvers[index]["type"] == "passkey" for index in counted), "a rule without passkeys")
    natural(rule["approvals"], least, len(approvers if counted == "any" else counted))


def _check_argument(argument, words: int) -> None:
    members(argument, "at type", "oneOf max")
    natural(argument["at"], 0, words - 1)
    kind = argument["type"]
    is_uint = isinstance(kind, str) and UINT.fullmatch(kind) is not None
    _require(is_uint or kind in ("address", "bool", "bytes32"), "the type of an argument")
    _require("max" not in argument or is_uint and "oneOf" not in argument, "a maximum")
    if "max" in argument:
        amount(argument["max"])
    if "oneOf" in argument:
        check = {"address": _address, "bytes32": lambda item: un0x(item, 32), "bool": lambda item: _require(isinstance(item, bool), "a bool")}
        _list(argument["oneOf"], 1, MAX_POLICY, check.get(kind, amount))


def _check_domain(domain) -> None:
    _require(members(domain, "", "name version chainId verifyingContract"), "a domain without members")
    _require(all(isinstance(domain.get(name, ""), str) for name in ("name", "version")), "a domain")
    "chainId" in domain and natural(domain["chainId"], 1)
    "verifyingContract" in domain and un0x(domain["verifyingContract"], 20)


def _check_spend_rule(rule: dict, budgets: list) -> None:
    """# policy-v1 §5"""
    members(rule, "kind chainIds payees forms approvals approvers session", "spenders")
    _list(rule["chainIds"], 1, MAX_POLICY, _positive), _any_or_list(rule["payees"], _address)
    _list(rule["forms"], 1, 4, lambda form: _require(form in FORMS, "a form"))
    _require(isinstance(rule["session"], bool), "its session")
    _require(("x402-permit2" in rule["forms"]) == ("spenders" in rule), "spenders or x402-permit2, without the other")
    if "spenders" in rule:
        _list(rule["spenders"], 1, MAX_POLICY, _address)
        _require(rule["payees"] == "any" or rule["spenders"] == [X402_SPENDER], "payees that Permit2 doesn't enforce")
    if {"coin", "transfer"} & set(rule["forms"]):
        coins = {budget["chainId"] for budget in budgets if budget["token"] is None}
        _require(coins >= set(rule["chainIds"]), "coins without a budget")


@dataclass
class Request:
    """What a vault is to sign: the fields of a transaction, a message or typed data."""

    kind: str
    content: dict
    vault: str = ""
    now_ms: int = 0


def check_request(policy: Policy, index: int, request: Request, sample: tuple[dict, int] | None = None) -> list[dict]:
    """What the rule's payment spends, as { chainId, token, amount }; a Refusal if the rule doesn't allow the request.

    The sample is its source, one of `policy.time`, and its time. # policy-v1 §3 to §5
    """
    try:  # before any rule, the protocol's rules apply
        transaction_digest(request.content) if request.kind == "transaction" else content_digest(request.kind, request.content)
    except (ValueError, KeyError, TypeError):
        raise Refusal("request_malformed") from None
    if index >= len(policy.rules):
        raise Refusal("rule_unknown")
    if policy.schedule is not None:
        _check_schedule(policy, request, sample)
    rule = policy.rules[index]
    if rule["kind"] == "spend":
        return _spends(policy, rule, request)
    if rule["kind"] != request.kind:
        raise Refusal("kind_not_allowed")
    codes = {"transaction": _transaction_codes, "typed-data": _typed_data_codes, "message": lambda *_: []}[rule["kind"]](rule, request.content)
    if codes:
        raise Refusal(*codes)
    return []


def _check_schedule(policy: Policy, request: Request, sample) -> None:
    """# policy-v1 §4"""
    if sample is None:
        raise Refusal("sample_missing")
    if sample[0] not in policy.time:
        raise Refusal("sample_source_not_allowed")
    due = policy.schedule["startsAtMs"] + request.content.get("nonce", 0) // policy.schedule["count"] * policy.schedule["everyS"] * 1000
    if sample[1] < due:
        raise Refusal("nonce_not_due")


def _is_listed(value, allowed) -> bool:
    return allowed == "any" or value in allowed


def _fee(tx: dict) -> int:
    return int(tx["gas"]) * int(tx["maxFeePerGas"])


def _transaction_codes(rule: dict, tx: dict) -> list[str]:
    """# policy-v1 §3"""
    data, codes = un0x(tx["data"]), []
    checks = {
        "chain_not_allowed": _is_listed(tx["chainId"], rule["chainIds"]),
        "recipient_not_allowed": _is_listed(tx["to"], rule["to"]),
        "value_above_max": int(tx["value"]) <= int(rule["maxValueWei"]),
        "fee_above_max": _fee(tx) <= int(rule["maxFeeWei"]),
    }
    codes = [code for code, passes in checks.items() if not passes]
    if "selectors" not in rule:
        return codes + ["data_not_empty"] * bool(data)
    if len(data) != 4 + 32 * rule["words"]:
        return codes + ["data_length"]
    if "0x" + data[:4].hex() not in rule["selectors"]:
        codes.append("selector_not_allowed")
    for argument in rule.get("arguments", []):
        at = 4 + 32 * argument["at"]
        value = _decode(argument["type"], data[at:at + 32])
        if value is None:
            codes.append("argument_undecodable")
        elif "oneOf" in argument and value not in argument["oneOf"]:
            codes.append("argument_not_allowed")
        elif "max" in argument and int(value) > int(argument["max"]):
            codes.append("argument_above_max")
    return codes


def _decode(kind: str, word: bytes):
    """The word as a policy writes it, or None if its padding isn't zero."""
    number = int.from_bytes(word, "big")
    if kind == "bytes32":
        return "0x" + word.hex()
    if kind == "address":
        return None if number >> 160 else "0x" + word[12:].hex()
    if kind == "bool":
        return None if number > 1 else number == 1
    return None if number >> int(kind[4:]) else str(number)


def _typed_data_codes(rule: dict, content: dict) -> list[str]:
    domain = _normal_domain(content["domain"])
    codes = []
    if "salt" in domain:
        codes.append("domain_has_salt")
    elif not _is_listed(domain, rule["domains"]):
        codes.append("domain_not_allowed")
    return codes + ["primary_type_not_allowed"] * (not _is_listed(content["primaryType"], rule["primaryTypes"]))


def _normal_domain(domain: dict) -> dict:
    """Chain and contract count by value, in any spelling of the protocol."""
    normal = dict(domain)
    if "chainId" in domain:
        normal["chainId"] = integer(domain["chainId"])
    if "verifyingContract" in domain:
        normal["verifyingContract"] = domain["verifyingContract"].lower()
    return normal


# Forms of payments. # policy-v1 §5


def _struct(text: str) -> list[dict]:
    return [dict(zip(("type", "name"), member.split(" "))) for member in text.split(",")]


EIP3009 = {"TransferWithAuthorization": _struct("address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce")}
X402_PERMIT2 = {
    "PermitWitnessTransferFrom": _struct("TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness"),
    "TokenPermissions": _struct("address token,uint256 amount"),
    "Witness": _struct("address to,uint256 validAfter"),
}


@dataclass
class Payment:
    form: str
    chain_id: int
    payee: str
    token: str | None
    amount: int
    fee: int = 0
    payer: str | None = None
    spender: str | None = None
    valid_after_s: int = 0
    valid_until_s: int = 0


def payment_of(request: Request) -> Payment | None:
    """The form of a request and what it pays, or None if it has none of the forms."""
    content = request.content
    if request.kind == "transaction":
        data = un0x(content["data"])
        if not data:
            return Payment("coin", content["chainId"], content["to"], None, int(content["value"]) + _fee(content))
        if len(data) != 68 or data[:16] != bytes.fromhex("a9059cbb") + bytes(12) or int(content["value"]):
            return None
        payee, paid = "0x" + data[16:36].hex(), int.from_bytes(data[36:], "big")
        return Payment("transfer", content["chainId"], payee, content["to"], paid, _fee(content))
    if request.kind != "typed-data":
        return None
    domain, message, primary = _normal_domain(content["domain"]), content["message"], content["primaryType"]
    types = {name: listed for name, listed in content["types"].items() if name != "EIP712Domain"}
    if types == EIP3009 and primary == "TransferWithAuthorization" and set(domain) == {"name", "version", "chainId", "verifyingContract"}:
        return Payment(
            "eip3009", domain["chainId"], message["to"].lower(), domain["verifyingContract"], integer(message["value"]),
            payer=message["from"].lower(), valid_after_s=integer(message["validAfter"]), valid_until_s=integer(message["validBefore"]),
        )
    permit2 = {"name": "Permit2", "chainId": domain.get("chainId"), "verifyingContract": PERMIT2}
    if types == X402_PERMIT2 and primary == "PermitWitnessTransferFrom" and domain == permit2:
        witness, permitted = message["witness"], message["permitted"]
        return Payment(
            "x402-permit2", domain["chainId"], witness["to"].lower(), permitted["token"].lower(), integer(permitted["amount"]),
            spender=message["spender"].lower(), valid_after_s=integer(witness["validAfter"]), valid_until_s=integer(message["deadline"]),
        )
    return None


def _spends(policy: Policy, rule: dict, request: Request) -> list[dict]:
    payment = payment_of(request)
    if payment is None and request.kind == "message":
        raise Refusal("kind_not_allowed")
    if payment is None or payment.form not in rule["forms"]:
        raise Refusal("form_not_allowed")
    now_s = request.now_ms // 1000
    checks = {
        "chain_not_allowed": payment.chain_id in rule["chainIds"],
        "recipient_not_allowed": _is_listed(payment.payee, rule["payees"]),
        "payer_not_vault": payment.payer in (None, request.vault),
        "spender_not_allowed": payment.spender is None or payment.spender in rule["spenders"],
        "validity_not_allowed": payment.valid_after_s <= now_s and payment.valid_until_s <= now_s + MAX_VALIDITY_S,
    }
    codes = [code for code, passes in checks.items() if not passes]
    spends = [{"chainId": payment.chain_id, "token": payment.token, "amount": payment.amount}]
    if payment.fee:
        spends.append({"chainId": payment.chain_id, "token": None, "amount": payment.fee})
    budgeted = {(budget["chainId"], budget["token"]) for budget in policy.budgets}
    if not codes and not all((spend["chainId"], spend["token"]) in budgeted for spend in spends):
        codes.append("asset_without_budget")
    if codes:
        raise Refusal(*codes)
    return spends
