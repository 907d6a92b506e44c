// SPDX-License-Identifier: AGPL-3.0-only
pragma solidity 0.8.37;

/// @notice A token with ERC-2612 permits, for tests of signatures. Only for local chains.
contract PermitToken {
    string public constant name = "Permit Token";
    bytes32 private constant PERMIT =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
    bytes32 private constant DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    mapping(address account => uint256 amount) public balanceOf;
    mapping(address owner => mapping(address spender => uint256 amount)) public allowance;
    mapping(address owner => uint256 nonce) public nonces;

    constructor(address holder, uint256 supply) {
        balanceOf[holder] = supply;
    }

    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
    {
        require(block.timestamp <= deadline, "expired");
        bytes32 domain = keccak256(
            abi.encode(DOMAIN, keccak256(bytes(name)), keccak256(bytes("1")), block.chainid, address(this))
        );
        bytes32 content = keccak256(abi.encode(PERMIT, owner, spender, value, nonces[owner]++, deadline));
        address signer = ecrecover(keccak256(abi.encodePacked("\x19\x01", domain, content)), v, r, s);
        require(signer != address(0) && signer == owner, "not signed by the owner");
        allowance[owner][spender] = value;
    }

    function transferFrom(address from, address to, uint256 amount) external {
        allowance[from][msg.sender] -= amount;
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
    }
}
