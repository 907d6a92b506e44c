import type { WalletInfo } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Store } from '../ports.ts'
import type { Wallet } from '../store/types.ts'

/** `GET /wallet/me`. Throws `wallet_not_found`. */
export async function getWallet(
  deps: { store: Pick<Store, 'findWallet'> },
  { userId }: { userId: string },
): Promise<WalletInfo> {
  const wallet = await deps.store.findWallet(userId)
  if (wallet === undefined) throw new CoordinatorError('wallet_not_found', 'the user has no wallet')
  return toWalletInfo(wallet)
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
