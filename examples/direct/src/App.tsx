import { ServiceProvider, useService, useSign, useSignMessage } from '@countersign/sdk'
import { type DirectSession, directSession } from '@countersign/sdk/direct'
import { useEffect, useState } from 'react'

// The page's own client at the identity provider, which returns users only to this origin. The service has no part in the sign-in.
const issuer = 'http://localhost:9090'
const session = directSession({
  provider: 'page',
  issuer,
  clientId: 'countersign-page',
  authorizationUrl: `${issuer}/auth`,
})
const config = { apiBaseUrl: 'http://localhost:8080', chainId: 31337, rpcUrl: 'http://localhost:8545', session }

export default function App() {
  return (
    <ServiceProvider config={config}>
      <Wallet />
    </ServiceProvider>
  )
}

function Wallet() {
  const { user, wallet, ready, error: serviceError, login, logout } = useService()
  const { signAndSend, pending, error, lastResult } = useSign()
  const message = useSignMessage()
  const identity = useIdentity(user?.id)

  if (!ready) return <p>Loading…</p>
  if (!user || !wallet || !identity)
    return (
      <>
        <button type="button" onClick={login}>
          Sign in
        </button>
        {serviceError && <p role="alert">{serviceError.message}</p>}
      </>
    )

  const getTestEth = () =>
    fetch(`${config.rpcUrl}/faucet`, { method: 'POST', body: JSON.stringify({ address: wallet.address }) })
  const pay = () => signAndSend({ to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', value: '0.001' })
  return (
    <>
      <p>
        {identity.email} ({identity.subject} at {identity.issuer}): {wallet.address}
      </p>
      <button type="button" onClick={() => getTestEth().catch(() => {})}>
        Get test ETH
      </button>
      <button type="button" disabled={pending} onClick={() => pay().catch(() => {})}>
        Pay 0.001 ETH
      </button>
      <button
        type="button"
        disabled={message.pending}
        onClick={() => message.signMessage({ message: 'Hello' }).catch(() => {})}
      >
        Sign a message
      </button>
      <button type="button" onClick={() => logout().catch(() => {})}>
        Sign out
      </button>
      {(error ?? message.error) && <p role="alert">{(error ?? message.error)?.message}</p>}
      {lastResult && <Proof of="payment" slug={lastResult.attestationSlug} />}
      {message.lastResult && <Proof of="message" slug={message.lastResult.attestationSlug} />}
    </>
  )
}

/** The user whom the page's own ID token names, for the user whom the service names. */
function useIdentity(userId: string | undefined) {
  const [identity, setIdentity] = useState<Awaited<ReturnType<DirectSession['readIdentity']>>>(null)
  useEffect(() => {
    if (userId !== undefined) session.readIdentity(config).then(setIdentity, () => setIdentity(null))
  }, [userId])
  return identity
}

function Proof({ of, slug }: { of: string; slug: string }) {
  return <a href={`${config.apiBaseUrl}/proof/${slug}`}>Proof of the {of}</a>
}
