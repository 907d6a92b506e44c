import type { WalletInfo } from '@countersign/protocol'
import type { Connection } from './connection.ts'
import { createError, walletNotReady } from './errors.ts'

/**
 * Makes sure, before something is signed, that the session is still that of the wallet. Another tab may have signed in another
 * user: all tabs share the cookie, and the service would sign with that user's key.
 */
export async function verifyWallet(client: Connection, { address }: Pick<WalletInfo, 'address'>): Promise<WalletInfo> {
  const found = await client.api.getWallet()
  if (found === null) throw walletNotReady()
  if (found.address.toLowerCase() !== address.toLowerCase()) {
    const details = `the wallet is ${found.address} now; nothing was signed`
    throw createError('wallet_changed', 'another user is signed in now', { details })
  }
  return found
}
