// SPDX-License-Identifier: AGPL-3.0-only
pragma solidity 0.8.37;

/// @notice A token for tests of transfers, in which every account starts with a hundred. Only for local chains.
contract TestToken {
    string public constant name = "Test Token";
    string public constant symbol = "TEST";
    uint8 public constant decimals = 6;
    uint256 private constant GIFT = 100e6;

    mapping(address account => uint256 amount) private received;
    mapping(address account => uint256 amount) private sent;

    event Transfer(address indexed from, address indexed to, uint256 value);

    function balanceOf(address account) public view returns (uint256) {
        return GIFT + received[account] - sent[account];
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        require(amount <= balanceOf(msg.sender), "not enough tokens");
        sent[msg.sender] += amount;
        received[to] += amount;
        emit Transfer(msg.sender, to, amount);
        return true;
    }
}
