import type { TransactionPage, WalletInfo } from '@countersign/protocol'
import { CoordinatorError, invalidRequest } from '../errors.ts'
import type { Entropy } from '../sign/entropy/readAhead.ts'
import type { Store } from '../store/openStore.ts'
import type { Session } from '../store/sessions.ts'
import type { User } from '../store/users.ts'
import type { Wallet } from '../store/wallets.ts'
import type { Clock } from '../system.ts'

export type ProvisionWalletDeps = {
  store: Pick<Store, 'findWallet' | 'createWallet'>
  entropy: Pick<Entropy, 'takeVerified'>
  clock: Clock
}

/**
 * `POST /wallet/provision`. The enclave returned key and address when it opened the session. This stores them with a fresh entropy sample. A
 * repeated call returns the existing wallet and uses no sample.
 */
export async function provisionWallet(
  deps: ProvisionWalletDeps,
  { user, session }: { user: User; session: Pick<Session, 'address' | 'keyId'> },
): Promise<Wallet> {
  const earlier = await deps.store.findWallet(user.id)
  if (earlier !== undefined) {
    assertOwnAddress(earlier, session)
    return earlier
  }
  const [witness] = await deps.entropy.takeVerified(1)
  if (witness === undefined) throw new CoordinatorError('entropy_unavailable', 'no sample is available')
  const { address, keyId: kmsKeyId } = session
  return deps.store.createWallet({ userId: user.id, address, kmsKeyId, witness, now: deps.clock.now() })
}

/** `GET /wallet/me`. Throws `wallet_not_found` and `key_binding_mismatch`. */
export async function getWallet(
  deps: { store: Pick<Store, 'findWallet'> },
  { userId, session }: { userId: string; session: Pick<Session, 'address'> },
): Promise<WalletInfo> {
  const wallet = await deps.store.findWallet(userId)
  if (wallet === undefined) throw new CoordinatorError('wallet_not_found', 'the user has no wallet')
  assertOwnAddress(wallet, session)
  return toWalletInfo(wallet)
}

/**
 * Compares with the address that the enclave returned when it opened the session. A different row was changed by hand, and payments to its
 * address would be lost.
 */
function assertOwnAddress(wallet: Pick<Wallet, 'address'>, session: Pick<Session, 'address'>): void {
  if (wallet.address === session.address) return
  throw new CoordinatorError('key_binding_mismatch', 'wallet and session have different addresses')
}

/** The public part of a wallet, without its key id and user. */
export function toWalletInfo({ address, createdAt, provenance }: Wallet): WalletInfo {
  const { entropyHash, entropySig, satelliteSource } = provenance
  return {
    address,
    createdAt: new Date(createdAt).toISOString(),
    provenance: { entropyHash, entropySig, satelliteSource },
  }
}

type ListTransactionsParameters = {
  userId: string
  /** All values in the query. Each parameter may occur once. */
  limits: readonly string[]
  cursors: readonly string[]
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const MAX_ID = 2n ** 63n - 1n

/**
 * `GET /wallet/transactions`: the user's signatures, newest first. A cursor is a position among the signatures of all users, so it reveals
 * and authorizes nothing.
 */
export async function listTransactions(
  deps: { store: Pick<Store, 'listTransactions'> },
  { userId, limits, cursors }: ListTransactionsParameters,
): Promise<TransactionPage> {
  const limit = parseLimit(limits)
  const before = parseCursor(cursors)
  // One more than requested shows whether there are more.
  const found = await deps.store.listTransactions({ userId, limit: limit + 1, before })
  const page = found.slice(0, limit)
  const last = page.at(-1)
  return {
    transactions: page.map(({ id: _, ...transaction }) => ({
      ...transaction,
      createdAt: new Date(transaction.createdAt).toISOString(),
    })),
    nextCursor: found.length > limit && last !== undefined ? toCursor(BigInt(last.id)) : null,
  }
}

function parseLimit([text, ...rest]: readonly string[]): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^[1-9][0-9]{0,2}$/.test(text) ? Number(text) : Number.NaN
  if (rest.length > 0 || !(limit <= MAX_LIMIT)) throw invalidRequest(`limit is not an integer from 1 to ${MAX_LIMIT}`)
  return limit
}

export function parseCursor([text, ...rest]: readonly string[]): string | undefined {
  if (text === undefined) return undefined
  const bytes = Buffer.from(text, 'base64url')
  const id = bytes.length === 8 ? bytes.readBigUInt64BE() : 0n
  // The decoder is lenient, so only the canonical encoding is accepted.
  if (rest.length > 0 || id < 1n || id > MAX_ID || toCursor(id) !== text) throw invalidRequest('invalid cursor')
  return id.toString()
}

export function toCursor(id: bigint): string {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(id)
  return bytes.toString('base64url')
}
