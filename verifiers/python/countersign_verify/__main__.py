"""The command line: checks a receipt in a file or folder, or answers the line protocol."""

import argparse
import json
import re
import sys
import unicodedata
from pathlib import Path
from urllib.error import URLError

from . import chain, lines
from .anchor import Anchor
from .anchors import join_manifests, parse_manifest
from .codec import MAX_COLLATERAL, find_roles, parse_car, parse_json, sha256
from .faults import require
from .reader import Reader
from .roots import HARDWARE, parse_roots
from .schema import PACKAGES
from .verify import verify

# docs/verify/check-a-proof.md "The verdicts"
VERDICTS = {
    "verified": (0, "Verified"), "failed": (1, "Not verified"), "unknown-code": (2, "Genuine hardware, unknown code"),
    "mock": (3, "MOCK evidence"), "incomplete": (5, "Evidence is missing"), "late": (6, "Known code, unknown time: the event came late"),
    "unbounded": (7, "Known code, unknown time: no event was seen"),
}
HIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
SIGNS = {"pass": "✓", "fail": "✗", "skip": "–"}
MINOR = {"signature", "digest", "digestSigned", "gas", "maxFeePerGas", "maxPriorityFeePerGas", "budget"}  # members of a subject
BLOCK_NAME = re.compile("release|batch|coordinator|collateral|policy|b[a-z2-7]{58}")
SIMULATED = json.loads((PACKAGES / "receipt/spec/golden/expected.json").read_bytes())  # the roots and keys of MOCK evidence
MAX_FOLDER = 67_108_864

class Arguments(argparse.ArgumentParser):
    def error(self, message: str):
        raise ValueError(f"{message} (see --help)")

def show(text: str, file=None) -> None:
    """Prints one line. Messages have text of the receipt or the node, which could move the cursor and forge lines."""
    print("".join(f"\\u{ord(char):04x}" if unicodedata.category(char) in HIDDEN else char for char in text), file=file)

def parse_arguments() -> argparse.Namespace:
    parser = Arguments(
        prog="countersign_verify", description="Checks a Countersign receipt.",
        epilog="Exit codes: 0 verified, 1 not verified, 2 unknown code, 3 mock, 4 bad input, 5 evidence is missing, 6 late, 7 no event was seen.")
    parser.add_argument("receipt", nargs="?", metavar="FILE|FOLDER", help="a CAR file, a JSON receipt next to its blocks, or their folder")
    parser.add_argument("--manifest", action="append", default=[], metavar="FILE", help="the code, machines and keys that you trust (repeatable)")
    parser.add_argument("--opening", metavar="FILE", help="the opening of a message, of typed data or of an address")
    parser.add_argument("--cid", help="the CID that the receipt must have")
    parser.add_argument("--proof", metavar="FILE", help="the service's proof as JSON, if a checkpoint published the receipt: its member anchor")
    parser.add_argument("--gateway", metavar="URL", help="an IPFS gateway with the anchor block")
    parser.add_argument("--rpc", metavar="URL", help="a node of the chain with the events; you trust it for block times")
    parser.add_argument("--json", action="store_true", help="prints one JSON object")
    parser.add_argument("--lines", action="store_true", help="answers the line protocol of conformance/receipts")
    if (arguments := parser.parse_args()).receipt is None and not arguments.lines:
        parser.error("missing a receipt")
    return arguments

def show_subject(receipt: bytes) -> None:
    """What the receipt says was signed. The steps tell whether it is true. # receipt-v1 §1, receipt-v2 §2"""
    value = parse_json(receipt)
    members = {"wallet": value["signer"]["statement"]["address"], **(value.get("subject") or value["transaction"])}
    show(f"{value.get('kind', 'transaction')}:")
    for name, item in members.items():
        text = item if isinstance(item, str) else json.dumps(item)
        if name not in MINOR:
            show(f"  {name:<24}{text if len(text) <= 160 else f'{text[:160]} … ({len(text)} characters)'}")
    print()

def read_file(path: Path) -> bytes:
    """Not from a device or pipe, which may never end."""
    require(path.is_file(), f"{path} is no regular file; for a link, save a CAR file first: npm run verify -- LINK --car FILE")
    with path.open("rb") as file:
        data = file.read(MAX_COLLATERAL + 1)
    require(len(data) <= MAX_COLLATERAL, f"{path} has more than {MAX_COLLATERAL} bytes")
    return data

def read_receipt(path: Path) -> tuple[bytes, dict[str, bytes]]:
    """The receipt and its blocks: by CID, or a file with the name of the role."""
    if path.is_dir():
        path = next((path / name for name in ("receipt.json", "attestation.json") if (path / name).is_file()), path / "receipt.json")
    data = read_file(path)
    if data[:1] != b"{":
        return parse_car(data)
    require(b'"countersign-attestation/' in data, f"{path} is no receipt: expected a CAR file, or JSON with a version of countersign-attestation")
    paths = [item for item in path.parent.iterdir() if BLOCK_NAME.fullmatch(item.stem) and item.is_file()]
    require(sum(item.stat().st_size for item in paths) <= MAX_FOLDER, f"{path.parent} has more than {MAX_FOLDER} bytes of blocks")
    files = {item.stem: read_file(item) for item in paths}
    named = {role: files[role] for role in ("release", "batch", "coordinator", "collateral", "policy") if role in files}
    return data, named | find_roles(data, {sha256(block): block for block in files.values()})[0]

def read_anchor(arguments: argparse.Namespace) -> Anchor | None:
    """The member `anchor` of a proof, if it has one. # anchor-v1 §3"""
    found = parse_json(read_file(Path(arguments.proof))).get("anchor") if arguments.proof else None
    members = found and {name: found[name] for name in ("contract", "id", "size", "path")}
    block = (lambda digest: chain.fetch_block(arguments.gateway, digest)) if arguments.gateway else None
    return members and Anchor(**members, block=block)

def main() -> int:
    arguments = parse_arguments()
    if arguments.lines:
        lines.run()
        return 0
    receipt, blocks = read_receipt(Path(arguments.receipt))
    manifests = [parse_manifest(read_file(Path(path))) for path in arguments.manifest]
    anchor = read_anchor(arguments)
    contracts = [item for manifest in manifests for item in manifest.get("logContracts" if anchor else "contracts", [])]
    contract = chain.find_contract(arguments.rpc, [item for item in contracts if not anchor or item["address"] == anchor.contract]) if arguments.rpc else None
    anchors, policy = join_manifests(manifests, contract and contract["chainId"])
    reader = Reader(HARDWARE + parse_roots(SIMULATED["roots"]), SIMULATED["mockEntropyKeys"], anchors, policy,
                    chain=contract and (lambda *query: chain.fetch(arguments.rpc, contract, *query, "finalized" if anchor else "latest")), anchor=anchor)
    steps = verify(receipt, blocks, reader, arguments.cid, read_file(Path(arguments.opening)) if arguments.opening else None)
    verdict = steps.verdict()
    code, title = VERDICTS[verdict]
    if arguments.json:
        print(json.dumps({"verdict": verdict, "steps": steps.results, "codes": steps.codes, "messages": steps.messages}))
    else:
        if steps.has_passed("format"):
            show_subject(receipt)
        for name, result in steps.results.items():
            show(f"{SIGNS[result]} {name:<24}{steps.messages.get(name, '')}".rstrip())
        print(f"\n{title} ({verdict})")
    return code

if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as error:
        show(f"error: {error}", sys.stderr)
        sys.exit(5 if isinstance(error, URLError) else 1 if getattr(error, "code", None) == "car_mismatch" else 4)  # 5: no answer of the node
