// SPDX-License-Identifier: AGPL-3.0-only
pragma solidity 0.8.37;

/// @notice A token for tests of transfers, with EIP-3009, in which every account starts with a hundred. Only for local chains.
contract TestToken {
    string public constant name = "Test Token";
    string public constant version = "1";
    string public constant symbol = "TEST";
    uint8 public constant decimals = 6;
    uint256 private constant GIFT = 100e6;

    bytes32 private constant DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant AUTHORIZATION = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );

    mapping(address authorizer => mapping(bytes32 nonce => bool isUsed)) public authorizationState;
    mapping(address account => uint256 amount) private received;
    mapping(address account => uint256 amount) private sent;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    function balanceOf(address account) public view returns (uint256) {
        return GIFT + received[account] - sent[account];
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        move(msg.sender, to, amount);
        return true;
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        require(block.timestamp > validAfter && block.timestamp < validBefore, "not valid now");
        require(!authorizationState[from][nonce], "already used");
        bytes32 domain = keccak256(
            abi.encode(DOMAIN, keccak256(bytes(name)), keccak256(bytes(version)), block.chainid, address(this))
        );
        bytes32 content = keccak256(abi.encode(AUTHORIZATION, from, to, value, validAfter, validBefore, nonce));
        address signer = ecrecover(keccak256(abi.encodePacked("\x19\x01", domain, content)), v, r, s);
        require(signer != address(0) && signer == from, "not signed by the payer");
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        move(from, to, value);
    }

    function move(address from, address to, uint256 amount) private {
        require(amount <= balanceOf(from), "not enough tokens");
        sent[from] += amount;
        received[to] += amount;
        emit Transfer(from, to, amount);
    }
}
