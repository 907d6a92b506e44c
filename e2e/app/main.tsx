import { type Hex, ServiceProvider, useAttestation, useService, useSign } from '@countersign/sdk'
import { StrictMode, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { config } from './config.ts'
import { View } from './View.tsx'

let mounts = 0

function App() {
  const [outcomes, setOutcomes] = useState<unknown[]>([])

  /** Waits for calls made at once and shows their outcomes. */
  async function show(calls: readonly Promise<unknown>[]) {
    setOutcomes([])
    const settled = await Promise.allSettled(calls)
    setOutcomes(
      settled.map((one) => (one.status === 'fulfilled' ? { value: one.value ?? null } : { error: one.reason })),
    )
  }

  return (
    <>
      <Account show={show} />
      <Pay show={show} />
      <View name="outcomes" value={outcomes} />
    </>
  )
}

type Show = (calls: readonly Promise<unknown>[]) => Promise<void>

function Account({ show }: { show: Show }) {
  const { user, wallet, ready, error, login, logout, refresh } = useService()
  useEffect(() => {
    mounts += 1
  }, [])
  return (
    <>
      <button type="button" onClick={login}>
        Sign in
      </button>
      <button type="button" onClick={() => show([refresh()])}>
        Refresh
      </button>
      <button type="button" onClick={() => show([logout()])}>
        Sign out
      </button>
      <View name="useService" value={{ user, wallet, ready, error }} />
      <View name="mounts" value={mounts} />
    </>
  )
}

/** Sends the same payment once or several times at once, and follows the last proof. */
function Pay({ show }: { show: Show }) {
  const { signAndSend, pending, error, lastResult } = useSign()
  const { proof, loading, error: proofError } = useAttestation(lastResult?.attestationSlug)

  function pay(form: FormData) {
    const text = (name: string) => String(form.get(name))
    const request = { to: text('to') as Hex, value: text('value'), data: text('data') as Hex }
    void show(Array.from({ length: Number(text('count')) }, () => signAndSend(request)))
  }

  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          pay(new FormData(event.currentTarget))
        }}
      >
        <input aria-label="To" name="to" />
        <input aria-label="Ether" name="value" defaultValue="0" />
        <input aria-label="Data" name="data" defaultValue="0x" />
        <input aria-label="Times" name="count" defaultValue="1" />
        <button type="submit">Pay</button>
      </form>
      <View name="useSign" value={{ pending, error, lastResult }} />
      <View name="useAttestation" value={{ proof, loading, error: proofError }} />
    </>
  )
}

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <ServiceProvider config={config}>
        <App />
      </ServiceProvider>
    </StrictMode>,
  )
}
