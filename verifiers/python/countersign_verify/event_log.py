"""The event log of a guest. A malformed log raises ValueError. # evidence §8"""

import hashlib
import json
from functools import lru_cache

from .codec import unhex

RUN_TIME_EVENT = 0x08000001
MAX_LENGTH, MAX_ENTRIES, MAX_DEPTH = 1_048_576, 4_096, 16


@lru_cache(64)
def replay_log(text: str) -> tuple[dict[int, bytes], dict[str, list[str]]]:
    """The registers that have entries, and the payloads of RTMR3's events by name."""
    if len(text) > MAX_LENGTH:
        raise ValueError("invalid event log: too long")
    try:
        entries = json.loads(text, object_pairs_hook=_members, parse_int=_number, parse_constant=_reject)
        depth = _depth(entries)
    except RecursionError:
        raise ValueError("invalid event log: nested too deep") from None
    if not isinstance(entries, list) or len(entries) > MAX_ENTRIES or depth > MAX_DEPTH:
        raise ValueError("invalid event log: expected a list of at most 4,096 entries")
    registers: dict[int, bytes] = {}
    events: dict[str, list[str]] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            raise ValueError("invalid event log: expected entries")
        register, kind = _integer(entry.get("imr"), 3), _integer(entry.get("event_type"), 2**32 - 1)
        stated, payload = unhex(entry.get("digest")), unhex(entry.get("event_payload"))
        name = entry.get("event")
        if not isinstance(name, str):
            raise ValueError("invalid event log: expected a name")
        encoded = name.encode()  # rejects a lone surrogate
        if kind == RUN_TIME_EVENT:
            digest = hashlib.sha384(kind.to_bytes(4, "little") + b":" + encoded + b":" + payload).digest()
            # Otherwise a name with a colon could have the digest of another event.
            if ":" in name or stated not in (b"", digest):
                raise ValueError("invalid event log: a colon in a name, or another digest")
            if register == 3:
                events.setdefault(name, []).append(payload.hex())
        else:
            digest = stated
            # An entry given by its digest could be a second compose-hash.
            if len(digest) != 48 or register == 3:
                raise ValueError("invalid event log: expected a digest, and only run-time events in RTMR3")
        registers[register] = hashlib.sha384(registers.get(register, bytes(48)) + digest).digest()
    return registers, events


def check_log(text: str, rtmrs: list[bytes]) -> dict[str, list[str]]:
    """The payloads by event of a log that fits the registers of a quote. # evidence §8 "Replay" """
    registers, events = replay_log(text)
    for index, value in {3: bytes(48), **registers}.items():
        if rtmrs[index] != value:
            raise ValueError(f"event log does not fit RTMR{index}")
    return events


def _members(pairs: list) -> dict:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("invalid event log: a member twice")
    return dict(pairs)


def _number(text: str) -> int | float:
    return int(text) if len(text) < 32 else float(text)


def _reject(text: str):
    raise ValueError(f"invalid event log: {text}")


def _depth(value) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max((_depth(child) for child in (value.values() if isinstance(value, dict) else value)), default=0)


def _integer(value, maximum: int) -> int:
    # An integer counts by its value: 3.0 is 3.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= maximum or value != int(value):
        raise ValueError(f"invalid event log: expected an integer up to {maximum}")
    return int(value)
