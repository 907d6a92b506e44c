import { type Approval, describeApprovalsFault } from '@countersign/policy'
import { type Hex, isNatural, type OffChainKind, type SignResult } from '@countersign/protocol'
import { createCall } from '../client/api.ts'
import { broadcast } from '../client/broadcast.ts'
import { createError } from '../client/errors.ts'
import { type OffChain, parseTypedData } from '../client/parseOffChain.ts'
import { askRpc, rpcFailed } from '../client/rpc.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { withSendLock } from '../client/sendLock.ts'
import { type SignTransactionReturnType, signTransaction } from '../client/signTransaction.ts'
import { offChainAnswer, type SignOffChainResult, verifyOffChain } from '../client/verifyOffChain.ts'
import { judgeApprovals } from './approve.ts'
import { createVaultError } from './errors.ts'
import { approvalsMissing, type Prepared, parsePrepared } from './prepared.ts'
import { VaultClient } from './toVaultClient.ts'

type PreparedTransaction = Prepared & { kind: 'transaction' }

/** What `signPrepared` answers. */
export type SignPreparedResult =
  | ({
      kind: 'transaction'
      /** What a node takes. Anyone can broadcast it: it becomes public with its proof. */
      serializedTransaction: Hex
    } & SignResult)
  | ({ kind: OffChainKind } & SignOffChainResult)

/**
 * Has the vault sign what was prepared, with the approvals for it, in any order. They are checked here first, with the code that decides
 * in the enclave: `approvals_missing`, `approval_invalid`, `prepared_expired`, `prepared_early`. Rejects with `nonce_taken` where the nonce is not free any more. A transaction
 * is not broadcast: see `sendPrepared`.
 *
 * @example
 * const { signature, opening } = await signPrepared(client, prepared, [approval])
 */
export async function signPrepared(
  client: ServiceClient,
  given: Prepared,
  approvals: readonly Approval[] = [],
): Promise<SignPreparedResult> {
  const prepared = parsePrepared(given)
  const { kind } = prepared
  const list = toList(prepared, approvals)
  if (kind !== 'transaction') return { kind, ...(await signOffChain(client, prepared, list)) }
  const { serializedTransaction, signed } = await signFixed(client, prepared, list)
  return { kind, serializedTransaction, ...signed }
}

/**
 * Has the vault sign a transaction that was prepared, and broadcasts it. An error with `signed` set came after the signing, as for
 * `signAndSend`.
 *
 * @example
 * const { txHash, attestationSlug } = await sendPrepared(client, prepared, approvals)
 */
export async function sendPrepared(
  client: ServiceClient,
  given: Prepared,
  approvals: readonly Approval[] = [],
): Promise<SignResult> {
  const prepared = parsePrepared(given)
  if (prepared.kind !== 'transaction') {
    throw createError('invalid_request', 'only a transaction can be sent', { details: `it is a ${prepared.kind}` })
  }
  const list = toList(prepared, approvals)
  const { chainId, nonce } = prepared.content
  return withSendLock({ address: prepared.address, chainId }, async (line) => {
    const { serializedTransaction, signed } = await signFixed(client, prepared, list)
    await broadcast(client.publicClient, { serializedTransaction, signed })
    line.last = { nonce, txHash: signed.txHash }
    return signed
  })
}

/** In the order of approvers, one of each. */
function toList(prepared: Prepared, approvals: readonly Approval[]): readonly Approval[] {
  const byApprover = new Map(approvals.map((approval) => [approval.approver, approval]))
  const list = [...byApprover.values()].sort((left, right) => left.approver - right.approver)
  const verdict = judgeApprovals(prepared, list, { required: prepared.approvals, nowMs: Date.now() })
  if (verdict.valid) return list
  if (verdict.reason === 'approvals_missing') throw approvalsMissing(verdict.missing)
  const details = describeApprovalsFault(verdict)
  if (verdict.reason === 'approval_expired')
    throw createVaultError('prepared_expired', 'an approval has ended', { details })
  if (verdict.reason === 'approval_too_long')
    throw createVaultError('prepared_early', 'an approval does not hold yet', { details })
  throw createVaultError('approval_invalid', 'an approval does not hold', { details })
}

async function signFixed(
  client: ServiceClient,
  prepared: PreparedTransaction,
  approvals: readonly Approval[],
): Promise<SignTransactionReturnType> {
  const { address, content } = prepared
  const { chainId, nonce, value, gas, maxFeePerGas, maxPriorityFeePerGas } = content
  if (chainId !== client.config.chainId) {
    const details = `it is for chain ${chainId}, the client is on ${client.config.chainId}`
    throw createError('invalid_request', 'the transaction is for another chain', { details })
  }
  const blockTag = 'pending'
  const [next] = await Promise.all([
    askRpc(() => client.publicClient.getTransactionCount({ address, blockTag })),
    client.verifyChain(),
  ])
  if (!isNatural(next)) throw rpcFailed(`the nonce is ${next}`)
  // A signature would be public, and could do nothing.
  if (next > nonce) {
    const details = `it has nonce ${nonce}, the next one is ${next}`
    throw createVaultError('nonce_taken', 'another transaction took this nonce', { details })
  }
  const transaction = {
    ...content,
    value: BigInt(value),
    gas: BigInt(gas),
    maxFeePerGas: BigInt(maxFeePerGas),
    maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas),
  }
  return signTransaction(new VaultClient(client, prepared, approvals), { wallet: prepared, transaction })
}

async function signOffChain(
  client: ServiceClient,
  prepared: Exclude<Prepared, { kind: 'transaction' }>,
  approvals: readonly Approval[],
): Promise<SignOffChainResult> {
  const { address: wallet, digest, kind, content } = prepared
  // For the client's chain or for none, as every typed data.
  if (kind === 'typed-data') parseTypedData(content, client.config.chainId)
  const call = createCall(client.config.apiBaseUrl)
  const body = { ...content, wallet, approvals } as never
  const answer = await call(`POST /sign/${kind}`, offChainAnswer, { body })
  const asked = { kind, digest, content, approvals } as OffChain & { approvals: readonly Approval[] }
  return verifyOffChain({ wallet: prepared, asked, answer })
}
