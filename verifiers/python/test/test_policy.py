import unittest

from countersign_verify import policy
from countersign_verify.approvals import approvals_hash, check_approvals, fields
from countersign_verify.budget import paid_by_budget, shown_time, window_of
from countersign_verify.bls import is_g2_key
from countersign_verify.codec import canonical, cid_of, sha256, tag, un0x, unhex
from vectors import read

V1, LIMITS = read("policy/vectors/policy-v1.vectors.json"), read("policy/vectors/limits-v1.vectors.json")
BROWSER, VAULTS = read("policy/vectors/browser-approvals.vectors.json"), read("protocol/vectors/vault-v1.vectors.json")
POLICIES = [policy.parse_policy(item["json"].encode()) for item in V1["policies"]]


def request_of(request, vault="", now_ms=0):
    return policy.Request(request["kind"], request.get("txMetadata") or request["content"], vault, now_ms)


def codes(policy_, rule, request, sample=None):
    try:
        policy.check_request(policy_, rule, request, sample)
        return []
    except ValueError as refusal:
        return list(refusal.args)


class Policies(unittest.TestCase):
    def test_hashes_policies(self):
        for item, parsed in zip(V1["policies"], POLICIES):
            self.assertEqual(canonical(item["policy"]), item["json"].encode())
            self.assertEqual(parsed.hash.hex(), item["hash"])
            self.assertEqual(cid_of(item["json"].encode()), item["cid"])

    def test_rejects_malformed_policies(self):
        for item in V1["refused"] + LIMITS["policies"]:
            with self.subTest(item.get("why") or item.get("name")):
                try:
                    policy.parse_policy(item["json"].encode())
                    code = None
                except ValueError as fault:
                    code = str(fault).split(":")[0]
                self.assertEqual(code, item["code"])

    def test_rejects_members_of_other_kinds(self):
        good = V1["policies"][3]["policy"]
        bad = [None, [], 1, "", {}, {**good, "version": True}, {**good, "version": "1"}, {**good, "rules": {}}, {**good, "approvers": None},
               {**good, "log": []}, {**good, "budgets": None}, {**good, "time": []}, {**good, "rules": [None]}, {**good, "rules": [{"kind": []}]}]
        for rule in good["rules"]:
            for name in rule:
                bad += [{**good, "rules": sorted([{**rule, name: value}, good["rules"][-1]], key=canonical)} for value in ({}, None, -1, True, "x", [[]], [{}])
                        if not isinstance(value, bool) or name != "session"]
        for item in bad:
            with self.subTest(str(item)[-100:]), self.assertRaises(ValueError):
                policy.parse_policy(canonical(item))

    def test_reaches_the_verdicts_without_a_rule(self):
        for item in V1["verdicts"]:
            parsed, verdict, sample = POLICIES[item["policy"]], item["verdict"], item["request"].get("sample")
            sample = (sample["source"], sample["timeMs"]) if sample else None
            found = [codes(parsed, index, request_of(item["request"]), sample) for index in range(len(parsed.rules))]
            allowed = [index for index, reasons in enumerate(found) if not reasons]
            self.assertEqual(bool(allowed), verdict["allowed"])
            if allowed:
                self.assertEqual(min(allowed, key=lambda index: parsed.rules[index]["approvals"]), verdict["rule"])
            else:
                expected = [[reason["code"] for reason in rule["reasons"]] for rule in verdict["rules"]]
                self.assertEqual(found, [verdict["reasons"]] * len(found) if verdict["reasons"] else expected)

    def test_counts_payments_under_a_rule(self):
        for item in V1["spending"]:
            with self.subTest(item["name"]):
                request = request_of(item["request"], item["vaultAddress"], item["nowMs"])
                verdict, parsed = item["verdict"], POLICIES[item["policy"]]
                if verdict["allowed"]:
                    spends = [{**spend, "amount": int(spend["amount"])} for spend in verdict["spends"]]
                    self.assertEqual(policy.check_request(parsed, item["rule"], request), spends)
                else:
                    reasons = [reason["code"] for rule in verdict["rules"] for reason in rule["reasons"]] or verdict["reasons"]
                    self.assertEqual(codes(parsed, item["rule"], request), reasons)

    def test_counts_in_windows(self):
        state, budgets = {}, POLICIES[-1].budgets
        for item in V1["counting"]:
            spends = [{**spend, "amount": int(spend["amount"])} for spend in item["spends"]]
            changes, left = [], None
            for index, amount in paid_by_budget(budgets, spends).items():
                old_window, spent = state.get(index, (0, 0))
                window = max(window_of(item["timeS"], budgets[index]["periodS"]), old_window)
                before = spent if window == old_window else 0
                if before + amount > int(budgets[index]["limit"]) and left is None:
                    left = {"budget": index, "left": str(int(budgets[index]["limit"]) - before)}
                changes.append({"budget": index, "window": window, "before": str(before), "after": str(before + amount)})
            expected = item["verdict"]
            self.assertEqual({"allowed": True, "changes": changes} if left is None else {"allowed": False, **left}, expected, item["name"])
            if left is None:
                state.update({change["budget"]: (change["window"], int(change["after"])) for change in changes})

    def test_finds_the_time_that_liars_cannot_hold_back(self):
        self.assertEqual([shown_time([5, 9, 7], 3, 2), shown_time([9, 7], 3, 2), shown_time([9], 1, 1), shown_time([1, 2, 3], 3, 3)], [9, 9, 9, 3])
        self.assertEqual(shown_time([1, 2, 3, 4], 5, 4), 3)

    def test_rejects_points_outside_of_g2(self):
        key = bytes.fromhex(POLICIES[2].time[0]["key"])
        self.assertTrue(is_g2_key(key))
        bad = [key[:95], bytes([key[0] & 0x7F]) + key[1:], b"\xc0" + bytes(95), bytes([0x80]) + bytes(95), b"\x9f" + b"\xff" * 95]
        self.assertFalse(any(map(is_g2_key, bad)))


class Approvals(unittest.TestCase):
    def check(self, item, parsed):
        digest = un0x(item["digest"])
        check_approvals(parsed, item["approvals"], item["required"], item["vaultAddress"], item["rule"], item["kind"], digest, item["nowMs"])

    def test_accepts_valid_approvals_and_names_faults(self):
        for item in V1["approvals"]:
            self.check(item, POLICIES[item["policy"]])
            self.assertEqual(approvals_hash(item["approvals"]).hex(), item["hash"])
        self.check(BROWSER, policy.parse_policy(canonical(BROWSER["policy"])))
        for item in V1["refusedApprovals"] + LIMITS["approvals"]:
            with self.subTest(item.get("why") or item.get("name")):
                try:
                    self.check(item, POLICIES[item.get("policy", 1)])
                    reason = None
                except ValueError as fault:
                    reason = str(fault)
                self.assertEqual(reason, item["reason"])

    def test_rejects_changed_approvals(self):
        item = V1["approvals"][1]
        one, two = item["approvals"]
        data = bytes.fromhex(one["authenticatorData"])
        flags = [bytes([*data[:32], data[32] ^ bit, *data[33:]]).hex() for bit in (1, 4, 16, 64, 128)]
        client = bytes.fromhex(one["clientDataJSON"])
        texts = [client + b"x", client[:-1] + b',"a":NaN}', client[:-1] + b',"a":1,"a":1}', client.replace(b"webauthn.get", b"webauthn.create"),
                 client.replace(b"https://", b"http://"), client.replace(b'"challenge":"', b'"challenge":"A'), b"[" * 2000, b"[]", b"", client[:-1] + b" " * 2048 + b"}"]
        bad = [[two, one], [one, one], [one], []] + [[{**one, **change}, two] for change in [
            {"approver": 31}, {"expiresMs": item["nowMs"]}, {"expiresMs": item["nowMs"] + 86_400_001}, {"signature": one["signature"] + "00"},
            {"signature": "30" + one["signature"]}, {"signature": "3006020100020100"}, *({"authenticatorData": value} for value in flags),
            *({"clientDataJSON": text.hex()} for text in texts)]]
        for index, approvals in enumerate(bad):
            with self.subTest(index), self.assertRaises(ValueError):
                self.check({**item, "approvals": approvals}, POLICIES[1])

    def test_computes_challenges(self):
        for item in VAULTS["challenges"]:
            covered = fields(item["vaultAddress"], unhex(item["policyHash"]), item["rule"], item["kind"], un0x(item["digest"]), item["expiresMs"])
            self.assertEqual((tag("approval/v1") + covered).hex(), item["preimage"])
            self.assertEqual(sha256(tag("approval/v1") + covered).hex(), item["challenge"])
            self.assertEqual((tag("agent-approval/v1") + covered).hex(), item["agentApproval"])


if __name__ == "__main__":
    unittest.main()
