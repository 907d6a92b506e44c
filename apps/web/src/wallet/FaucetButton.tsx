import { useState } from 'react'
import { FaucetError, requestFunds } from './requestFunds.ts'

export type FaucetButtonProps = {
  faucetUrl: string
  address: string
  /** An empty wallet can do nothing before. */
  isFirstStep: boolean
  onFunded: () => void
}

/** Funds the wallet on a local chain, where ether is worth nothing. */
export function FaucetButton({ faucetUrl, address, isFirstStep, onFunded }: FaucetButtonProps) {
  const [isAsking, setIsAsking] = useState(false)
  const [said, setSaid] = useState('')

  async function ask() {
    if (isAsking) return
    setIsAsking(true)
    setSaid('')
    try {
      await requestFunds(globalThis.fetch, { faucetUrl, address })
      setSaid('The faucet sent 1 ETH.')
      onFunded()
    } catch (error) {
      setSaid(error instanceof FaucetError ? error.message : 'The faucet failed.')
    }
    setIsAsking(false)
  }

  return (
    <div className="faucet">
      <button
        type="button"
        className={isFirstStep ? 'button' : 'button button-quiet'}
        onClick={ask}
        aria-disabled={isAsking}
      >
        {isAsking ? 'Asking the faucet …' : 'Fund from the local faucet'}
      </button>
      <p className="field-hint" role="status">
        {said}
      </p>
    </div>
  )
}
