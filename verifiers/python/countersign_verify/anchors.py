"""The reader's anchors and policy, and the steps that compare genuine evidence with them. # evidence §7 to §11"""

import re

from . import schema
from .codec import parse_json
from .crypto import is_ed25519_key
from .faults import Skip, require, skip_unless
from .snp import Report
from .tdx import REGISTERS, Quote

MANIFEST_SCHEMA = "attestation/spec/manifest-v1.schema.json"
MAX_MANIFEST = 1_048_576
NAMES = {
    "measurements", "events", "platforms", "configHashes", "coordinatorMeasurements", "coordinatorMinimumTcb", "coordinatorChips",
    "coordinatorConfigHashes", "entropyKeys", "logWitnesses", "contract", "logContracts",
}
# §8: these three stand for RTMR3.
APPLICATION_EVENTS = {"compose-hash", "app-id", "key-provider"}

# §7: TDATTRIBUTES and XFAM
SEPT_VE_DISABLE = 1 << 28
ANY_ATTRIBUTES = SEPT_VE_DISABLE | 1 << 27 | 1 << 30 | 1 << 31  # LASS, PKS, KL
REQUIRED_XFAM, ALLOWED_XFAM = 0x3, 0x6DBE7
# §9.6: POLICY and PLATFORM_INFO
REQUIRED_POLICY, MIGRATION_AGENT, ALIAS_CHECK_COMPLETE = 1 << 17, 1 << 18, 1 << 5
ANY_POLICY = (1 << 18) - 1 | 1 << 20 | 0b11111 << 21

# What the reader accepts unless it says otherwise. # evidence §7 and §9.6, receipt-v1 §3
STRICT = {
    "signer": {"statuses": ["UpToDate"], "minimumTcbEvaluationDataNumber": 0,
               "allowSeptVe": False, "allowMigratable": False, "allowTpa": False, "allowPerfmon": False},
    "coordinator": {"vmpls": [0], "signingKeys": ["VCEK"], "allowMigrationAgent": False, "allowUncheckedAliases": False},
    "time": {"maximumEventDelayS": 72 * 3600},
}

def parse_policy(value: dict | None = None) -> dict:
    for part, members in (value or {}).items():
        require(part in STRICT and members.keys() <= STRICT[part].keys(), f"invalid policy: unknown member of {part}")
    return {part: {**members, **(value or {}).get(part, {})} for part, members in STRICT.items()}

def parse_anchors(value: dict | None) -> dict:
    """Anchors by their names in expected.json, in lower-case hex. A null counts as missing. # evidence §11"""
    anchors = {name: item for name, item in (value or {}).items() if item is not None}
    require(anchors.keys() <= NAMES, "invalid anchors: unknown member")
    require(all(item.keys() <= REGISTERS.keys() for item in anchors.get("measurements", [])), "invalid anchors: unknown register")
    return anchors

def parse_manifest(data: bytes) -> dict:
    """evidence §11"""
    manifest = parse_json(data, MAX_MANIFEST)
    require(schema.matches(MANIFEST_SCHEMA, manifest), "invalid manifest: see manifest-v1.schema.json")
    log = manifest.get("log")
    if log is not None:
        count, are_keys = len(log["witnesses"]), all(is_ed25519_key(bytes.fromhex(key)) for key in log["witnesses"])
        require(are_keys and count < 2 * log["quorum"] <= 2 * count, "invalid manifest: a witness that is no key, or no quorum")
    for url in manifest.get("witnessUrls", []):
        require(re.match(r"https://|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?(/|\Z)", url), f"invalid manifest: witness URL {url}")
    for items in (manifest["contracts"], manifest.get("logContracts", [])):
        require(len({item["chainId"] for item in items}) == len(items), "invalid manifest: two contracts on one chain")
    return manifest

def join_manifests(manifests: list[dict], chain_id: int | None) -> tuple[dict, dict]:
    """The anchors and the policy of several manifests. # evidence §11"""
    anchors: dict = {name: [] for name in NAMES - {"events", "coordinatorMinimumTcb", "contract"}}
    policy, events = parse_policy(), anchors.setdefault("events", {})
    for manifest in manifests:
        enclave, coordinator = manifest["enclave"], manifest["coordinator"]
        for name, items in (
            ("measurements", enclave["measurements"]), ("platforms", enclave.get("platforms", [])), ("configHashes", enclave["configHashes"]),
            ("coordinatorMeasurements", coordinator["measurements"]), ("coordinatorChips", coordinator.get("chips", [])),
            ("coordinatorConfigHashes", coordinator["configHashes"]), ("entropyKeys", manifest["entropyKeys"]),
            ("logWitnesses", [manifest["log"]] if "log" in manifest else []),
        ):
            anchors[name] += items
        for name, payloads in enclave.get("events", {}).items():
            events[name] = events.get(name, []) + payloads
        if "minimumTcb" in coordinator:
            # A product counts only if every manifest with levels names it.
            levels = coordinator["minimumTcb"]
            known = anchors.get("coordinatorMinimumTcb", levels)
            anchors["coordinatorMinimumTcb"] = {product: {
                part: max(known[product].get(part, 0), levels[product].get(part, 0)) for part in {*known[product], *levels[product]}
            } for product in known if product in levels}
        for item in manifest["contracts"]:
            if item["chainId"] == chain_id:
                anchors["contract"] = item["address"]
        anchors["logContracts"] += [item for item in manifest.get("logContracts", []) if item["chainId"] == chain_id]
        signer, time = policy["signer"], policy["time"]
        number, delay = enclave.get("minimumTcbEvaluationDataNumber", 0), manifest.get("maximumEventDelayS", 72 * 3600)
        signer["minimumTcbEvaluationDataNumber"] = max(number, signer["minimumTcbEvaluationDataNumber"])
        time["maximumEventDelayS"] = min(delay, time["maximumEventDelayS"])
    return anchors, policy

def check_quote_policy(quote: Quote, policy: dict) -> None:
    """evidence §7. SEAMATTRIBUTES are a part of `quote`."""
    accepted, allowed = policy["signer"], ANY_ATTRIBUTES
    for name, bit in (("allowMigratable", 29), ("allowTpa", 62), ("allowPerfmon", 63)):
        allowed |= accepted[name] << bit
    require(not quote.attributes & ~allowed, f"TDATTRIBUTES {quote.attributes:#x}")
    require(accepted["allowSeptVe"] or quote.attributes & SEPT_VE_DISABLE, "SEPT_VE_DISABLE is clear")
    require(quote.xfam & REQUIRED_XFAM == REQUIRED_XFAM and not quote.xfam & ~ALLOWED_XFAM, f"XFAM {quote.xfam:#x}")
    require(not any(quote.service_td), "a service TD is bound to the enclave")
    require(not any(quote.trailing), "bytes after the quote")
    require(quote.tcb_status in accepted["statuses"], f"TCB status {quote.tcb_status}")
    require(quote.evaluation >= accepted["minimumTcbEvaluationDataNumber"], f"TCB evaluation data number {quote.evaluation}")

def check_platform(quote: Quote, anchors: dict) -> None:
    """evidence §11"""
    own = {"fmspc": quote.pck.fmspc, "ppid": quote.pck.ppid, "platformInstanceId": quote.pck.platform_instance_id}
    listed = anchors.get("platforms")
    names = [{name: value.hex()} for name, value in own.items() if value is not None]
    _check_listed(listed, next((item for item in names if item in (listed or [])), None))

def check_measurement(quote: Quote, anchors: dict, root_secret: str) -> None:
    """evidence §8 "Comparison". root_secret is signer.config.rootSecret."""
    measurements, events = anchors.get("measurements"), anchors.get("events", {})
    skip_unless(measurements, "the reader lists no measurements")
    matching = [item for item in measurements if all(quote.registers[name].hex() == value for name, value in item.items())]
    require(matching, "no measurement matches")
    is_complete = any(item.keys() == REGISTERS.keys() for item in matching)
    is_dstack = root_secret == "dstack"
    has_events = APPLICATION_EVENTS <= events.keys()
    if not is_complete or is_dstack:
        for name, payloads in events.items():
            found = quote.events.get(name, [])
            require(found and set(found) <= set(payloads), f"event {name} has other payloads")
    # The events stand for RTMR3, so a measurement with them names the other seven.
    if not is_complete and not (has_events and any({*item, "rtmr3"} == REGISTERS.keys() for item in matching)):
        raise Skip("the matching measurement names too few registers")
    skip_unless(not is_dstack or quote.mode == "mock" or has_events, "the reader does not list the events of dstack")

def check_config(config_hash: bytes, anchors: dict) -> None:
    _check_listed(anchors.get("configHashes"), config_hash.hex())

def check_entropy_key(public_key: str, anchors: dict, mock_keys: list[str]) -> None:
    """evidence §10"""
    listed = anchors.get("entropyKeys") or [key for key in mock_keys if key == public_key]
    _check_listed(listed, public_key)

def check_coordinator_policy(report: Report, anchors: dict, policy: dict) -> None:
    """evidence §9.6"""
    accepted = policy["coordinator"]
    allowed = ANY_POLICY | (MIGRATION_AGENT if accepted["allowMigrationAgent"] else 0)
    require(report.policy & REQUIRED_POLICY and not report.policy & ~allowed, f"guest policy {report.policy:#x}")
    require(report.vmpl in accepted["vmpls"], f"VMPL {report.vmpl}")
    require(report.signing_key in accepted["signingKeys"], f"signed by a {report.signing_key}")
    is_checked = report.version != 2 and report.platform_info & ALIAS_CHECK_COMPLETE
    require(is_checked or accepted["allowUncheckedAliases"], "the memory was not checked for aliases")
    levels = anchors.get("coordinatorMinimumTcb")
    skip_unless(levels is not None, "the reader lists no patch levels")
    require(report.product in levels, f"the reader lists no patch levels for {report.product}")
    for part, minimum in levels[report.product].items():
        level = min(report.tcbs[name].get(part, 0) for name in ("reported", "committed", "launch"))
        require(level >= minimum, f"patch level of {part}: {level}, below {minimum}")
    skip_unless(any(levels[report.product].values()), "the reader lists no patch level above 0")

def check_coordinator_chip(report: Report, anchors: dict) -> None:
    """evidence §9.6"""
    listed = anchors.get("coordinatorChips")
    require(listed or report.product != "Milan" or report.mode != "hardware", "the keys of a Milan can be extracted: list the chip")
    # AMD does not certify the chip of a VLEK.
    _check_listed(listed, report.chip_id.hex() if report.signing_key == "VCEK" else None)

def check_coordinator_measurement(report: Report, anchors: dict) -> None:
    """evidence §11"""
    measurement, listed = report.measurement.hex(), anchors.get("coordinatorMeasurements", [])
    if measurement in listed and f"{measurement}:{report.host_data.hex()}" not in listed:
        raise Skip("the reader lists the measurement without HOST_DATA")
    _check_listed(listed, f"{measurement}:{report.host_data.hex()}")

def check_coordinator_config(config_hash: bytes, anchors: dict) -> None:
    _check_listed(anchors.get("coordinatorConfigHashes"), config_hash.hex())

def _check_listed(listed: list | None, value) -> None:
    skip_unless(listed, "the reader lists none")
    require(value in listed, "not among the reader's")
