"""The part of JSON Schema 2020-12 that our schemas use, compiled from the files of the specifications."""

import json
import re
from functools import lru_cache
from pathlib import Path

from .codec import canonical

PACKAGES = Path(__file__).resolve().parents[3] / "packages"
ANNOTATIONS = {"$id", "$schema", "$comment", "$defs", "title", "description", "then", "else"}
# White space of JavaScript's patterns.
SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}

@lru_cache(None)
def load(path: str):
    """The check of a schema file, by its path below packages: a function of a parsed value."""
    root = json.loads((PACKAGES / path).read_bytes())
    return _compile(root, root, {})

def matches(path: str, value) -> bool:
    return load(path)(value)

def _equals(constant):
    return lambda value: type(value) is type(constant) and value == constant

def _compile(schema, root, known):
    """Each keyword gives a check; a value matches if all pass. A keyword applies only to values of its kind."""
    if isinstance(schema, bool):
        return lambda value: schema
    if "$ref" in schema:
        return _reference(schema["$ref"], root, known)
    checks = []
    sub = lambda item: _compile(item, root, known)  # noqa: E731
    for key, limit in schema.items():
        kind, check = _keyword(key, limit, schema, sub)
        # Constants and types first: they tell the kinds of a receipt apart.
        checks.insert(0 if key in ("type", "const") else len(checks), check if kind is None else (
            lambda value, kind=kind, check=check: not isinstance(value, kind) or check(value)))
    return lambda value: all(check(value) for check in checks)

def _keyword(key: str, limit, schema: dict, sub):
    """The kind of values that a keyword is about, or None for all kinds, and its check."""
    if key in ANNOTATIONS:
        return None, lambda value: True
    if key == "type":
        return None, TYPES[limit]
    if key == "const":
        return None, _equals(limit)
    if key == "enum":
        return None, lambda value: any(_equals(item)(value) for item in limit)
    if key == "pattern":
        search = re.compile(re.sub(r"\$$", r"\\Z", limit.replace(r"\s", SPACE)), re.ASCII).search
        return str, lambda value: search(value) is not None
    if key in ("minLength", "maxLength", "minItems", "maxItems", "minProperties"):
        sign = 1 if key[:3] == "min" else -1
        return {"Length": str, "Items": list, "Properties": dict}[key[3:]], lambda value: sign * (len(value) - limit) >= 0
    if key in ("minimum", "maximum"):
        sign = 1 if key == "minimum" else -1
        return int, lambda value: sign * (value - limit) >= 0
    if key == "properties":
        members = sorted(((name, sub(item)) for name, item in limit.items()), key=lambda member: "const" not in limit[member[0]])
        return dict, lambda value: all(check(value[name]) for name, check in members if name in value)
    if key == "additionalProperties":
        names, check = frozenset(schema.get("properties", {})), sub(limit)
        return dict, lambda value: all(check(item) for name, item in value.items() if name not in names)
    if key == "propertyNames":
        check = sub(limit)
        return dict, lambda value: all(map(check, value))
    if key == "required":
        return dict, lambda value, names=frozenset(limit): names <= value.keys()
    if key == "dependentRequired":
        return dict, lambda value: all(set(names) <= value.keys() for name, names in limit.items() if name in value)
    if key == "prefixItems":
        return list, lambda value, items=list(map(sub, limit)): all(check(item) for check, item in zip(items, value))
    if key == "items":
        start, check = len(schema.get("prefixItems", [])), sub(limit)
        return list, lambda value: all(map(check, value[start:]))
    if key == "contains":
        check = sub(limit)
        return list, lambda value: any(map(check, value))
    if key == "uniqueItems":
        return list, lambda value: len({canonical(item) for item in value}) == len(value)
    if key in ("anyOf", "oneOf", "allOf"):
        options, combine = list(map(sub, limit)), {"anyOf": any, "allOf": all, "oneOf": lambda results: sum(results) == 1}[key]
        return None, lambda value: combine(option(value) for option in options)
    if key == "not":
        return None, lambda value, check=sub(limit): not check(value)
    if key == "if":
        check, branches = sub(limit), [sub(schema.get(name, True)) for name in ("else", "then")]
        return None, lambda value: branches[check(value)](value)
    raise ValueError(f"unknown keyword of a schema: {key}")

def _reference(reference: str, root, known):
    """A reference inside the file, compiled at its first use, since definitions may refer to each other."""
    def check(value):
        if reference not in known:
            target = root
            for name in reference.removeprefix("#/").split("/"):
                target = target[name]
            known[reference] = _compile(target, root, known)
        return known[reference](value)
    return check
