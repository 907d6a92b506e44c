"""TDX quotes and Intel's collateral. # evidence §4 to §6"""

from collections import namedtuple
from functools import lru_cache

from . import der, x509
from .codec import parse_canonical, parse_json, sha256, unhex
from .event_log import check_log
from .faults import require
from .roots import Root
from .tcb import evaluate_tcb, find_module, find_status, parse_qe_identity, parse_tcb_info

MAX_QUOTE = 65_536
QE_VENDOR = bytes.fromhex("939a7233f79c4ca9940a0db3957f0607")
SGX_EXTENSION = "1.2.840.113741.1.13.1"
COLLATERAL = frozenset((
    "pck_crl_issuer_chain", "root_ca_crl", "pck_crl", "tcb_info_issuer_chain", "tcb_info", "tcb_info_signature",
    "qe_identity_issuer_chain", "qe_identity", "qe_identity_signature",
))
REGISTERS = {  # evidence §4.1
    "mrTd": 136, "mrConfigId": 184, "mrOwner": 232, "mrOwnerConfig": 280,
    "rtmr0": 328, "rtmr1": 376, "rtmr2": 424, "rtmr3": 472,
}

# The bytes of a quote. # evidence §4
_Parts = namedtuple("_Parts", "signed body signature attestation_key qe_report qe_signature authentication pck_chain trailing")
# The extension of a PCK certificate. # evidence §6.1
Pck = namedtuple("Pck", "ppid svns pce_svn pce_id fmspc platform_instance_id")
# Collateral whose chains, lists and texts are valid at a time: its root, the root's list, the list of the PCK authority, and so on.
_Collateral = namedtuple("_Collateral", "root root_list pck_list authority tcb_info qe_identity")

# service_td is MRSERVICETD, empty if the body has none; trailing are the bytes after the signature data; evaluation is the
# lower tcbEvaluationDataNumber; mode is that of the root; events are the payloads of RTMR3's events, in hex by name.
Quote = namedtuple("Quote", [
    "registers", "report_data", "attributes", "xfam", "service_td", "trailing", "tcb_status", "evaluation", "pck", "mode", "events"])

def parse_collateral(data: bytes, limit: int, is_canonical: bool = True) -> dict[str, str]:
    """The nine members; ValueError if there are others. # evidence §5"""
    require(is_canonical or (data[:1] == b"{" and data[-1:] == b"}"), "invalid collateral: white space around the object")
    members = parse_canonical(data, limit) if is_canonical else parse_json(data, limit)
    is_complete = isinstance(members, dict) and set(members) == COLLATERAL
    require(is_complete and all(isinstance(text, str) for text in members.values()), "invalid collateral: expected nine strings")
    return members

def check_quote(quote: bytes, collateral: dict[str, str], event_log: str | None, at_ms: int, roots: tuple[Root, ...]) -> Quote:
    """Step `quote`, without the comparison with the members of a receipt of version 1."""
    found = _check_quote(quote, tuple(sorted(collateral.items())), at_ms, tuple(roots))
    rtmrs = [found.registers[f"rtmr{index}"] for index in range(4)]
    return found._replace(events=check_log(event_log, rtmrs) if event_log is not None else {})

@lru_cache(256)
def _check_quote(data: bytes, items: tuple, at: int, roots: tuple[Root, ...]) -> Quote:
    """evidence §6"""
    parts = parse_quote(data)
    collateral = _check_collateral(items, at, roots)
    body, svns = parts.body, parts.body[0:16]
    svns_now = body[584:600] if len(body) == 648 else None

    # §6, rule 1
    chain = x509.parse_pem(parts.pck_chain)
    require(len(chain) == 3, "invalid PCK chain: expected three certificates")
    root = x509.check_chain(chain, at, roots, "intel")
    certificate, authority, _ = chain
    require(certificate.common_name == "Intel SGX PCK Certificate", "invalid PCK certificate: another name")
    require(certificate.key.kind == "P-256" and not certificate.is_authority, "invalid PCK certificate: another key, or an authority")
    # §5: one root, and the authority has the name and key of the one in the collateral.
    require(root.sha256 == collateral.root.sha256, "quote and collateral have different roots")
    require(authority.subject == collateral.authority.subject, "PCK authority differs from the one in the collateral")
    require(authority.key == collateral.authority.key, "PCK authority has another key than the one in the collateral")
    require(certificate.serial not in collateral.pck_list.serials, "revoked PCK certificate")
    require(authority.serial not in collateral.root_list.serials, "revoked PCK authority")
    # §6, rule 2
    pck = _parse_pck(certificate)
    require((pck.fmspc, pck.pce_id) == (collateral.tcb_info["fmspc"], collateral.tcb_info["pceId"]), "TCB info of another platform")
    # §6, rule 3 and §4.3
    attestation_key = x509.Key("P-256", b"\x04" + parts.attestation_key)
    _check_raw(certificate.key, parts.qe_signature, parts.qe_report, "QE report")
    require(parts.qe_report[320:384] == sha256(parts.attestation_key + parts.authentication) + bytes(32), "QE report for another attestation key")
    _check_raw(attestation_key, parts.signature, parts.signed, "quote")
    # §6, rule 4
    qe_status = _check_qe(parts.qe_report, collateral.qe_identity)
    module = find_module(collateral.tcb_info, svns[1])
    require(body[64:112] == module["mrsigner"], "TDX module with another signer")  # §6.3
    require(not any(body[112:120] + module["attributes"]), "TDX module with attributes")
    # §6, rule 5
    status = evaluate_tcb(collateral.tcb_info, qe_status, pck.svns, pck.pce_svn, svns, svns_now)
    return Quote(
        registers={name: body[start:start + 48] for name, start in REGISTERS.items()},
        report_data=body[520:584], attributes=int.from_bytes(body[120:128], "little"), xfam=int.from_bytes(body[128:136], "little"),
        service_td=body[600:648], trailing=parts.trailing, tcb_status=status,
        evaluation=min(item["tcbEvaluationDataNumber"] for item in (collateral.tcb_info, collateral.qe_identity)), pck=pck, mode=root.mode, events={},
    )

class _Reader:
    """Takes fields from the front of data."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, length: int) -> bytes:
        field = self.data[self.at:self.at + length]
        require(len(field) == length, "invalid quote: too short")
        self.at += length
        return field

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def part(self, size_length: int = 4) -> "_Reader":
        return _Reader(self.take(self.number(size_length)))

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    def end(self) -> None:
        require(self.at == len(self.data), "invalid quote: a size that is not exact")

def parse_quote(data: bytes) -> _Parts:
    require(len(data) <= MAX_QUOTE, "invalid quote: more than 65,536 bytes")
    quote = _Reader(data)
    version = quote.number(2)  # §4.1
    require(version in (4, 5) and quote.number(2) == 2 and quote.number(4) == 0x81, "invalid quote: another version, type of key or type of TEE")
    quote.take(4)
    require(quote.take(16) == QE_VENDOR, "invalid quote: another QE vendor")
    quote.take(20)
    size = 584
    if version == 5:
        kind, size = quote.number(2), quote.number(4)
        require((kind, size) in ((2, 584), (3, 648)), "invalid quote: another type or size of body")
    body = quote.take(size)
    signed = data[:quote.at]
    signatures = quote.part()  # §4.2
    signature, attestation_key = signatures.take(64), signatures.take(64)
    require(signatures.number(2) == 6, "invalid quote: another type of certification data")
    outer = signatures.part()
    signatures.end()
    qe_report, qe_signature, authentication = outer.take(384), outer.take(64), outer.part(2).rest()
    require(outer.number(2) == 5, "invalid quote: another type of certification data")
    chain = outer.part().rest()
    outer.end()
    # The chain may end in a line feed and NUL, but not in NUL without a line feed.
    chain = chain[:-1] if chain.endswith(b"\n\0") else chain
    return _Parts(signed, body, signature, attestation_key, qe_report, qe_signature, authentication, chain, quote.rest())

def _check_raw(key: x509.Key, signature: bytes, data: bytes, name: str) -> None:
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    require(len(signature) == 64 and key.kind == "P-256" and x509.is_signed(key, r, s, data), f"invalid signature: {name}")

@lru_cache(64)
def _check_collateral(items: tuple, at: int, roots: tuple[Root, ...]) -> _Collateral:
    """evidence §5"""
    members = dict(items)
    chains, found = {}, set()
    for name in ("pck_crl_issuer_chain", "tcb_info_issuer_chain", "qe_identity_issuer_chain"):
        chain = x509.parse_pem(members[name].encode())
        require(len(chain) == 2, f"invalid {name}: expected two certificates")
        root = x509.check_chain(chain, at, roots, "intel")
        chains[name] = chain
        found.add(root.sha256)
    require(len(found) == 1, "collateral has different roots")
    (authority, root_certificate), (tcb_signer, _), (qe_signer, _) = chains.values()
    require(authority.common_name in ("Intel SGX PCK Platform CA", "Intel SGX PCK Processor CA"), "invalid PCK authority: another name")
    for signer in (tcb_signer, qe_signer):
        is_signer = not signer.is_authority and x509.DIGITAL_SIGNATURE in signer.usage
        require(is_signer and signer.common_name == "Intel SGX TCB Signing", "invalid TCB signing certificate: another name or usage")
    root_list, pck_list = (x509.parse_list(unhex(members[name])) for name in ("root_ca_crl", "pck_crl"))
    x509.check_list(root_list, root_certificate, at)
    x509.check_list(pck_list, authority, at)
    require(not any(item.serial in root_list.serials for item in (authority, tcb_signer, qe_signer)), "revoked authority or signer of collateral")
    _check_raw(tcb_signer.key, unhex(members["tcb_info_signature"]), members["tcb_info"].encode(), "TCB info")
    _check_raw(qe_signer.key, unhex(members["qe_identity_signature"]), members["qe_identity"].encode(), "QE identity")
    tcb_info, qe_identity = parse_tcb_info(members["tcb_info"]), parse_qe_identity(members["qe_identity"])
    for item in (tcb_info, qe_identity):  # §5.1
        require(item["issueDate"] <= at <= item["nextUpdate"], "TCB info or QE identity not valid at this time")
    return _Collateral(root, root_list, pck_list, authority, tcb_info, qe_identity)

def _parse_pck(certificate: x509.Certificate) -> Pck:
    """evidence §6.1"""
    require(SGX_EXTENSION in certificate.extensions, "invalid PCK certificate: no SGX extension")
    values = _pairs(der.parse(certificate.extensions[SGX_EXTENSION]), SGX_EXTENSION)
    require({"1", "2", "3", "4", "5"} <= values.keys(), "invalid PCK certificate: a member of the SGX extension is missing")
    tcb = _pairs(values["2"], SGX_EXTENSION + ".2")
    require({str(index) for index in range(1, 19)} <= tcb.keys(), "invalid PCK certificate: a member of its TCB is missing")
    tcb["18"].expect(der.OCTET_STRING, 16)
    values["5"].integer(2, der.ENUMERATED)
    return Pck(
        ppid=values["1"].expect(der.OCTET_STRING, 16).value,
        svns=tuple(tcb[str(index)].integer(255) for index in range(1, 17)), pce_svn=tcb["17"].integer(65_535),
        pce_id=values["3"].expect(der.OCTET_STRING, 2).value, fmspc=values["4"].expect(der.OCTET_STRING, 6).value,
        platform_instance_id=values["6"].expect(der.OCTET_STRING, 16).value if "6" in values else None,
    )

def _pairs(node: der.Node, prefix: str) -> dict[str, der.Node]:
    """The values of a sequence of pairs, by what follows the prefix of their identifiers."""
    found = {}
    for item in node.items():
        kind, value = item.items(2, 2)
        name = kind.oid().removeprefix(prefix + ".")
        require(name not in found and name != kind.oid(), "invalid PCK certificate: an identifier twice, or of another extension")
        found[name] = value
    return found

def _check_qe(report: bytes, identity: dict) -> str:
    """The status of the quoting enclave. # evidence §6.2"""
    for start, name in ((16, "miscselect"), (48, "attributes")):
        expected, mask = identity[name], identity[name + "Mask"]
        require(bytes(a & b for a, b in zip(report[start:], mask)) == expected, f"quoting enclave with another {name}")
    number = {start: int.from_bytes(report[start:start + 2], "little") for start in (48, 256, 258)}
    require(not number[48] & 2, "quoting enclave in debug mode")
    require((report[128:160], number[256]) == (identity["mrsigner"], identity["isvprodid"]), "quoting enclave of another signer or product")
    return find_status(identity, number[258])
