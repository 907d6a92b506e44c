// SPDX-License-Identifier: AGPL-3.0-only
pragma solidity 0.8.37;

import {ServiceAttestations} from "../src/ServiceAttestations.sol";
import {Vm} from "./Vm.sol";

/// @notice Each rule has a fuzz test, and an example test that calls it with an obvious value.
contract ServiceAttestationsTest {
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    address private constant OWNER = address(0xA11CE);
    address private constant PUBLISHER = address(0xB0B);
    address private constant STRANGER = address(0xBAD);
    address private constant WALLET = 0x90F79bf6EB2c4f870365E785982E1f101E93b906;
    bytes32 private constant TX_HASH = 0x3f0cf8a1c4a1f2a1b5f7fd5f0f4b8ed0e9b4bcb5d2a0b6b3e5f7a5b0c3d2e1f0;
    string private constant CID = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";

    ServiceAttestations private log;

    function setUp() public {
        log = new ServiceAttestations(OWNER, PUBLISHER);
    }

    /*//////////////////////////////////////////////////////////////
                              CONSTRUCTOR
    //////////////////////////////////////////////////////////////*/

    function test_constructor_setsOwnerAndPublisher() public {
        testFuzz_constructor_setsOwnerAndPublisher(OWNER, PUBLISHER);
    }

    function test_constructor_acceptsOneAccountForBoth() public {
        testFuzz_constructor_setsOwnerAndPublisher(OWNER, OWNER);
    }

    function testFuzz_constructor_setsOwnerAndPublisher(address owner, address publisher) public {
        vm.assume(owner != address(0) && publisher != address(0));
        vm.recordLogs();
        ServiceAttestations fresh = new ServiceAttestations(owner, publisher);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(fresh.owner() == owner);
        require(fresh.publisher() == publisher);
        require(fresh.pendingOwner() == address(0));
        require(logs.length == 2);
        assertTopics(logs[0], ServiceAttestations.OwnerRotated.selector, address(0), owner);
        assertTopics(logs[1], ServiceAttestations.PublisherRotated.selector, address(0), publisher);
    }

    function test_constructor_rejectsZeroOwner() public {
        testFuzz_constructor_rejectsZeroOwner(PUBLISHER);
    }

    function test_constructor_rejectsZeroOwnerAndPublisher() public {
        testFuzz_constructor_rejectsZeroOwner(address(0));
    }

    function testFuzz_constructor_rejectsZeroOwner(address publisher) public {
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.ZeroOwner.selector));
        new ServiceAttestations(address(0), publisher);
    }

    function test_constructor_rejectsZeroPublisher() public {
        testFuzz_constructor_rejectsZeroPublisher(OWNER);
    }

    function testFuzz_constructor_rejectsZeroPublisher(address owner) public {
        vm.assume(owner != address(0));
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.ZeroPublisher.selector));
        new ServiceAttestations(owner, address(0));
    }

    /*//////////////////////////////////////////////////////////////
                                PUBLISH
    //////////////////////////////////////////////////////////////*/

    function test_publish_emitsOneEvent() public {
        testFuzz_publish_emitsOneEvent(WALLET, TX_HASH, CID);
    }

    function test_publish_acceptsTheShortestAndTheLongestCid() public {
        testFuzz_publish_emitsOneEvent(WALLET, TX_HASH, "b");
        testFuzz_publish_emitsOneEvent(WALLET, TX_HASH, toText(log.MAX_CID_BYTES()));
    }

    function testFuzz_publish_emitsOneEvent(address wallet, bytes32 txHash, string memory cid) public {
        uint256 length = bytes(cid).length;
        vm.assume(wallet != address(0) && txHash != 0 && length > 0 && length <= 256);
        vm.recordLogs();
        vm.prank(PUBLISHER);
        log.publish(wallet, txHash, cid);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(logs.length == 1);
        assertPublished(logs[0], wallet, txHash, cid);
    }

    function test_publish_storesNothing() public {
        testFuzz_publish_storesNothing(WALLET, TX_HASH, 59);
    }

    function testFuzz_publish_storesNothing(address wallet, bytes32 txHash, uint16 length) public {
        vm.assume(wallet != address(0) && txHash != 0);
        vm.record();
        vm.prank(PUBLISHER);
        log.publish(wallet, txHash, toText(within(length, 1, 256)));
        (, bytes32[] memory writes) = vm.accesses(address(log));
        require(writes.length == 0);
    }

    function test_publish_rejectsOtherAccounts() public {
        testFuzz_publish_rejectsOtherAccounts(STRANGER, WALLET, TX_HASH, CID);
    }

    function test_publish_rejectsTheOwner() public {
        testFuzz_publish_rejectsOtherAccounts(OWNER, WALLET, TX_HASH, CID);
    }

    /// @dev For any arguments, because the caller is checked first.
    function testFuzz_publish_rejectsOtherAccounts(address caller, address wallet, bytes32 txHash, string memory cid) public {
        vm.assume(caller != PUBLISHER);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotPublisher.selector, caller));
        log.publish(wallet, txHash, cid);
    }

    function test_publish_rejectsZeroWallet() public {
        testFuzz_publish_rejectsZeroWallet(TX_HASH, CID);
    }

    function testFuzz_publish_rejectsZeroWallet(bytes32 txHash, string memory cid) public {
        vm.prank(PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.ZeroWallet.selector, 0));
        log.publish(address(0), txHash, cid);
    }

    function test_publish_rejectsZeroTxHash() public {
        testFuzz_publish_rejectsZeroTxHash(WALLET, CID);
    }

    function testFuzz_publish_rejectsZeroTxHash(address wallet, string memory cid) public {
        vm.assume(wallet != address(0));
        vm.prank(PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.ZeroTxHash.selector, 0));
        log.publish(wallet, 0, cid);
    }

    function test_publish_rejectsEmptyCid() public {
        testFuzz_publish_rejectsEmptyCid(WALLET, TX_HASH);
    }

    function testFuzz_publish_rejectsEmptyCid(address wallet, bytes32 txHash) public {
        vm.assume(wallet != address(0) && txHash != 0);
        vm.prank(PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.EmptyCid.selector, 0));
        log.publish(wallet, txHash, "");
    }

    function test_publish_rejectsOversizedCid() public {
        testFuzz_publish_rejectsOversizedCid(WALLET, TX_HASH, 257);
    }

    function testFuzz_publish_rejectsOversizedCid(address wallet, bytes32 txHash, uint16 seed) public {
        vm.assume(wallet != address(0) && txHash != 0);
        uint256 length = within(seed, 257, 4096);
        string memory cid = toText(length);
        vm.prank(PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.OversizedCid.selector, 0, length));
        log.publish(wallet, txHash, cid);
    }

    function test_publish_rejectsBitsBeforeTheWallet() public {
        testFuzz_publish_rejectsBitsBeforeTheWallet(WALLET, 1);
    }

    function testFuzz_publish_rejectsBitsBeforeTheWallet(address wallet, uint96 bits) public {
        vm.assume(wallet != address(0) && bits != 0);
        uint256 word = (uint256(bits) << 160) | uint160(wallet);
        assertCallFails(PUBLISHER, abi.encodeWithSelector(log.publish.selector, word, TX_HASH, CID), 0);
    }

    function test_publish_rejectsCutCalldata() public {
        testFuzz_publish_rejectsCutCalldata(1);
        testFuzz_publish_rejectsCutCalldata(160);
    }

    /// @dev The last five bytes are padding, which a decoder need not read.
    function testFuzz_publish_rejectsCutCalldata(uint16 seed) public {
        bytes memory data = abi.encodeCall(log.publish, (WALLET, TX_HASH, CID));
        assertCallFails(PUBLISHER, cut(data, within(seed, 0, data.length - 6)), 0);
    }

    function test_publish_rejectsAStringElsewhere() public {
        testFuzz_publish_rejectsAStringElsewhere(type(uint256).max);
    }

    function testFuzz_publish_rejectsAStringElsewhere(uint256 offset) public {
        vm.assume(offset > 256);
        assertCallFails(PUBLISHER, abi.encodePacked(log.publish.selector, abi.encode(WALLET, TX_HASH, offset, 59, CID)), 0);
    }

    /*//////////////////////////////////////////////////////////////
                              PUBLISH BATCH
    //////////////////////////////////////////////////////////////*/

    function test_publishBatch_emitsOneEventEachInOrder() public {
        testFuzz_publishBatch_emitsOneEventEachInOrder(1, 1);
        testFuzz_publishBatch_emitsOneEventEachInOrder(200, 2);
        testFuzz_publishBatch_emitsOneEventEachInOrder(256, 3);
    }

    function testFuzz_publishBatch_emitsOneEventEachInOrder(uint16 size, uint256 seed) public {
        ServiceAttestations.Attestation[] memory batch = toBatch(within(size, 1, 256), seed);
        vm.recordLogs();
        vm.prank(PUBLISHER);
        log.publishBatch(batch);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(logs.length == batch.length);
        for (uint256 index = 0; index < batch.length; ++index) {
            assertPublished(logs[index], batch[index].wallet, batch[index].txHash, batch[index].ipfsCid);
        }
    }

    function test_publishBatch_allowsRepetition() public {
        testFuzz_publishBatch_allowsRepetition(WALLET, TX_HASH);
    }

    function testFuzz_publishBatch_allowsRepetition(address wallet, bytes32 txHash) public {
        vm.assume(wallet != address(0) && txHash != 0);
        ServiceAttestations.Attestation[] memory batch = new ServiceAttestations.Attestation[](2);
        batch[0] = ServiceAttestations.Attestation(wallet, txHash, CID);
        batch[1] = batch[0];
        vm.recordLogs();
        vm.prank(PUBLISHER);
        log.publishBatch(batch);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(logs.length == 2);
        assertPublished(logs[1], wallet, txHash, CID);
    }

    function test_publishBatch_storesNothing() public {
        testFuzz_publishBatch_storesNothing(100, 1);
    }

    function testFuzz_publishBatch_storesNothing(uint16 size, uint256 seed) public {
        ServiceAttestations.Attestation[] memory batch = toBatch(within(size, 1, 256), seed);
        vm.record();
        vm.prank(PUBLISHER);
        log.publishBatch(batch);
        (, bytes32[] memory writes) = vm.accesses(address(log));
        require(writes.length == 0);
    }

    function test_publishBatch_rejectsOtherAccounts() public {
        testFuzz_publishBatch_rejectsOtherAccounts(STRANGER, 2);
    }

    function test_publishBatch_rejectsTheOwner() public {
        testFuzz_publishBatch_rejectsOtherAccounts(OWNER, 0);
    }

    function testFuzz_publishBatch_rejectsOtherAccounts(address caller, uint8 size) public {
        vm.assume(caller != PUBLISHER);
        ServiceAttestations.Attestation[] memory batch = toBatch(size, 1);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotPublisher.selector, caller));
        log.publishBatch(batch);
    }

    function test_publishBatch_rejectsAnEmptyBatch() public {
        vm.prank(PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.EmptyBatch.selector));
        log.publishBatch(new ServiceAttestations.Attestation[](0));
    }

    function test_publishBatch_rejectsAnOversizedBatch() public {
        testFuzz_publishBatch_rejectsAnOversizedBatch(257);
    }

    function testFuzz_publishBatch_rejectsAnOversizedBatch(uint16 seed) public {
        uint256 size = within(seed, 257, 600);
        ServiceAttestations.Attestation[] memory batch = toBatch(size, seed);
        vm.prank(PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.OversizedBatch.selector, size));
        log.publishBatch(batch);
    }

    function test_publishBatch_rejectsZeroWallet() public {
        testFuzz_publishBatch_rejectsZeroWallet(3, 2, 1);
    }

    function testFuzz_publishBatch_rejectsZeroWallet(uint8 size, uint256 place, uint256 seed) public {
        (ServiceAttestations.Attestation[] memory batch, uint256 index) = toBatchWithPlace(size, place, seed);
        batch[index].wallet = address(0);
        assertBatchRefused(batch, abi.encodeWithSelector(ServiceAttestations.ZeroWallet.selector, index));
    }

    function test_publishBatch_rejectsZeroTxHash() public {
        testFuzz_publishBatch_rejectsZeroTxHash(200, 199, 1);
    }

    function testFuzz_publishBatch_rejectsZeroTxHash(uint8 size, uint256 place, uint256 seed) public {
        (ServiceAttestations.Attestation[] memory batch, uint256 index) = toBatchWithPlace(size, place, seed);
        batch[index].txHash = 0;
        assertBatchRefused(batch, abi.encodeWithSelector(ServiceAttestations.ZeroTxHash.selector, index));
    }

    function test_publishBatch_rejectsEmptyCid() public {
        testFuzz_publishBatch_rejectsEmptyCid(1, 0, 1);
    }

    function testFuzz_publishBatch_rejectsEmptyCid(uint8 size, uint256 place, uint256 seed) public {
        (ServiceAttestations.Attestation[] memory batch, uint256 index) = toBatchWithPlace(size, place, seed);
        batch[index].ipfsCid = "";
        assertBatchRefused(batch, abi.encodeWithSelector(ServiceAttestations.EmptyCid.selector, index));
    }

    function test_publishBatch_rejectsOversizedCid() public {
        testFuzz_publishBatch_rejectsOversizedCid(10, 5, 257);
    }

    function testFuzz_publishBatch_rejectsOversizedCid(uint8 size, uint256 place, uint16 seed) public {
        (ServiceAttestations.Attestation[] memory batch, uint256 index) = toBatchWithPlace(size, place, seed);
        uint256 length = within(seed, 257, 4096);
        batch[index].ipfsCid = toText(length);
        assertBatchRefused(batch, abi.encodeWithSelector(ServiceAttestations.OversizedCid.selector, index, length));
    }

    function test_publishBatch_namesTheFirstFault() public {
        testFuzz_publishBatch_namesTheFirstFault(10, 3, 7);
    }

    function testFuzz_publishBatch_namesTheFirstFault(uint8 size, uint256 one, uint256 other) public {
        (ServiceAttestations.Attestation[] memory batch, uint256 first) = toBatchWithPlace(size, one, 1);
        uint256 second = other % batch.length;
        batch[first].txHash = 0;
        batch[second].txHash = 0;
        uint256 index = first < second ? first : second;
        assertBatchRefused(batch, abi.encodeWithSelector(ServiceAttestations.ZeroTxHash.selector, index));
    }

    function test_publishBatch_rejectsBitsBeforeTheWallet() public {
        testFuzz_publishBatch_rejectsBitsBeforeTheWallet(1);
    }

    function testFuzz_publishBatch_rejectsBitsBeforeTheWallet(uint96 bits) public {
        vm.assume(bits != 0);
        ServiceAttestations.Attestation[] memory batch = toBatch(1, 1);
        bytes memory data = abi.encodeCall(log.publishBatch, (batch));
        // selector, offset of the list, its length, offset of the struct; then the word of the wallet.
        for (uint256 place = 0; place < 12; ++place) data[4 + 96 + place] = bytes12(bits)[place];
        assertCallFails(PUBLISHER, data, 0);
    }

    function test_publishBatch_rejectsCutCalldata() public {
        testFuzz_publishBatch_rejectsCutCalldata(3, 600);
    }

    /// @dev A text of toBatch ends at most 31 bytes before the data does.
    function testFuzz_publishBatch_rejectsCutCalldata(uint8 size, uint256 seed) public {
        bytes memory data = abi.encodeCall(log.publishBatch, (toBatch(within(size, 1, 200), seed)));
        assertCallFails(PUBLISHER, cut(data, within(seed, 0, data.length - 32)), 0);
    }

    /*//////////////////////////////////////////////////////////////
                                ROTATION
    //////////////////////////////////////////////////////////////*/

    function test_rotatePublisher_replacesThePublisher() public {
        testFuzz_rotatePublisher_replacesThePublisher(STRANGER);
    }

    function testFuzz_rotatePublisher_replacesThePublisher(address next) public {
        vm.assume(next != address(0) && next != PUBLISHER);
        vm.expectEmit(true, true, false, true, address(log));
        emit ServiceAttestations.PublisherRotated(PUBLISHER, next);
        vm.prank(OWNER);
        log.rotatePublisher(next);
        require(log.publisher() == next);
        require(log.owner() == OWNER);

        vm.prank(PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotPublisher.selector, PUBLISHER));
        log.publish(WALLET, TX_HASH, CID);
        vm.prank(next);
        log.publish(WALLET, TX_HASH, CID);
    }

    function test_rotatePublisher_rejectsThePublisher() public {
        testFuzz_rotatePublisher_rejectsAllButTheOwner(PUBLISHER, STRANGER);
    }

    function testFuzz_rotatePublisher_rejectsAllButTheOwner(address caller, address next) public {
        vm.assume(caller != OWNER);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotOwner.selector, caller));
        log.rotatePublisher(next);
        require(log.publisher() == PUBLISHER);
    }

    function test_rotatePublisher_rejectsZero() public {
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.ZeroPublisher.selector));
        log.rotatePublisher(address(0));
        require(log.publisher() == PUBLISHER);
    }

    function test_ownership_movesOnAcceptanceOnly() public {
        testFuzz_ownership_movesOnAcceptanceOnly(STRANGER);
    }

    function testFuzz_ownership_movesOnAcceptanceOnly(address next) public {
        vm.assume(next != address(0) && next != OWNER);
        vm.expectEmit(true, true, false, true, address(log));
        emit ServiceAttestations.OwnerProposed(OWNER, next);
        vm.prank(OWNER);
        log.proposeOwner(next);
        require(log.owner() == OWNER && log.pendingOwner() == next);

        vm.prank(next);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotOwner.selector, next));
        log.rotatePublisher(next);

        vm.expectEmit(true, true, false, true, address(log));
        emit ServiceAttestations.OwnerRotated(OWNER, next);
        vm.prank(next);
        log.acceptOwnership();
        require(log.owner() == next && log.pendingOwner() == address(0));
        require(log.publisher() == PUBLISHER);

        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotOwner.selector, OWNER));
        log.proposeOwner(OWNER);
        vm.prank(next);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotPendingOwner.selector, next));
        log.acceptOwnership();
    }

    function test_proposeOwner_rejectsThePublisher() public {
        testFuzz_proposeOwner_rejectsAllButTheOwner(PUBLISHER, PUBLISHER);
    }

    function testFuzz_proposeOwner_rejectsAllButTheOwner(address caller, address next) public {
        vm.assume(caller != OWNER);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotOwner.selector, caller));
        log.proposeOwner(next);
        require(log.pendingOwner() == address(0));
    }

    function test_proposeOwner_withdrawsByZero() public {
        testFuzz_proposeOwner_replacesTheProposal(STRANGER, address(0));
    }

    function testFuzz_proposeOwner_replacesTheProposal(address first, address second) public {
        vm.assume(first != second && first != address(0));
        vm.prank(OWNER);
        log.proposeOwner(first);
        vm.prank(OWNER);
        log.proposeOwner(second);
        require(log.pendingOwner() == second);
        vm.prank(first);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotPendingOwner.selector, first));
        log.acceptOwnership();
    }

    function test_acceptOwnership_rejectsTheOwner() public {
        testFuzz_acceptOwnership_rejectsAllButTheProposed(OWNER, STRANGER);
    }

    function testFuzz_acceptOwnership_rejectsAllButTheProposed(address caller, address proposed) public {
        vm.assume(caller != proposed);
        vm.prank(OWNER);
        log.proposeOwner(proposed);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotPendingOwner.selector, caller));
        log.acceptOwnership();
        require(log.owner() == OWNER);
    }

    function test_acceptOwnership_rejectsAllWhereNobodyIsProposed() public {
        testFuzz_acceptOwnership_rejectsAllWhereNobodyIsProposed(PUBLISHER);
    }

    function testFuzz_acceptOwnership_rejectsAllWhereNobodyIsProposed(address caller) public {
        vm.assume(caller != address(0));
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(ServiceAttestations.NotPendingOwner.selector, caller));
        log.acceptOwnership();
    }

    /*//////////////////////////////////////////////////////////////
                               SEQUENCES
    //////////////////////////////////////////////////////////////*/

    function test_sequences_followTheModel() public {
        // The owner proposes another account, which accepts, makes itself publisher and publishes.
        uint32[] memory steps = new uint32[](4);
        steps[0] = 0x01_00_02;
        steps[1] = 0x02_02_00;
        steps[2] = 0x00_02_02;
        steps[3] = 0x03_02_00;
        testFuzz_sequences_followTheModel(steps);
    }

    /// @dev For any calls by any accounts, the state follows from three variables and the rules.
    function testFuzz_sequences_followTheModel(uint32[] memory steps) public {
        address[4] memory actors = [OWNER, PUBLISHER, STRANGER, address(0)];
        address owner = OWNER;
        address publisher = PUBLISHER;
        address pending = address(0);
        for (uint256 step = 0; step < steps.length && step < 64; ++step) {
            address caller = actors[(steps[step] >> 8) % 3];
            address subject = actors[(steps[step] & 0xff) % 4];
            uint256 action = (steps[step] >> 16) % 4;
            bool isAllowed;
            bytes memory data;
            if (action == 0) {
                isAllowed = caller == owner && subject != address(0);
                data = abi.encodeCall(log.rotatePublisher, (subject));
                if (isAllowed) publisher = subject;
            } else if (action == 1) {
                isAllowed = caller == owner;
                data = abi.encodeCall(log.proposeOwner, (subject));
                if (isAllowed) pending = subject;
            } else if (action == 2) {
                isAllowed = caller == pending;
                data = abi.encodeCall(log.acceptOwnership, ());
                if (isAllowed) (owner, pending) = (caller, address(0));
            } else {
                isAllowed = caller == publisher && subject != address(0);
                data = abi.encodeCall(log.publish, (subject, TX_HASH, CID));
            }
            vm.prank(caller);
            (bool isDone,) = address(log).call(data);
            require(isDone == isAllowed);
            require(log.owner() == owner && log.publisher() == publisher && log.pendingOwner() == pending);
        }
    }

    /*//////////////////////////////////////////////////////////////
                              OTHER CALLS
    //////////////////////////////////////////////////////////////*/

    function test_calls_refuseEther() public {
        testFuzz_calls_refuseEther(1);
    }

    function testFuzz_calls_refuseEther(uint128 value) public {
        vm.assume(value > 0);
        assertCallFails(PUBLISHER, abi.encodeCall(log.publish, (WALLET, TX_HASH, CID)), value);
        assertCallFails(PUBLISHER, abi.encodeCall(log.publishBatch, (toBatch(2, 1))), value);
        assertCallFails(PUBLISHER, "", value);
        assertCallFails(OWNER, abi.encodeCall(log.rotatePublisher, (STRANGER)), value);
        assertCallFails(OWNER, abi.encodeCall(log.proposeOwner, (STRANGER)), value);
        require(address(log).balance == 0);
    }

    function test_calls_refuseUnknownFunctions() public {
        testFuzz_calls_refuseUnknownFunctions(bytes4(keccak256("upgradeTo(address)")), abi.encode(STRANGER));
    }

    function testFuzz_calls_refuseUnknownFunctions(bytes4 selector, bytes memory rest) public {
        bytes4[10] memory known = [
            log.publish.selector,
            log.publishBatch.selector,
            log.rotatePublisher.selector,
            log.proposeOwner.selector,
            log.acceptOwnership.selector,
            log.owner.selector,
            log.pendingOwner.selector,
            log.publisher.selector,
            log.MAX_BATCH.selector,
            log.MAX_CID_BYTES.selector
        ];
        for (uint256 index = 0; index < known.length; ++index) vm.assume(selector != known[index]);
        assertCallFails(OWNER, abi.encodePacked(selector, rest), 0);
    }

    /*//////////////////////////////////////////////////////////////
                            VALUES AND CHECKS
    //////////////////////////////////////////////////////////////*/

    function toText(uint256 length) private pure returns (string memory) {
        bytes memory text = new bytes(length);
        for (uint256 index = 0; index < length; ++index) text[index] = bytes1(uint8(97 + (index % 26)));
        return string(text);
    }

    /// @dev Proofs that all differ, with CIDs of 1 to 64 bytes.
    function toBatch(uint256 size, uint256 seed) private pure returns (ServiceAttestations.Attestation[] memory batch) {
        batch = new ServiceAttestations.Attestation[](size);
        for (uint256 index = 0; index < size; ++index) {
            bytes32 hash = keccak256(abi.encode(seed, index));
            string memory cid = string(bytes.concat(bytes1(hash), new bytes(uint256(hash) % 64)));
            batch[index] = ServiceAttestations.Attestation(address(bytes20(hash)), hash, cid);
        }
    }

    function toBatchWithPlace(uint8 size, uint256 place, uint256 seed)
        private
        pure
        returns (ServiceAttestations.Attestation[] memory batch, uint256 index)
    {
        batch = toBatch(within(size, 1, 256), seed);
        index = place % batch.length;
    }

    /// @dev Returns `value` if it is within the bounds, so that examples use their exact values. Otherwise maps it into the bounds.
    function within(uint256 value, uint256 low, uint256 high) private pure returns (uint256) {
        return value >= low && value <= high ? value : low + (value % (high - low + 1));
    }

    function cut(bytes memory data, uint256 length) private pure returns (bytes memory start) {
        start = new bytes(length);
        for (uint256 index = 0; index < length; ++index) start[index] = data[index];
    }

    function assertTopics(Vm.Log memory entry, bytes32 signature, address first, address second) private view {
        require(entry.emitter != address(this));
        require(entry.topics.length == 3 && entry.data.length == 0);
        require(entry.topics[0] == signature);
        require(entry.topics[1] == bytes32(uint256(uint160(first))));
        require(entry.topics[2] == bytes32(uint256(uint160(second))));
    }

    function assertPublished(Vm.Log memory entry, address wallet, bytes32 txHash, string memory cid) private view {
        require(entry.emitter == address(log));
        require(entry.topics.length == 3);
        require(entry.topics[0] == keccak256("AttestationPublished(address,bytes32,string)"));
        require(entry.topics[1] == bytes32(uint256(uint160(wallet))));
        require(entry.topics[2] == txHash);
        require(keccak256(entry.data) == keccak256(abi.encode(cid)));
    }

    function assertBatchRefused(ServiceAttestations.Attestation[] memory batch, bytes memory reason) private {
        vm.prank(PUBLISHER);
        vm.expectRevert(reason);
        log.publishBatch(batch);
    }

    function assertCallFails(address caller, bytes memory data, uint256 value) private {
        vm.deal(caller, value);
        vm.prank(caller);
        (bool isDone,) = address(log).call{value: value}(data);
        require(!isDone);
    }
}
