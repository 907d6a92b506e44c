"""How a check says that it failed, or that it can't be done."""

class Fault(Exception):
    """A check failed: the step, the code that the specification defines for it, and a sentence."""

    def __init__(self, step: str, code: str | None = None, message: str = ""):
        super().__init__(message or code or step)
        self.step, self.code, self.message = step, code, message or code or step

class Skip(Exception):
    """A check can't be done, for example because the reader gave no value to compare with."""

    def __init__(self, step: str, message: str = ""):
        super().__init__(message or step)
        self.step, self.message = step, message or step

def require(condition, message: str) -> None:
    """A ValueError with this message unless the condition holds: a failed step, without a code."""
    if not condition:
        raise ValueError(message)
