import { useMutation } from '@tanstack/react-query'
import { createSiweMessage } from 'viem/siwe'
import { useConnect, useConnection, useConnectors, useSignMessage } from 'wagmi'

export function App() {
  const { address, chainId } = useConnection()
  const [connector] = useConnectors()
  const connect = useConnect()
  const { mutateAsync: signMessage } = useSignMessage()

  const signIn = useMutation({
    async mutationFn() {
      if (address === undefined || chainId === undefined) throw new Error('Connect your wallet first.')
      const nonce = await (await fetch('/siwe/nonce')).text()
      const { host: domain, origin: uri } = window.location
      const message = createSiweMessage({ address, chainId, domain, uri, nonce, version: '1' })
      const signature = await signMessage({ message })
      const answer = await fetch('/siwe/verify', { method: 'POST', body: JSON.stringify({ message, signature }) })
      if (!answer.ok) throw new Error('The server rejected the signature.')
      return answer.text()
    },
  })

  const error = connect.error ?? signIn.error
  return (
    <>
      <p>{address ?? 'Not connected'}</p>
      {address === undefined ? (
        <button
          type="button"
          disabled={connector === undefined}
          onClick={() => connector && connect.mutate({ connector })}
        >
          Connect
        </button>
      ) : (
        <button type="button" disabled={signIn.isPending} onClick={() => signIn.mutate()}>
          Sign in with Ethereum
        </button>
      )}
      {signIn.data && <p role="status">Signed in as {signIn.data}.</p>}
      {error && <p role="alert">{error.message}</p>}
    </>
  )
}
