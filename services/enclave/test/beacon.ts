import { createSimulatedBeacon } from '@countersign/attestation/simulator'
import type { DrandWitness } from '@countersign/protocol'

const simulated = createSimulatedBeacon()

/** A public beacon with a test key, so that rounds of any time can be created. */
export const { beacon } = simulated

/** The round at a time, or the last one before it. */
export const createRound = (timeMs: number): DrandWitness => simulated.getRound(new Date(timeMs))
