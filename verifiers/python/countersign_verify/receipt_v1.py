"""The steps of a receipt of version 1. # receipt-v1 §3"""

from . import statement as stating
from . import transaction
from .codec import MAX_COLLATERAL, canonical, cid_of, parse_cid, sha256, tag, un0x, unhex
from .crypto import address_of, recover, verify_ed25519
from .evidence import Evidence, run, run_time
from .faults import Skip, require
from .merkle import leaf_hash
from .reader import Reader
from .verdict import Steps

SCHEMA = "receipt/spec/receipt-v1.schema.json"

def check(steps: Steps, receipt: dict, block: bytes, blocks: dict[str, bytes], reader: Reader, opening: bytes | None) -> None:
    """All steps after format and cid."""
    fields, signer, coordinator = receipt["transaction"], receipt["signer"], receipt["coordinator"]
    statement, attestation = signer["statement"], coordinator["selfAttestation"]
    signature = un0x(fields["signature"], 65)

    def check_signature():
        key = recover(un0x(fields["digestSigned"]), signature)
        require(key.hex() == signer["publicKey"] and address_of(key) == fields["from"], "it is of another key")

    def check_log():
        require(not reader.anchors.get("logWitnesses"), "version 1 is in no log, and the reader names witnesses")
        raise Skip("version 1 is in no log: there may be unknown signatures")

    def check_release():
        # protocol "Tags": release, v1
        hashes = parse_cid(signer["collateral"]) + sha256(canonical(attestation)) + sha256(canonical(receipt["entropy"]))
        key, signature = unhex(coordinator["publicKey"]), unhex(coordinator["release"])
        require(verify_ed25519(key, signature, tag("release/v1") + leaf + hashes), "invalid signature of the coordinator")

    if opening is not None:  # receipt-v2 §4: given for another kind, it fails
        steps.run("opening", lambda: require(False, "a receipt of version 1 has no opening"))
    steps.run("digest", lambda: require(transaction.transaction_digest(fields) == un0x(fields["digestSigned"]), "the fields hash to another digest"))
    steps.run("signature", check_signature)
    steps.run("tx-hash", lambda: require(transaction.transaction_hash(fields, signature) == un0x(fields["txHash"]), "the signed transaction has another hash"))
    steps.run("statement", lambda: stating.check_v1(receipt))
    steps.run("log", check_log, (), False)
    leaf = leaf_hash(canonical(statement))
    evidence = Evidence(
        statement=statement, leaf=leaf, signed_at=stating.time_of(statement), inclusion=signer["inclusion"],
        tree_size=signer["inclusion"]["treeSize"], batch=signer["batch"], config=signer["config"], settings=None,
        quote=unhex(signer["quoteHex"]), event_log=signer.get("eventLog"), collateral=signer["collateral"], collateral_limit=MAX_COLLATERAL,
        sample=receipt["entropy"], coordinator=attestation, keys=(coordinator["publicKey"], None),
        stated={"measurement": signer["measurement"], "tcbStatus": signer["tcbStatus"], "coordinatorMeasurement": attestation["measurement"]},
    )
    run(steps, evidence, blocks, reader, check_release)
    run_time(steps, evidence, reader, cid_of(block), fields["from"], fields["txHash"], True)
