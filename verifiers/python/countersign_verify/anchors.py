"""The reader's anchors and policy, and the steps that compare genuine evidence with them. # evidence §7 to §11"""

import re
from collections import namedtuple
from dataclasses import dataclass, field

from . import schema
from .codec import parse_json
from .crypto import is_ed25519_key
from .faults import Fault, Skip
from .snp import Report
from .tdx import REGISTERS, Quote

MANIFEST_SCHEMA = "attestation/spec/manifest-v1.schema.json"
MAX_MANIFEST = 1_048_576
# §8: these three stand for RTMR3.
APPLICATION_EVENTS = {"compose-hash", "app-id", "key-provider"}

# §7: TDATTRIBUTES and XFAM
DEBUG, SEPT_VE_DISABLE = 1 << 0, 1 << 28
ANY_ATTRIBUTES = 1 << 27 | 1 << 30 | 1 << 31  # LASS, PKS, KL
REQUIRED_XFAM, ALLOWED_XFAM = 0x3, 0x6DBE7
# §9.6: POLICY and PLATFORM_INFO
ANY_POLICY = (1 << 17) - 1 | 1 << 20 | 0b11111 << 21
REQUIRED_POLICY, ALIAS_CHECK_COMPLETE = 1 << 17, 1 << 5


@dataclass(frozen=True)
class Anchors:
    """The code, machines and keys that the reader trusts. All hex is lower case."""

    measurements: tuple[dict[str, str], ...] = ()
    events: dict[str, list[str]] = field(default_factory=dict)
    platforms: tuple[dict[str, str], ...] = ()
    config_hashes: tuple[str, ...] = ()
    coordinator_measurements: tuple[str, ...] = ()
    coordinator_minimum_tcb: dict[str, dict[str, int]] | None = None
    coordinator_chips: tuple[str, ...] = ()
    coordinator_config_hashes: tuple[str, ...] = ()
    entropy_keys: tuple[str, ...] = ()
    log_witnesses: tuple[dict, ...] = ()  # each with witnesses and quorum; each must be met
    contract: str | None = None
    contracts: dict[int, str] = field(default_factory=dict)  # by chain
    minimum_evaluation: int = 0  # §7
    maximum_event_delay_s: int | None = None

    def contract_on(self, chain_id: int) -> str | None:
        return self.contract or self.contracts.get(chain_id)


# The states of hardware that the reader accepts. # evidence §7, §9.6
Policy = namedtuple("Policy", "statuses signing_keys", defaults=(("UpToDate",), ("VCEK",)))


def parse_policy(value: dict | None) -> Policy:
    """`reader.policy` of golden-v2/cases/cases.json."""
    value, strict = value or {}, Policy()
    return Policy(
        statuses=value.get("signer", {}).get("statuses", strict.statuses),
        signing_keys=value.get("coordinator", {}).get("signingKeys", strict.signing_keys))


def parse_anchors(value: dict | None) -> Anchors:
    """Anchors by their names in expected.json. A null counts as missing. # evidence §11"""
    given = {_snake(name): item for name, item in (value or {}).items() if item is not None}
    anchors = Anchors(**{name: tuple(item) if isinstance(item, list) else item for name, item in given.items()})
    if any(not REGISTERS.keys() >= item.keys() for item in anchors.measurements):
        raise ValueError("invalid anchors: unknown register")
    return anchors


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def parse_manifest(data: bytes) -> dict:
    """evidence §11"""
    manifest = parse_json(data, MAX_MANIFEST)
    if not schema.matches(MANIFEST_SCHEMA, manifest):
        raise ValueError("invalid manifest: see manifest-v1.schema.json")
    log = manifest.get("log")
    if log is not None:
        count = len(log["witnesses"])
        if not count < 2 * log["quorum"] <= 2 * count or not all(is_ed25519_key(bytes.fromhex(key)) for key in log["witnesses"]):
            raise ValueError("invalid manifest: a witness that is no key, or no quorum")
    for url in manifest.get("witnessUrls", []):
        if not re.match(r"https://|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?(/|\Z)", url):
            raise ValueError(f"invalid manifest: witness URL {url}")
    chains = [item["chainId"] for item in manifest["contracts"]]
    if len(set(chains)) != len(chains):
        raise ValueError("invalid manifest: two contracts on one chain")
    return manifest


def join_manifests(manifests: list[dict]) -> Anchors:
    """evidence §11 "Several manifests" """
    def joined(part: str, name: str) -> tuple:
        return tuple(item for manifest in manifests for item in manifest[part].get(name, []))

    events: dict[str, list[str]] = {}
    contracts: dict[int, str] = {}
    minimum = None
    for manifest in manifests:
        for name, payloads in manifest["enclave"].get("events", {}).items():
            events[name] = events.get(name, []) + payloads
        contracts.update((item["chainId"], item["address"]) for item in manifest["contracts"])
        levels = manifest["coordinator"].get("minimumTcb")
        if levels is not None:
            # A product counts only if every manifest with levels names it.
            minimum = levels if minimum is None else {
                product: {part: max(minimum[product].get(part, 0), levels[product].get(part, 0))
                          for part in {*minimum[product], *levels[product]}}
                for product in minimum if product in levels}
    delays = [manifest["maximumEventDelayS"] for manifest in manifests if "maximumEventDelayS" in manifest]
    return Anchors(
        measurements=joined("enclave", "measurements"), events=events, platforms=joined("enclave", "platforms"),
        config_hashes=joined("enclave", "configHashes"), coordinator_measurements=joined("coordinator", "measurements"),
        coordinator_minimum_tcb=minimum, coordinator_chips=joined("coordinator", "chips"),
        coordinator_config_hashes=joined("coordinator", "configHashes"),
        entropy_keys=tuple(key for manifest in manifests for key in manifest["entropyKeys"]),
        log_witnesses=tuple(manifest["log"] for manifest in manifests if "log" in manifest), contracts=contracts,
        minimum_evaluation=max([manifest["enclave"].get("minimumTcbEvaluationDataNumber", 0) for manifest in manifests], default=0),
        maximum_event_delay_s=min(delays, default=None),
    )


def check_quote_policy(quote: Quote, anchors: Anchors, policy: Policy, step: str = "quote-policy") -> None:
    """evidence §7. SEAMATTRIBUTES are a part of `quote`."""
    attributes = quote.attributes
    if attributes & DEBUG or not attributes & SEPT_VE_DISABLE or attributes & ~(SEPT_VE_DISABLE | ANY_ATTRIBUTES):
        raise Fault(step, None, f"TDATTRIBUTES {attributes:#x}")
    if quote.xfam & REQUIRED_XFAM != REQUIRED_XFAM or quote.xfam & ~ALLOWED_XFAM:
        raise Fault(step, None, f"XFAM {quote.xfam:#x}")
    if any(quote.service_td):
        raise Fault(step, None, "a service TD is bound to the enclave")
    if any(quote.trailing):
        raise Fault(step, None, "bytes after the quote")
    if quote.tcb_status not in policy.statuses:
        raise Fault(step, None, f"TCB status {quote.tcb_status}")
    if quote.evaluation < anchors.minimum_evaluation:
        raise Fault(step, None, f"TCB evaluation data number {quote.evaluation}")


def check_platform(quote: Quote, anchors: Anchors) -> None:
    """evidence §11"""
    _check_listed("platform", bool(anchors.platforms), any(
        value is not None and {name: value.hex()} == platform
        for platform in anchors.platforms
        for name, value in (("fmspc", quote.pck.fmspc), ("ppid", quote.pck.ppid), ("platformInstanceId", quote.pck.platform_instance_id))
    ))


def check_measurement(quote: Quote, anchors: Anchors, root_secret: str) -> None:
    """evidence §8 "Comparison". root_secret is signer.config.rootSecret."""
    step = "measurement"
    if not anchors.measurements:
        raise Skip(step, "the reader lists no measurements")
    matching = [item for item in anchors.measurements if all(quote.registers[name].hex() == value for name, value in item.items())]
    if not matching:
        raise Fault(step, None, "no measurement matches")
    is_complete = any(item.keys() == REGISTERS.keys() for item in matching)
    is_dstack = root_secret == "dstack"
    has_events = APPLICATION_EVENTS <= anchors.events.keys()
    if not is_complete or is_dstack:
        for name, payloads in anchors.events.items():
            found = quote.events.get(name, [])
            if not found or not set(found) <= set(payloads):
                raise Fault(step, None, f"event {name} has other payloads")
    # The events stand for RTMR3, so a measurement with them names the other seven.
    if not is_complete and not (has_events and any({*item, "rtmr3"} == REGISTERS.keys() for item in matching)):
        raise Skip(step, "the matching measurement names too few registers")
    if is_dstack and quote.mode != "mock" and not has_events:
        raise Skip(step, "the reader does not list the events of dstack")


def check_config(config_hash: bytes, anchors: Anchors) -> None:
    _check_listed("config", bool(anchors.config_hashes), config_hash.hex() in anchors.config_hashes)


def check_entropy_key(public_key: str, anchors: Anchors, mock_keys: list[str]) -> None:
    """evidence §10"""
    is_listed = public_key in anchors.entropy_keys if anchors.entropy_keys else public_key in mock_keys
    _check_listed("entropy-key", bool(anchors.entropy_keys) or is_listed, is_listed)


def check_coordinator_policy(report: Report, anchors: Anchors, policy: Policy) -> None:
    """evidence §9.6"""
    step = "coordinator-policy"
    if not report.policy & REQUIRED_POLICY or report.policy & ~(ANY_POLICY | REQUIRED_POLICY):
        raise Fault(step, None, f"guest policy {report.policy:#x}")
    if report.vmpl != 0 or report.signing_key not in policy.signing_keys:
        raise Fault(step, None, f"VMPL {report.vmpl}, signed by a {report.signing_key}")
    if report.version == 2 or not report.platform_info & ALIAS_CHECK_COMPLETE:
        raise Fault(step, None, "the memory was not checked for aliases")
    levels = anchors.coordinator_minimum_tcb
    if levels is None:
        raise Skip(step, "the reader lists no patch levels")
    if report.product not in levels:
        raise Fault(step, None, f"the reader lists no patch levels for {report.product}")
    for part, minimum in levels[report.product].items():
        if any(report.tcbs[name].get(part, 0) < minimum for name in ("reported", "committed", "launch")):
            raise Fault(step, None, f"patch level of {part} below {minimum}")
    if not any(levels[report.product].values()):
        raise Skip(step, "the reader lists no patch level above 0")


def check_coordinator_chip(report: Report, anchors: Anchors) -> None:
    """evidence §9.6"""
    step = "coordinator-chip"
    if not anchors.coordinator_chips and report.product == "Milan" and report.mode == "hardware":
        raise Fault(step, None, "the keys of a Milan can be extracted: list the chip")
    is_listed = report.signing_key == "VCEK" and report.chip_id.hex() in anchors.coordinator_chips
    _check_listed(step, bool(anchors.coordinator_chips), is_listed)


def check_coordinator_measurement(report: Report, anchors: Anchors) -> None:
    """evidence §11"""
    step, measurement = "coordinator-measurement", report.measurement.hex()
    listed = anchors.coordinator_measurements
    if measurement in listed and f"{measurement}:{report.host_data.hex()}" not in listed:
        raise Skip(step, "the reader lists the measurement without HOST_DATA")
    _check_listed(step, bool(listed), f"{measurement}:{report.host_data.hex()}" in listed)


def check_coordinator_config(config_hash: bytes, anchors: Anchors) -> None:
    listed = anchors.coordinator_config_hashes
    _check_listed("coordinator-config", bool(listed), config_hash.hex() in listed)


def _check_listed(step: str, has_list: bool, is_listed: bool) -> None:
    if not has_list:
        raise Skip(step, "the reader lists none")
    if not is_listed:
        raise Fault(step, None, "not among the reader's")
