// SPDX-License-Identifier: AGPL-3.0-only
pragma solidity 0.8.37;

/// @dev The cheatcodes of the test runner that these tests use.
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    function prank(address caller) external;
    function assume(bool condition) external pure;
    function deal(address account, uint256 balance) external;
    function expectRevert(bytes calldata data) external;
    function expectEmit(bool topic1, bool topic2, bool topic3, bool data, address emitter) external;
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory);
    function record() external;
    function mockCall(address target, bytes calldata data, bytes calldata result) external;
    function mockCallRevert(address target, bytes calldata data, bytes calldata result) external;
    function clearMockedCalls() external;
    function accesses(address target) external returns (bytes32[] memory reads, bytes32[] memory writes);
}
