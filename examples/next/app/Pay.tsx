'use client'

import { useService, useSign } from '@countersign/sdk'
import Link from 'next/link'
import { config } from './config'

export function Pay() {
  const { user, wallet, ready, error: serviceError, login, logout } = useService()
  const { signAndSend, pending, error, lastResult } = useSign()

  // The server's render, and the browser's first.
  if (!ready) return <p>Loading…</p>
  if (!user)
    return (
      <>
        <button type="button" onClick={login}>
          Sign in
        </button>
        {serviceError && <p role="alert">{serviceError.message}</p>}
      </>
    )
  if (!wallet) return <p>{serviceError?.message ?? 'Creating your wallet…'}</p>

  const getTestEth = () =>
    fetch(`${config.rpcUrl}/faucet`, { method: 'POST', body: JSON.stringify({ address: wallet.address }) })
  const pay = () => signAndSend({ to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', value: '0.001' })
  return (
    <>
      <p>
        {user.name}: {wallet.address}
      </p>
      <button type="button" onClick={() => getTestEth().catch(() => {})}>
        Get test ETH
      </button>
      <button type="button" disabled={pending} onClick={() => pay().catch(() => {})}>
        Pay 0.001 ETH
      </button>
      <button type="button" onClick={() => logout().catch(() => {})}>
        Sign out
      </button>
      {error && <p role="alert">{error.message}</p>}
      {lastResult && <Link href={`/proof/${lastResult.attestationSlug}`}>Proof of {lastResult.txHash}</Link>}
    </>
  )
}
