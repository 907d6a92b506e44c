"""Events on the chain, from the reader's node. # protocol "Event" """

import json
import urllib.request
from datetime import datetime, timezone

from .codec import MAX_BLOCK, cid_of_hash, parse_time, sha256, un0x
from .faults import Skip, require

TOPIC = "0x1a85ecbef58dd9f2ba6c675cd83d16bb690e0c547fc5aea56486a4ba6c253601"
MAX_LOGS = 16  # receipt-v1 §3

_opener = urllib.request.OpenerDirector()  # without redirects: the reader trusts this node only
for _name in ("ProxyHandler", "UnknownHandler", "HTTPHandler", "HTTPSHandler", "HTTPDefaultErrorHandler", "HTTPErrorProcessor"):
    _opener.add_handler(getattr(urllib.request, _name)())

def topics_of(wallet: str, second: str) -> list[str]:
    return [TOPIC, "0x" + "00" * 12 + wallet[2:], second]

def parse_cid_of_event(data: bytes) -> str:
    """The CID in an event's data; ValueError if it is malformed."""
    length = int.from_bytes(data[32:64], "big")
    text, padding = data[64:64 + length], data[64 + length:]
    require(len(data) % 32 == 0 and int.from_bytes(data[:32], "big") == 32 and 1 <= length <= 256, "malformed event")
    require(len(text) == length and len(padding) < 32 and not any(padding), "malformed event")
    require(all(0x21 <= byte <= 0x7E for byte in text), "malformed event: its CID isn't printable ASCII")
    return text.decode()

def find_event(chain: dict | None, contract: str | None, wallet: str, second: str, cid: str, is_due: bool) -> int | None:
    """Step event: the time of the earliest event with this CID, or None if there is no event and none is due. # receipt-v1 §3 "event" """
    if chain is None or contract is None:
        raise Skip("no chain or no contract is given")
    events = chain.get("events")
    if not isinstance(events, list) or len(events) > MAX_LOGS:
        raise Skip(f"the node failed, or returned more than {MAX_LOGS} logs")
    events, times = [event for event in events if event["address"].lower() == contract], []
    for event in events:
        try:
            if event["topics"] == topics_of(wallet, second) and parse_cid_of_event(un0x(event["data"])) == cid:
                times.append(parse_time(event["blockTime"]))
        except ValueError:
            continue  # another event of the contract
    require(times or not events and not is_due, "only events of other CIDs" if events else "no event")
    return min(times, default=None)

def find_contract(url: str, contracts: list[dict]) -> dict:
    """The manifests' contract on the node's chain; the last counts. # evidence §11"""
    chain_id = int(_call(url, "eth_chainId", []), 16)
    found = [item for item in contracts if item["chainId"] == chain_id]
    require(found, f"no contract on chain {chain_id} in a manifest")
    return found[-1]

def fetch(url: str, contract: dict, topics: list[str], transaction: str | None, until: str = "latest") -> dict:
    """Events and the state of the transaction, in the form of the line protocol. A node that fails gives no events."""
    try:
        logs = _call(url, "eth_getLogs", [{
            "address": contract["address"], "topics": topics, "fromBlock": hex(contract.get("fromBlock", 0)), "toBlock": until}])
        events = logs if len(logs) > MAX_LOGS else [
            {"address": log["address"], "topics": log["topics"], "data": log["data"], "blockTime": _block_time(url, log["blockNumber"])}
            for log in logs]
        found = _call(url, "eth_getTransactionByHash", [transaction]) if transaction else None
        return {"events": events, "transaction": "unknown" if found is None else "mined" if found.get("blockNumber") else "pending"}
    except Exception:  # any malformed answer
        return {"events": None}

def fetch_block(gateway: str, digest: bytes) -> bytes | None:
    """A block from an IPFS gateway; None if it doesn't have the block. # anchor-v1 §3 "withheld" """
    try:
        with _opener.open(f"{gateway.rstrip('/')}/ipfs/{cid_of_hash(digest)}?format=raw", timeout=30) as answer:
            block = answer.read(MAX_BLOCK + 1)
    except (OSError, ValueError):
        return None
    return block if sha256(block) == digest else None

def _block_time(url: str, number: str) -> str:
    seconds = int(_call(url, "eth_getBlockByNumber", [number, False])["timestamp"], 16)
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")

def _call(url: str, method: str, params: list):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with _opener.open(request, timeout=30) as response:
        answer = json.loads(response.read(1 << 24))
    require("error" not in answer, f"{method} failed: {answer.get('error')}")
    return answer["result"]
