"""JSON in a given form: a dict of members (`?` after the name of an optional one; others are ignored), a list with the form of
its items, or a function that converts a value. Other input raises ValueError."""

import json
import re

from .codec import parse_time, reject_number
from .faults import require

def load(text: str, object_pairs_hook=None):
    number = lambda digits: int(digits) if len(digits) < 32 else float(digits)  # noqa: E731
    try:
        return json.loads(text, object_pairs_hook=object_pairs_hook, parse_int=number, parse_constant=reject_number)
    except RecursionError:
        raise ValueError("invalid JSON: nested too deep") from None

def read(value, form):
    if isinstance(form, list):
        return [read(item, form[0]) for item in _typed(value, list)]
    if not isinstance(form, dict):
        return form(value)
    members = {}
    for name, item in form.items():
        key = name.rstrip("?")
        require(key in _typed(value, dict) or key != name, f"invalid JSON: no member {name}")
        if key in value:
            members[key] = read(value[key], item)
    return members

def _typed(value, kind: type):
    require(isinstance(value, kind), f"invalid JSON: expected a value of type {kind.__name__}")
    return value

def text(value) -> str:
    return _typed(value, str)

def time(value) -> int:
    """YYYY-MM-DDThh:mm:ssZ as milliseconds since 1970."""
    return parse_time(text(value).replace("Z", ".000Z"))

def integer(maximum: int, minimum: int = 0):
    """An integer counts by its value: 3.0 is 3."""
    def convert(value) -> int:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        require(is_number and minimum <= value <= maximum and value == int(value), f"invalid JSON: expected {minimum} to {maximum}")
        return int(value)
    return convert

def hexadecimal(length: int):
    """Bytes in upper or lower case."""
    def convert(value) -> bytes:
        require(re.fullmatch(f"[0-9A-Fa-f]{{{2 * length}}}", text(value)), f"invalid JSON: expected {length} bytes of hex")
        return bytes.fromhex(value)
    return convert

def some(form):
    """A list that is not empty."""
    return lambda value: read(_typed(value, list) or None, [form])
