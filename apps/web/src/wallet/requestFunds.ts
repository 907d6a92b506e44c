/** The faucet gave nothing. The message can be shown. */
export class FaucetError extends Error {
  override name = 'FaucetError'
}

/** Asks the faucet of a local chain for an ether. Gives the hash of its payment. */
export async function requestFunds(
  fetch: typeof globalThis.fetch,
  { faucetUrl, address }: { faucetUrl: string; address: string },
): Promise<string> {
  let response: Response
  let body: unknown
  try {
    response = await fetch(faucetUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ address }),
    })
    body = await response.json()
  } catch {
    throw new FaucetError('The faucet cannot be reached. Is the local chain running?')
  }
  const { txHash, error } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  if (response.ok && typeof txHash === 'string') return txHash
  const reason = typeof error === 'string' ? error.slice(0, 200) : `it answered ${response.status}`
  throw new FaucetError(`The faucet gave nothing: ${reason}.`)
}
