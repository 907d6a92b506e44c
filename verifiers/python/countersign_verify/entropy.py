"""The random sample. # evidence §10"""

from . import bls
from .codec import canonical, parse_time, sha256, tag, u64, unhex
from .crypto import verify_ed25519
from .faults import require

def check_source(sample: dict, sources: list[dict] | None) -> None:
    """Verifies the source's signature; it is one of these sources (version 2: those of the settings)."""
    time, key, value, signature = parse_time(sample["timestamp"]), *(unhex(sample[name]) for name in ("publicKey", "valueHex", "signatureHex"))
    if sample.get("kind") == "drand":
        _check_round(sample, time, sources or [], key, value, signature)
        return
    require(sources is None or {"kind": "satellite", "key": sample["publicKey"]} in sources, "the settings don't name the source")
    require(verify_ed25519(key, signature, tag("entropy/v1") + value + u64(time) + u64(sample["sequence"])), "invalid signature of the source")

def _check_round(sample: dict, time: int, sources: list[dict], key: bytes, value: bytes, signature: bytes) -> None:
    """# evidence §10, drand 1 to 3"""
    periods = [(source["genesisS"], source["periodS"]) for source in sources if source["kind"] == "drand" and (
        source["chainHash"], source["key"]) == (sample["chainHash"], sample["publicKey"])]
    require(any(time == 1000 * (genesis + (sample["sequence"] - 1) * period) for genesis, period in periods),
            "the settings don't name the beacon, or its round has another time")
    require(sha256(signature) == value and bls.verify(key, signature, sha256(u64(sample["sequence"]))), "invalid signature of the beacon")

def check_sample(sample: dict, statement: dict, sources: list[dict] | None) -> None:
    """Step entropy. # evidence §10: version 1 names the value, version 2 the whole sample"""
    if sources is None:
        require(sha256(unhex(sample["valueHex"])).hex() == statement["entropyHash"], "the statement names another sample")
    else:
        require(sha256(canonical(sample)).hex() == statement["witness"], "the statement names another sample")
    check_source(sample, sources)
