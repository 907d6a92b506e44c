import contextlib
import io
import json
import os
import subprocess
import sys
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch
from urllib.error import HTTPError

from countersign_verify import __main__ as command
from countersign_verify import chain

SPEC = Path(__file__).resolve().parents[3] / "packages/receipt/spec"
CASES = json.loads((SPEC / "golden-v2/cases/cases.json").read_bytes())["cases"]


def run(*arguments: str) -> tuple[int, str]:
    output = io.StringIO()
    with patch("sys.argv", ["countersign_verify", *map(str, arguments)]), contextlib.redirect_stdout(output):
        return command.main(), output.getvalue()


class Node(BaseHTTPRequestHandler):
    """Answers for one event of the test files."""

    case = next(case for case in CASES if case["name"] == "an event after 9 s")

    def do_POST(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("location", "/")
            return self.end_headers()
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        event = self.case["reader"]["chain"]["events"][0]
        result = {
            "eth_chainId": "0x7a69",
            "eth_getLogs": [{**event, "blockNumber": "0xc"}],
            "eth_getBlockByNumber": {"timestamp": hex(1781524809)},
            "eth_getTransactionByHash": {"blockNumber": "0xc"},
        }[request["method"]]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"result": "0x7a69"}')

    def log_message(self, *_):
        pass


class Main(unittest.TestCase):
    def test_reads_car_files_and_folders(self):
        for path in [SPEC / "golden-v2/cases/transaction.car", SPEC / "golden", SPEC / "golden/receipt.json"]:
            code, output = run(path, "--json")
            answer = json.loads(output)
            self.assertEqual((code, answer["verdict"], answer["steps"]["quote"]), (3, "mock", "pass"))

    def test_exits_with_1_for_a_changed_car_file(self):
        with TemporaryDirectory() as name:
            changed = Path(name) / "changed.car"
            changed.write_bytes((SPEC / "golden-v2/cases/transaction.car").read_bytes().replace(b"signedAt", b"signedat"))
            command = [sys.executable, "-m", "countersign_verify", str(changed)]
            self.assertEqual(subprocess.run(command, cwd=SPEC.parents[2] / "verifiers/python", capture_output=True).returncode, 1)

    def test_reports_missing_blocks(self):
        with TemporaryDirectory() as folder:
            (Path(folder) / "attestation.json").write_bytes((SPEC / "golden-v2/transaction/attestation.json").read_bytes())
            code, output = run(folder)
        self.assertEqual(code, 5)
        self.assertIn("– blocks", output)

    def test_rejects_wrong_input(self):
        for arguments in [[], ["--unknown"], [SPEC / "missing.car"], [SPEC / "golden/collateral.json"], [SPEC / "receipt-v1.md"],
                          [SPEC / "golden", "--manifest", SPEC / "golden/receipt.json"]]:
            with self.assertRaises((OSError, ValueError), msg=arguments):
                run(*arguments)

    def test_reads_only_regular_files_of_bounded_size(self):
        with TemporaryDirectory() as name:
            folder = Path(name)
            large, endless, pipe, receipt = (folder / item for item in ("large.car", "endless.car", "pipe.car", "receipt.json"))
            large.touch()
            os.truncate(large, 8_388_609)
            endless.symlink_to("/dev/zero")
            os.mkfifo(pipe)
            receipt.symlink_to("/dev/zero")
            for arguments in [[large], [endless], [pipe], [folder], [SPEC / "golden", "--manifest", pipe], [SPEC / "golden", "--opening", endless]]:
                command = [sys.executable, "-m", "countersign_verify", *map(str, arguments)]
                ended = subprocess.run(command, cwd=SPEC.parents[2] / "verifiers/python", capture_output=True, timeout=60)
                self.assertEqual((ended.returncode, ended.stderr[:6]), (4, b"error:"), arguments)

    def test_bounds_the_blocks_and_ignores_other_files(self):
        with TemporaryDirectory() as name:
            folder = Path(name)
            for item in (SPEC / "golden-v2/transaction").iterdir():
                (folder / item.name).write_bytes(item.read_bytes())
            (folder / "policy.json").touch()
            os.truncate(folder / "policy.json", 67_108_865)
            with self.assertRaises(ValueError):
                run(folder)
            (folder / "policy.json").rename(folder / "other.json")
            self.assertIn("✓ signature", run(folder)[1])

    def test_prints_the_subject(self):
        for path, kind, values in [
            (SPEC / "golden", "transaction", ["chainId", "to", "value", "data", "txHash"]),
            (SPEC / "golden-v2/transaction", "transaction", ["chainId", "to", "value", "data", "txHash"]),
            (SPEC / "golden-v2/authorization", "authorization", ["chainId", "address", "nonce"]),
            (SPEC / "golden-v2/off-chain", "off-chain", ["commitment"]),
        ]:
            receipt = json.loads((path / ("receipt.json" if path.name == "golden" else "attestation.json")).read_bytes())
            subject = receipt.get("subject") or receipt["transaction"]
            lines = [line.split() for line in run(path)[1].splitlines()]
            self.assertEqual(lines[0], [f"{kind}:"])
            self.assertIn(["wallet", receipt["signer"]["statement"]["address"]], lines)
            for name in values:
                self.assertIn([name, str(subject[name])], lines)

    def test_escapes_text_that_could_forge_lines(self):
        output = io.StringIO()
        command.show("\x1b[2J\n✓ quote\u202e\u2028\x9b\ud800", output)
        self.assertEqual(output.getvalue(), "\\u001b[2J\\u000a✓ quote\\u202e\\u2028\\u009b\\ud800\n")
        with TemporaryDirectory() as folder, self.assertRaises(ValueError) as caught:
            run(Path(folder) / "\x1b[2J")
        output = io.StringIO()
        command.show(f"error: {caught.exception}", output)
        self.assertNotIn("\x1b", output.getvalue())

    def test_reads_events_from_a_node(self):
        server = HTTPServer(("127.0.0.1", 0), Node)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url, event = f"http://127.0.0.1:{server.server_port}", Node.case["reader"]["chain"]["events"][0]
            contract = chain.find_contract(url, [{"chainId": 31337, "address": event["address"], "fromBlock": 1}])
            wallet = "0x" + event["topics"][1][26:]
            node = chain.fetch(url, contract, chain.topics_of(wallet, event["topics"][2]), event["topics"][2])
            cid = chain.parse_cid_of_event(bytes.fromhex(event["data"][2:]))
            self.assertEqual(chain.find_event(node, event["address"], wallet, event["topics"][2], cid, True), 1781524809000)
            self.assertEqual(node["transaction"], "mined")
            with self.assertRaises(ValueError):
                chain.find_contract(url, [])
            with self.assertRaises(HTTPError):
                chain.find_contract(f"{url}/moved", [{"chainId": 31337}])
            self.assertEqual(chain.fetch(f"{url}/moved", contract, event["topics"], None), {"events": None})
        finally:
            server.shutdown()
            server.server_close()
        self.assertEqual(chain.fetch(url, contract, event["topics"], None), {"events": None})


if __name__ == "__main__":
    unittest.main()
