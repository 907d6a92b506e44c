import copy
import json
import unittest
from pathlib import Path

from countersign_verify import anchors, der, event_log, snp, tdx, x509
from countersign_verify.codec import parse_time
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
            with self.subTest(index), self.assertRaises(ValueError):
                tdx.check_quote(flip(QUOTE, index), COLLATERAL, None, AT, ROOTS)

    def test_rejects_every_changed_byte_of_a_report_and_its_certificates(self):
        self.assertEqual(snp.check_report(REPORT, CERTIFICATES, AT, ROOTS).product, "Milan")
        for index in range(0, len(REPORT), 3):
            with self.subTest(index), self.assertRaises(ValueError):
                snp.check_report(flip(REPORT, index), CERTIFICATES, AT, ROOTS)
        for place, certificate in enumerate(CERTIFICATES):
            for index in range(0, len(certificate), 17):
                changed = [*CERTIFICATES[:place], flip(certificate, index), *CERTIFICATES[place + 1:]]
                with self.subTest(f"{place}, {index}"), self.assertRaises(ValueError):
                    snp.check_report(REPORT, changed, AT, ROOTS)

    def test_rejects_simulated_evidence_under_roots_of_hardware(self):
        with self.assertRaises(ValueError):
            tdx.check_quote(QUOTE, COLLATERAL, None, AT, HARDWARE)
        with self.assertRaises(ValueError):
            snp.check_report(REPORT, CERTIFICATES, AT, HARDWARE)


class Encodings(unittest.TestCase):
    def test_rejects_ber_that_is_not_der(self):
        for text in [
            "", "30", "3080" "0201000000", "308101" "00", "30820001" "00", "3084000000" "0101", "1000", "2203040100", "1f010100", "0000",
            "0200", "0201ff", "02020001", "010101", "0102ffff", "0500" "00", "050100", "0301", "030108", "0600", "060180",
            "0603550480", "0603558001", "3003020100" "00", "300402010000", "3005020100",
        ]:
            with self.subTest(text), self.assertRaises(ValueError):
                der.parse(bytes.fromhex(text))

    def test_rejects_times_that_are_not_der(self):
        for tag, text in [
            (0x17, "260230000000Z"), (0x17, "2601010000Z"), (0x17, "260101000000+0000"), (0x18, "20260101000000.5Z"), (0x18, "260101000000Z"),
            (0x17, "20260101000000Z"), (0x17, "260101240000Z"), (0x04, "260101000000Z"),
        ]:
            node = der.parse(bytes([tag, len(text)]) + text.encode())
            with self.subTest(text), self.assertRaises(ValueError):
                node.time()

    def test_rejects_other_spellings_of_pem(self):
        pem = COLLATERAL["tcb_info_issuer_chain"].rstrip("\n")
        self.assertEqual(len(x509.parse_pem(pem.encode())), 2)
        middle = pem.index("-----END CERTIFICATE-----")
        for changed in [
            pem.replace("\n", "\r\n"), " " + pem, pem + " ", pem + "\n\n", pem + "\0", pem[:40] + "\n" + pem[40:], pem.replace("=", ""),
            pem[:middle] + "\n" + pem[middle:], pem.replace("-----\n-----", "-----\n\n-----"), pem.replace("CERTIFICATE", "TRUSTED"), "",
        ]:
            if changed != pem:
                with self.subTest(changed[:80]), self.assertRaises(ValueError):
                    x509.parse_pem(changed.encode())

    def test_rejects_event_logs_that_could_hide_code(self):
        event = {"imr": 3, "event_type": 0x08000001, "digest": "", "event": "compose-hash", "event_payload": "c0"}
        registers, events = event_log.replay_log(json.dumps([event, {**event, "imr": 3.0, "event_payload": "c1"}]))
        self.assertEqual((list(registers), events), ([3], {"compose-hash": ["c0", "c1"]}))
        nested = json.dumps([{**event, "other": 0}]).replace('"other": 0', '"other": ' + "[" * 15 + "]" * 15)
        for text in [
            "", "{}", "[1]", "[" * 2000, json.dumps([event] * 4097), json.dumps([event])[:-1] + ",NaN]", nested,
            *(json.dumps([{**event, **change}]) for change in [
                {"imr": 4}, {"imr": True}, {"imr": -1}, {"imr": 0.5}, {"event_type": 2**32}, {"event_type": 1}, {"digest": "00"}, {"digest": None},
                {"event": "compose-hash:"}, {"event": 1}, {"event": "\ud800"}, {"event_payload": "C0"}, {"event_payload": "c"},
                {"event_type": 1, "digest": "00" * 48},
            ]),
            json.dumps([event]).replace('"imr": 3', '"imr": 3, "imr": 3'),
        ]:
            with self.subTest(text[:120]), self.assertRaises(ValueError):
                event_log.replay_log(text)


if __name__ == "__main__":
    unittest.main()
