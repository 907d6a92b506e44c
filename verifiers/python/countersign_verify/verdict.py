"""The results of steps, and the verdict that follows. # receipt-v1 §3 "Verdict" """

from .faults import Skip

ANCHOR_STEPS = ("measurement", "config", "entropy-key", "coordinator-policy", "coordinator-measurement", "coordinator-config")

class Steps:
    """Runs checks in order and keeps each step's result: pass, fail or skip."""

    def __init__(self):
        self.results: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.codes: dict[str, str] = {}
        self.required: set[str] = set()
        self.is_mock = self.is_late = self.has_event = False

    def run(self, name: str, check, needs: tuple = (), required: bool = True):
        """The result of the check, or None if it doesn't pass. It is a skip if a step that it needs didn't pass."""
        if required:
            self.required.add(name)
        missing = [need for need in needs if not self.has_passed(need)]
        if missing:
            self.results[name], self.messages[name] = "skip", f"{missing[0]} didn't pass"
            return None
        try:
            found = check()
            self.results[name] = "pass"
            return found
        except Skip as skip:
            self.results[name], self.messages[name] = "skip", str(skip)
        except ValueError as error:
            self.results[name], self.messages[name] = "fail", str(error)
            if code := getattr(error, "code", None):
                self.codes[name] = code
        return None

    def has_passed(self, name: str) -> bool:
        return self.results.get(name) == "pass"

    def verdict(self) -> str:
        if "fail" in self.results.values():
            return "failed"
        if not all(self.has_passed(name) for name in self.required):
            return "incomplete"
        if self.is_mock:
            return "mock"
        if not all(self.has_passed(name) for name in ANCHOR_STEPS):
            return "unknown-code"
        return "late" if self.is_late else "verified" if self.has_event else "unbounded"
