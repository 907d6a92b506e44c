import { useState } from 'react'
import { useCoin } from '../config.ts'
import { Button } from '../ui/Button.tsx'

type FaucetButtonProps = {
  faucetUrl: string
  address: string
  /** Whether the wallet is empty, which makes this the main action. */
  isFirstStep: boolean
  onFunded: () => void
}

/** Funds the wallet on a local chain. */
export function FaucetButton({ faucetUrl, address, isFirstStep, onFunded }: FaucetButtonProps) {
  const [isRequesting, setIsRequesting] = useState(false)
  const [message, setMessage] = useState('')
  const coin = useCoin()

  async function request() {
    if (isRequesting) return
    setIsRequesting(true)
    setMessage('')
    try {
      await requestFunds(globalThis.fetch, { faucetUrl, address })
      setMessage(`The faucet sent 1 ${coin}.`)
      onFunded()
    } catch (error) {
      setMessage(error instanceof FaucetError ? error.message : 'The faucet failed.')
    }
    setIsRequesting(false)
  }

  return (
    <div className="faucet">
      <Button {...(!isFirstStep && { look: 'quiet' })} onClick={request} isBusy={isRequesting}>
        {isRequesting ? 'Requesting…' : `Get test ${coin}`}
      </Button>
      <p className="field-hint" role="status">
        {message}
      </p>
    </div>
  )
}

/** A failed faucet request. Its message can be shown. */
export class FaucetError extends Error {
  override name = 'FaucetError'
}

/** Requests one ether from a local chain's faucet. Returns the transaction hash. */
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
    throw new FaucetError('The faucet is unavailable. Is the local chain running?')
  }
  const { txHash, error } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  if (response.ok && typeof txHash === 'string') return txHash
  const reason = typeof error === 'string' ? error.slice(0, 200) : `status ${response.status}`
  throw new FaucetError(`The faucet request failed: ${reason}.`)
}
