"""The steps of vaults: policy, rule, approvals and budget. # receipt-v2 §4, §6 and §7"""

from collections.abc import Callable
from dataclasses import dataclass

from . import budget
from .approvals import REVOCATION_RULE, approvals_hash, check_approvals as check_list
from .codec import parse_cid, sha256, un0x, unhex
from .faults import require, skip_unless
from .opening import Opening
from .policy import Policy, Request, check_request, parse_policy

@dataclass
class View:
    """What the steps of vaults need of a receipt and of the steps before."""

    receipt: dict
    signed_at_ms: int
    opening: Opening | None = None  # only if it opens the receipt
    log_origin: str | None = None  # only if the receipt has a valid proof of the log
    cosigned_s: dict[str, int] | None = None  # witnesses' keys in hex, and when they cosigned; as above
    is_log_known: bool = True  # False if the batch is missing, so the proof can't be checked
    is_signed_by: Callable[[dict], bool] = lambda source: False  # whether this source signed the receipt's sample
    sample_ms: int | None = None

    def __post_init__(self):
        self.kind, self.statement = self.receipt["kind"], self.receipt["signer"]["statement"]
        self.content = self.opening.content if self.opening else None

    def count(self) -> dict | None:
        """How the payment was counted, as far as it is shown."""
        shown = self.receipt["subject"] if self.kind == "transaction" else self.content
        return shown.get("budget") if shown else None

    def times(self, policy: Policy) -> list[int]:
        """When the policy's witnesses cosigned; empty unless a quorum did."""
        times = [self.cosigned_s[key] for key in policy.log["witnesses"] if key in (self.cosigned_s or {})]
        return times if len(times) >= policy.log["quorum"] else []

def check_policy(receipt: dict, block: bytes | None) -> Policy:
    """# receipt-v2 §4 "vault-policy" """
    named = parse_cid(receipt.get("policy"))
    require(named.hex() == receipt["signer"]["statement"]["policy"], "receipt and statement name different policies")
    skip_unless(block is not None, "the policy is missing")
    require(sha256(block) == named, "the block isn't the policy that the receipt names")
    return parse_policy(block)

def check_rule(view: View, policy: Policy) -> list[dict] | None:
    """What the payment spends, or None if that isn't shown. # receipt-v2 §4 "vault-rule" """
    spends = _check_revocation(view, policy) if view.kind == "revocation" else _check_signature(view, policy)
    skip_unless(not policy.log or view.is_log_known, "the log can't be checked without the batch")
    require(not policy.log or view.times(policy), "no quorum of the policy's witnesses cosigned")
    skip_unless(view.kind != "off-chain" or view.content is not None, "the content isn't shown")
    return spends

def _check_revocation(view: View, policy: Policy) -> None:
    """# receipt-v2 §7"""
    keys = [approver["publicKey"] for approver in policy.approvers if approver["type"] == "key"]
    require(view.statement["rule"] is None and view.receipt["subject"]["key"] in keys, "a revocation names a rule, or the key isn't an agent's")
    # Agents only exist with budgets, so with an origin.
    require(not view.is_log_known or view.log_origin == policy.log["origin"], "the receipt is in another log than the policy's")

def _check_signature(view: View, policy: Policy) -> list[dict] | None:
    index, address = view.statement["rule"], view.statement["address"]
    rule = _rule(view, policy)
    require(rule is not None and view.kind in ("transaction", "off-chain"), "the policy has no such rule, or vaults don't sign this kind")
    require(view.statement["session"] != "none" or rule.get("session") is False, "the rule needs a session")
    if view.kind == "off-chain" and view.content is None:
        require(rule["kind"] != "transaction" and set(rule.get("forms", ["eip3009"])) & {"eip3009", "x402-permit2"}, "the rule is for transactions")
        return None
    kind, content = ("transaction", view.receipt["subject"]) if view.kind == "transaction" else (view.content["kind"], view.content["content"])
    sample = next(((source, view.sample_ms) for source in policy.time if view.is_signed_by(source)), None)
    return check_request(policy, index, Request(kind, content, address, view.signed_at_ms), sample)

def _rule(view: View, policy: Policy | None) -> dict | None:
    index = view.statement["rule"]
    return policy.rules[index] if policy and index is not None and index < len(policy.rules) else None

def check_approvals(view: View, policy: Policy, is_allowed: bool) -> None:
    """# receipt-v2 §4 "vault-approvals" and §7; `is_allowed` if vault-rule passed"""
    statement, subject, rule = view.statement, view.receipt["subject"], _rule(view, policy)
    required = int(statement["session"] == "none") if view.kind == "revocation" else rule["approvals"] if rule else 0
    unstated = view.kind == "off-chain" and required and statement["approvals"] is None
    require(not unstated, "the rule requires approvals, and the statement names none")
    skip_unless(view.kind != "off-chain" or view.content is not None, "the content isn't shown")
    approvals = (view.content if view.kind == "off-chain" else view.receipt).get("approvals")
    named = None if approvals is None else approvals_hash(approvals).hex()
    require(statement["approvals"] == named, "the statement names other approvals")
    require(view.opening is None or view.opening.has_valid_approvals, "an approval that isn't as in the schema")
    skip_unless(is_allowed or view.kind == "revocation", "the rule doesn't allow it")
    require(approvals != [], "an empty list")
    index, kind = statement["rule"], view.kind
    if kind == "revocation":
        index, digest = REVOCATION_RULE, sha256(unhex(subject["key"], 32))
    elif kind == "transaction":
        digest = un0x(subject["digestSigned"], 32)
    else:
        kind, digest = view.content["kind"], un0x(view.content["digest"], 32)
    check_list(policy, approvals or [], required, statement["address"], index, kind, digest, view.signed_at_ms)

def has_budget_step(view: View, policy: Policy | None) -> bool:
    """Only if the rule is of kind spend, or a count is shown. # receipt-v2 §4 "vault-budget" """
    rule = _rule(view, policy)
    return view.kind in ("transaction", "off-chain") and (rule is not None and rule["kind"] == "spend" or view.count() is not None)

def check_budget(view: View, policy: Policy, spends: list[dict] | None, is_allowed: bool) -> None:
    """# receipt-v2 §6; `spends` is the result of the step `vault-rule`, `is_allowed` if it passed"""
    rule = _rule(view, policy)
    skip_unless(is_allowed, "the rule doesn't allow it, or the content isn't shown")
    require(rule is not None and rule["kind"] == "spend", "the rule doesn't spend from budgets", "budget_unexpected")
    require(view.count() is not None, "the payment wasn't counted", "budget_missing")
    skip_unless(view.cosigned_s is not None, "there is no valid proof of the log")
    require(view.log_origin == policy.log["origin"], "the receipt is in another log than the policy's", "budget_log")
    shown_s = budget.shown_time(view.times(policy), len(policy.log["witnesses"]), policy.log["quorum"])
    budget.check_count(policy.budgets, spends, view.count(), view.signed_at_ms, shown_s)
