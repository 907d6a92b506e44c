"""The step `event` of a receipt that a checkpoint of its log published. # anchor-v1 §3"""

from dataclasses import dataclass

from . import schema
from .codec import MAX_BLOCK, MAX_SAFE, parse_canonical, parse_time, sha256, un0x, unhex
from .faults import Skip, require, skip_unless
from .log import Proof, read_checkpoint
from .merkle import root_of_path

TOPIC = "0xdf4adea15356e7ce918ce3cf0ce4c3d2e7619aadca21cda46bc397c00b54b92a"
SCHEMA = "receipt/spec/anchor-v1.block.schema.json"

@dataclass
class Anchor:
    """The member `anchor` of a proof, with the anchor block: None if it is withheld, or a function of its SHA-256."""

    contract: str
    id: str
    size: int
    path: list[str]
    block: object = None

    def topics(self) -> list[str]:
        return [TOPIC, self.id, f"0x{self.size:064x}"]

def parse_event(event: dict) -> tuple[str, int, bytes, bytes]:
    """Id, size, root and block hash of a Checkpoint event; ValueError if it is malformed. # §1"""
    topics, data = [topic.lower() for topic in event["topics"]], un0x(event["data"].lower(), 64)
    require(len(topics) == 3 and topics[0] == TOPIC and un0x(topics[1], 32), "malformed Checkpoint event")
    size = int.from_bytes(un0x(topics[2], 32), "big")
    require(size <= MAX_SAFE, "malformed Checkpoint event: its size is out of range")
    return topics[1], size, data[:32], data[32:]

def check(anchor: Anchor, proof: Proof | None, events, listed: list[dict], is_due: bool) -> int | None:
    """The time of the checkpoint's block, or None if there is no event and none is due."""
    skip_unless(proof is not None, "the receipt proves no entry of a log")
    limits = [log.get("upTo", MAX_SAFE) for item in listed if item["address"] == anchor.contract
              for log in item["logs"] if log["id"] == anchor.id]
    skip_unless(any(anchor.size <= limit for limit in limits), "the reader doesn't list the log, or only smaller checkpoints")
    skip_unless(isinstance(events, list), "the node failed")
    found = [(parse_time(event["blockTime"]), *parse_event(event)) for event in events if event["address"].lower() == anchor.contract]
    own = min((event for event in found if event[1:3] == (anchor.id, anchor.size)), key=lambda event: event[0], default=None)
    require(own or not is_due, "no checkpoint of this size")
    if own is None:
        return None
    time, _, _, root, block_hash = own
    block = anchor.block(block_hash) if callable(anchor.block) else anchor.block
    if block is None:
        raise Skip("the anchor block is withheld")
    require(sha256(block) == block_hash, "the event names another anchor block")
    value = parse_canonical(block, MAX_BLOCK)
    require(schema.matches(SCHEMA, value), f"invalid anchor block: see {SCHEMA}")
    tree = read_checkpoint(value["checkpoint"], proof.origin, proof.key, proof.witnesses, proof.quorum)
    require(tree == (anchor.size, root), "the witnesses cosigned another tree than the one on the chain")
    path = [unhex(item, 32) for item in anchor.path]
    require(root_of_path(proof.leaf, proof.index, anchor.size, path) == root, "the path doesn't lead to the root")
    return time
