import type { Hex } from '@countersign/sdk'
import { useState } from 'react'
import { useConfig } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { createLazyPart } from '../ui/createLazyPart.tsx'

/** Brings the verifier with it, so that it is fetched only for those who ask. */
const MonitorResult = createLazyPart(
  () => import('./MonitorResult.tsx').then((module) => module.MonitorResult),
  <p role="status">Loading the verifier…</p>,
)

/** Whether all that this wallet has on the chain has a proof, checked by this browser. */
export function MonitorCard({ address }: { address: Hex }) {
  const { attestations } = useConfig()
  const [isAsked, setIsAsked] = useState(false)
  if (attestations === undefined) return null
  return (
    <section className="card" aria-labelledby="monitor-heading">
      <h2 id="monitor-heading">Missing proofs</h2>
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
