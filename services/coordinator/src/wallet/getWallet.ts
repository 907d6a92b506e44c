import type { WalletInfo } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Store } from '../ports.ts'
import type { Session, Wallet } from '../store/types.ts'

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
export function assertOwnAddress(wallet: Pick<Wallet, 'address'>, session: Pick<Session, 'address'>): void {
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
