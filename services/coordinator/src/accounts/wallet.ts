import type { AnyWitness, WalletInfo } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Store } from '../store/openStore.ts'
import type { Session } from '../store/sessions.ts'
import type { User } from '../store/users.ts'
import type { Wallet } from '../store/wallets.ts'
import type { Clock } from '../system.ts'

export type ProvisionWalletDeps = {
  store: Pick<Store, 'findWallet' | 'createWallet'>
  entropy: { take(count: number): Promise<AnyWitness[]> }
  clock: Clock
}

/**
 * `POST /wallet/provision`. The enclave named key and address when it opened the session; what is made here is their record,
 * with a fresh sample as its witness. Asked again, it answers what is there and draws nothing.
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
  const [witness] = await deps.entropy.take(1)
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

/** The enclave named the address when it opened the session. A row that has another was changed by hand: what is paid there is lost. */
function assertOwnAddress(wallet: Pick<Wallet, 'address'>, session: Pick<Session, 'address'>): void {
  if (wallet.address === session.address) return
  throw new CoordinatorError('key_binding_mismatch', 'wallet and session have different addresses')
}

/** The public part of a wallet: never its key id or its user. */
export function toWalletInfo({ address, createdAt, provenance }: Wallet): WalletInfo {
  const { entropyHash, entropySig, satelliteSource } = provenance
  return {
    address,
    createdAt: new Date(createdAt).toISOString(),
    provenance: { entropyHash, entropySig, satelliteSource },
  }
}
