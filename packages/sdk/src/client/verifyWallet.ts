import type { WalletInfo } from '@countersign/protocol'
import type { Connection } from './connection.ts'
import { createError, walletNotReady } from './errors.ts'

/**
 * The wallet that the session has. Where one is given it makes sure, before something is signed, that it is still that one: another
 * tab may have signed in another user, all tabs share the cookie, and the service would sign with that user's key.
 */
export async function verifyWallet(client: Connection, wallet?: Pick<WalletInfo, 'address'>): Promise<WalletInfo> {
  const found = await client.api.getWallet()
  if (found === null) throw walletNotReady()
  if (wallet && found.address.toLowerCase() !== wallet.address.toLowerCase()) {
    throw createError('wallet_changed', 'another user is signed in now', { details: found.address })
  }
  return found
}
