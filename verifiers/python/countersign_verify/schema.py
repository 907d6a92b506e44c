"""The part of JSON Schema 2020-12 that our schemas use, compiled from the files of the specifications."""

import json
import re
from functools import lru_cache
from pathlib import Path

from .codec import canonical

PACKAGES = Path(__file__).resolve().parents[3] / "packages"
ANNOTATIONS = {"$id", "$schema", "$comment", "$defs", "title", "description"}
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

def _is_number(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

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
        if key in ANNOTATIONS or key in ("then", "else"):
            continue
        elif key == "type":
            checks.insert(0, TYPES[limit])
        elif key == "const":
            checks.append(_equals(limit))
        elif key == "enum":
            checks.append(lambda value, options=[_equals(item) for item in limit]: any(option(value) for option in options))
        elif key == "pattern":
            search = re.compile(re.sub(r"\$$", r"\\Z", limit.replace(r"\s", SPACE)), re.ASCII).search
            checks.append(lambda value, search=search: not isinstance(value, str) or search(value) is not None)
        elif key in ("minLength", "maxLength", "minItems", "maxItems", "minProperties"):
            kind = {"Length": str, "Items": list, "Properties": dict}[key[3:]]
            sign = 1 if key[:3] == "min" else -1
            checks.append(lambda value, kind=kind, sign=sign, limit=limit: not isinstance(value, kind) or sign * (len(value) - limit) >= 0)
        elif key in ("minimum", "maximum"):
            sign = 1 if key == "minimum" else -1
            checks.append(lambda value, sign=sign, limit=limit: not _is_number(value) or sign * (value - limit) >= 0)
        elif key == "properties":
            # Constants first: they tell the kinds of a receipt apart.
            members = sorted(((name, sub(item)) for name, item in limit.items()), key=lambda member: "const" not in limit[member[0]])
            checks.append(lambda value, members=members: not isinstance(value, dict) or all(
                check(value[name]) for name, check in members if name in value))
        elif key == "additionalProperties" and limit is False:
            names = frozenset(schema.get("properties", {}))
            checks.append(lambda value, names=names: not isinstance(value, dict) or value.keys() <= names)
        elif key == "additionalProperties":
            names, check = frozenset(schema.get("properties", {})), sub(limit)
            checks.append(lambda value, names=names, check=check: not isinstance(value, dict) or all(
                check(item) for name, item in value.items() if name not in names))
        elif key == "propertyNames":
            checks.append(lambda value, check=sub(limit): not isinstance(value, dict) or all(check(name) for name in value))
        elif key == "required":
            checks.append(lambda value, names=frozenset(limit): not isinstance(value, dict) or names <= value.keys())
        elif key == "dependentRequired":
            checks.append(lambda value, limit=limit: not isinstance(value, dict) or all(
                set(names) <= value.keys() for name, names in limit.items() if name in value))
        elif key == "prefixItems":
            checks.append(lambda value, items=[sub(item) for item in limit]: not isinstance(value, list) or all(
                check(item) for check, item in zip(items, value)))
        elif key == "items":
            start = len(schema.get("prefixItems", []))
            checks.append(lambda value, check=sub(limit), start=start: not isinstance(value, list) or all(map(check, value[start:])))
        elif key == "contains":
            checks.append(lambda value, check=sub(limit): not isinstance(value, list) or any(map(check, value)))
        elif key == "uniqueItems":
            checks.append(lambda value: not isinstance(value, list) or len({canonical(item) for item in value}) == len(value))
        elif key in ("anyOf", "oneOf", "allOf"):
            count = {"anyOf": lambda n, total: n >= 1, "oneOf": lambda n, total: n == 1, "allOf": lambda n, total: n == total}[key]
            options = [sub(item) for item in limit]
            checks.append(lambda value, options=options, count=count: count(sum(option(value) for option in options), len(options)))
        elif key == "not":
            checks.append(lambda value, check=sub(limit): not check(value))
        elif key == "if":
            branches = [sub(schema.get(name, True)) for name in ("else", "then")]
            checks.append(lambda value, check=sub(limit), branches=branches: branches[check(value)](value))
        else:
            raise ValueError(f"unknown keyword of a schema: {key}")
    return lambda value: all(check(value) for check in checks)

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
