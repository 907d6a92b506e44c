import copy
import json
import unittest
from pathlib import Path

from countersign_verify import anchors, snp, tdx
from countersign_verify.codec import parse_time
from countersign_verify.faults import Fault
from countersign_verify.roots import HARDWARE, parse_roots

PACKAGES = Path(__file__).resolve().parents[3] / "packages"
VECTORS = json.loads((PACKAGES / "attestation/spec/manifest-v1.vectors.json").read_bytes())
GOLDEN = PACKAGES / "receipt/spec/golden"
RECEIPT = json.loads((GOLDEN / "receipt.json").read_bytes())
COLLATERAL = tdx.parse_collateral((GOLDEN / "collateral.json").read_bytes(), 8_388_608)
ROOTS = parse_roots(json.loads((GOLDEN / "expected.json").read_bytes())["roots"])
AT = parse_time(RECEIPT["transaction"]["signedAt"])
QUOTE = bytes.fromhex(RECEIPT["signer"]["quoteHex"])
SELF = RECEIPT["coordinator"]["selfAttestation"]
REPORT = bytes.fromhex(SELF["reportHex"])
CERTIFICATES = [bytes.fromhex(SELF["certificates"][name]) for name in ("ek", "ask", "ark")]


def flip(data: bytes, index: int) -> bytes:
    return data[:index] + bytes([data[index] ^ 1]) + data[index + 1:]


class Evidence(unittest.TestCase):
    def test_reads_the_manifests_that_a_reader_accepts(self):
        for case in VECTORS["cases"]:
            manifest = copy.deepcopy(VECTORS["manifest"])
            for change in case["changes"]:
                parent = manifest
                for name in change["path"][:-1]:
                    parent = parent[name]
                parent.pop(change["path"][-1], None)
                if "value" in change:
                    parent[change["path"][-1]] = change["value"]
            self.check_manifest(json.dumps(manifest), case["isValid"], case["name"])
        for case in VECTORS["texts"]:
            self.check_manifest(case["text"], False, case["name"])

    def check_manifest(self, text: str, is_valid: bool, name: str):
        with self.subTest(name):
            try:
                anchors.join_manifests([anchors.parse_manifest(text.encode())], 31337)
            except ValueError:
                self.assertFalse(is_valid)
            else:
                self.assertTrue(is_valid)

    def test_rejects_every_changed_byte_of_a_quote(self):
        quote = tdx.check_quote(QUOTE, COLLATERAL, None, AT, ROOTS)
        self.assertEqual((quote.mode, quote.tcb_status), ("mock", "UpToDate"))
        for index in range(0, len(QUOTE), 7):
            with self.subTest(index), self.assertRaises(Fault):
                tdx.check_quote(flip(QUOTE, index), COLLATERAL, None, AT, ROOTS)

    def test_rejects_every_changed_byte_of_a_report_and_its_certificates(self):
        self.assertEqual(snp.check_report(REPORT, CERTIFICATES, AT, ROOTS).product, "Milan")
        for index in range(0, len(REPORT), 3):
            with self.subTest(index), self.assertRaises(Fault):
                snp.check_report(flip(REPORT, index), CERTIFICATES, AT, ROOTS)
        for place, certificate in enumerate(CERTIFICATES):
            for index in range(0, len(certificate), 17):
                changed = [*CERTIFICATES[:place], flip(certificate, index), *CERTIFICATES[place + 1:]]
                with self.subTest(f"{place}, {index}"), self.assertRaises(Fault):
                    snp.check_report(REPORT, changed, AT, ROOTS)

    def test_rejects_simulated_evidence_under_roots_of_hardware(self):
        with self.assertRaises(Fault):
            tdx.check_quote(QUOTE, COLLATERAL, None, AT, HARDWARE)
        with self.assertRaises(Fault):
            snp.check_report(REPORT, CERTIFICATES, AT, HARDWARE)


if __name__ == "__main__":
    unittest.main()
