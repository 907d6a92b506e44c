"""How payments count against budgets, and the step `vault-budget`. # policy-v1 §5, receipt-v2 §6"""

from .faults import require

def shown_time(times: list[int], witnesses: int, quorum: int) -> int:
    """The time that honest witnesses in two quorums show, of the times of a quorum's cosignatures. # receipt-v2 §6"""
    return sorted(times, reverse=True)[min(2 * quorum - witnesses - 1, witnesses - quorum)]

def window_of(time_s: int, period_s: int) -> int:
    return time_s // period_s if period_s else 0

def paid_by_budget(budgets: list, spends: list) -> dict[int, int]:
    """The amount that counts against each budget, by its index. # policy-v1 §5 "Counting" """
    paid: dict[int, int] = {}
    for index, budget in enumerate(budgets):
        for spend in spends:
            if (spend["chainId"], spend["token"]) == (budget["chainId"], budget["token"]):
                paid[index] = paid.get(index, 0) + spend["amount"]
    return paid

def check_count(budgets: list, spends: list, count: dict, signed_at_ms: int, shown_s: int) -> None:
    """The rules of receipt-v2 §6 about one count, in the order of its table; `budget_log` and before come first."""
    time_s, items, paid = count["time"], count["items"], paid_by_budget(budgets, spends)
    require(count["sequence"] >= 1, "the sequence number isn't at least 1", "budget_sequence")

    def is_window_right(item: dict) -> bool:
        period_s = budgets[item["budget"]]["periodS"]
        return item["window"] >= window_of(time_s or 0, period_s) if period_s else item["window"] == 0

    by_budget = {item["budget"]: item for item in reversed(items)}
    for index, amount in paid.items():
        item = by_budget.get(index)
        before = int(item["before"]) if item and is_window_right(item) else 0
        require(before + amount <= int(budgets[index]["limit"]), f"budget {index} doesn't allow the payment", "budget_exceeded")
    require([item["budget"] for item in items] == sorted(paid), "the items aren't the budgets of the paid assets", "budget_items")
    require(all(map(is_window_right, items)), "a window is before that of the time", "budget_window")
    for item in items:
        counted = int(item["after"]) - int(item["before"])
        require(counted == paid[item["budget"]], f"counted {counted} instead of {paid[item['budget']]}", "budget_amount")
    require(shown_s * 1000 <= signed_at_ms + 125_000, "the witnesses cosigned too late", "budget_late")
    periods = {item["budget"]: budgets[item["budget"]]["periodS"] for item in items}
    require((time_s is None) == (not any(periods.values())), "a time without a period, or a period without a time", "budget_time")
    if time_s is not None:
        oldest = signed_at_ms // 1000 - (660 if count["isRepeated"] else 60)
        require(oldest <= time_s <= shown_s, "the time is too old, or after that of the witnesses", "budget_time")
    for item in items:
        period_s = periods[item["budget"]]
        require(period_s == 0 or item["window"] <= shown_s // period_s, "a window is after that of the witnesses", "budget_window")
