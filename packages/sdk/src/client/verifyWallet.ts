import { type Hex, ServiceError, type WalletInfo } from '@countersign/protocol'
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

type AskForSignatureParameters<R> = {
  wallet: Pick<WalletInfo, 'address'>
  ask: () => Promise<R>
  /** By which the service knows what it has signed before. What is signed off the chain has none: each call makes a proof of its own. */
  digest?: Hex
}

/**
 * Asks again, once, where the answer was lost: the same digest gets the same signature and the same slug (one proof for each).
 * A transaction that is built again would be a second one, with other fees. Not without another look at the wallet: somebody else
 * may have signed in during the half minute in which no answer came.
 */
export async function askForSignature<R>(
  client: Connection,
  { wallet, ask, digest }: AskForSignatureParameters<R>,
): Promise<R> {
  return ask().catch(async (lost: ServiceError) => {
    const look = () => verifyWallet(client, wallet)
    // The service's word for a wallet that is none of this user's.
    if (lost.code === 'vault_not_found') await look()
    if (!digest || !isLost(lost)) throw lost
    return look()
      .then(ask)
      .catch((cause: ServiceError) => {
        const { code, message } = cause.code === 'wallet_changed' ? cause : lost
        const details = `it may have been signed, digest ${digest}: look in listTransactions first`
        throw new ServiceError(code, message, { ...lost, details, cause, retryable: false })
      })
  })
}

/** No answer, or something on the way put its own in the place of it. A refusal is an answer, the SDK's own before it asks too. */
function isLost({ code, status = 0 }: ServiceError): boolean {
  return (status < 400 || status >= 500) && /^(network_unreachable|request_timeout|response_invalid)$/.test(code)
}
