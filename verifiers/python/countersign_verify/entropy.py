"""The random sample. # evidence §10"""

from . import bls
from .codec import canonical, parse_time, sha256, tag, u64, unhex
from .crypto import verify_ed25519
from .faults import Fault


def check_sample(sample: dict, sources: list[dict] | None) -> None:
    try:
        check_source(sample, sources)
    except ValueError as error:
        raise Fault("entropy", None, str(error)) from None


def check_source(sample: dict, sources: list[dict] | None) -> None:
    """Verifies the source's signature; it is one of these sources (version 2: those of the settings)."""
    time, key, value, signature = parse_time(sample["timestamp"]), *(unhex(sample[name]) for name in ("publicKey", "valueHex", "signatureHex"))
    if sample.get("kind") == "drand":
        _check_round(sample, time, sources or [], key, value, signature)
        return
    if sources is not None and {"kind": "satellite", "key": sample["publicKey"]} not in sources:
        raise ValueError("the settings don't name the source")
    if not verify_ed25519(key, signature, tag("entropy/v1") + value + u64(time) + u64(sample["sequence"])):
        raise ValueError("invalid signature of the source")


def _check_round(sample: dict, time: int, sources: list[dict], key: bytes, value: bytes, signature: bytes) -> None:
    """# evidence §10, drand 1 to 3"""
    named = [source for source in sources if source["kind"] == "drand" and (source["chainHash"], source["key"]) == (sample["chainHash"], sample["publicKey"])]
    if not any(time == 1000 * (source["genesisS"] + (sample["sequence"] - 1) * source["periodS"]) for source in named):
        raise ValueError("the settings don't name the beacon, or its round has another time")
    if sha256(signature) != value or not bls.verify(key, signature, sha256(u64(sample["sequence"]))):
        raise ValueError("invalid signature of the beacon")


def check_statement_v1(sample: dict, statement: dict) -> None:
    if sha256(unhex(sample["valueHex"])).hex() != statement["entropyHash"]:
        raise Fault("entropy", None, "the statement names another sample")


def check_statement_v2(sample: dict, statement: dict) -> None:
    if sha256(canonical(sample)).hex() != statement["witness"]:
        raise Fault("entropy", None, "the statement names another sample")

