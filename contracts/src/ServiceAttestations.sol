// SPDX-License-Identifier: AGPL-3.0-only
pragma solidity 0.8.37;

/// @title ServiceAttestations
/// @notice The public log of proofs: each event points from a wallet's transaction to the IPFS CID of its receipt.
/// @dev Nothing is stored per proof. That a proof is published once is the publisher's discipline; a reader takes the receipt,
/// not the event, as evidence.
contract ServiceAttestations {
    /*//////////////////////////////////////////////////////////////
                                 EVENTS
    //////////////////////////////////////////////////////////////*/

    /// @dev The receipt of this wallet's transaction is at this CID.
    event AttestationPublished(address indexed wallet, bytes32 indexed txHash, string ipfsCid);

    /// @dev From here on `publisher` alone publishes; at deployment `previous` is zero.
    event PublisherRotated(address indexed previous, address indexed publisher);

    /// @dev `pendingOwner` may accept ownership; zero withdraws an earlier proposal.
    event OwnerProposed(address indexed owner, address indexed pendingOwner);

    /// @dev From here on `owner` governs; at deployment `previous` is zero.
    event OwnerRotated(address indexed previous, address indexed owner);

    /*//////////////////////////////////////////////////////////////
                                 ERRORS
    //////////////////////////////////////////////////////////////*/

    /// @dev Only the publisher publishes.
    error NotPublisher(address caller);

    /// @dev Only the owner rotates the publisher and proposes an owner.
    error NotOwner(address caller);

    /// @dev Only the proposed owner accepts ownership.
    error NotPendingOwner(address caller);

    /// @dev Without an owner no publisher could ever be rotated.
    error ZeroOwner();

    /// @dev Without a publisher nothing could be published.
    error ZeroPublisher();

    /// @dev A proof belongs to a wallet; `index` is its place in the batch, 0 for a single proof, here and below.
    error ZeroWallet(uint256 index);

    /// @dev A proof belongs to a transaction.
    error ZeroTxHash(uint256 index);

    /// @dev A proof points somewhere.
    error EmptyCid(uint256 index);

    /// @dev Readers refuse a CID of more than `MAX_CID_BYTES`.
    error OversizedCid(uint256 index, uint256 length);

    /// @dev A batch that says nothing is a mistake of the caller.
    error EmptyBatch();

    /// @dev A batch holds at most `MAX_BATCH` proofs.
    error OversizedBatch(uint256 length);

    /*//////////////////////////////////////////////////////////////
                                 STATE
    //////////////////////////////////////////////////////////////*/

    /// @notice One proof of a batch.
    struct Attestation {
        address wallet;
        bytes32 txHash;
        string ipfsCid;
    }

    /// @notice The longest CID that can be published, in bytes. A CID of a receipt has 59.
    uint256 public constant MAX_CID_BYTES = 256;

    /// @notice The most proofs in one batch. With the longest CIDs it stays below EIP-7825's cap of 2^24 gas a transaction.
    uint256 public constant MAX_BATCH = 256;

    /// @notice The only account that publishes.
    address public publisher;

    /// @notice The account that rotates the publisher.
    address public owner;

    /// @notice The account that may become owner by accepting, or zero.
    address public pendingOwner;

    /*//////////////////////////////////////////////////////////////
                               MODIFIERS
    //////////////////////////////////////////////////////////////*/

    modifier onlyPublisher() {
        if (msg.sender != publisher) revert NotPublisher(msg.sender);
        _;
    }

    modifier onlyOwner() {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        _;
    }

    /*//////////////////////////////////////////////////////////////
                              CONSTRUCTOR
    //////////////////////////////////////////////////////////////*/

    /// @notice Starts the log under an owner and a publisher, which may be the same account.
    constructor(address initialOwner, address initialPublisher) {
        if (initialOwner == address(0)) revert ZeroOwner();
        _rotateOwner(initialOwner);
        _rotatePublisher(initialPublisher);
    }

    /*//////////////////////////////////////////////////////////////
                               PUBLISHING
    //////////////////////////////////////////////////////////////*/

    /// @notice Publishes one proof.
    function publish(address wallet, bytes32 txHash, string calldata ipfsCid) external onlyPublisher {
        _publish(0, wallet, txHash, ipfsCid);
    }

    /// @notice Publishes many proofs in order, all or none.
    function publishBatch(Attestation[] calldata attestations) external onlyPublisher {
        uint256 length = attestations.length;
        if (length == 0) revert EmptyBatch();
        if (length > MAX_BATCH) revert OversizedBatch(length);
        for (uint256 index = 0; index < length; ++index) {
            Attestation calldata attestation = attestations[index];
            _publish(index, attestation.wallet, attestation.txHash, attestation.ipfsCid);
        }
    }

    function _publish(uint256 index, address wallet, bytes32 txHash, string calldata ipfsCid) private {
        if (wallet == address(0)) revert ZeroWallet(index);
        if (txHash == bytes32(0)) revert ZeroTxHash(index);
        uint256 length = bytes(ipfsCid).length;
        if (length == 0) revert EmptyCid(index);
        if (length > MAX_CID_BYTES) revert OversizedCid(index, length);
        emit AttestationPublished(wallet, txHash, ipfsCid);
    }

    /*//////////////////////////////////////////////////////////////
                                ROTATION
    //////////////////////////////////////////////////////////////*/

    /// @notice Replaces the publisher at once.
    function rotatePublisher(address newPublisher) external onlyOwner {
        _rotatePublisher(newPublisher);
    }

    /// @notice Offers ownership to an account, instead of any offered before; zero withdraws the offer.
    function proposeOwner(address newOwner) external onlyOwner {
        pendingOwner = newOwner;
        emit OwnerProposed(msg.sender, newOwner);
    }

    /// @notice Takes ownership over. That the new owner must act proves that its key works.
    function acceptOwnership() external {
        if (msg.sender != pendingOwner) revert NotPendingOwner(msg.sender);
        delete pendingOwner;
        _rotateOwner(msg.sender);
    }

    function _rotatePublisher(address newPublisher) private {
        if (newPublisher == address(0)) revert ZeroPublisher();
        emit PublisherRotated(publisher, newPublisher);
        publisher = newPublisher;
    }

    function _rotateOwner(address newOwner) private {
        emit OwnerRotated(owner, newOwner);
        owner = newOwner;
    }
}
