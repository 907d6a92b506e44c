"""The event log of a guest. A malformed log raises ValueError. # evidence §8"""

import hashlib
from functools import lru_cache

from .codec import depth_of, unhex
from .faults import require
from .shape import integer, load, read, text

RUN_TIME_EVENT = 0x08000001
MAX_LENGTH, MAX_ENTRIES, MAX_DEPTH = 1_048_576, 4_096, 16
_ENTRY = {"imr": integer(3), "event_type": integer(2**32 - 1), "digest": unhex, "event": text, "event_payload": unhex}

@lru_cache(64)
def replay_log(log: str) -> tuple[dict[int, bytes], dict[str, list[str]]]:
    """The registers that have entries, and the payloads of RTMR3's events by name."""
    require(len(log) <= MAX_LENGTH, "invalid event log: too long")
    value = load(log, _members)
    entries = read(value, [_ENTRY])
    require(len(entries) <= MAX_ENTRIES and depth_of(value) <= MAX_DEPTH, "invalid event log: too many entries or levels")
    registers: dict[int, bytes] = {}
    events: dict[str, list[str]] = {}
    for entry in entries:
        register, kind, stated, name, payload = entry.values()
        encoded = name.encode()  # rejects a lone surrogate
        if kind == RUN_TIME_EVENT:
            digest = hashlib.sha384(kind.to_bytes(4, "little") + b":" + encoded + b":" + payload).digest()
            # Otherwise a name with a colon could have the digest of another event.
            require(":" not in name and stated in (b"", digest), "invalid event log: a colon in a name, or another digest")
            if register == 3:
                events.setdefault(name, []).append(payload.hex())
        else:
            digest = stated
            # An entry given by its digest could be a second compose-hash.
            require(len(digest) == 48 and register != 3, "invalid event log: expected a digest, and only run-time events in RTMR3")
        registers[register] = hashlib.sha384(registers.get(register, bytes(48)) + digest).digest()
    return registers, events

def check_log(log: str, rtmrs: list[bytes]) -> dict[str, list[str]]:
    """The payloads by event of a log that fits the registers of a quote. # evidence §8 "Replay" """
    registers, events = replay_log(log)
    for index, value in {3: bytes(48), **registers}.items():
        require(rtmrs[index] == value, f"event log does not fit RTMR{index}")
    return events

def _members(pairs: list) -> dict:
    require(len({name for name, _ in pairs}) == len(pairs), "invalid event log: a member twice")
    return dict(pairs)
