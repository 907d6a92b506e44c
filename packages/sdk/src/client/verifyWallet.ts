import { type Hex, ServiceError, type WalletInfo } from '@countersign/protocol'
import type { SigningConnection } from './connection.ts'
import { createError, walletNotReady } from './errors.ts'

type WalletReader = { readonly api: Pick<SigningConnection['api'], 'getWallet'> }

/**
 * The session's wallet. Throws `wallet_changed` unless it is `wallet`: all tabs share the cookie, so another tab may have signed in
 * another user, and the service would sign with that user's key.
 */
export async function verifyWallet(client: WalletReader, wallet?: Pick<WalletInfo, 'address'>): Promise<WalletInfo> {
  const current = await client.api.getWallet()
  if (current === null) throw walletNotReady()
  if (wallet && current.address.toLowerCase() !== wallet.address.toLowerCase()) {
    throw createError('wallet_changed', 'another user is signed in now', { details: current.address })
  }
  return current
}

type RequestSignatureParameters<R> = {
  wallet: Pick<WalletInfo, 'address'>
  ask: () => Promise<R>
  /** The service returns the same signature for the same digest. Off-chain requests have none: each call creates another proof. */
  digest?: Hex
}

/**
 * Retries once if the answer was lost: the service returns the same signature and slug for the same digest. A transaction built again
 * would be a second one, with other fees. Checks the wallet before the retry, because another user may have signed in meanwhile.
 */
export async function requestSignature<R>(
  client: WalletReader,
  { wallet, ask, digest }: RequestSignatureParameters<R>,
): Promise<R> {
  return ask().catch(async (error: ServiceError) => {
    const verify = () => verifyWallet(client, wallet)
    // The service returns this code for another user's wallet.
    if (error.code === 'vault_not_found') await verify()
    if (!digest || !isLost(error)) throw error
    return verify()
      .then(ask)
      .catch((cause: ServiceError) => {
        const { code, message } = cause.code === 'wallet_changed' ? cause : error
        const details = `may have been signed: look for ${digest} in listTransactions`
        throw new ServiceError(code, message, { ...error, details, cause, retryable: false })
      })
  })
}

/** No answer, or a proxy replaced it. An error that the service or the SDK returned is an answer. */
function isLost({ code, status = 0 }: ServiceError): boolean {
  return (status < 400 || status >= 500) && /^(network_unreachable|request_timeout|response_invalid)$/.test(code)
}
