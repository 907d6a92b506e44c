"""How a check says that it failed, or that it can't be done."""

class Fault(ValueError):
    """A check failed: a sentence, and the code that the specification defines for it, if any."""

    def __init__(self, message: str, code: str | None = None):
        super().__init__(message)
        self.code = code

class Skip(Exception):
    """A check can't be done, for example because the reader gave no value to compare with."""

def require(condition, message: str, code: str | None = None) -> None:
    if not condition:
        raise Fault(message, code)

def skip_unless(condition, message: str) -> None:
    if not condition:
        raise Skip(message)
