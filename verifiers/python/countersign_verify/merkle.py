"""Trees as in RFC 6962 §2.1 with SHA-256."""

from .codec import sha256
from .faults import require

def leaf_hash(data: bytes) -> bytes:
    return sha256(b"\0" + data)

def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right)

def root_of_path(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root that leaf and path lead to. # RFC 9162 §2.1.3.2, protocol "Tree" """
    require(0 <= index < size, "invalid path: the index isn't below the size")
    first, last, node = index, size - 1, leaf
    for sibling in path:
        require(last != 0, "invalid path: too long")
        if first & 1 or first == last:
            node = node_hash(sibling, node)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        first, last = first >> 1, last >> 1
    require(not last, "invalid path: too short")
    return node
