"""Transactions (EIP-1559) and authorizations (EIP-7702): forms, RLP, digests and hashes. Malformed input raises ValueError."""

import re

from .codec import MAX_SAFE, un0x
from .crypto import keccak256

MAX_DATA = 131_072
DECIMAL = re.compile("0|[1-9][0-9]{0,77}")


def amount(text, bits: int = 256) -> int:
    """A decimal string without sign and leading zeros. # protocol "Transaction" """
    if not isinstance(text, str) or not DECIMAL.fullmatch(text) or int(text) >> bits:
        raise ValueError("invalid amount")
    return int(text)


def natural(value, minimum: int = 0, maximum: int = MAX_SAFE) -> int:
    """A JSON integer; Python's booleans are integers too, JSON's are not."""
    if type(value) is not int or not minimum <= value <= maximum:
        raise ValueError("invalid number")
    return value


def rlp(item) -> bytes:
    """RLP of bytes, numbers and lists. A number has no leading zeros; zero is the empty string. # protocol "Transaction" """
    if isinstance(item, list):
        return _with_length(b"".join(map(rlp, item)), 0xC0)
    if isinstance(item, int):
        item = item.to_bytes((item.bit_length() + 7) // 8, "big")
    return item if len(item) == 1 and item[0] < 0x80 else _with_length(item, 0x80)


def _with_length(data: bytes, offset: int) -> bytes:
    if len(data) < 56:
        return bytes([offset + len(data)]) + data
    size = len(data).to_bytes((len(data).bit_length() + 7) // 8, "big")
    return bytes([offset + 55 + len(size)]) + size + data


def split_signature(signature: bytes) -> list[int]:
    """yParity, r and s of r ‖ s ‖ v. # protocol "Signature" """
    return [signature[64] - 27, int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")]


def transaction_fields(tx: dict) -> list:
    """The RLP fields of a transaction whose values are in range. # protocol "Transaction" """
    data, gas = un0x(tx["data"]), amount(tx["gas"], 64)
    fee, priority = amount(tx["maxFeePerGas"]), amount(tx["maxPriorityFeePerGas"])
    if len(data) > MAX_DATA or priority > fee:
        raise ValueError("invalid transaction: data too long, or maxPriorityFeePerGas above maxFeePerGas")
    return [natural(tx["chainId"], 1), natural(tx["nonce"]), priority, fee, gas, un0x(tx["to"], 20), amount(tx["value"]), data, []]


def transaction_digest(tx: dict) -> bytes:
    return keccak256(b"\x02" + rlp(transaction_fields(tx)))


def transaction_hash(tx: dict, signature: bytes) -> bytes:
    return keccak256(b"\x02" + rlp(transaction_fields(tx) + split_signature(signature)))


def _authorization_fields(subject: dict) -> list:
    # protocol "Authorization": chain 0 would be every chain
    return [natural(subject["chainId"], 1), un0x(subject["address"], 20), natural(subject["nonce"])]


def authorization_digest(subject: dict) -> bytes:
    return keccak256(b"\x05" + rlp(_authorization_fields(subject)))


def authorization_hash(subject: dict, signature: bytes) -> bytes:
    """The second field of the event. # protocol "Statement" """
    return keccak256(rlp(_authorization_fields(subject) + split_signature(signature)))


def digest_of(kind: str, subject: dict) -> bytes:
    """The digest that the fields of a public subject hash to. # receipt-v2 §4 "digest" """
    return transaction_digest(subject) if kind == "transaction" else authorization_digest(subject)

