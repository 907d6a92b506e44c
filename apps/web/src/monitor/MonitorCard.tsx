import type { Hex } from '@countersign/sdk'
import { useState } from 'react'
import { useConfig } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { createLazyPart } from '../ui/createLazyPart.tsx'

/** Includes the verifier, so it's loaded only on request. */
const MonitorResult = createLazyPart(
  () => import('./MonitorResult.tsx').then((module) => module.MonitorResult),
  <p role="status">Loading the verifier…</p>,
)

/** Checks in the browser that every transaction of the wallet has a proof. */
export function MonitorCard({ address }: { address: Hex }) {
  const { attestations } = useConfig()
  const [isAsked, setIsAsked] = useState(false)
  if (attestations === undefined) return null
  return (
    <section className="card" aria-labelledby="monitor-heading">
      <h2 id="monitor-heading">Check for missing proofs</h2>
      {isAsked ? (
        <MonitorResult address={address} />
      ) : (
        <>
          <p>Your browser can search the chain for transactions of this wallet that have no proof.</p>
          <Button onClick={() => setIsAsked(true)}>Check all transactions</Button>
        </>
      )}
    </section>
  )
}
