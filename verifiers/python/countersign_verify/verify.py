"""From a receipt and the reader's values to the results of all steps."""

from . import receipt_v1, receipt_v2, schema
from .codec import MAX_BLOCK, cid_of, parse_canonical, un0x
from .faults import require
from .opening import check_signature_form
from .reader import Reader
from .verdict import Steps

def verify(receipt: bytes, blocks: dict[str, bytes], reader: Reader, cid: str | None = None, opening: bytes | None = None) -> Steps:
    """`blocks` are by role: release, batch, coordinator, collateral, policy."""
    steps = Steps()
    parsed = steps.run("format", lambda: _parse(receipt))
    if cid is not None:
        steps.run("cid", lambda: require(cid_of(receipt) == cid, f"the receipt has the CID {cid_of(receipt)}"))
    if parsed is not None and parsed["version"] == "countersign-attestation/1":
        receipt_v1.check(steps, parsed, receipt, blocks, reader, opening)
    elif parsed is not None:
        receipt_v2.check(steps, parsed, receipt, blocks, reader, opening)
    return steps

def _parse(receipt: bytes) -> dict:
    """# receipt-v1 §3 and receipt-v2 §4, "format" """
    value = parse_canonical(receipt, MAX_BLOCK)
    path = receipt_v1.SCHEMA if isinstance(value, dict) and value.get("version") == "countersign-attestation/1" else receipt_v2.SCHEMA
    require(schema.matches(path, value), f"invalid receipt: see {path}")
    if value["version"] == "countersign-attestation/2" and value["kind"] == "authorization":
        check_signature_form(un0x(value["subject"]["signature"], 65))
    return value
