"""The steps that both versions share: from the inclusion in the batch to the time. # receipt-v1 §3, receipt-v2 §4"""

from dataclasses import dataclass
from functools import lru_cache

from . import anchor, anchors, chain, entropy, snp, statement as stating, tdx
from .codec import MAX_COLLATERAL, canonical, parse_cid, parse_time, sha256, unhex
from .faults import Skip, require, skip_unless
from .log import Proof
from .merkle import root_of_path
from .reader import Reader
from .verdict import Steps

@dataclass
class Evidence:
    """What both versions have, wherever the receipt has it."""

    statement: dict
    leaf: bytes
    signed_at: int | None  # None if it doesn't exist
    inclusion: dict  # leafIndex and path
    tree_size: int
    batch: dict  # bootId, sequence and previous
    config: dict
    settings: dict | None  # version 2
    quote: bytes
    event_log: str | None
    collateral: str  # its CID
    collateral_limit: int
    sample: dict
    coordinator: dict  # reportHex, certificates, configHash, fetchedAt; version 2: revocations
    keys: tuple[str, str | None]  # the coordinator's Ed25519 and ML-DSA-65 keys
    proof: Proof | None = None  # version 2: the entry in the log, if step log passed
    stated: dict | None = None  # version 1: measurement and tcbStatus of the quote, and the report's measurement

parse_collateral = lru_cache(64)(tdx.parse_collateral)

def run(steps: Steps, evidence: Evidence, blocks: dict[str, bytes], reader: Reader, check_release) -> None:
    """The steps from inclusion to release; a step may fail although an earlier one failed."""
    at, position = evidence.signed_at, evidence.inclusion
    timed = ("time of signing",) if at is None else ()

    def collateral() -> dict:
        block, named = blocks.get("collateral"), parse_cid(evidence.collateral)
        skip_unless(block is not None, "the block is missing")
        require(sha256(block) == named, "the block has another CID")
        return parse_collateral(block, evidence.collateral_limit)

    root = steps.run("inclusion", lambda: root_of_path(evidence.leaf, position["leafIndex"], evidence.tree_size, list(map(unhex, position["path"]))))
    members = steps.run("collateral", collateral)
    quote = steps.run("quote", lambda: _check_quote(evidence, members, reader), ("collateral", *timed))
    steps.run("report-data", lambda: _check_report_data(evidence, root, quote), ("inclusion", "quote"))
    steps.run("quote-policy", lambda: anchors.check_quote_policy(quote, reader.policy), ("quote",))
    steps.run("platform", lambda: anchors.check_platform(quote, reader.anchors), ("quote",), bool(reader.anchors.get("platforms")))
    steps.run("measurement", lambda: anchors.check_measurement(quote, reader.anchors, evidence.config["rootSecret"]), ("quote",), False)
    steps.run("config", lambda: _check_config(evidence, reader), (), False)
    steps.run("entropy", lambda: entropy.check_sample(
        evidence.sample, evidence.statement, None if evidence.settings is None else evidence.settings["entropy"]))
    key = evidence.sample["publicKey"]
    steps.run("entropy-key", lambda: anchors.check_entropy_key(key, reader.anchors, reader.mock_entropy_keys), (), False)
    _run_coordinator(steps, evidence, timed, reader)
    steps.run("release", check_release)
    steps.is_mock = steps.is_mock or (quote is not None and quote.mode == "mock") or key in reader.mock_entropy_keys

def _check_quote(evidence: Evidence, members: dict, reader: Reader):
    quote = tdx.check_quote(evidence.quote, members, evidence.event_log, evidence.signed_at, reader.roots)
    stated = evidence.stated  # receipt-v1 §3 "quote"
    if stated:
        require(stated["tcbStatus"] == quote.tcb_status, "the receipt states another TCB status")
        require(all(quote.registers[name].hex() == value for name, value in stated["measurement"].items()), "the receipt states other registers")
    return quote

def _check_report_data(evidence: Evidence, root: bytes, quote) -> None:
    stating.check_config(evidence.config)
    require(stating.report_data(evidence.tree_size, root, evidence.batch, evidence.config) == quote.report_data, "the quote is over another batch")

def _check_config(evidence: Evidence, reader: Reader) -> None:
    if evidence.settings is not None:  # receipt-v2 §4 "config"
        require(evidence.config["version"].endswith("+" + sha256(canonical(evidence.settings)).hex()), "the configuration is of other settings")
        stating.check_settings(evidence.settings)
    anchors.check_config(sha256(canonical(evidence.config)), reader.anchors)

def _run_coordinator(steps: Steps, evidence: Evidence, timed: tuple, reader: Reader) -> None:
    coordinator, needs, at = evidence.coordinator, ("coordinator-report",), evidence.signed_at

    def check_report():
        certificates = [unhex(coordinator["certificates"][name]) for name in ("ek", "ask", "ark")]
        report = snp.check_report(unhex(coordinator["reportHex"]), certificates, at, reader.roots)
        stated = evidence.stated or {"coordinatorMeasurement": report.measurement.hex()}
        require(report.measurement.hex() == stated["coordinatorMeasurement"], "the receipt states another measurement")
        return report

    def check_revocation():
        if reader.revocations is not None:  # evidence §9.7: the reader's list replaces the block's
            return snp.check_revocations(reader.revocations[0], report, reader.revocations[1])
        skip_unless("revocations" in coordinator, "no list is given")
        return snp.check_revocations(unhex(coordinator["revocations"]), report, at)

    def check_key():
        require(evidence.keys[0] == evidence.statement["coordinatorKey"], "the statement names another key")
        expected = stating.coordinator_report_data(evidence.keys, coordinator["configHash"])
        require(expected == report.report_data, "the report is for other keys or another configuration")

    report = steps.run("coordinator-report", check_report, timed)
    steps.is_mock = steps.is_mock or (report is not None and report.mode == "mock")
    steps.run("coordinator-policy", lambda: anchors.check_coordinator_policy(report, reader.anchors, reader.policy), needs, False)
    steps.run("coordinator-chip", lambda: anchors.check_coordinator_chip(report, reader.anchors), needs, False)
    steps.run("coordinator-revocation", check_revocation, needs, False)
    steps.run("coordinator-key", check_key, needs)
    steps.run("coordinator-measurement", lambda: anchors.check_coordinator_measurement(report, reader.anchors), needs, False)
    steps.run("coordinator-config", lambda: anchors.check_coordinator_config(unhex(coordinator["configHash"]), reader.anchors), (), False)

def run_time(steps: Steps, evidence: Evidence, reader: Reader, cid: str, wallet: str, second: str, is_transaction: bool) -> None:
    """The steps from event to reevaluation. # receipt-v1 §3 and "Time" """
    at, contract = evidence.signed_at, reader.anchors.get("contract")
    topics = reader.anchor.topics() if reader.anchor else chain.topics_of(wallet, second)
    node = reader.chain(topics, second if is_transaction else None) if callable(reader.chain) else reader.chain

    def check_event():
        if reader.anchor:
            skip_unless(node is not None, "no chain is given")
            found = anchor.check(reader.anchor, evidence.proof, node.get("events"), reader.anchors.get("logContracts", []), reader.is_event_due)
        else:
            found = chain.find_event(node, contract, wallet, second, cid, reader.is_event_due)
        if found is None:
            steps.required.discard("event")
            raise Skip("no event, and none is due yet")
        return found

    def check_transaction():
        skip_unless(is_transaction and node and node.get("transaction") == "mined", "not mined, or not looked up")

    def check_time():
        fetched = parse_time(evidence.coordinator["fetchedAt"])
        sampled = stating.time_or_none(evidence.sample["timestamp"])
        skip_unless(at is not None and sampled is not None, "the time of signing or that of the sample doesn't exist")
        require(-5_000 <= at - sampled <= 65_000, "the sample is too old or too young")
        require(fetched - at <= 5_000, "the report was fetched after the signing")
        require(event_at is None or at - event_at <= 5_000, "the event is before the signing")

    def check_bound():
        skip_unless(event_at is not None and at is not None, "no event was seen")
        if event_at - at > 1000 * reader.policy["time"]["maximumEventDelayS"]:
            steps.is_late = True
            raise Skip("the event came too late")

    event_at = steps.run("event", check_event, (), node is not None and (reader.anchor or contract) is not None)
    steps.has_event = event_at is not None
    steps.run("transaction", check_transaction, (), False)
    steps.run("time", check_time)
    steps.run("time-bound", check_bound, (), False)
    if reader.reevaluation is not None:
        steps.run("reevaluation", lambda: _reevaluate(evidence, reader))

def _reevaluate(evidence: Evidence, reader: Reader) -> None:
    """# receipt-v1 §3 "reevaluation": quote and state at another time, with collateral of that time"""
    data, at = reader.reevaluation
    members = tdx.parse_collateral(data, MAX_COLLATERAL, False)
    quote = tdx.check_quote(evidence.quote, members, evidence.event_log, at, reader.roots)
    anchors.check_quote_policy(quote, reader.policy)
