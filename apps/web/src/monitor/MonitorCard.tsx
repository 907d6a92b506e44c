import type { Hex } from '@countersign/sdk'
import { lazy, Suspense, useState } from 'react'
import { useConfig } from '../config.ts'

/** Brings the verifier with it, so that it is fetched only for those who ask. */
const MonitorResult = lazy(() => import('./MonitorResult.tsx').then((module) => ({ default: module.MonitorResult })))

/** Whether all that this wallet has on the chain has a proof, checked by this browser. */
export function MonitorCard({ address }: { address: Hex }) {
  const { attestations } = useConfig()
  const [isAsked, setIsAsked] = useState(false)
  if (attestations === undefined) return null
  return (
    <section className="card" aria-labelledby="monitor-heading">
      <h2 id="monitor-heading">Are all proofs there?</h2>
      {isAsked ? (
        <Suspense fallback={<p role="status">Fetching the verifier …</p>}>
          <MonitorResult address={address} />
        </Suspense>
      ) : (
        <>
          <p>Your browser can look through the chain for a use of this wallet that has no proof.</p>
          <button type="button" className="button" onClick={() => setIsAsked(true)}>
            Check all transactions
          </button>
        </>
      )}
    </section>
  )
}
