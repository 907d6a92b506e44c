"""Transactions (EIP-1559) and authorizations (EIP-7702): forms, RLP, digests and hashes. Malformed input raises ValueError."""

import re

from .codec import MAX_SAFE, un0x
from .crypto import keccak256
from .faults import require

MAX_DATA = 131_072

def amount(text, bits: int = 256) -> int:
    """A decimal string without sign and leading zeros. # protocol "Transaction" """
    require(isinstance(text, str) and re.fullmatch("0|[1-9][0-9]{0,77}", text) and not int(text) >> bits, "invalid amount")
    return int(text)

def natural(value, minimum: int = 0) -> int:
    """A JSON integer; Python's booleans are integers too, JSON's are not."""
    require(type(value) is int and minimum <= value <= MAX_SAFE, "invalid number")
    return value

def rlp(item) -> bytes:
    """RLP of bytes, numbers and lists. A number has no leading zeros; zero is the empty string. # protocol "Transaction" """
    if isinstance(item, list):
        return _with_length(b"".join(map(rlp, item)), 0xC0)
    data = _minimal(item) if isinstance(item, int) else item
    return data if len(data) == 1 and data[0] < 0x80 else _with_length(data, 0x80)

def _minimal(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")

def _with_length(data: bytes, offset: int) -> bytes:
    size = _minimal(len(data))
    return (bytes([offset + len(data)]) if len(data) < 56 else bytes([offset + 55 + len(size)]) + size) + data

def _split(signature: bytes) -> list[int]:
    """yParity, r and s of r ‖ s ‖ v. # protocol "Signature" """
    require(signature[64] >= 27, "invalid signature: v out of range")
    return [signature[64] - 27, int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")]

def transaction_fields(tx: dict) -> list:
    """The RLP fields of a transaction whose values are in range. # protocol "Transaction" """
    data, gas = un0x(tx["data"]), amount(tx["gas"], 64)
    fee, priority = amount(tx["maxFeePerGas"]), amount(tx["maxPriorityFeePerGas"])
    require(len(data) <= MAX_DATA and priority <= fee, "invalid transaction: data too long, or maxPriorityFeePerGas above maxFeePerGas")
    return [natural(tx["chainId"], 1), natural(tx["nonce"]), priority, fee, gas, un0x(tx["to"], 20), amount(tx["value"]), data, []]

def transaction_digest(tx: dict) -> bytes:
    return keccak256(b"\x02" + rlp(transaction_fields(tx)))

def transaction_hash(tx: dict, signature: bytes) -> bytes:
    return keccak256(b"\x02" + rlp(transaction_fields(tx) + _split(signature)))

def _authorization_fields(subject: dict) -> list:
    # protocol "Authorization": chain 0 would be every chain
    return [natural(subject["chainId"], 1), un0x(subject["address"], 20), natural(subject["nonce"])]

def authorization_hash(subject: dict, signature: bytes) -> bytes:
    """The second field of the event. # protocol "Statement" """
    return keccak256(rlp(_authorization_fields(subject) + _split(signature)))

def digest_of(kind: str, subject: dict) -> bytes:
    """The digest that the fields of a public subject hash to. # receipt-v2 §4 "digest" """
    return transaction_digest(subject) if kind == "transaction" else keccak256(b"\x05" + rlp(_authorization_fields(subject)))
