"""Vectors and golden files of the specifications."""

import json
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[3] / "packages"
GOLDEN_V2 = PACKAGES / "receipt/spec/golden-v2"


def read(path: str):
    return json.loads((PACKAGES / path).read_bytes())
