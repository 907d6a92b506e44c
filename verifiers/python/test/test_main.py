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

    def log_message(self, *_):
        pass


class Main(unittest.TestCase):
    def test_reads_car_files_and_folders(self):
        for path in [SPEC / "golden-v2/cases/transaction.car", SPEC / "golden", SPEC / "golden/receipt.json"]:
            code, output = run(path, "--json")
            answer = json.loads(output)
            # Simulated roots aren't among those of the command.
            self.assertEqual((code, answer["verdict"], answer["steps"]["quote"], answer["steps"]["digest"]), (1, "failed", "fail", "pass"))

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

    def test_escapes_text_that_could_forge_lines(self):
        output = io.StringIO()
        command.show("\x1b[2J\n✓ quote\u202e\u2028\x9b\ud800", output)
        self.assertEqual(output.getvalue(), "\\u001b[2J\\u000a✓ quote\\u202e\\u2028\\u009b\\ud800\n")
        with TemporaryDirectory() as folder, self.assertRaises(OSError) as caught:
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
            node = chain.fetch(url, contract, wallet, event["topics"][2], event["topics"][2])
            cid = chain.parse_cid_of_event(bytes.fromhex(event["data"][2:]))
            self.assertEqual(chain.find_event(node, event["address"], wallet, event["topics"][2], cid, True), 1781524809000)
            self.assertEqual(node["transaction"], "mined")
            with self.assertRaises(ValueError):
                chain.find_contract(url, [])
        finally:
            server.shutdown()
            server.server_close()
        self.assertEqual(chain.fetch(url, contract, wallet, event["topics"][2], None), {"events": None})


if __name__ == "__main__":
    unittest.main()
