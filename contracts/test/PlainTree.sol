// SPDX-License-Identifier: AGPL-3.0-only
pragma solidity 0.8.37;

/// @notice Trees and consistency proofs by the definitions of RFC 9162 §2.1.1 and §2.1.4.1, without assembly. LogWitness follows the steps
/// of §2.1.4.2 instead.
library PlainTree {
    /// @notice Returns the root of the leaves from `start` up to `end`, which are leaf hashes.
    function root(bytes32[] memory leaves, uint256 start, uint256 end) internal pure returns (bytes32) {
        if (end - start == 1) return leaves[start];
        uint256 middle = start + split(end - start);
        return hashNode(root(leaves, start, middle), root(leaves, middle, end));
    }

    /// @notice Returns the consistency proof between two sizes of a tree.
    function prove(bytes32[] memory leaves, uint256 oldSize, uint256 newSize) internal pure returns (bytes32[] memory proof) {
        uint256 place = count(oldSize, newSize, true);
        proof = new bytes32[](place);
        (uint256 start, uint256 end) = (0, newSize);
        while (end != oldSize) {
            uint256 middle = start + split(end - start);
            if (oldSize <= middle) {
                proof[--place] = root(leaves, middle, end);
                end = middle;
            } else {
                proof[--place] = root(leaves, start, middle);
                start = middle;
            }
        }
        if (start != 0) proof[--place] = root(leaves, start, end);
    }

    /// @notice Returns whether the proof is valid for 0 < oldSize < newSize.
    function isConsistent(uint256 oldSize, bytes32 oldRoot, uint256 newSize, bytes32 newRoot, bytes32[] memory proof)
        internal
        pure
        returns (bool)
    {
        if (proof.length != count(oldSize, newSize, true)) return false;
        (bytes32 older, bytes32 newer) = roots(oldSize, newSize, oldRoot, true, proof, proof.length);
        return older == oldRoot && newer == newRoot;
    }

    /// @notice Returns the number of hashes in a proof. `isWhole`: the verifier knows the root of the older tree.
    function count(uint256 oldSize, uint256 newSize, bool isWhole) internal pure returns (uint256) {
        if (oldSize == newSize) return isWhole ? 0 : 1;
        uint256 left = split(newSize);
        return 1 + (oldSize <= left ? count(oldSize, left, isWhole) : count(oldSize - left, newSize - left, false));
    }

    /// @notice Returns both roots from the first `length` hashes of a proof.
    function roots(uint256 oldSize, uint256 newSize, bytes32 oldRoot, bool isWhole, bytes32[] memory proof, uint256 length)
        internal
        pure
        returns (bytes32 older, bytes32 newer)
    {
        if (oldSize == newSize) return isWhole ? (oldRoot, oldRoot) : (proof[0], proof[0]);
        bytes32 hash = proof[length - 1];
        uint256 left = split(newSize);
        if (oldSize <= left) {
            (older, newer) = roots(oldSize, left, oldRoot, isWhole, proof, length - 1);
            return (older, hashNode(newer, hash));
        }
        (older, newer) = roots(oldSize - left, newSize - left, oldRoot, false, proof, length - 1);
        return (hashNode(hash, older), hashNode(hash, newer));
    }

    /// @notice Returns the largest power of two below `size`, which is at least 2.
    function split(uint256 size) internal pure returns (uint256 left) {
        left = 1;
        while (2 * left < size) left *= 2;
    }

    /// @notice Returns SHA-256(0x01 ‖ left ‖ right).
    function hashNode(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(bytes1(0x01), left, right));
    }
}
