import { type Approval, describeApprovalsFault } from '@countersign/policy'
import { type Hex, isNatural, type OffChainKind, type SignResult } from '@countersign/protocol'
import { broadcast } from '../client/broadcast.ts'
import { createError } from '../client/errors.ts'
import { callRpc, rpcFailed } from '../client/rpc.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { withSendLock } from '../client/sendLock.ts'
import { type SignTransactionReturnType, signTransaction } from '../client/signTransaction.ts'
import type { SignOffChainResult } from '../client/verifyOffChain.ts'
import { checkPreparedApprovals } from './approve.ts'
import { createVaultError } from './errors.ts'
import { approvalsMissing, type Prepared, parsePrepared } from './prepared.ts'
import { signContent } from './signContent.ts'
import { VaultClient } from './toVaultClient.ts'

type PreparedTransaction = Prepared & { kind: 'transaction' }

export type SignPreparedResult =
  | ({
      kind: 'transaction'
      /** For a node. It becomes public with its proof, and anyone can broadcast it. */
      serializedTransaction: Hex
    } & SignResult)
  | ({ kind: OffChainKind } & SignOffChainResult)

/**
 * Signs a prepared request with its approvals, in any order, and doesn't broadcast it. Checks the approvals first, with the enclave's code:
 * `approvals_missing`, `approval_invalid`, `prepared_expired`, `prepared_early`. Rejects with `nonce_taken` if the nonce was used.
 *
 * @example
 * const { signature, opening } = await signPrepared(client, prepared, [approval])
 */
export async function signPrepared(
  client: ServiceClient,
  input: Prepared,
  approvals: readonly Approval[] = [],
): Promise<SignPreparedResult> {
  const prepared = parsePrepared(input)
  const { kind } = prepared
  const list = toList(prepared, approvals)
  if (kind !== 'transaction') return { kind, ...(await signContent(client, prepared, list)) }
  const { serializedTransaction, signed } = await signPreparedTransaction(client, prepared, list)
  return { kind, serializedTransaction, ...signed }
}

/**
 * Signs a prepared transaction with its approvals and broadcasts it. If an error has `signed`, the transaction was signed.
 *
 * @example
 * const { txHash, attestationSlug } = await sendPrepared(client, prepared, approvals)
 */
export async function sendPrepared(
  client: ServiceClient,
  input: Prepared,
  approvals: readonly Approval[] = [],
): Promise<SignResult> {
  const prepared = parsePrepared(input)
  if (prepared.kind !== 'transaction') {
    throw createError('invalid_request', 'only a transaction can be sent', { details: `it is a ${prepared.kind}` })
  }
  const list = toList(prepared, approvals)
  const { chainId, nonce } = prepared.content
  return withSendLock({ address: prepared.address, chainId }, async (line) => {
    const { serializedTransaction, signed } = await signPreparedTransaction(client, prepared, list)
    await broadcast(client.publicClient, { serializedTransaction, signed })
    line.last = { nonce, txHash: signed.txHash }
    return signed
  })
}

/** Sorts the approvals by approver and removes duplicates. */
function toList(prepared: Prepared, approvals: readonly Approval[]): readonly Approval[] {
  const byApprover = new Map(approvals.map((approval) => [approval.approver, approval]))
  const list = [...byApprover.values()].sort((left, right) => left.approver - right.approver)
  const verdict = checkPreparedApprovals(prepared, list, { required: prepared.approvals, nowMs: Date.now() })
  if (verdict.valid) return list
  if (verdict.reason === 'approvals_missing') throw approvalsMissing(verdict.missing)
  const details = describeApprovalsFault(verdict)
  if (verdict.reason === 'approval_expired')
    throw createVaultError('prepared_expired', 'an approval has expired', { details })
  if (verdict.reason === 'approval_too_long')
    throw createVaultError('prepared_early', 'an approval is not valid yet', { details })
  throw createVaultError('approval_invalid', 'an approval is invalid', { details })
}

async function signPreparedTransaction(
  client: ServiceClient,
  prepared: PreparedTransaction,
  approvals: readonly Approval[],
): Promise<SignTransactionReturnType> {
  const { address, content } = prepared
  const { chainId, nonce, value, gas, maxFeePerGas, maxPriorityFeePerGas } = content
  if (chainId !== client.config.chainId) {
    const details = `it is for chain ${chainId}`
    throw createError('invalid_request', 'the transaction is for another chain', { details })
  }
  const blockTag = 'pending'
  const [next] = await Promise.all([
    callRpc(() => client.publicClient.getTransactionCount({ address, blockTag })),
    client.verifyChain(),
  ])
  if (!isNatural(next)) throw rpcFailed(`the nonce is ${next}`)
  // The signature would be useless and public.
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
