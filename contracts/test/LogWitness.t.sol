// SPDX-License-Identifier: AGPL-3.0-only
pragma solidity 0.8.37;

import {LogWitness} from "../src/LogWitness.sol";
import {PlainTree} from "./PlainTree.sol";
import {Vm} from "./Vm.sol";

/// @notice Each rule has a fuzz test, and an example test that calls it with an obvious value.
contract LogWitnessTest {
    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    address private constant OWNER = address(0xA11CE);
    address private constant PUBLISHER = address(0xB0B);
    address private constant STRANGER = address(0xBAD);
    bytes32 private constant ORIGIN_HASH = 0xb2d3e0cf2e483fbc179ff15f4e95ebef4f0ad5565d228215674c9ee83f0faf1d;
    bytes32 private constant ROOT = 0x3f0cf8a1c4a1f2a1b5f7fd5f0f4b8ed0e9b4bcb5d2a0b6b3e5f7a5b0c3d2e1f0;
    bytes32 private constant BLOCK = 0x30d336d374867e5d5b2552c14c400efc6472323eb387b9fde15488969b5fa6ef;

    /// @dev A step from one head to the next.
    struct Step {
        uint64 oldSize;
        bytes32 oldRoot;
        uint64 newSize;
        bytes32 newRoot;
        bytes32[] proof;
    }

    /// @dev What the rules say about a log.
    struct Model {
        bytes32 id;
        address owner;
        address publisher;
        address pendingOwner;
        uint64 size;
    }

    LogWitness private witness;
    bytes32 private id;

    function setUp() public {
        witness = new LogWitness();
        id = register(OWNER, ORIGIN_HASH, PUBLISHER);
    }

    /*//////////////////////////////////////////////////////////////
                                REGISTER
    //////////////////////////////////////////////////////////////*/

    function test_register_makesTheCallerOwner() public {
        testFuzz_register_makesTheCallerOwner(STRANGER, ORIGIN_HASH, PUBLISHER);
    }

    function test_register_acceptsOneAccountForBoth() public {
        testFuzz_register_makesTheCallerOwner(STRANGER, ORIGIN_HASH, STRANGER);
    }

    function testFuzz_register_makesTheCallerOwner(address owner, bytes32 originHash, address publisher) public {
        vm.assume(owner != address(0) && owner != OWNER && publisher != address(0));
        vm.recordLogs();
        bytes32 fresh = register(owner, originHash, publisher);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(fresh == keccak256(abi.encode(owner, originHash)));
        require(witness.owner(fresh) == owner && witness.publisher(fresh) == publisher);
        require(witness.pendingOwner(fresh) == address(0));
        assertHead(fresh, 0, 0);
        require(logs.length == 2);
        assertTopics(logs[0], LogWitness.OwnerRotated.selector, fresh, address(0), owner);
        assertTopics(logs[1], LogWitness.PublisherRotated.selector, fresh, address(0), publisher);
    }

    function test_register_leavesOtherLogsAlone() public {
        testFuzz_register_leavesOtherLogsAlone(STRANGER, ORIGIN_HASH);
        testFuzz_register_leavesOtherLogsAlone(OWNER, 0x859139abe6e71e67154c7d681c670dbe34425a37009bb2fb906e9c14f82c8f1d);
    }

    function testFuzz_register_leavesOtherLogsAlone(address owner, bytes32 originHash) public {
        vm.assume(owner != address(0) && (owner != OWNER || originHash != ORIGIN_HASH));
        advance(id, 5, ROOT, new bytes32[](0));
        bytes32 other = register(owner, originHash, STRANGER);
        require(other != id && witness.owner(id) == OWNER && witness.publisher(id) == PUBLISHER);
        assertHead(id, 5, ROOT);
        assertHead(other, 0, 0);
    }

    function test_register_rejectsAnExistingId() public {
        testFuzz_register_rejectsAnExistingId(STRANGER, STRANGER);
    }

    function test_register_rejectsAnExistingIdWithZeroPublisher() public {
        testFuzz_register_rejectsAnExistingId(STRANGER, address(0));
    }

    /// @dev Before and after a handover.
    function testFuzz_register_rejectsAnExistingId(address next, address publisher) public {
        vm.assume(next != address(0) && next != OWNER);
        for (uint256 round = 0; round < 2; ++round) {
            vm.prank(OWNER);
            vm.expectRevert(abi.encodeWithSelector(LogWitness.AlreadyRegistered.selector, id));
            witness.register(ORIGIN_HASH, publisher);
            if (round == 0) handOver(next);
        }
        require(witness.owner(id) == next && witness.publisher(id) == PUBLISHER);
    }

    function test_register_rejectsZeroPublisher() public {
        testFuzz_register_rejectsZeroPublisher(STRANGER, ORIGIN_HASH);
    }

    function testFuzz_register_rejectsZeroPublisher(address owner, bytes32 originHash) public {
        vm.assume(owner != OWNER);
        vm.prank(owner);
        vm.expectRevert(abi.encodeWithSelector(LogWitness.ZeroPublisher.selector));
        witness.register(originHash, address(0));
        require(witness.owner(keccak256(abi.encode(owner, originHash))) == address(0));
    }

    /*//////////////////////////////////////////////////////////////
                             FIRST ADVANCE
    //////////////////////////////////////////////////////////////*/

    function test_advance_startsAtAnySize() public {
        testFuzz_advance_startsAtAnySize(1, ROOT, BLOCK);
        setUp();
        testFuzz_advance_startsAtAnySize(type(uint64).max, 0, 0);
    }

    function testFuzz_advance_startsAtAnySize(uint64 size, bytes32 root, bytes32 blockHash) public {
        vm.assume(size > 0);
        vm.expectEmit(true, true, false, true, address(witness));
        emit LogWitness.Checkpoint(id, size, root, blockHash);
        vm.prank(PUBLISHER);
        witness.advance(id, size, root, blockHash, new bytes32[](0));
        assertHead(id, size, root);
        require(witness.publisher(id) == PUBLISHER);
    }

    function test_advance_startsWithoutProof() public {
        testFuzz_advance_startsWithoutProof(1, ROOT, 1);
    }

    function testFuzz_advance_startsWithoutProof(uint64 size, bytes32 root, uint8 length) public {
        vm.assume(size > 0 && length > 0);
        assertRefused(id, size, root, new bytes32[](length), abi.encodeWithSelector(LogWitness.Inconsistent.selector));
    }

    /*//////////////////////////////////////////////////////////////
                             LATER ADVANCES
    //////////////////////////////////////////////////////////////*/

    function test_advance_followsATree() public {
        for (uint16 newSize = 2; newSize <= 17; ++newSize) {
            for (uint16 oldSize = 1; oldSize < newSize; ++oldSize) {
                setUp();
                testFuzz_advance_followsATree(oldSize, newSize, newSize);
            }
        }
    }

    function testFuzz_advance_followsATree(uint16 oldSize, uint16 newSize, uint256 seed) public {
        assertAccepted(toStep(oldSize, newSize, seed));
    }

    function test_advance_followsHugeTrees() public {
        testFuzz_advance_followsHugeTrees(2 ** 40 - 1, 2 ** 40, 1);
        setUp();
        testFuzz_advance_followsHugeTrees(2 ** 63, type(uint64).max, 1);
        setUp();
        testFuzz_advance_followsHugeTrees(type(uint64).max - 1, type(uint64).max, 1);
    }

    function testFuzz_advance_followsHugeTrees(uint64 oldSize, uint64 newSize, uint256 seed) public {
        assertAccepted(toHugeStep(oldSize, newSize, seed));
    }

    function test_advance_agreesWithThePlainTree() public {
        for (uint8 change = 0; change < 7; ++change) {
            testFuzz_advance_agreesWithThePlainTree(2 ** 40 - 1, 2 ** 40, 1, change, 3, 1 << 255);
        }
    }

    /// @dev For any sizes, with one thing changed, which may leave the proof valid.
    function testFuzz_advance_agreesWithThePlainTree(
        uint64 oldSize,
        uint64 newSize,
        uint256 seed,
        uint8 change,
        uint256 place,
        uint256 bits
    ) public {
        Step memory step = seed % 2 == 0 ? toStep(uint16(oldSize), uint16(newSize), seed) : toHugeStep(oldSize, newSize, seed);
        mutate(step, change % 7, place, bits);
        bool isExpected = PlainTree.isConsistent(step.oldSize, step.oldRoot, step.newSize, step.newRoot, step.proof);
        bytes32 fresh = register(OWNER, keccak256(abi.encode(oldSize, newSize, seed, change, place, bits)), PUBLISHER);
        advance(fresh, step.oldSize, step.oldRoot, new bytes32[](0));
        if (isExpected) {
            advance(fresh, step.newSize, step.newRoot, step.proof);
            assertHead(fresh, step.newSize, step.newRoot);
        } else {
            bytes memory reason = abi.encodeWithSelector(LogWitness.Inconsistent.selector);
            assertRefused(fresh, step.newSize, step.newRoot, step.proof, reason);
        }
    }

    function test_advance_rejectsAFork() public {
        testFuzz_advance_rejectsAFork(6, 8, 1, 5);
    }

    /// @dev The other tree differs in one leaf that the head covers.
    function testFuzz_advance_rejectsAFork(uint16 oldSize, uint16 newSize, uint256 seed, uint256 place) public {
        Step memory step = toStep(oldSize, newSize, seed);
        bytes32[] memory leaves = toHashes(step.newSize, seed);
        leaves[place % step.oldSize] = keccak256("fork");
        advance(id, step.oldSize, step.oldRoot, new bytes32[](0));
        bytes memory reason = abi.encodeWithSelector(LogWitness.Inconsistent.selector);
        bytes32[] memory proof = PlainTree.prove(leaves, step.oldSize, step.newSize);
        assertRefused(id, step.newSize, PlainTree.root(leaves, 0, step.newSize), proof, reason);
        assertRefused(id, step.newSize, PlainTree.root(leaves, 0, step.newSize), step.proof, reason);
    }

    function test_advance_rejectsAnEmptyProof() public {
        testFuzz_advance_rejectsAnEmptyProof(1, 2, ROOT, ROOT);
        setUp();
        testFuzz_advance_rejectsAnEmptyProof(3, 4, ROOT, ROOT);
    }

    function testFuzz_advance_rejectsAnEmptyProof(uint64 oldSize, uint64 newSize, bytes32 oldRoot, bytes32 newRoot) public {
        (oldSize, newSize) = order(oldSize, newSize, type(uint64).max);
        advance(id, oldSize, oldRoot, new bytes32[](0));
        bytes memory reason = abi.encodeWithSelector(LogWitness.Inconsistent.selector);
        assertRefused(id, newSize, newRoot, new bytes32[](0), reason);
    }

    function test_advance_rejectsSmallerSizes() public {
        testFuzz_advance_rejectsSmallerSizes(5, 4, ROOT, 0);
    }

    function test_advance_rejectsSizeZero() public {
        testFuzz_advance_rejectsSmallerSizes(0, 0, 0, 0);
        testFuzz_advance_rejectsSmallerSizes(5, 0, ROOT, 0);
    }

    /// @dev A size of zero stands for no first advance.
    function testFuzz_advance_rejectsSmallerSizes(uint64 size, uint64 newSize, bytes32 root, uint8 length) public {
        if (size > 0) advance(id, size, ROOT, new bytes32[](0));
        if (newSize >= size) newSize = size == 0 ? 0 : newSize % size;
        bytes memory reason = abi.encodeWithSelector(LogWitness.InvalidSize.selector, size);
        assertRefused(id, newSize, root, new bytes32[](length), reason);
    }

    function test_advance_ignoresTheSameHead() public {
        testFuzz_advance_ignoresTheSameHead(5, ROOT, BLOCK);
    }

    function testFuzz_advance_ignoresTheSameHead(uint64 size, bytes32 root, bytes32 blockHash) public {
        vm.assume(size > 0);
        advance(id, size, root, new bytes32[](0));
        vm.recordLogs();
        vm.record();
        vm.prank(PUBLISHER);
        witness.advance(id, size, root, blockHash, new bytes32[](0));
        (, bytes32[] memory writes) = vm.accesses(address(witness));
        require(writes.length == 0 && vm.getRecordedLogs().length == 0);
        assertHead(id, size, root);
    }

    function test_advance_rejectsAnotherRootAtTheSameSize() public {
        testFuzz_advance_rejectsAnotherRootAtTheSameSize(5, ROOT, 0, 0);
    }

    function test_advance_rejectsAProofAtTheSameSize() public {
        testFuzz_advance_rejectsAnotherRootAtTheSameSize(5, ROOT, ROOT, 1);
    }

    function testFuzz_advance_rejectsAnotherRootAtTheSameSize(uint64 size, bytes32 root, bytes32 newRoot, uint8 length) public {
        vm.assume(size > 0 && (newRoot != root || length > 0));
        advance(id, size, root, new bytes32[](0));
        bytes memory reason = abi.encodeWithSelector(LogWitness.Inconsistent.selector);
        assertRefused(id, size, newRoot, new bytes32[](length), reason);
    }

    function test_advance_writesTwoSlots() public {
        testFuzz_advance_writesTwoSlots(6, 8, 1);
    }

    function testFuzz_advance_writesTwoSlots(uint64 oldSize, uint64 newSize, uint256 seed) public {
        Step memory step = toHugeStep(oldSize, newSize, seed);
        advance(id, step.oldSize, step.oldRoot, new bytes32[](0));
        vm.record();
        advance(id, step.newSize, step.newRoot, step.proof);
        (, bytes32[] memory writes) = vm.accesses(address(witness));
        require(writes.length == 2 && writes[0] != writes[1]);
    }

    function test_advance_rejectsOtherAccounts() public {
        testFuzz_advance_rejectsOtherAccounts(STRANGER, id, 5, ROOT, 0);
    }

    function test_advance_rejectsTheOwner() public {
        testFuzz_advance_rejectsOtherAccounts(OWNER, id, 5, ROOT, 0);
    }

    function test_advance_rejectsAnUnregisteredLog() public {
        testFuzz_advance_rejectsOtherAccounts(PUBLISHER, ORIGIN_HASH, 5, ROOT, 0);
    }

    /// @dev For any arguments, because the caller is checked first.
    function testFuzz_advance_rejectsOtherAccounts(address caller, bytes32 log, uint64 size, bytes32 root, uint8 length) public {
        vm.assume(caller != witness.publisher(log) && caller != address(0));
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(LogWitness.NotPublisher.selector, caller));
        witness.advance(log, size, root, BLOCK, new bytes32[](length));
    }

    function test_advance_neverAcceptsForLackOfGas() public {
        for (uint24 gasLimit = 1_000; gasLimit < 100_000; gasLimit += 500) {
            setUp();
            testFuzz_advance_neverAcceptsForLackOfGas(gasLimit, 2 ** 40 - 1, 2 ** 40, 1);
        }
    }

    /// @dev A wrong proof fails with any gas; a valid one either advances the log or fails.
    function testFuzz_advance_neverAcceptsForLackOfGas(uint24 gasLimit, uint64 oldSize, uint64 newSize, uint256 seed) public {
        Step memory step = toHugeStep(oldSize, newSize, seed);
        advance(id, step.oldSize, step.oldRoot, new bytes32[](0));
        bytes memory data = abi.encodeCall(witness.advance, (id, step.newSize, ROOT, BLOCK, step.proof));
        vm.prank(PUBLISHER);
        (bool isDone,) = address(witness).call{gas: gasLimit}(data);
        require(!isDone);
        data = abi.encodeCall(witness.advance, (id, step.newSize, step.newRoot, BLOCK, step.proof));
        vm.prank(PUBLISHER);
        (isDone,) = address(witness).call{gas: gasLimit}(data);
        if (isDone) assertHead(id, step.newSize, step.newRoot);
        else assertHead(id, step.oldSize, step.oldRoot);
    }

    function test_advance_rejectsAProofWithOneMoreLevel() public {
        testFuzz_advance_rejectsAProofWithOneMoreLevel(3, 4, 1, ROOT);
    }

    /// @dev First with roots that follow from the longer proof, unless the older tree is one complete subtree. Then with the true roots.
    function testFuzz_advance_rejectsAProofWithOneMoreLevel(uint64 oldSize, uint64 newSize, uint256 seed, bytes32 left) public {
        Step memory step = toHugeStep(oldSize, newSize, seed);
        bytes32[] memory longer = new bytes32[](step.proof.length + 1);
        for (uint256 index = 0; index < step.proof.length; ++index) longer[index] = step.proof[index];
        longer[step.proof.length] = left;
        advance(id, step.oldSize, PlainTree.hashNode(left, step.oldRoot), new bytes32[](0));
        bytes memory reason = abi.encodeWithSelector(LogWitness.Inconsistent.selector);
        assertRefused(id, step.newSize, PlainTree.hashNode(left, step.newRoot), longer, reason);
        bytes32 other = register(OWNER, 0, PUBLISHER);
        advance(other, step.oldSize, step.oldRoot, new bytes32[](0));
        assertRefused(other, step.newSize, step.newRoot, longer, reason);
    }

    function test_advance_rejectsAProofWithOneLevelLess() public {
        testFuzz_advance_rejectsAProofWithOneLevelLess(3, 4, 1);
        setUp();
        testFuzz_advance_rejectsAProofWithOneLevelLess(3, 5, 1);
    }

    /// @dev Both roots follow from the shorter proof: they are those of the larger tree's left or right part.
    function testFuzz_advance_rejectsAProofWithOneLevelLess(uint64 oldSize, uint64 newSize, uint256 seed) public {
        (oldSize, newSize) = order(oldSize, newSize, type(uint64).max);
        uint256 left = PlainTree.split(newSize);
        bool isLeft = oldSize <= left;
        (uint256 oldPart, uint256 newPart) = isLeft ? (oldSize, left) : (oldSize - left, newSize - left);
        bytes32[] memory proof = toHashes(PlainTree.count(oldPart, newPart, isLeft), seed);
        (bytes32 older, bytes32 newer) = PlainTree.roots(oldPart, newPart, ROOT, isLeft, proof, proof.length);
        advance(id, oldSize, older, new bytes32[](0));
        assertRefused(id, newSize, newer, proof, abi.encodeWithSelector(LogWitness.Inconsistent.selector));
    }

    function test_advance_rejectsAProofWithoutThePrecompile() public {
        testFuzz_advance_rejectsAProofWithoutThePrecompile(ROOT, BLOCK);
    }

    /// @dev Without an output, the hash of the last leaf would be the new root.
    function testFuzz_advance_rejectsAProofWithoutThePrecompile(bytes32 root, bytes32 leaf) public {
        advance(id, 1, root, new bytes32[](0));
        vm.mockCall(address(2), "", "");
        assertRefused(id, 2, leaf, toList(leaf), abi.encodeWithSelector(LogWitness.Inconsistent.selector));
        vm.clearMockedCalls();
    }

    function test_advance_rejectsAProofIfAHashFails() public {
        testFuzz_advance_rejectsAProofIfAHashFails(ROOT, BLOCK, ORIGIN_HASH, 0);
    }

    /// @dev The output of the failed call would be the right root: the new one of two leaves, or the old one of three.
    function testFuzz_advance_rejectsAProofIfAHashFails(bytes32 root, bytes32 third, bytes32 fourth, bytes32 left) public {
        bytes memory reason = abi.encodeWithSelector(LogWitness.Inconsistent.selector);
        advance(id, 1, root, new bytes32[](0));
        vm.mockCallRevert(address(2), "", abi.encode(root));
        assertRefused(id, 2, root, toList(left), reason);
        vm.clearMockedCalls();

        bytes32[] memory proof = new bytes32[](3);
        (proof[0], proof[1], proof[2]) = (third, fourth, left);
        bytes32 newRoot = PlainTree.hashNode(left, PlainTree.hashNode(third, fourth));
        bytes32 other = register(OWNER, 0, PUBLISHER);
        advance(other, 3, root, new bytes32[](0));
        vm.mockCallRevert(address(2), abi.encodePacked(bytes1(0x01), left, third), abi.encode(root));
        assertRefused(other, 4, newRoot, proof, reason);
        vm.clearMockedCalls();
    }

    /*//////////////////////////////////////////////////////////////
                                ROTATION
    //////////////////////////////////////////////////////////////*/

    function test_rotatePublisher_replacesThePublisher() public {
        testFuzz_rotatePublisher_replacesThePublisher(STRANGER, 5, ROOT);
    }

    function testFuzz_rotatePublisher_replacesThePublisher(address next, uint64 size, bytes32 root) public {
        vm.assume(next != address(0) && next != PUBLISHER && size > 0);
        advance(id, size, root, new bytes32[](0));
        vm.expectEmit(true, true, true, true, address(witness));
        emit LogWitness.PublisherRotated(id, PUBLISHER, next);
        vm.prank(OWNER);
        witness.rotatePublisher(id, next);
        require(witness.publisher(id) == next && witness.owner(id) == OWNER);
        assertHead(id, size, root);

        bytes memory reason = abi.encodeWithSelector(LogWitness.NotPublisher.selector, PUBLISHER);
        assertRefused(id, size, root, new bytes32[](0), reason);
        vm.prank(next);
        witness.advance(id, size, root, BLOCK, new bytes32[](0));
    }

    function test_rotatePublisher_rejectsThePublisher() public {
        testFuzz_rotatePublisher_rejectsAllButTheOwner(PUBLISHER, id, STRANGER);
    }

    function test_rotatePublisher_rejectsAnUnregisteredLog() public {
        testFuzz_rotatePublisher_rejectsAllButTheOwner(OWNER, ORIGIN_HASH, STRANGER);
    }

    function testFuzz_rotatePublisher_rejectsAllButTheOwner(address caller, bytes32 log, address next) public {
        vm.assume(caller != witness.owner(log) && caller != address(0));
        address previous = witness.publisher(log);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(LogWitness.NotOwner.selector, caller));
        witness.rotatePublisher(log, next);
        require(witness.publisher(log) == previous);
    }

    function test_rotatePublisher_rejectsZero() public {
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(LogWitness.ZeroPublisher.selector));
        witness.rotatePublisher(id, address(0));
        require(witness.publisher(id) == PUBLISHER);
    }

    function test_ownership_movesOnAcceptanceOnly() public {
        testFuzz_ownership_movesOnAcceptanceOnly(STRANGER);
    }

    function testFuzz_ownership_movesOnAcceptanceOnly(address next) public {
        vm.assume(next != address(0) && next != OWNER);
        vm.expectEmit(true, true, true, true, address(witness));
        emit LogWitness.OwnerProposed(id, OWNER, next);
        vm.prank(OWNER);
        witness.proposeOwner(id, next);
        require(witness.owner(id) == OWNER && witness.pendingOwner(id) == next);

        vm.prank(next);
        vm.expectRevert(abi.encodeWithSelector(LogWitness.NotOwner.selector, next));
        witness.rotatePublisher(id, next);

        vm.expectEmit(true, true, true, true, address(witness));
        emit LogWitness.OwnerRotated(id, OWNER, next);
        vm.prank(next);
        witness.acceptOwnership(id);
        require(witness.owner(id) == next && witness.pendingOwner(id) == address(0));
        require(witness.publisher(id) == PUBLISHER);

        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(LogWitness.NotOwner.selector, OWNER));
        witness.proposeOwner(id, OWNER);
        vm.prank(next);
        vm.expectRevert(abi.encodeWithSelector(LogWitness.NotPendingOwner.selector, next));
        witness.acceptOwnership(id);
    }

    function test_proposeOwner_rejectsThePublisher() public {
        testFuzz_proposeOwner_rejectsAllButTheOwner(PUBLISHER, id, PUBLISHER);
    }

    function testFuzz_proposeOwner_rejectsAllButTheOwner(address caller, bytes32 log, address next) public {
        vm.assume(caller != witness.owner(log) && caller != address(0));
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(LogWitness.NotOwner.selector, caller));
        witness.proposeOwner(log, next);
        require(witness.pendingOwner(log) == address(0));
    }

    function test_acceptOwnership_rejectsAllButTheProposed() public {
        testFuzz_acceptOwnership_rejectsAllButTheProposed(OWNER, PUBLISHER, id);
    }

    /// @dev A proposal for one log is none for another.
    function testFuzz_acceptOwnership_rejectsAllButTheProposed(address caller, address next, bytes32 log) public {
        vm.assume(caller != address(0) && (caller != next || log != id));
        vm.prank(OWNER);
        witness.proposeOwner(id, next);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(LogWitness.NotPendingOwner.selector, caller));
        witness.acceptOwnership(log);
        require(witness.owner(id) == OWNER);
    }

    /// @dev For any calls by any accounts on two logs, the state follows from the rules.
    function testFuzz_sequences_followTheModel(uint32[] memory steps) public {
        Model[2] memory models = [Model(id, OWNER, PUBLISHER, address(0), 0), Model(0, OWNER, PUBLISHER, address(0), 0)];
        models[1].id = register(OWNER, 0, PUBLISHER);
        for (uint256 place = 0; place < steps.length && place < 64; ++place) {
            address caller = [OWNER, PUBLISHER, STRANGER][(steps[place] >> 8) % 3];
            address subject = [OWNER, PUBLISHER, STRANGER, address(0)][steps[place] % 4];
            (bool isAllowed, bytes memory data) = applyCall(models[(steps[place] >> 24) % 2], caller, subject, (steps[place] >> 16) % 4);
            vm.prank(caller);
            (bool isDone,) = address(witness).call(data);
            require(isDone == isAllowed);
            for (uint256 index = 0; index < 2; ++index) {
                Model memory model = models[index];
                require(witness.owner(model.id) == model.owner && witness.pendingOwner(model.id) == model.pendingOwner);
                require(witness.publisher(model.id) == model.publisher);
                assertHead(model.id, model.size, model.size == 0 ? bytes32(0) : ROOT);
            }
        }
    }

    /// @dev Creates a call, and applies it to the model if the rules allow it.
    function applyCall(Model memory model, address caller, address subject, uint256 action)
        private
        view
        returns (bool isAllowed, bytes memory data)
    {
        if (action == 0) {
            isAllowed = caller == model.owner && subject != address(0);
            data = abi.encodeCall(witness.rotatePublisher, (model.id, subject));
            if (isAllowed) model.publisher = subject;
        } else if (action == 1) {
            isAllowed = caller == model.owner;
            data = abi.encodeCall(witness.proposeOwner, (model.id, subject));
            if (isAllowed) model.pendingOwner = subject;
        } else if (action == 2) {
            isAllowed = caller == model.pendingOwner;
            data = abi.encodeCall(witness.acceptOwnership, (model.id));
            if (isAllowed) (model.owner, model.pendingOwner) = (caller, address(0));
        } else {
            isAllowed = caller == model.publisher;
            data = abi.encodeCall(witness.advance, (model.id, 7, ROOT, BLOCK, new bytes32[](0)));
            if (isAllowed) model.size = 7;
        }
    }

    /*//////////////////////////////////////////////////////////////
                            CALLDATA AND ETHER
    //////////////////////////////////////////////////////////////*/

    function test_calls_rejectDirtyBits() public {
        testFuzz_calls_rejectDirtyBits(5, 1, 1);
    }

    function testFuzz_calls_rejectDirtyBits(uint64 size, uint192 sizeBits, uint96 addressBits) public {
        vm.assume(sizeBits != 0 && addressBits != 0);
        uint256 word = (uint256(sizeBits) << 64) | size;
        bytes memory data = abi.encode(id, word, ROOT, BLOCK, uint256(160), uint256(0));
        assertCallFails(PUBLISHER, abi.encodePacked(witness.advance.selector, data), 0);
        word = (uint256(addressBits) << 160) | uint160(STRANGER);
        assertCallFails(STRANGER, abi.encodeWithSelector(witness.register.selector, ORIGIN_HASH, word), 0);
        assertCallFails(OWNER, abi.encodeWithSelector(witness.rotatePublisher.selector, id, word), 0);
        assertCallFails(OWNER, abi.encodeWithSelector(witness.proposeOwner.selector, id, word), 0);
    }

    function test_advance_rejectsCutCalldata() public {
        testFuzz_advance_rejectsCutCalldata(1, 6, 8, 1);
    }

    function testFuzz_advance_rejectsCutCalldata(uint256 missing, uint64 oldSize, uint64 newSize, uint256 seed) public {
        Step memory step = toHugeStep(oldSize, newSize, seed);
        advance(id, step.oldSize, step.oldRoot, new bytes32[](0));
        bytes memory data = abi.encodeCall(witness.advance, (id, step.newSize, step.newRoot, BLOCK, step.proof));
        assertCallFails(PUBLISHER, cut(data, data.length - within(missing, 1, data.length)), 0);
    }

    function test_advance_rejectsAProofOutsideTheCalldata() public {
        testFuzz_advance_rejectsAProofOutsideTheCalldata(type(uint256).max, 0);
        testFuzz_advance_rejectsAProofOutsideTheCalldata(160, type(uint256).max);
        testFuzz_advance_rejectsAProofOutsideTheCalldata(160, 1);
    }

    function testFuzz_advance_rejectsAProofOutsideTheCalldata(uint256 offset, uint256 length) public {
        // Up to 128, the length would be one of the words before.
        vm.assume(offset > 160 || (offset == 160 && length > 0));
        bytes memory data = abi.encode(id, uint256(5), ROOT, BLOCK, offset, length);
        assertCallFails(PUBLISHER, abi.encodePacked(witness.advance.selector, data), 0);
    }

    function test_calls_refuseEther() public {
        testFuzz_calls_refuseEther(1);
    }

    function testFuzz_calls_refuseEther(uint128 value) public {
        vm.assume(value > 0);
        assertCallFails(PUBLISHER, abi.encodeCall(witness.advance, (id, 5, ROOT, BLOCK, new bytes32[](0))), value);
        assertCallFails(PUBLISHER, "", value);
        assertCallFails(STRANGER, abi.encodeCall(witness.register, (ORIGIN_HASH, STRANGER)), value);
        assertCallFails(OWNER, abi.encodeCall(witness.rotatePublisher, (id, STRANGER)), value);
        assertCallFails(OWNER, abi.encodeCall(witness.proposeOwner, (id, STRANGER)), value);
        require(address(witness).balance == 0);
    }

    function test_calls_refuseUnknownFunctions() public {
        testFuzz_calls_refuseUnknownFunctions(bytes4(keccak256("upgradeTo(address)")), abi.encode(STRANGER));
    }

    function testFuzz_calls_refuseUnknownFunctions(bytes4 selector, bytes memory rest) public {
        bytes4[9] memory known = [
            witness.register.selector,
            witness.advance.selector,
            witness.head.selector,
            witness.publisher.selector,
            witness.owner.selector,
            witness.pendingOwner.selector,
            witness.rotatePublisher.selector,
            witness.proposeOwner.selector,
            witness.acceptOwnership.selector
        ];
        for (uint256 index = 0; index < known.length; ++index) vm.assume(selector != known[index]);
        assertCallFails(OWNER, abi.encodePacked(selector, rest), 0);
    }

    /*//////////////////////////////////////////////////////////////
                            VALUES AND CHECKS
    //////////////////////////////////////////////////////////////*/

    function register(address owner, bytes32 originHash, address publisher) private returns (bytes32) {
        vm.prank(owner);
        return witness.register(originHash, publisher);
    }

    function advance(bytes32 log, uint64 size, bytes32 root, bytes32[] memory proof) private {
        vm.prank(PUBLISHER);
        witness.advance(log, size, root, BLOCK, proof);
    }

    function handOver(address next) private {
        vm.prank(OWNER);
        witness.proposeOwner(id, next);
        vm.prank(next);
        witness.acceptOwnership(id);
    }

    /// @dev A step of a tree with 2 to 200 leaves.
    function toStep(uint16 one, uint16 other, uint256 seed) private pure returns (Step memory step) {
        (step.oldSize, step.newSize) = order(one, other, 200);
        bytes32[] memory leaves = toHashes(step.newSize, seed);
        step.oldRoot = PlainTree.root(leaves, 0, step.oldSize);
        step.newRoot = PlainTree.root(leaves, 0, step.newSize);
        step.proof = PlainTree.prove(leaves, step.oldSize, step.newSize);
    }

    /// @dev A step of a tree whose complete subtrees have any hashes.
    function toHugeStep(uint64 one, uint64 other, uint256 seed) private pure returns (Step memory step) {
        (step.oldSize, step.newSize) = order(one, other, type(uint64).max);
        step.proof = toHashes(PlainTree.count(step.oldSize, step.newSize, true), seed);
        (step.oldRoot, step.newRoot) =
            PlainTree.roots(step.oldSize, step.newSize, keccak256(abi.encode(seed)), true, step.proof, step.proof.length);
    }

    /// @dev Changes a hash, the order, the length, a root or a size.
    function mutate(Step memory step, uint256 change, uint256 place, uint256 bits) private pure {
        uint256 length = step.proof.length;
        uint256 index = place % length;
        if (change == 0) step.proof[index] ^= bytes32(bits);
        else if (change == 1) (step.proof[index], step.proof[bits % length]) = (step.proof[bits % length], step.proof[index]);
        else if (change == 2) step.proof = without(step.proof, index);
        else if (change == 3) step.proof = withRepeated(step.proof, index);
        else if (change == 4) step.newRoot ^= bytes32(bits);
        else if (change == 5) step.oldSize = uint64(within(uint64(bits), 1, step.newSize - 1));
        else step.newSize = uint64(within(uint64(bits), step.oldSize + 1, type(uint64).max));
    }

    function without(bytes32[] memory hashes, uint256 place) private pure returns (bytes32[] memory result) {
        result = new bytes32[](hashes.length - 1);
        for (uint256 index = 0; index < result.length; ++index) result[index] = hashes[index < place ? index : index + 1];
    }

    function withRepeated(bytes32[] memory hashes, uint256 place) private pure returns (bytes32[] memory result) {
        result = new bytes32[](hashes.length + 1);
        for (uint256 index = 0; index < result.length; ++index) result[index] = hashes[index <= place ? index : index - 1];
    }

    function toList(bytes32 hash) private pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](1);
        hashes[0] = hash;
    }

    function toHashes(uint256 length, uint256 seed) private pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](length);
        for (uint256 index = 0; index < length; ++index) hashes[index] = keccak256(abi.encode(seed, index));
    }

    /// @dev Two different sizes from 1 to the limit, the smaller one first.
    function order(uint64 one, uint64 other, uint64 limit) private pure returns (uint64, uint64) {
        one = uint64(within(one, 1, limit));
        other = uint64(within(other, 1, limit));
        if (one == other) return one == 1 ? (one, one + 1) : (one - 1, one);
        return one < other ? (one, other) : (other, one);
    }

    /// @dev Returns `value` if it is within the bounds, so that examples use their exact values. Otherwise maps it into the bounds.
    function within(uint256 value, uint256 low, uint256 high) private pure returns (uint256) {
        return value >= low && value <= high ? value : low + (value % (high - low + 1));
    }

    function cut(bytes memory data, uint256 length) private pure returns (bytes memory start) {
        start = new bytes(length);
        for (uint256 index = 0; index < length; ++index) start[index] = data[index];
    }

    function assertHead(bytes32 log, uint64 size, bytes32 root) private view {
        (uint64 actualSize, bytes32 actualRoot) = witness.head(log);
        require(actualSize == size && actualRoot == root);
    }

    function assertTopics(Vm.Log memory entry, bytes32 signature, bytes32 log, address first, address second) private view {
        require(entry.emitter == address(witness));
        require(entry.topics.length == 4 && entry.data.length == 0);
        require(entry.topics[0] == signature && entry.topics[1] == log);
        require(entry.topics[2] == bytes32(uint256(uint160(first))));
        require(entry.topics[3] == bytes32(uint256(uint160(second))));
    }

    /// @dev Advances a log to the first head of a step, then to the second one.
    function assertAccepted(Step memory step) private {
        require(PlainTree.isConsistent(step.oldSize, step.oldRoot, step.newSize, step.newRoot, step.proof));
        advance(id, step.oldSize, step.oldRoot, new bytes32[](0));
        vm.expectEmit(true, true, false, true, address(witness));
        emit LogWitness.Checkpoint(id, step.newSize, step.newRoot, BLOCK);
        advance(id, step.newSize, step.newRoot, step.proof);
        assertHead(id, step.newSize, step.newRoot);
    }

    function assertRefused(bytes32 log, uint64 size, bytes32 root, bytes32[] memory proof, bytes memory reason) private {
        (uint64 headSize, bytes32 headRoot) = witness.head(log);
        vm.prank(PUBLISHER);
        vm.expectRevert(reason);
        witness.advance(log, size, root, BLOCK, proof);
        assertHead(log, headSize, headRoot);
    }

    function assertCallFails(address caller, bytes memory data, uint256 value) private {
        vm.deal(caller, value);
        vm.prank(caller);
        (bool isDone,) = address(witness).call{value: value}(data);
        require(!isDone);
    }
}
