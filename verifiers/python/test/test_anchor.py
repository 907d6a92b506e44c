import contextlib
import io
import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from countersign_verify import __main__ as command
from countersign_verify import anchor, anchors, chain, log, schema
from countersign_verify.codec import parse_canonical, parse_cid, sha256
from countersign_verify.crypto import keccak256

from vectors import PACKAGES, read

VECTORS = read("receipt/spec/anchor-v1.vectors.json")
FOLDER = PACKAGES / "receipt/spec/golden-anchor"
EXPECTED = read("receipt/spec/golden-anchor/expected.json")
MANIFEST = read("attestation/spec/manifest-v1.vectors.json")["manifest"]
WITHOUT_WITNESSES = {name: value for name, value in MANIFEST.items() if name != "log"}
BLOCK = (FOLDER / "anchor.json").read_bytes()


class Server(BaseHTTPRequestHandler):
    """A node with the event, and a gateway with the anchor block."""

    until, block = None, BLOCK

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if request["method"] == "eth_getLogs":
            Server.until = request["params"][0]["toBlock"]
        result = {
            "eth_chainId": "0x7a69",
            "eth_getLogs": [{**EXPECTED["events"][0], "blockNumber": "0xc"}],
            "eth_getBlockByNumber": {"timestamp": hex(1781524809)},
            "eth_getTransactionByHash": None,
        }[request["method"]]
        self.answer(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())

    def do_GET(self):
        self.answer(self.block)

    def answer(self, body: bytes):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Anchors(unittest.TestCase):
    def test_computes_the_ids_of_logs(self):
        for case in VECTORS["ids"]:
            origin = sha256(case["origin"].encode())
            self.assertEqual("0x" + keccak256(bytes(12) + bytes.fromhex(case["owner"][2:]) + origin).hex(), case["id"])

    def test_parses_events(self):
        for case in VECTORS["events"]:
            found = anchor.parse_event(case)
            self.assertEqual([found[0], found[1], found[2].hex(), found[3].hex()], [case["id"], case["size"], case["root"][2:], case["blockHash"][2:]])
        for case in VECTORS["malformedEvents"]:
            with self.subTest(case["name"]), self.assertRaises(ValueError):
                anchor.parse_event(case)

    def test_matches_blocks_with_their_schemas(self):
        part = "receipt/spec/anchor-v1.part.schema.json"
        for case in VECTORS["anchors"]:
            block = parse_canonical(case["block"].encode())
            self.assertTrue(schema.matches(anchor.SCHEMA, block) and all(schema.matches(part, json.loads(text)) for text in case["parts"]))
            self.assertEqual([parse_cid(cid) for cid in block["parts"]], [sha256(text.encode()) for text in case["parts"]])
            self.assertEqual(sha256(case["block"].encode()).hex(), case["blockHash"])
        for case in VECTORS["rejected"]:
            is_valid = schema.matches(anchor.SCHEMA, json.loads(case["block"])) and all(schema.matches(part, json.loads(text)) for text in case["parts"])
            self.assertEqual(is_valid, case["reason"] != "it must match the schema", case["name"])

    def test_rejects_a_note_of_more_than_131072_bytes(self):
        log_settings = json.loads((FOLDER / "batch.json").read_bytes())
        witnesses = tuple(bytes.fromhex(key) for key in log_settings["settings"]["log"]["witnesses"])
        name, key = log.parse_verifier_key(log_settings["logKey"])
        note = json.loads(BLOCK)["checkpoint"]
        for length, is_valid in ((131_072, True), (131_073, False)):
            line = "\u2014 {} AAAAAAA=\n"
            whole = note + line.format("n" * (length - len((note + line.format("")).encode())))
            with self.subTest(length), contextlib.nullcontext() if is_valid else self.assertRaises(ValueError):
                self.assertEqual(log.read_checkpoint(whole, name, key, witnesses, 2)[0], 13)

    def test_reads_logs_of_manifests(self):
        first = {"chainId": 31337, "address": "0x" + "1c" * 20, "logs": [{"id": "0x" + "ab" * 32, "upTo": 7}]}
        parse = lambda *items: anchors.parse_manifest(json.dumps({**MANIFEST, "logContracts": items}).encode())  # noqa: E731
        joined, _ = anchors.join_manifests([parse(first), parse({**first, "chainId": 1}), parse()], 31337)
        self.assertEqual(joined["logContracts"], [first])
        for items in ([first, first], [{**first, "logs": []}], [{**first, "address": "0x" + "1C" * 20}], [{**first, "logs": [{"id": "ab"}]}]):
            with self.assertRaises(ValueError):
                parse(*items)

    def test_the_command_reads_a_proof_a_node_and_a_gateway(self):
        server = HTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            with TemporaryDirectory() as name:
                folder = Path(name)
                for path in [*(FOLDER / f"{item}.json" for item in ("attestation", "batch", "release")), FOLDER.parent / "golden-v2/coordinator.json"]:
                    (folder / path.name).write_bytes(path.read_bytes())
                contracts = [{"chainId": 31337, **item} for item in EXPECTED["anchors"]["logContracts"]]
                (folder / "manifest").write_text(json.dumps({**WITHOUT_WITNESSES, "logContracts": contracts}))
                (folder / "proof").write_text(json.dumps({"slug": "abc", "anchor": {**EXPECTED["anchor"], "chainId": 31337, "index": 6}}))
                self.assertEqual(self.check(folder, url, "--gateway", url), ("pass", None))
                self.assertEqual(Server.until, "finalized")
                self.assertEqual(self.check(folder, url), ("skip", "the anchor block is withheld"))
                with patch.object(Server, "block", b"{}"):
                    self.assertEqual(self.check(folder, url, "--gateway", url), ("skip", "the anchor block is withheld"))
        finally:
            server.shutdown()
            server.server_close()
        self.assertEqual(chain.fetch_block(url, bytes(32)), None)

    def check(self, folder: Path, url: str, *arguments: str) -> tuple:
        """The step `event` and its message."""
        output = io.StringIO()
        named = ["--manifest", folder / "manifest", "--proof", folder / "proof", "--rpc", url]
        with patch("sys.argv", ["countersign_verify", *map(str, [folder / "attestation.json", *named, *arguments]), "--json"]):
            with contextlib.redirect_stdout(output):
                command.main()
        answer = json.loads(output.getvalue())
        return answer["steps"]["event"], answer["messages"].get("event")


if __name__ == "__main__":
    unittest.main()
