import unittest

from countersign_verify import crypto, transaction
from countersign_verify.codec import canonical, sha256, tag, un0x
from vectors import read

V1, V2 = read("protocol/vectors/protocol-v1.vectors.json"), read("protocol/vectors/protocol-v2.vectors.json")


class Transactions(unittest.TestCase):
    def test_encodes_and_hashes_transactions(self):
        for item in V1["transactions"]:
            tx, signature = item["txMetadata"], un0x(item["signature"])
            self.assertEqual(b"\x02" + transaction.rlp(transaction.transaction_fields(tx)), un0x(item["unsigned"]))
            self.assertEqual(transaction.transaction_digest(tx), un0x(item["digest"]))
            self.assertEqual(transaction.transaction_hash(tx, signature), un0x(item["txHash"]))
            self.assertEqual(crypto.address_of(crypto.recover(un0x(item["digest"]), signature)), item["address"])

    def test_rejects_values_out_of_range(self):
        tx = V1["transactions"][0]["txMetadata"]
        changes = [
            {"chainId": 0}, {"chainId": 2**53}, {"chainId": True}, {"chainId": 1.0}, {"nonce": -1}, {"nonce": "1"},
            {"to": "0x"}, {"to": tx["to"].upper()}, {"value": "01"}, {"value": "-1"}, {"value": "1 "}, {"value": "٣"}, {"value": str(2**256)},
            {"value": 1}, {"gas": str(2**64)}, {"data": "0x0"}, {"data": "0x" + "00" * 131_073}, {"data": "0xAB"},
            {"maxPriorityFeePerGas": str(int(tx["maxFeePerGas"]) + 1)}, {"value": "9" * 5000},
        ]
        for change in changes:
            with self.assertRaises(ValueError, msg=str(change)[:80]):
                transaction.transaction_digest({**tx, **change})

    def test_hashes_subjects_and_events(self):
        for item in V2["subjects"]:
            subject = item["subject"]
            self.assertEqual(sha256(tag("subject/v1") + canonical(subject)).hex(), item["hash"])
            if item["kind"] == "authorization":
                self.assertEqual("0x" + transaction.digest_of("authorization", subject).hex(), subject["digest"])
                self.assertEqual("0x" + transaction.authorization_hash(subject, un0x(subject["signature"])).hex(), item["eventHash"])
                with self.assertRaises(ValueError):
                    transaction.digest_of("authorization", {**subject, "chainId": 0})


if __name__ == "__main__":
    unittest.main()
