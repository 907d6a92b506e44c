"""The steps of vaults: policy, rule, approvals and budget. # receipt-v2 §4, §6 and §7"""

from collections.abc import Callable
from dataclasses import dataclass

from . import budget as counting
from .approvals import REVOCATION_RULE, ApprovalFault, approvals_hash, check_approvals as check_list
from .codec import parse_cid, sha256, un0x, unhex
from .faults import Fault, Skip
from .opening import Opening
from .policy import Policy, Refusal, Request, check_request, parse_policy


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
    sample_ms: int = 0

    @property
    def kind(self) -> str:
        return self.receipt["kind"]

    @property
    def statement(self) -> dict:
        return self.receipt["signer"]["statement"]

    @property
    def content(self) -> dict | None:
        """The content half of the opening."""
        return self.opening.content if self.opening else None


def check_policy(receipt: dict, block: bytes | None) -> Policy:
    """# receipt-v2 §4 "vault-policy" """
    try:
        named = parse_cid(receipt.get("policy"))
    except ValueError as error:
        raise Fault("vault-policy", None, str(error)) from None
    if named.hex() != receipt["signer"]["statement"]["policy"]:
        raise Fault("vault-policy", None, "receipt and statement name different policies")
    if block is None:
        raise Skip("vault-policy", "the policy is missing")
    if sha256(block) != named:
        raise Fault("vault-policy", None, "the block isn't the policy that the receipt names")
    return parse_policy(block)


def _has_quorum(view: View, policy: Policy) -> bool:
    return sum(key in (view.cosigned_s or {}) for key in policy.log["witnesses"]) >= policy.log["quorum"]


def _request(view: View) -> Request | None:
    """What the vault signed, or None if the content isn't shown."""
    address = view.statement["address"]
    if view.kind == "transaction":
        return Request("transaction", view.receipt["subject"], address, view.signed_at_ms)
    if view.content is None:
        return None
    return Request(view.content["kind"], view.content["content"], address, view.signed_at_ms)


def _rule(view: View, policy: Policy | None, step: str) -> dict:
    if policy is None:
        raise Skip(step, "the policy isn't known")
    index = view.statement["rule"]
    if index is None or index >= len(policy.rules):
        raise Fault("vault-rule", None, f"the policy has no rule {index}") if step == "vault-rule" else Skip(step, "there is no such rule")
    return policy.rules[index]


def check_rule(view: View, policy: Policy | None) -> list[dict] | None:
    """What the payment spends, or None if that isn't shown. # receipt-v2 §4 "vault-rule" """
    if policy is None:
        raise Skip("vault-rule", "the policy isn't known")
    spends = _check_revocation(view, policy) if view.kind == "revocation" else _check_signature(view, policy)
    if policy.log is not None and not view.is_log_known:
        raise Skip("vault-rule", "the log can't be checked without the batch")
    if policy.log is not None and not _has_quorum(view, policy):
        raise Fault("vault-rule", None, "no quorum of the policy's witnesses cosigned")
    if view.kind == "off-chain" and view.content is None:
        raise Skip("vault-rule", "the content isn't shown")
    return spends


def _check_revocation(view: View, policy: Policy) -> None:
    """# receipt-v2 §7"""
    if view.statement["rule"] is not None:
        raise Fault("vault-rule", None, "a revocation names a rule")
    keys = [approver["publicKey"] for approver in policy.approvers if approver["type"] == "key"]
    if view.receipt["subject"]["key"] not in keys:
        raise Fault("vault-rule", None, "the revoked key isn't an agent's")
    if view.is_log_known and view.log_origin != policy.log["origin"]:  # agents only exist with budgets, so with an origin
        raise Fault("vault-rule", None, "the receipt is in another log than the policy's")


def _check_signature(view: View, policy: Policy) -> list[dict] | None:
    rule, request = _rule(view, policy, "vault-rule"), _request(view)
    if view.statement["session"] == "none" and not (rule["kind"] == "spend" and rule["session"] is False):
        raise Fault("vault-rule", None, "the rule needs a session")
    if view.kind not in ("transaction", "off-chain"):
        raise Fault("vault-rule", None, f"vaults don't sign the kind {view.kind}")
    if request is None:
        if rule["kind"] == "transaction":
            raise Fault("vault-rule", None, "the rule is for transactions")
        return None
    sample = next(((source, view.sample_ms) for source in policy.time if view.is_signed_by(source)), None)
    try:
        return check_request(policy, view.statement["rule"], request, sample)
    except Refusal as refusal:
        raise Fault("vault-rule", None, f"the rule doesn't allow it: {refusal}") from None


def check_approvals(view: View, policy: Policy | None) -> None:
    """# receipt-v2 §4 "vault-approvals" and §7"""
    if policy is None:
        raise Skip("vault-approvals", "the policy isn't known")
    statement, subject = view.statement, view.receipt["subject"]
    if view.kind == "revocation":
        required, rule, kind = int(statement["session"] == "none"), REVOCATION_RULE, "revocation"
        approvals, digest = view.receipt.get("approvals"), sha256(unhex(subject["key"], 32))
    else:
        required, rule = _rule(view, policy, "vault-approvals")["approvals"], statement["rule"]
        if view.kind == "transaction":
            approvals, kind, digest = view.receipt.get("approvals"), "transaction", un0x(subject["digestSigned"], 32)
        elif view.content is not None:
            approvals, kind, digest = view.content.get("approvals"), view.content["kind"], un0x(view.content["digest"], 32)
        elif required and statement["approvals"] is None:
            raise Fault("vault-approvals", None, "the rule requires approvals")
        else:
            raise Skip("vault-approvals", "the content isn't shown")
    if statement["approvals"] != (None if approvals is None else approvals_hash(approvals).hex()):
        raise Fault("vault-approvals", None, "the statement names other approvals")
    if approvals == []:
        raise Fault("vault-approvals", None, "an empty list of approvals")
    try:
        check_list(policy, approvals or [], required, statement["address"], rule, kind, digest, view.signed_at_ms)
    except ApprovalFault as fault:
        raise Fault("vault-approvals", None, str(fault)) from None


def has_budget_step(view: View, policy: Policy | None) -> bool:
    """Only if the rule is of kind spend, or a count is shown. # receipt-v2 §4 "vault-budget" """
    index = view.statement["rule"]
    is_spend = policy is not None and index is not None and index < len(policy.rules) and policy.rules[index]["kind"] == "spend"
    return view.kind in ("transaction", "off-chain") and (is_spend or _count(view) is not None)


def _count(view: View) -> dict | None:
    shown = view.receipt["subject"] if view.kind == "transaction" else view.content
    return shown.get("budget") if shown else None


def check_budget(view: View, policy: Policy | None, spends: list[dict] | None) -> None:
    """# receipt-v2 §6; `spends` is the result of the step `vault-rule`, or None if it didn't pass"""
    rule, count = _rule(view, policy, "vault-budget"), _count(view)
    if rule["kind"] != "spend":
        raise Fault("vault-budget", "budget_unexpected", "the rule doesn't spend from budgets")
    if view.kind == "off-chain" and view.content is None:
        raise Skip("vault-budget", "the content isn't shown")
    if count is None:
        raise Fault("vault-budget", "budget_missing", "the payment wasn't counted")
    if view.cosigned_s is None:
        raise Skip("vault-budget", "there is no valid proof of the log")
    if view.log_origin != policy.log["origin"]:
        raise Fault("vault-budget", "budget_log", "the receipt is in another log than the policy's")
    if spends is None or not _has_quorum(view, policy):
        raise Skip("vault-budget", "the rule doesn't allow the payment")
    times = [view.cosigned_s[key] for key in policy.log["witnesses"] if key in view.cosigned_s]
    shown_s = counting.shown_time(times, len(policy.log["witnesses"]), policy.log["quorum"])
    counting.check_count(policy.budgets, spends, count, view.signed_at_ms, shown_s)
