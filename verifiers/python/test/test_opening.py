import json
import unittest

from countersign_verify import opening
from countersign_verify.codec import sha256
from vectors import GOLDEN_V2, read

V2, SESSIONS = read("protocol/vectors/protocol-v2.vectors.json"), read("protocol/vectors/session-v1.vectors.json")


class Openings(unittest.TestCase):
    def test_commits_to_content_and_signature(self):
        for item in V2["openings"]:
            shown = item["opening"]
            commitments = {"content": item["contentCommitment"], "signature": item["signatureCommitment"]}
            for half in (None, "content", "signature"):
                data = json.dumps({**shown, **({half: commitments[half]} if half else {})}).encode()
                commitment, (content, signature, *_) = opening.parse_opening(data)
                self.assertEqual(commitment.hex(), item["commitment"])
                self.assertEqual([content is None, signature is None], [half == "content", half == "signature"])
            self.assertRaises(ValueError, opening.parse_opening, json.dumps(commitments).encode())

    def test_accepts_other_spellings_and_rejects_other_numbers(self):
        for item in V2["openingTexts"]:
            with self.subTest(item["name"]):
                if item["isAccepted"]:
                    opening.parse_opening(item["text"].encode())
                else:
                    self.assertRaises(ValueError, opening.parse_opening, item["text"].encode())

    def test_rejects_malformed_openings(self):
        good = V2["openings"][0]["opening"]
        content, signature = good["content"], good["signature"]
        high_s = signature["signature"][:66] + "f" * 64 + "1b"
        bad = [
            {**good, "content": {**content, "digest": content["digest"].upper()}}, {**good, "content": {**content, "kind": "transaction"}},
            {**good, "content": {**content, "approvals": {}}}, {**good, "content": {**content, "budget": None}},
            {**good, "content": {**content, "salt": "0x" + content["salt"]}}, {**good, "content": {**content, "content": 1}},
            {**good, "signature": {**signature, "signature": high_s}}, {**good, "signature": None}, {**good, "more": 1}, [good],
        ]
        for index, item in enumerate(bad):
            with self.subTest(index):
                self.assertRaises(ValueError, opening.parse_opening, json.dumps(item).encode())
        nested = b'{"content":' + b"[" * 100_000 + b"]" * 100_000 + b',"signature":"' + b"0" * 64 + b'"}'
        for data in [b"\xef\xbb\xbf" + json.dumps(good).encode(), b"", b"{", b"NaN", b"\xff", nested, b" " * 262_145, b'{"a":"\\ud800"}', b"1" * 5000]:
            self.assertRaises(ValueError, opening.parse_opening, data)

    def test_opens_the_owner_of_an_address(self):
        for item in SESSIONS["owners"]:
            data = {name: item[name] for name in ("salt", "identity")}
            self.assertEqual(opening.parse_owner_opening(json.dumps(data).encode())[0].hex(), item["commitment"])
            for name in ("issuer", "subject"):
                bad = {**data, "identity": {**item["identity"], name: None}}
                self.assertRaises(ValueError, opening.parse_owner_opening, json.dumps(bad).encode())

    def test_fails_for_another_receipt(self):
        data = (GOLDEN_V2 / "off-chain/opening.json").read_bytes()
        receipt = json.loads((GOLDEN_V2 / "off-chain/attestation.json").read_bytes())
        self.assertIsNotNone(opening.check_opening(receipt, data).content)
        with self.assertRaises(ValueError):
            opening.check_opening({**receipt, "subject": {"commitment": sha256(b"").hex()}}, data)
        with self.assertRaises(ValueError):
            opening.check_opening(json.loads((GOLDEN_V2 / "transaction/attestation.json").read_bytes()), data)


if __name__ == "__main__":
    unittest.main()
