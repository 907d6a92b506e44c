import { hash } from 'node:crypto'
import { type Collateral, describeCollateral } from '@countersign/attestation'
import { toCanonicalJson } from '@countersign/protocol'
import { CoordinatorError } from '../../errors.ts'
import type { Clock } from '../../system.ts'
import type { CollateralStore } from './collateralStore.ts'

export type SimulatedCollateralStoreDeps = {
  /** Of the simulator, which only mock mode ever loads: `(at) => createSimulator({ at })`. */
  simulatorFactory(at: Date): { collateral(): Collateral }
  clock: Clock
}

const DAY_MS = 86_400_000
/** Of what the simulator issues, from now on. */
const LIFETIME_MS = 29 * DAY_MS

/** The collateral of simulated hardware, made again each day, as if Intel had issued it. */
export function createSimulatedCollateralStore(deps: SimulatedCollateralStoreDeps): CollateralStore {
  const { simulatorFactory, clock } = deps
  let made:
    | { collateral: Collateral; bytes: Uint8Array<ArrayBuffer>; hash: string; fmspc: string; madeAt: number }
    | undefined

  function make(now: number) {
    const collateral = simulatorFactory(new Date(now)).collateral()
    const bytes = toCanonicalJson(collateral)
    const { fmspc } = describeCollateral(collateral).tcbInfo
    return { collateral, bytes, hash: hash('sha256', bytes, 'hex'), fmspc, madeAt: now }
  }

  return {
    async current({ fmspc, ca }) {
      const now = clock.now()
      if (made === undefined || now < made.madeAt || now >= made.madeAt + DAY_MS) made = make(now)
      if (fmspc !== made.fmspc || ca !== 'platform') {
        throw new CoordinatorError('collateral_stale', 'no collateral in date for the enclave’s platform')
      }
      return { collateral: made.collateral, bytes: made.bytes, hash: made.hash }
    },
    listLapses: () =>
      made === undefined ? [] : [{ platform: `${made.fmspc} platform`, lapsesAt: made.madeAt + LIFETIME_MS }],
    async stop() {},
  }
}
