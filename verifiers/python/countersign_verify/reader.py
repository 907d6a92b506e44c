"""What the reader gives: none of it comes from the receipt. # receipt-v1 §3"""

from collections.abc import Callable
from dataclasses import dataclass, field

from .anchor import Anchor
from .anchors import parse_anchors, parse_policy
from .codec import parse_time, unbase64, unhex
from .roots import HARDWARE, Root, parse_roots

@dataclass
class Reader:
    roots: tuple[Root, ...] = HARDWARE
    mock_entropy_keys: list[str] = field(default_factory=list)
    anchors: dict = field(default_factory=dict)
    policy: dict = field(default_factory=parse_policy)
    revocations: tuple[bytes, int] | None = None  # AMD's list, and the reader's time
    # {events, transaction}, or a function of topics and transaction; events is None if the node failed
    chain: dict | Callable | None = None
    is_event_due: bool = True
    reevaluation: tuple[bytes, int] | None = None  # collateral of another time, and that time
    anchor: Anchor | None = None  # the checkpoint that published the receipt, in place of an event

def parse_reader(value: dict) -> Reader:
    """The `reader` of the line protocol; ValueError, KeyError or TypeError if it is malformed."""
    revocations, again = value.get("revocations"), value.get("reevaluation")
    return Reader(
        roots=parse_roots(value["roots"]) if "roots" in value else HARDWARE,
        mock_entropy_keys=list(value.get("mockEntropyKeys") or []),
        anchors=parse_anchors(value.get("anchors")),
        policy=parse_policy(value.get("policy")),
        revocations=(unhex(revocations["list"]), parse_time(revocations["at"])) if revocations else None,
        chain=value.get("chain"),
        is_event_due=value.get("isEventDue", True) is not False,
        reevaluation=(unbase64(again["collateral"]), parse_time(again["at"])) if again else None,
    )
