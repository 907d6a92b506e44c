"""The vendors' root certificates that a reader trusts. # evidence §2"""

from collections import namedtuple

from .codec import unhex
from .faults import require

# vendor is "intel" (quotes) or "amd" (reports), mode "hardware" or "mock"; sha256 is that of the DER certificate.
Root = namedtuple("Root", "vendor name mode sha256")

HARDWARE = tuple(Root(vendor, name, "hardware", bytes.fromhex(digest)) for vendor, name, digest in (
    ("intel", "Intel SGX Root CA", "44a0196b2b99f889b8e149e95b807a350e7424964399e885a7cbb8ccfab674d3"),
    ("amd", "ARK-Milan", "69d063b45344d26a2e94e1f4210de49ef555308287d4c174445c95639a540bcd"),
    ("amd", "ARK-Genoa", "4c6598d19c18719c5dfd4a7d335f674e5bfe1d8f800cea2cf270c10d103db2f1"),
    ("amd", "ARK-Turin", "1f084161a44bb6d93778a904877d4819cafa5d05ef4193b2ded9dd9c73dd3f6a"),
))

def parse_roots(items: list[dict]) -> tuple[Root, ...]:
    """The roots that a reader gives, such as those in golden/expected.json."""
    for item in items:
        require(item["vendor"] in ("intel", "amd") and item["mode"] in ("hardware", "mock"), "invalid root: expected a vendor and a mode")
    return tuple(Root(item["vendor"], item["name"], item["mode"], unhex(item["certificateSha256"], 32)) for item in items)
