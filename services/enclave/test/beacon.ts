import { createSimulatedBeacon } from '@countersign/attestation/simulator'
import type { DrandWitness } from '@countersign/protocol'

const simulated = createSimulatedBeacon()

/** A public beacon whose key is ours, so that rounds of any time can be made. */
export const { beacon } = simulated

/** The round that is due at a time, or was due last. */
export const createRound = (timeMs: number): DrandWitness => simulated.getRound(new Date(timeMs))
