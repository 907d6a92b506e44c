// SPDX-License-Identifier: AGPL-3.0-only
pragma solidity 0.8.37;

/// @title LogWitness
/// @notice A witness of transparency logs: it accepts a checkpoint only with a proof that the log still begins with the previous one.
/// @dev A consistency proof doesn't prove the size, so readers compare size and root with a cosigned checkpoint.
contract LogWitness {
    /*//////////////////////////////////////////////////////////////
                                 EVENTS
    //////////////////////////////////////////////////////////////*/

    /// @dev The log has this size and root, and the anchor block has this SHA-256 hash.
    event Checkpoint(bytes32 indexed id, uint64 indexed size, bytes32 root, bytes32 block);

    /// @dev Only `publisher` may advance the log from here on; at registration `previous` is zero.
    event PublisherRotated(bytes32 indexed id, address indexed previous, address indexed publisher);

    /// @dev `pendingOwner` may accept ownership; zero withdraws an earlier proposal.
    event OwnerProposed(bytes32 indexed id, address indexed owner, address indexed pendingOwner);

    /// @dev `owner` governs the log from here on; at registration `previous` is zero.
    event OwnerRotated(bytes32 indexed id, address indexed previous, address indexed owner);

    /*//////////////////////////////////////////////////////////////
                                 ERRORS
    //////////////////////////////////////////////////////////////*/

    /// @dev Only the publisher advances a log. An unregistered log has none.
    error NotPublisher(address caller);

    /// @dev Only the owner rotates the publisher and proposes an owner. An unregistered log has none.
    error NotOwner(address caller);

    /// @dev Only the proposed owner accepts ownership.
    error NotPendingOwner(address caller);

    /// @dev A log without a publisher can't advance.
    error ZeroPublisher();

    /// @dev An id stays registered after a handover.
    error AlreadyRegistered(bytes32 id);

    /// @dev The new size is zero or below `head`, the current size.
    error InvalidSize(uint64 head);

    /// @dev The proof does not lead from the head to the new size and root.
    error Inconsistent();

    /*//////////////////////////////////////////////////////////////
                                 STATE
    //////////////////////////////////////////////////////////////*/

    /// @dev Publisher and size share a slot, so that an advance reads and writes two slots.
    struct Log {
        address publisher;
        uint64 size;
        bytes32 root;
        address owner;
        address pendingOwner;
    }

    mapping(bytes32 id => Log) private _logs;

    /*//////////////////////////////////////////////////////////////
                               MODIFIERS
    //////////////////////////////////////////////////////////////*/

    modifier onlyOwner(bytes32 id) {
        if (msg.sender != _logs[id].owner) revert NotOwner(msg.sender);
        _;
    }

    /*//////////////////////////////////////////////////////////////
                                READING
    //////////////////////////////////////////////////////////////*/

    /// @notice Returns the last size and root of a log, or zeros before the first.
    function head(bytes32 id) external view returns (uint64 size, bytes32 root) {
        return (_logs[id].size, _logs[id].root);
    }

    /// @notice Returns the only account that advances the log, or zero if the log is not registered.
    function publisher(bytes32 id) external view returns (address) {
        return _logs[id].publisher;
    }

    /// @notice Returns the account that rotates the publisher, or zero if the log is not registered.
    function owner(bytes32 id) external view returns (address) {
        return _logs[id].owner;
    }

    /// @notice Returns the account that may become owner by accepting, or zero.
    function pendingOwner(bytes32 id) external view returns (address) {
        return _logs[id].pendingOwner;
    }

    /*//////////////////////////////////////////////////////////////
                               ANCHORING
    //////////////////////////////////////////////////////////////*/

    /// @notice Registers a log under the caller, who becomes its owner. `originHash` is the SHA-256 hash of the log's origin.
    function register(bytes32 originHash, address newPublisher) external returns (bytes32 id) {
        id = keccak256(abi.encode(msg.sender, originHash));
        Log storage log = _logs[id];
        if (log.owner != address(0)) revert AlreadyRegistered(id);
        _rotateOwner(id, log, msg.sender);
        _rotatePublisher(id, log, newPublisher);
    }

    /// @notice Advances a log to a checkpoint, whose anchor block has the SHA-256 hash `blockHash`. `consistency` is the proof from the
    /// head (RFC 9162 §2.1.4), empty for the first checkpoint. Repeating the head emits nothing.
    function advance(bytes32 id, uint64 newSize, bytes32 newRoot, bytes32 blockHash, bytes32[] calldata consistency)
        external
    {
        Log storage log = _logs[id];
        if (msg.sender != log.publisher) revert NotPublisher(msg.sender);
        (uint64 size, bytes32 root) = (log.size, log.root);
        if (newSize == 0 || newSize < size) revert InvalidSize(size);
        if (size == 0 || newSize == size) {
            if (consistency.length != 0) revert Inconsistent();
            if (newSize == size) {
                if (newRoot != root) revert Inconsistent();
                return;
            }
        } else if (!_isConsistent(size, root, newSize, newRoot, consistency)) {
            revert Inconsistent();
        }
        log.size = newSize;
        log.root = newRoot;
        emit Checkpoint(id, newSize, newRoot, blockHash);
    }

    /// @dev The steps of RFC 9162 §2.1.4.2 for 0 < oldSize < newSize. `node` and `last` are its fn and sn, `older` and `newer` its fr and
    /// sr. The loop is assembly, because an advance to 2^40 entries would otherwise cost more than 90,000 gas.
    function _isConsistent(
        uint256 oldSize,
        bytes32 oldRoot,
        uint256 newSize,
        bytes32 newRoot,
        bytes32[] calldata proof
    ) private view returns (bool) {
        if (proof.length == 0) return false;
        (uint256 node, uint256 last) = (oldSize - 1, newSize - 1);
        while ((node & 1) == 1) (node, last) = (node >> 1, last >> 1);
        // If the older tree is one complete subtree, the proof omits it because its root is known.
        (bytes32 older, bytes32[] calldata path) = node == 0 ? (oldRoot, proof) : (proof[0], proof[1:]);
        bytes32 newer = older;
        bool isComplete;
        assembly ("memory-safe") {
            // After the allocated memory, two inputs 0x01 ‖ left ‖ right of 65 bytes. The right part keeps the hash so far, and each call
            // of the precompile replaces it with SHA-256 of its input.
            let olderInput := mload(0x40)
            let newerInput := add(olderInput, 65)
            mstore8(olderInput, 1)
            mstore8(newerInput, 1)
            mstore(add(olderInput, 33), older)
            mstore(add(newerInput, 33), newer)
            let isDone := 1
            let place := path.offset
            let end := add(place, shl(5, path.length))
            for {} and(lt(place, end), gt(last, 0)) { place := add(place, 32) } {
                let hash := calldataload(place)
                switch or(and(node, 1), eq(node, last))
                case 0 {
                    mstore(add(newerInput, 1), mload(add(newerInput, 33)))
                    mstore(add(newerInput, 33), hash)
                }
                default {
                    mstore(add(olderInput, 1), hash)
                    mstore(add(newerInput, 1), hash)
                    isDone := and(isDone, staticcall(gas(), 2, olderInput, 65, add(olderInput, 33), 32))
                    for {} iszero(or(and(node, 1), iszero(node))) {} {
                        node := shr(1, node)
                        last := shr(1, last)
                    }
                }
                isDone := and(isDone, staticcall(gas(), 2, newerInput, 65, add(newerInput, 33), 32))
                node := shr(1, node)
                last := shr(1, last)
            }
            older := mload(add(olderInput, 33))
            newer := mload(add(newerInput, 33))
            // A call fails for lack of gas, and returns nothing on a chain without the precompile. A proof that is too long leaves hashes,
            // and one that is too short leaves levels.
            isComplete := and(and(isDone, eq(returndatasize(), 32)), and(eq(place, end), iszero(last)))
        }
        return isComplete && older == oldRoot && newer == newRoot;
    }

    /*//////////////////////////////////////////////////////////////
                                ROTATION
    //////////////////////////////////////////////////////////////*/

    /// @notice Replaces the publisher at once.
    function rotatePublisher(bytes32 id, address newPublisher) external onlyOwner(id) {
        _rotatePublisher(id, _logs[id], newPublisher);
    }

    /// @notice Offers ownership to an account, instead of any offered before; zero withdraws the offer.
    function proposeOwner(bytes32 id, address newOwner) external onlyOwner(id) {
        _logs[id].pendingOwner = newOwner;
        emit OwnerProposed(id, msg.sender, newOwner);
    }

    /// @notice Accepts ownership. The new owner must act, which proves that its key works.
    function acceptOwnership(bytes32 id) external {
        Log storage log = _logs[id];
        if (msg.sender != log.pendingOwner) revert NotPendingOwner(msg.sender);
        delete log.pendingOwner;
        _rotateOwner(id, log, msg.sender);
    }

    function _rotatePublisher(bytes32 id, Log storage log, address newPublisher) private {
        if (newPublisher == address(0)) revert ZeroPublisher();
        emit PublisherRotated(id, log.publisher, newPublisher);
        log.publisher = newPublisher;
    }

    function _rotateOwner(bytes32 id, Log storage log, address newOwner) private {
        emit OwnerRotated(id, log.owner, newOwner);
        log.owner = newOwner;
    }
}
