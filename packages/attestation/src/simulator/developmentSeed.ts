import type { AmdPrimeOffsets } from './amdPki.ts'

/** PUBLIC. Everybody can derive every key from it, so what is signed under its roots proves nothing. For development only. */
export const developmentSeed = 'countersign simulated silicon: this seed is PUBLIC and for DEVELOPMENT ONLY'

/** Where `findPrimeOffsets` found the primes of `developmentSeed`; a test checks them again. */
export const developmentPrimeOffsets: AmdPrimeOffsets = {
  ark: [1388, 130],
  ask: [704, 1358],
  asvk: [50, 114],
  foreign: [2660, 786],
}
