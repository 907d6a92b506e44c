import { MAX_APPROVAL_MS } from '@countersign/policy'
import type { SignRequest, TypedData } from '@countersign/protocol'
import { createError } from '../client/errors.ts'
import { type OffChain, parseMessage, parseTypedData, type SignMessageRequest } from '../client/parseOffChain.ts'
import { parseSignRequest } from '../client/parseSignRequest.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { withSendLock } from '../client/sendLock.ts'
import { readNonceAndFees } from '../client/signAndSend.ts'
import { toTxMetadata } from '../client/signTransaction.ts'
import { verifyWallet } from '../client/verifyWallet.ts'
import { createPrepared, type Prepared, type VaultContent } from './prepared.ts'
import { toVaultClient } from './toVaultClient.ts'
import type { Vault } from './vault.ts'

/** What a vault is to sign: as the client takes it, with its kind. */
export type PrepareRequest =
  | ({ kind: 'transaction' } & SignRequest)
  | ({ kind: 'message' } & SignMessageRequest)
  | ({ kind: 'typed-data' } & TypedData)

export type PrepareOptions = {
  /**
   * How long its approvals hold: an hour if it is not given, at most 24, of which ten minutes are left out for clocks that differ. Keep it
   * short: what waits can be sent later.
   */
  validForMs?: number | undefined
}

const VALID_FOR_MS = 60 * 60 * 1000
/** An approval that ends later than 24 hours from now counts nowhere, by a clock that may be this far behind. */
const CLOCK_MARGIN_MS = 10 * 60 * 1000

/**
 * Fixes what a vault is to sign, nonce and fees of a transaction included, so that it can be approved on other devices. `approvals` of
 * the answer is how many the vault's rules ask for; rejects with `policy_refused` where they allow it to nobody. Nothing is reserved:
 * what is sent from the vault meanwhile takes the nonce.
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
    throw createError('invalid_request', 'approvals hold for at most 24 hours', { details: '`validForMs`' })
  }
  const asked = await fix(client, vault, request)
  const { address, policy } = vault
  const expiresMs = Math.floor(Date.now() + Math.min(validForMs, MAX_APPROVAL_MS - CLOCK_MARGIN_MS))
  return createPrepared(asked, { address, policy, expiresMs })
}

async function fix(client: ServiceClient, vault: Vault, request: PrepareRequest): Promise<VaultContent> {
  const { chainId } = client.config
  if (request.kind === 'message') return withoutDigest(parseMessage(request))
  if (request.kind === 'typed-data') return withoutDigest(parseTypedData(request, chainId))
  if (request.kind !== 'transaction') throw createError('invalid_request', 'a vault signs nothing of this kind')
  const { kind, ...transaction } = request
  const call = parseSignRequest(transaction)
  const vaultClient = toVaultClient(client, vault)
  await verifyWallet(vaultClient, vault)
  const nonceAndFees = await withSendLock({ address: vault.address, chainId }, (line) =>
    readNonceAndFees(vaultClient, vault, line),
  )
  return { kind, content: toTxMetadata({ chainId, ...call, ...nonceAndFees }) }
}

function withoutDigest({ digest: _, ...asked }: OffChain): VaultContent {
  return asked
}
