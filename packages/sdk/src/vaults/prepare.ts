import { MAX_APPROVAL_MS } from '@countersign/policy'
import type { SignRequest, TypedData } from '@countersign/protocol'
import { createError } from '../client/errors.ts'
import { parseMessage, parseTypedData, type SignMessageRequest } from '../client/parseOffChain.ts'
import { parseSignRequest } from '../client/parseSignRequest.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { withSendLock } from '../client/sendLock.ts'
import { readNonceAndFees } from '../client/signAndSend.ts'
import { toTxMetadata } from '../client/signTransaction.ts'
import { verifyWallet } from '../client/verifyWallet.ts'
import { createPrepared, type Prepared, type VaultContent, withoutDigest } from './prepared.ts'
import { toVaultClient } from './toVaultClient.ts'
import type { Vault } from './vault.ts'

/** A request of the client, with its kind. */
export type PrepareRequest =
  | ({ kind: 'transaction' } & SignRequest)
  | ({ kind: 'message' } & SignMessageRequest)
  | ({ kind: 'typed-data' } & TypedData)

export type PrepareOptions = {
  /**
   * How long approvals are valid: an hour by default, at most 24 hours minus ten minutes for clocks that differ. Keep it short, because
   * an approved transaction can be sent until then.
   */
  validForMs?: number | undefined
}

const VALID_FOR_MS = 60 * 60 * 1000
/** Approvals that end in more than 24 hours are invalid. Other clocks may be this far behind. */
const CLOCK_MARGIN_MS = 10 * 60 * 1000

/**
 * Fixes a request with a transaction's nonce and fees, so that it can be approved on other devices. `approvals` of the result is how many
 * the rules require. Rejects with `policy_refused` if no rule allows the request. Doesn't reserve the nonce: another transaction of the
 * vault can use it first.
 *
 * @example
 * const prepared = await prepare(client, vault, { kind: 'transaction', to: '0x…', value: '5' })
 */
export async function prepare(
  client: ServiceClient,
  vault: Vault,
  request: PrepareRequest,
  { validForMs = VALID_FOR_MS }: PrepareOptions = {},
): Promise<Prepared> {
  if (!(validForMs > 0 && validForMs <= MAX_APPROVAL_MS)) {
    throw createError('invalid_request', 'approvals last at most 24 hours', { details: '`validForMs`' })
  }
  const content = await createContent(client, vault, request)
  const { address, policy } = vault
  const expiresMs = Math.floor(Date.now() + Math.min(validForMs, MAX_APPROVAL_MS - CLOCK_MARGIN_MS))
  return createPrepared(content, { address, policy, expiresMs })
}

async function createContent(client: ServiceClient, vault: Vault, request: PrepareRequest): Promise<VaultContent> {
  const { chainId } = client.config
  if (request.kind === 'message') return withoutDigest(parseMessage(request))
  if (request.kind === 'typed-data') return withoutDigest(parseTypedData(request, chainId))
  if (request.kind !== 'transaction') throw createError('invalid_request', 'a vault does not sign this kind')
  const { kind, ...transaction } = request
  const call = parseSignRequest(transaction)
  const vaultClient = toVaultClient(client, vault)
  await verifyWallet(vaultClient, vault)
  const nonceAndFees = await withSendLock({ address: vault.address, chainId }, (line) =>
    readNonceAndFees(vaultClient, vault, line),
  )
  return { kind, content: toTxMetadata({ chainId, ...call, ...nonceAndFees }) }
}
