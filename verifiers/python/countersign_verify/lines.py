"""The line protocol of conformance/receipts: one JSON object per line in, one out."""

import json
import sys

from .anchor import Anchor
from .codec import parse_car, unbase64
from .faults import require
from .reader import parse_reader
from .verify import verify

def answer(request: dict) -> dict:
    if "car" in request:
        receipt, blocks = parse_car(unbase64(request["car"]))
    else:
        receipt, blocks = unbase64(request["receipt"]), {role: unbase64(block) for role, block in (request.get("blocks") or {}).items()}
    opening, reader = request.get("opening"), parse_reader(request.get("reader") or {})
    if anchor := request.get("anchor"):
        reader.anchor = Anchor(**{**anchor, "block": unbase64(anchor["block"]) if "block" in anchor else None})
    steps = verify(receipt, blocks, reader, request.get("cid"), None if opening is None else unbase64(opening))
    return {"verdict": steps.verdict(), "steps": steps.results, "codes": steps.codes}

def run() -> None:
    """A malformed line gets an error; it never ends the program."""
    for line in sys.stdin.buffer:
        identity = None
        try:
            request = json.loads(line)
            require(isinstance(request, dict), "expected an object")
            identity = request.get("id")
            result = answer(request)
        except Exception as error:
            result = {"error": getattr(error, "code", None) or "request_malformed", "message": f"{type(error).__name__}: {error}"[:400]}
        print(json.dumps({"id": identity, **result}), flush=True)
