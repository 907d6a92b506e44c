"""The log: keys, checkpoints, cosignatures, and the proof in a receipt."""

import re
from functools import lru_cache
from typing import NamedTuple

from .codec import MAX_SAFE, sha256, u64, unbase64, unhex
from .crypto import is_ed25519_key, verify_ed25519
from .faults import Skip, require
from .merkle import leaf_hash, root_of_path

NUMBER = "(0|[1-9][0-9]{0,15})"
HASH = "[A-Za-z0-9+/]{43}="
# receipt-v2 §5, c2sp.org/tlog-proof without extra data: index, path, checkpoint without extension lines, signature lines
PROOF = re.compile(f"c2sp\\.org/tlog-proof@v1\nindex {NUMBER}\n((?:{HASH}\n)*)\n(([^\n]+)\n{NUMBER}\n({HASH})\n)\n((?:\u2014 [^\n ]+ [^\n ]+\n)+)")
CHECKPOINT = re.compile(f"([^\n]+)\n{NUMBER}\n({HASH})\n")
LINE = re.compile("\u2014 ([^\n ]+) ([^\n ]+)\n")

class Proof(NamedTuple):
    """What a checked proof shows: the log, and each witness with the time of its cosignature in seconds."""

    origin: str
    cosignatures: tuple[tuple[bytes, int], ...]
    index: int
    leaf: bytes  # of the log's tree
    key: bytes
    witnesses: tuple[bytes, ...]
    quorum: int = 0

def is_key_name(name: str) -> bool:
    """# c2sp.org/signed-note, log-v1 §3.3: no white space, no plus, no control character"""
    return bool(name) and not any(c.isspace() or c == "+" or c < " " for c in name)

def key_id(name: str, kind: int, key: bytes) -> bytes:
    """# log-v1 §2"""
    return sha256(name.encode() + b"\n" + bytes([kind]) + key)[:4]

def parse_verifier_key(text: str) -> tuple[str, bytes]:
    """Name and Ed25519 key of a log. # log-v1 §2, type 01"""
    name, identity, encoded = text.split("+", 2)
    data = unbase64(encoded)
    require(is_key_name(name) and len(data) == 33 and data[0] == 1 and is_ed25519_key(data[1:]), "invalid verifier key")
    require(unhex(identity) == key_id(name, 1, data[1:]), "invalid verifier key: another key id")
    return name, data[1:]

def check_witnesses(witnesses: list[str], quorum: int) -> None:
    """# log-v1 §3.6"""
    keys = [unhex(key, 32) for key in witnesses]
    require(1 <= len(keys) <= 32 and len(set(keys)) == len(keys) and len(keys) / 2 < quorum <= len(keys), "invalid quorum of witnesses")
    require(all(is_ed25519_key(key) for key in keys), "invalid key of a witness")

@lru_cache(4096)
def read_proof(text: str, log_name: str, log_key: bytes, witnesses: tuple[bytes, ...], entry: bytes) -> Proof:
    """A proof that the log has this entry. # receipt-v2 §5, rules 2 to 4"""
    match = PROOF.fullmatch(text)
    require(match and len(text[match.start(3):].encode()) <= 131_072, "malformed proof")  # log-v1 §3.3
    index, size, (note, origin), root = int(match[1]), int(match[5]), match.group(3, 4), unbase64(match[6])
    path = [unbase64(line) for line in match[2].split("\n")[:-1]]
    require(origin == log_name and index < size <= MAX_SAFE, "another log, or an index outside of it")
    lines = LINE.findall(match[7])
    require(lines[0][0] == log_name and _is_signed(lines[0][1], log_name, 1, log_key, note), "the first line isn't the log's signature")
    cosignatures, remaining = [], list(witnesses)
    for name, encoded in lines[1:]:
        data = unbase64(encoded)
        seconds = int.from_bytes(data[4:12], "big")
        message = f"cosignature/v1\ntime {seconds}\n{note}"
        # One line of each witness, in their order.
        while remaining and not _is_signed(encoded, name, 4, remaining[0], message):
            remaining.pop(0)
        require(remaining and is_key_name(name) and 1 <= seconds <= MAX_SAFE, "a line that is none of the witnesses', or out of order")
        cosignatures.append((remaining.pop(0), seconds))
    require(root_of_path(leaf_hash(entry), index, size, path) == root, "the path doesn't lead to the root")
    return Proof(origin, tuple(cosignatures), index, leaf_hash(entry), log_key, witnesses)

def read_checkpoint(note: str, log_name: str, log_key: bytes, witnesses: tuple[bytes, ...], quorum: int) -> tuple[int, bytes]:
    """Size and root of a checkpoint that the log signed and a quorum cosigned, with any other lines. # anchor-v1 §3, log-v1 §3.2 to 6"""
    text, split, signatures = note.rpartition("\n\n")
    text, lines = text + "\n", LINE.findall(signatures)
    require(split and 1 <= len(lines) <= 65 and LINE.sub("", signatures) == "", "malformed note")
    require(len(note.encode()) <= 131_072 and not any(c < " " and c != "\n" for c in note), "malformed note")
    match = CHECKPOINT.fullmatch(text)
    require(match and match[1] == log_name and int(match[2]) <= MAX_SAFE, "another log, or a malformed checkpoint")
    is_signed, cosigners = False, set()
    for name, encoded in lines:
        data = unbase64(encoded)
        require(is_key_name(name) and len(data) >= 5, "malformed note")
        if name == log_name and data[:4] == key_id(name, 1, log_key):
            require(_is_signed(encoded, name, 1, log_key, text), "invalid signature of the log")
            is_signed = True
        if keys := [key for key in witnesses if data[:4] == key_id(name, 4, key)]:
            seconds = int.from_bytes(data[4:12], "big")
            signer = next((key for key in keys if _is_signed(encoded, name, 4, key, f"cosignature/v1\ntime {seconds}\n{text}")), None)
            require(signer and 1 <= seconds <= MAX_SAFE, "invalid cosignature")
            cosigners.add(signer)
    require(is_signed and len(cosigners) >= quorum, "no signature of the log, or fewer witnesses than the quorum")
    return int(match[2]), unbase64(match[3])

def _is_signed(encoded: str, name: str, kind: int, key: bytes, message: str) -> bool:
    data = unbase64(encoded)
    return len(data) == (68 if kind == 1 else 76) and data[:4] == key_id(name, kind, key) and verify_ed25519(key, data[-64:], message.encode())

def check_log(receipt: dict, settings: dict, log_key: str | None, leaf: bytes, signed_at: int, reader: list[dict]) -> Proof:
    """Step log. # receipt-v2 §5"""
    log, text = settings["log"], receipt.get("log")
    if log is None:
        require(log_key is None and text is None and not reader, "the settings have no log, but the receipt or the reader has one")
        raise Skip("the settings have no log: there may be unknown signatures")
    check_witnesses(log["witnesses"], log["quorum"])
    require(log_key is not None and text is not None, "no key or no proof of the log")
    name, key = parse_verifier_key(log_key)
    require(name in log["origins"], "the key's name is none of the origins")
    entry = b"\x01" + unhex(receipt["signer"]["statement"]["keyId"]) + leaf + u64(signed_at)
    proof = read_proof(text, name, key, tuple(map(unhex, log["witnesses"])), entry)
    require(len(proof.cosignatures) >= log["quorum"], "fewer witnesses than the quorum")
    cosigned = {key.hex() for key, _ in proof.cosignatures}
    for policy in reader:
        check_witnesses(policy["witnesses"], policy["quorum"])
    require(all(len(cosigned & set(policy["witnesses"])) >= policy["quorum"] for policy in reader), "too few of the reader's witnesses cosigned")
    return proof._replace(quorum=log["quorum"])
