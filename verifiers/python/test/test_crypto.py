import json
import unittest
from pathlib import Path
from unittest.mock import patch

from countersign_verify import bls, codec, crypto, merkle

PACKAGES = Path(__file__).resolve().parents[3] / "packages"
VECTORS = json.loads((PACKAGES / "protocol/vectors/protocol-v1.vectors.json").read_bytes())


class Crypto(unittest.TestCase):
    def test_recovers_the_key_of_transactions(self):
        for item in VECTORS["transactions"]:
            key = crypto.recover(bytes.fromhex(item["digest"][2:]), bytes.fromhex(item["signature"][2:]))
            self.assertEqual(key.hex(), item["publicKey"])
            self.assertEqual(crypto.address_of(key), item["address"])

    def test_rejects_high_s_and_other_v(self):
        item = VECTORS["transactions"][0]
        digest, signature = bytes.fromhex(item["digest"][2:]), bytes.fromhex(item["signature"][2:])
        high = (crypto.N - int.from_bytes(signature[32:64], "big")).to_bytes(32, "big")
        for other in [signature[:32] + high + bytes([55 - signature[64]]), signature[:64] + b"\x1d", b"\0" * 32 + signature[32:]]:
            with self.assertRaises(ValueError):
                crypto.recover(digest, other)

    def test_verifies_ed25519_with_the_cofactored_equation(self):
        item = VECTORS["entropy"]
        key = bytes.fromhex(VECTORS["keys"]["satellite"]["publicKey"])
        message, signature = bytes.fromhex(item["message"]), bytes.fromhex(item["signature"])
        self.assertTrue(crypto.verify_ed25519(key, signature, message))
        self.assertFalse(crypto.verify_ed25519(key, signature, message + b"\0"))
        above = (int.from_bytes(signature[32:], "little") + crypto.L25519).to_bytes(32, "little")
        self.assertFalse(crypto.verify_ed25519(key, signature[:32] + above, message))
        # "Taming the many EdDSAs", case 3: mixed order, valid with the cofactor only.
        self.assertTrue(crypto.verify_ed25519(
            bytes.fromhex("cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d"),
            bytes.fromhex("160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed5125ec6bc982a269b723e0668e540911a9a"
                          "6a58921d6925e434ab10aa7940551a09"),
            bytes.fromhex("e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c"),
        ))
        self.assertFalse(crypto.is_ed25519_key(b"\x01" + b"\0" * 31))

    def test_hashes_to_g1_and_verifies_a_round_of_drand(self):
        with patch.object(bls, "DOMAIN", b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"):  # RFC 9380 §J.9.1
            self.assertEqual(f"{bls.hash_to_g1(b'')[0][0]:x}"[:32], "52926add2207b76ca4fa57a8734416c8")
        sample = json.loads((PACKAGES / "receipt/spec/golden-v2/cases/beacon/attestation.json").read_bytes())["entropy"]
        key, signature = bytes.fromhex(sample["publicKey"]), bytes.fromhex(sample["signatureHex"])
        self.assertTrue(bls.verify(key, signature, codec.sha256(codec.u64(sample["sequence"]))))
        self.assertFalse(bls.verify(key, signature, codec.sha256(codec.u64(sample["sequence"] + 1))))

    def test_computes_roots_of_trees(self):
        for tree in VECTORS["trees"]:
            for index, path in enumerate(tree["paths"]):
                leaf = bytes.fromhex(tree["leaves"][index])
                self.assertEqual(merkle.root_of_path(leaf, index, tree["treeSize"], [bytes.fromhex(x) for x in path]).hex(), tree["root"])


if __name__ == "__main__":
    unittest.main()
