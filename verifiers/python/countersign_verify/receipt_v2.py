"""The steps of a receipt of version 2. # receipt-v2 §4"""

from . import mldsa, opening as openings, schema, statement as stating, transaction, typed_data, vault
from .codec import MAX_BLOCK, canonical, cid_of, parse_canonical, parse_cid, sha256, tag, un0x, unhex
from .crypto import address_of, recover, verify_ed25519
from .entropy import check_source
from .evidence import Evidence, run, run_time
from .faults import require, skip_unless
from .log import check_log
from .merkle import leaf_hash
from .reader import Reader
from .verdict import Steps

SCHEMA = "receipt/spec/receipt-v2.attestation.schema.json"

def check(steps: Steps, receipt: dict, block: bytes, blocks: dict[str, bytes], reader: Reader, opening_file: bytes | None) -> None:
    """All steps after format and cid."""
    kind, subject, statement = receipt["kind"], receipt["subject"], receipt["signer"]["statement"]
    is_public = kind in ("transaction", "authorization")
    named = steps.run("blocks", lambda: _check_blocks(receipt, blocks))
    settings = named["batch"]["settings"] if named else None

    def check_opening():
        skip_unless(opening_file is not None, "no opening is given")
        return openings.check_opening(receipt, opening_file)

    opening = steps.run("opening", check_opening, (), opening_file is not None)
    content = opening.content if opening else None
    digest = steps.run("digest", lambda: _check_digest(kind, subject, content, settings), (), is_public)
    steps.run("signature", lambda: _check_signature(kind, subject, statement, digest, opening), () if is_public else ("digest",), is_public)
    if kind == "transaction":
        steps.run("tx-hash", lambda: require(
            transaction.transaction_hash(subject, un0x(subject["signature"])) == un0x(subject["txHash"]), "the signed transaction has another hash"))
    steps.run("statement", lambda: stating.check_v2(receipt, settings, content))
    leaf, at = leaf_hash(canonical(statement)), stating.time_of(statement)

    def check_proof():
        skip_unless(settings is not None and at is not None, "a block is missing, or the time of signing doesn't exist")
        return check_log(receipt, settings, named["batch"].get("logKey"), leaf, at, reader.anchors.get("logWitnesses", []))

    proof = steps.run("log", check_proof, (), settings is None or settings["log"] is not None or bool(reader.anchors.get("logWitnesses")))
    if statement["policy"] is not None and at is not None:
        cosigned = None if proof is None else {key.hex(): seconds for key, seconds in proof.cosignatures}
        _check_vault(steps, receipt, blocks, vault.View(
            receipt=receipt, signed_at_ms=at, opening=opening, log_origin=proof and proof.origin, cosigned_s=cosigned,
            is_log_known=settings is not None, is_signed_by=lambda source: _is_signed_by(receipt["entropy"], source),
            sample_ms=stating.time_or_none(receipt["entropy"]["timestamp"])))
    if named is None:
        return
    batch, release, coordinator = named["batch"], named["release"], named["coordinator"]
    evidence = Evidence(
        statement=statement, leaf=leaf, signed_at=at, inclusion=receipt["signer"]["inclusion"], tree_size=batch["treeSize"],
        batch=batch, config=batch["config"], settings=settings, quote=unhex(batch["quoteHex"]), event_log=batch.get("eventLog"),
        collateral=release["collateral"], collateral_limit=MAX_BLOCK, sample=receipt["entropy"], coordinator=coordinator,
        keys=(coordinator["keys"]["ed25519"], coordinator["keys"]["mlDsa65"]), proof=proof,
    )
    run(steps, evidence, blocks, reader, lambda: _check_release(release, coordinator))
    run_time(steps, evidence, reader, cid_of(block), statement["address"], _event_field(kind, subject), kind == "transaction")

def _check_blocks(receipt: dict, blocks: dict[str, bytes]) -> dict[str, dict]:
    """Release, batch and coordinator, in this order. # receipt-v2 §4 "blocks" """
    def read(name: str, cid: str) -> dict:
        skip_unless(name in blocks, f"the {name} is missing")
        require(sha256(blocks[name]) == parse_cid(cid), f"the {name} has another CID")
        value = parse_canonical(blocks[name], MAX_BLOCK)
        require(schema.matches(f"receipt/spec/receipt-v2.{name}.schema.json", value), f"the {name} doesn't match its schema")
        return value

    release = read("release", receipt["coordinator"]["release"])
    require(release["batch"] == receipt["signer"]["batch"], "the release is for another batch")
    return {"release": release, "batch": read("batch", release["batch"]), "coordinator": read("coordinator", release["coordinator"])}

def _check_digest(kind: str, subject: dict, content: dict | None, settings: dict | None) -> bytes:
    skip_unless(kind not in ("address", "revocation"), f"the wallet's key signs nothing for the kind {kind}")
    if kind == "off-chain":
        skip_unless(content is not None, "the content isn't shown")
        digest, stated = typed_data.content_digest(content["kind"], content["content"]), content["digest"]
    else:
        digest, stated = transaction.digest_of(kind, subject), subject["digestSigned" if kind == "transaction" else "digest"]
    require(digest == un0x(stated), "the fields hash to another digest")
    if kind == "authorization" and settings is not None:
        require(subject["address"] in settings["implementations"], "the settings don't allow this code")
    return digest

def _check_signature(kind: str, subject: dict, statement: dict, digest: bytes, opening) -> None:
    if kind == "off-chain":
        skip_unless(opening.signature is not None, "the signature isn't shown")
        signature = opening.signature
    else:
        digest, signature = un0x(subject["digestSigned" if kind == "transaction" else "digest"]), un0x(subject["signature"], 65)
    key = recover(digest, signature)
    address = subject["from"] if kind == "transaction" else statement["address"]
    require(key.hex() == statement["publicKey"] and address_of(key) == address, "it is of another key")

def _is_signed_by(sample: dict, source: dict) -> bool:
    """Whether this source of a policy's `time` signed the sample. # receipt-v2 §4 "vault-rule" """
    try:
        check_source(sample, [source])
        return True
    except ValueError:
        return False

def _check_vault(steps: Steps, receipt: dict, blocks: dict[str, bytes], view: vault.View) -> None:
    kind, needs = receipt["kind"], ("vault-policy",)
    policy = steps.run("vault-policy", lambda: vault.check_policy(receipt, blocks.get("policy")))
    if kind == "address":
        return
    spends = steps.run("vault-rule", lambda: vault.check_rule(view, policy), needs, kind != "off-chain")
    is_allowed = steps.has_passed("vault-rule")
    steps.run("vault-approvals", lambda: vault.check_approvals(view, policy, is_allowed), needs, kind == "transaction")
    if vault.has_budget_step(view, policy):
        steps.run("vault-budget", lambda: vault.check_budget(view, policy, spends, is_allowed), needs, kind == "transaction")

def _check_release(release: dict, coordinator: dict) -> None:
    """# protocol "Tags": release, v2; receipt-v2 §2: both signatures"""
    message = tag("release/v2") + b"".join(parse_cid(release[name]) for name in ("batch", "collateral", "coordinator"))
    first, second = (unhex(item["value"]) for item in release["signatures"])
    require(verify_ed25519(unhex(coordinator["keys"]["ed25519"]), first, message), "invalid Ed25519 signature of the coordinator")
    require(mldsa.verify(unhex(coordinator["keys"]["mlDsa65"]), second, message), "invalid ML-DSA-65 signature of the coordinator")

def _event_field(kind: str, subject: dict) -> str:
    """The second field of the event. # protocol "Statement" """
    if kind == "transaction":
        return subject["txHash"]
    if kind == "authorization":
        return "0x" + transaction.authorization_hash(subject, un0x(subject["signature"])).hex()
    return "0x" + (subject["commitment"] if kind == "off-chain" else stating.subject_hash(subject).hex())
