import unittest

from countersign_verify.typed_data import hash_typed_data, message_digest
from vectors import read

LIMITS = read("protocol/vectors/limits-v1.vectors.json")["typedData"]


def data(kind, value, domain=None, types=None, primary="One"):
    types = {"One": [{"name": "value", "type": kind}]} if types is None else types
    return {"domain": {"name": "x"} if domain is None else domain, "types": types, "primaryType": primary, "message": {"value": value}}


class TypedData(unittest.TestCase):
    def test_accepts_and_rejects_the_vectors_at_the_limits(self):
        for item in LIMITS:
            with self.subTest(item["name"]):
                if "digest" in item:
                    self.assertEqual("0x" + hash_typed_data(item["typedData"]).hex(), item["digest"])
                else:
                    self.assertRaises(ValueError, hash_typed_data, item["typedData"])

    def test_rejects_what_could_be_read_in_two_ways(self):
        def chain(length):
            return {f"S{i}": [{"name": "value", "type": f"S{i + 1}"}] if i + 1 < length else [] for i in range(length)}

        bad = [
            data("bool", 1), data("bool", "true"), data("uint8", True), data("uint8", None), data("string", 1), data("string", "\ud800"),
            data("address", "0x00"), data("bytes4", "0x000000"), data("bytes", "00"), data("bool[2]", [True]), data("bool[]", {}),
            data("bool" + "[]" * 16, []), data("bool" + "[]" * 10_000, []), data("uint7", 1), data("EIP712Domain", {"name": "x"}),
            data("bool\n", True), data("bool[]\n", []), data("bool[1\n]", [True]), data("Two", {}), data(["bool"], True),
            data("bool", True, domain={}), data("bool", True, domain={"other": "x"}), data("bool", True, domain={"name": 1}),
            data("bool", True, domain={"chainId": -1}), data("bool", True, primary="EIP712Domain"), data("bool", True, primary=["One"]),
            data("bool", True, types={"One": [{"name": "value", "type": "bool"}], "EIP712Domain": [{"name": "name", "type": "bytes"}]}),
            data("bool", True, types={"One": [{"name": "value", "type": "One"}]}), data("bool", True, types={"One": [{"name": "value", "type": "One[]"}]}),
            data("bool", True, types={"One": [{"name": "value", "type": "bool"}] * 2}), data("bool", True, types={"One": [{"name": "v v", "type": "bool"}]}),
            data("bool", True, types={"One": [{"name": "value", "type": "bool"}], **chain(17)}), data("bool", True, types=chain(900)),
            data("bool", True, types=[]), data("string", "x" * 32_768), {**data("bool", True), "more": 1}, [], None,
            {**data("bool", True), "message": {"value": True, "more": 1}}, {**data("bool", True), "message": []},
        ]
        for index, item in enumerate(bad):
            with self.subTest(index):
                self.assertRaises(ValueError, hash_typed_data, item)
        hash_typed_data(data("bool", True, types={"One": [{"name": "value", "type": "bool"}], **chain(16)}))
        hash_typed_data(data("bool" + "[]" * 15, []))

    def test_hashes_messages(self):
        self.assertEqual(message_digest({"message": "0x68656c6c6f"}).hex(), "50b2c43fd39106bafbba0da34fc430e1f91e3c96ea2acee2bc34119f92b37750")
        self.assertEqual(message_digest({"message": "0x6F"}), message_digest({"message": "0x6f"}))
        for bad in [{}, {"message": "hello"}, {"message": "0x0"}, {"message": 1}, {"message": "0x", "more": 1}, {"message": "0x" + "00" * 16_384}, None]:
            self.assertRaises(ValueError, message_digest, bad)


if __name__ == "__main__":
    unittest.main()
