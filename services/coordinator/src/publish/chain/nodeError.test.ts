import type { Hex } from '@countersign/protocol'
import { encodeErrorResult, parseAbi } from 'viem/utils'
import { describe, expect, test } from 'vitest'
import { publisherAbi } from './contract.ts'
import { classifyNodeError, describeRevert } from './nodeError.ts'

const geth = 'geth, core/error.go and core/txpool/errors.go'
const reth = 'reth, rpc-eth-types/src/error'
const erigon = 'erigon, txpoolcfg.go'
const nethermind = 'nethermind, TxPoolErrorMessages.cs'
const olderNethermind = 'nethermind, AcceptTxResult.cs before 2026'
const hardhat = 'hardhat, edr_provider'
const besu = 'besu, TransactionInvalidReason'

describe('node errors about a transaction', () => {
  test.each([
    [geth, -32000, 'already known', 'already_known'],
    [geth, -32000, 'nonce too low: next nonce 5, tx nonce 4', 'nonce_too_low'],
    [geth, -32000, 'nonce too high', 'nonce_gap'],
    [geth, -32000, 'gapped-nonce tx from delegated accounts', 'nonce_gap'],
    [geth, -32000, 'replacement transaction underpriced', 'underpriced'],
    [geth, -32000, 'transaction underpriced: gas tip cap 0, minimum needed 1', 'underpriced'],
    [geth, -32000, 'max fee per gas less than block base fee: address 0x…, maxFeePerGas: 1, baseFee: 7', 'underpriced'],
    [geth, -32000, 'transaction gas price below minimum', 'underpriced'],
    [
      geth,
      -32000,
      'insufficient funds for gas * price + value: balance 0, tx cost 1, overshot 1',
      'insufficient_funds',
    ],
    [geth, -32000, 'insufficient funds for transfer', 'insufficient_funds'],
    [geth, -32000, 'txpool is full', 'chain_unavailable'],
    [geth, -32000, 'account limit exceeded', 'chain_unavailable'],
    [geth, -32000, 'in-flight transaction limit reached for delegated accounts', 'chain_unavailable'],
    [geth, -32000, 'header not found', 'chain_unavailable'],
    [geth, -32000, 'intrinsic gas too low: gas 21000, minimum needed 30000', 'transaction_refused'],
    [geth, -32000, 'invalid sender', 'transaction_refused'],
    [geth, -32000, 'exceeds block gas limit', 'transaction_refused'],
    [geth, -32000, 'invalid chain id for signer: have 1 want 2', 'transaction_refused'],
    [geth, -32000, 'tx fee (2.00 ether) exceeds the configured cap (1.00 ether)', 'transaction_refused'],
    [geth, 3, 'execution reverted', 'call_reverted'],
    [geth, 3, 'execution reverted: nonce too low', 'call_reverted'],
    [geth, -32000, 'gas required exceeds allowance (30000000)', 'call_reverted'],
    [reth, -32003, 'nonce too low: next nonce 4, tx nonce 3', 'nonce_too_low'],
    [reth, -32003, 'insufficient funds for gas * price + value: have 0 want 67', 'insufficient_funds'],
    [reth, -32003, 'max fee per gas less than block base fee', 'underpriced'],
    [reth, -32003, 'txpool is full', 'chain_unavailable'],
    [reth, -32003, 'some new reason', 'transaction_refused'],
    [reth, -32602, 'failed to decode signed transaction', 'transaction_refused'],
    [erigon, -32000, 'ALREADY_EXISTS: already known', 'already_known'],
    [erigon, -32000, 'INTERNAL_ERROR: existing tx with same hash', 'already_known'],
    [erigon, -32000, 'INTERNAL_ERROR: existing txn with same hash', 'already_known'],
    [erigon, -32000, 'INTERNAL_ERROR: nonce too low', 'nonce_too_low'],
    [erigon, -32000, 'INTERNAL_ERROR: could not replace existing tx', 'underpriced'],
    [erigon, -32000, 'FEE_TOO_LOW: underpriced', 'underpriced'],
    [erigon, -32000, 'FEE_TOO_LOW: fee too low', 'underpriced'],
    [erigon, -32000, 'INTERNAL_ERROR: insufficient funds', 'insufficient_funds'],
    [erigon, -32000, 'INTERNAL_ERROR: pending sub-pool is full', 'chain_unavailable'],
    [erigon, -32000, 'INTERNAL_ERROR: spammer', 'chain_unavailable'],
    [nethermind, -32010, 'already known', 'already_known'],
    [nethermind, -32010, 'nonce too high', 'nonce_gap'],
    [nethermind, -32010, 'nonce too far in future', 'nonce_gap'],
    [nethermind, -32010, 'replacement transaction underpriced', 'underpriced'],
    [nethermind, -32010, 'gas limit reached', 'transaction_refused'],
    [olderNethermind, -32010, 'AlreadyKnown', 'already_known'],
    [olderNethermind, -32010, 'OldNonce, Current nonce: 5, nonce of rejected tx: 3.', 'nonce_too_low'],
    [olderNethermind, -32010, 'NonceGap, Future nonce. Expected nonce: 5', 'nonce_gap'],
    [olderNethermind, -32010, 'FeeTooLow, EffectivePriorityFeePerGas too low', 'underpriced'],
    [olderNethermind, -32010, 'FeeTooLowToCompete', 'underpriced'],
    [olderNethermind, -32010, 'ReplacementNotAllowed', 'underpriced'],
    [olderNethermind, -32010, 'InsufficientFunds, Account balance: 0', 'insufficient_funds'],
    [olderNethermind, -32015, 'VM execution error.', 'call_reverted'],
    [hardhat, -32000, 'Known transaction: 0xabcd', 'already_known'],
    [hardhat, -32000, 'Nonce too low. Expected nonce to be 5 but got 3.', 'nonce_too_low'],
    [hardhat, -32000, 'Transaction nonce too low. Expected nonce to be at least 5 but got 3.', 'nonce_too_low'],
    [hardhat, -32000, 'Nonce too high. Expected nonce to be 5 but got 7.', 'nonce_gap'],
    [hardhat, -32000, 'Replacement transaction underpriced. A gasPrice/maxFeePerGas of at least 9', 'underpriced'],
    [
      hardhat,
      -32000,
      'Transaction maxFeePerGas (1) is too low for the next block, which has a baseFeePerGas of 7',
      'underpriced',
    ],
    [hardhat, -32000, "Sender doesn't have enough funds to send tx. The max upfront cost is: 2", 'insufficient_funds'],
    [
      hardhat,
      -32603,
      "Error: VM Exception while processing transaction: reverted with custom error 'EmptyBatch()'",
      'call_reverted',
    ],
    [
      hardhat,
      -32000,
      'Trying to send an incompatible EIP-155 transaction, signed for another chain.',
      'transaction_refused',
    ],
    [besu, -32000, 'Known transaction', 'already_known'],
    [besu, -32001, 'Nonce too low', 'nonce_too_low'],
    [besu, -32004, 'Upfront cost exceeds account balance', 'insufficient_funds'],
    ['providers', -32005, 'daily request count exceeded', 'chain_unavailable'],
    ['providers', 429, 'Your app has exceeded its compute units per second capacity', 'chain_unavailable'],
    ['providers', -32000, 'Too Many Requests', 'chain_unavailable'],
    ['any', -32603, 'Internal error', 'chain_unavailable'],
    ['any', -32601, 'the method eth_sendRawTransaction does not exist', 'chain_unavailable'],
    ['any', 12345, '', 'chain_unavailable'],
  ] as const)('%s: %i %s', (_source, code, message, verdict) => {
    expect(classifyNodeError({ code, message })).toBe(verdict)
  })
})

describe('the contract’s reason', () => {
  const reason = (data: unknown) => describeRevert({ code: 3, message: 'execution reverted', data })
  const data = encodeErrorResult({ abi: publisherAbi, errorName: 'ZeroWallet', args: [3n] })
  const solidity = parseAbi(['error Error(string reason)', 'error Panic(uint256 code)', 'error Foreign()'])

  test('is found by name wherever a node puts it', () => {
    expect([data, `Reverted ${data}`, { message: 'reverted', data }].map(reason)).toEqual(Array(3).fill('ZeroWallet'))
  })

  test('can be one of Solidity’s built-in errors', () => {
    expect(reason(encodeErrorResult({ abi: solidity, errorName: 'Error', args: ['no\nluck'] }))).toBe('Error: no?luck')
    expect(reason(encodeErrorResult({ abi: solidity, errorName: 'Panic', args: [17n] }))).toBe('Panic')
  })

  test('is a selector for another contract’s error', () => {
    const foreign = encodeErrorResult({ abi: solidity, errorName: 'Foreign' })
    expect(reason(foreign)).toBe(`an unknown error, ${foreign}`)
  })

  test('can be a truncated error of ours', () => {
    expect(reason(data.slice(0, 20) as Hex)).toBe(`an unknown error, ${data.slice(0, 10)}`)
  })

  test.each([undefined, null, '', '0x', '0x1234', 7, [], {}, { data: 7 }])('is missing in %j', (value) => {
    expect(reason(value)).toBe('no reason')
  })
})
