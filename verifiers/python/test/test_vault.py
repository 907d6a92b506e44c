import base64
import json
import unittest

from countersign_verify import vault
from countersign_verify.codec import canonical, cid_of, parse_time, sha256
from countersign_verify.faults import Skip
from countersign_verify.opening import check_opening
from vectors import GOLDEN_V2

STEPS = ("vault-policy", "vault-rule", "vault-approvals", "vault-budget")


def cosigned_in(receipt, witnesses):
    """The times of the lines in the proof, without checking their signatures."""
    times = {}
    for line in receipt.get("log", "").split("\n\n")[-1].splitlines():
        _, name, text = line.split(" ")
        data = base64.b64decode(text)
        for key in witnesses:
            if sha256(name.encode() + b"\n\x04" + bytes.fromhex(key))[:4] == data[:4]:
                times[key] = int.from_bytes(data[4:12], "big")
    return times


def run(blocks, opening=None):
    """The results of a vault's steps: pass, skip, or fail with the code."""
    receipt = json.loads(blocks["attestation"])
    settings = json.loads(blocks["batch"])["settings"]["log"]
    shown = check_opening(receipt, opening) if opening else None
    view = vault.View(receipt, parse_time(receipt["signer"]["statement"]["signedAt"]), shown)
    if settings:
        view.log_origin, view.cosigned_s = receipt["log"].split("\n\n")[1].split("\n")[0], cosigned_in(receipt, settings["witnesses"])
    sample = receipt["entropy"]
    view.is_signed_by, view.sample_ms = lambda source: source["key"] == sample["publicKey"], parse_time(sample["timestamp"])
    results, values = {}, {}
    checks = (
        lambda: vault.check_policy(receipt, blocks.get("policy")),
        lambda: vault.check_rule(view, values.get("vault-policy")),
        lambda: vault.check_approvals(view, values.get("vault-policy"), results["vault-rule"] == "pass"),
        lambda: vault.check_budget(view, values.get("vault-policy"), values.get("vault-rule"), results["vault-rule"] == "pass"),
    )
    for step, check in zip(STEPS, checks):
        if step not in ("vault-policy", "vault-budget") and "vault-policy" not in values:
            results[step] = "skip"
            continue
        if step == "vault-budget" and not vault.has_budget_step(view, values.get("vault-policy")):
            continue
        try:
            values[step] = check()
            results[step] = "pass"
        except ValueError as fault:
            results[step] = f"fail {fault.code}" if step == "vault-budget" else "fail"
        except Skip:
            results[step] = "skip"
    return results


def read(folder):
    return {path.stem: path.read_bytes() for path in (GOLDEN_V2 / folder).glob("*.json")}


def change(block, item):
    *parents, last = item["path"]
    for key in parents:
        block = block[key]
    if "value" in item:
        block[last] = item["value"]
    else:
        del block[last]


class Vaults(unittest.TestCase):
    def test_passes_for_the_golden_receipts(self):
        for name in ("vaults/transaction", "vaults/scheduled", "vaults/transfer", "vaults/revocation", "cases/logged-vault"):
            self.assertEqual({*run(read(name)).values()}, {"pass"}, name)
        for name in ("vaults/eip3009", "vaults/off-chain"):
            blocks = read(name)
            self.assertEqual({*run(blocks, blocks["opening"]).values()}, {"pass"}, name)
            self.assertEqual({*run(blocks).values()}, {"pass", "skip"}, name)

    def test_fails_the_step_and_code_of_each_changed_receipt(self):
        count = 0
        for folder, receipt in (("vaults", "vaults/transaction"), ("vaults/transfer", None), ("vaults/revocation", None), ("cases", "")):
            for item in json.loads((GOLDEN_V2 / folder / "tampered.json").read_bytes()):
                if item["step"] not in STEPS:
                    continue
                blocks = read(item.get("receipt", receipt or folder))
                block = json.loads(blocks[item["block"]])
                for each in item["changes"]:
                    change(block, each)
                blocks[item["block"]] = canonical(block)
                if item["isNamedAnew"] and item["block"] == "policy":
                    attestation = json.loads(blocks["attestation"])
                    attestation["policy"] = cid_of(blocks["policy"])
                    statement = attestation["signer"]["statement"]
                    statement["policy"] = sha256(blocks["policy"]).hex()
                    if item["name"] == "an approval under other rules":
                        statement["rule"] = 3  # where the rule for this transaction is now
                    blocks["attestation"] = canonical(attestation)
                with self.subTest(f"{folder}: {item['name']}"):
                    failed = [(step, result) for step, result in run(blocks, blocks.get("opening")).items() if result.startswith("fail")]
                    expected = f"fail {item['code']}" if item["step"] == "vault-budget" else "fail"
                    self.assertEqual(failed[:1], [(item["step"], expected)])
                    count += 1
        self.assertGreater(count, 40)

    def test_fails_for_other_counts(self):
        blocks = read("cases/miscounted")
        opening = json.loads((GOLDEN_V2 / "cases/cases.json").read_bytes())
        case = next(item for item in opening["cases"] if item["receipt"] == "cases/miscounted")
        results = run(blocks, case["opening"].encode())
        self.assertEqual(results["vault-budget"].split(" ")[0], "fail")


if __name__ == "__main__":
    unittest.main()
