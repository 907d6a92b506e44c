"""SEV-SNP reports and AMD's revocation lists. # evidence §9"""

import re
from collections import namedtuple
from functools import lru_cache

from . import der, x509
from .faults import require
from .roots import Root

AMD_EXTENSIONS = "1.3.6.1.4.1.3704.1"
# §9.4: the part in each byte of a TCB; None is reserved.
TCB_PARTS = {
    "Milan": ("bl", "tee", None, None, None, None, "snp", "ucode"),
    "Genoa": ("bl", "tee", None, None, None, None, "snp", "ucode"),
    "Turin": ("fmc", "bl", "tee", "snp", None, None, None, "ucode"),
}
# §9.3: the extensions with the levels of the EK
LEVELS = {"bl": "3.1", "tee": "3.2", "snp": "3.3", "ucode": "3.8", "fmc": "3.9"}
# signing_key is "VCEK" or "VLEK"; tcbs are the patch levels of the current, reported, committed and launch TCB by part;
# certificates are EK, ASK and ARK; mode is that of the root.
Report = namedtuple("Report", [
    "version", "policy", "vmpl", "signing_key", "platform_info", "report_data", "measurement", "host_data", "chip_id", "product",
    "tcbs", "certificates", "mode"])

def check_report(report: bytes, certificates: list[bytes], at_ms: int, roots: tuple[Root, ...]) -> Report:
    """Step `coordinator-report`, without the comparison with the measurement in a receipt of version 1."""
    return _check_report(report, tuple(certificates), at_ms, tuple(roots))

def check_revocations(revocations: bytes, report: Report, at_ms: int) -> None:
    """Step `coordinator-revocation`. # evidence §9.7"""
    found = x509.parse_list(revocations)
    require(found.algorithm == "pss", "revocation list with another signature algorithm")
    x509.check_list(found, report.certificates[2], at_ms)
    require(not any(item.serial in found.serials for item in report.certificates), "revoked certificate of the coordinator")

@lru_cache(256)
def _check_report(data: bytes, encoded: tuple[bytes, ...], at: int, roots: tuple[Root, ...]) -> Report:
    # §9.1
    require(len(data) == 1184, f"invalid report: expected 1,184 bytes, got {len(data)}")

    def number(start: int, length: int) -> int:
        return int.from_bytes(data[start:start + length], "little")

    version, key_info = number(0x000, 4), number(0x048, 4)
    require(version in (2, 3, 5) and number(0x034, 4) == 1, "invalid report: another version or signature algorithm")
    kind = key_info >> 2 & 7
    require(kind <= 1 and not key_info >> 5, "invalid report: another signing key")
    zeros = [(0x04C, 4), (0x18B, 21), (0x1EB, 1), (0x1EF, 1), (0x208, 152), (0x2A0 + 48, 24), (0x2E8 + 48, 24), (0x330, 368)]
    zeros += [(0x188, 3)] if version == 2 else []
    zeros += [(0x1F8, 16)] if version != 5 else []
    require(not any(number(start, length) for start, length in zeros), "invalid report: reserved bytes that are not zero")

    # §9.2
    chain = [x509.parse_certificate(item) for item in encoded]
    require(len(chain) == 3, "invalid chain: expected EK, ASK and ARK")
    root = x509.check_chain(chain, at, roots, "amd")
    ek, ask, ark = chain
    product = (ark.common_name or "").removeprefix("ARK-")
    require(ark.common_name == f"ARK-{product}" and product in TCB_PARTS, f"invalid chain: unknown product {ark.common_name}")
    names = ("SEV-VLEK", f"SEV-VLEK-{product}") if kind else ("SEV-VCEK", f"SEV-{product}")
    require((ek.common_name, ask.common_name) == names, "invalid chain: certificates of another key or product")
    require(ek.key.kind == "P-384" and not ek.is_authority, "invalid chain: EK with another key, or an authority")
    require({item.algorithm for item in chain} == {"pss"}, "invalid chain: another signature algorithm")
    require(x509.is_signed(ek.key, number(0x2A0, 48), number(0x2E8, 48), data[:0x2A0]), "invalid signature: report")

    parts = TCB_PARTS[product]
    tcbs = {name: _parse_tcb(data[start:start + 8], parts) for name, start in
            (("current", 0x038), ("reported", 0x180), ("committed", 0x1E0), ("launch", 0x1F0))}
    require(tcbs["reported"] == _levels(ek, product), "certificate of another TCB")  # §9.4
    chip_id = data[0x1A0:0x1E0]
    require(kind != 0 or _hardware_id(ek).ljust(64, b"\0") == chip_id, "certificate of another chip")  # §9.5
    require(version <= 2 or _product_of(number(0x188, 1), number(0x189, 1)) == product, "processor of another product")
    return Report(
        version=version, policy=number(0x008, 8), vmpl=number(0x030, 4), signing_key="VLEK" if kind else "VCEK",
        platform_info=number(0x040, 8), report_data=data[0x050:0x090], measurement=data[0x090:0x0C0],
        host_data=data[0x0C0:0x0E0], chip_id=chip_id, product=product, tcbs=tcbs, certificates=tuple(chain), mode=root.mode,
    )

def _parse_tcb(value: bytes, parts: tuple) -> dict[str, int]:
    """evidence §9.4"""
    require(not any(level and part is None for part, level in zip(parts, value)), "invalid report: a reserved byte of a TCB is not zero")
    return {part: level for part, level in zip(parts, value) if part}

def _product_of(family: int, model: int) -> str | None:
    """evidence §9.5"""
    if family == 0x19:
        return "Milan" if model < 0x10 else "Genoa"
    return "Turin" if family == 0x1A else None

def _levels(ek: x509.Certificate, product: str) -> dict[str, int]:
    """The patch levels in the EK, after a check of its product. # evidence §9.3"""
    name = der.parse(_extension(ek, "2")).expect(der.IA5_STRING).value.decode("ascii")
    match = re.match("(Milan|Genoa|Siena|Bergamo|Turin)(-|\\Z)", name)
    require(match is not None, f"invalid chain: unknown product {name}")
    require({"Siena": "Genoa", "Bergamo": "Genoa"}.get(match[1], match[1]) == product, "invalid chain: EK of another product")
    unused = ["3.4", "3.5", "3.6", "3.7"] + ([] if product == "Turin" else ["3.9"])
    require(not any(der.parse(_extension(ek, kind, b"\x02\x01\x00")).integer() for kind in unused), "invalid chain: a reserved patch level")
    return {part: der.parse(_extension(ek, LEVELS[part])).integer(255) for part in TCB_PARTS[product] if part}

def _hardware_id(ek: x509.Certificate) -> bytes:
    """evidence §9.3"""
    value = _extension(ek, "4")
    if len(value) not in (64, 8):
        value = der.parse(value).expect(der.OCTET_STRING).value
    require(len(value) in (64, 8), "invalid chain: HWID of another length")
    return value

def _extension(ek: x509.Certificate, kind: str, default: bytes | None = None) -> bytes:
    value = ek.extensions.get(f"{AMD_EXTENSIONS}.{kind}", default)
    require(value is not None, f"invalid chain: EK without extension {kind}")
    return value
