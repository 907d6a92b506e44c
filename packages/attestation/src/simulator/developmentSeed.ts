import type { AmdPrimeOffsets } from './amdPki.ts'

/** PUBLIC. Everybody can derive every key from it, so what is signed under its roots proves nothing. For development only. */
export const developmentSeed = 'countersign simulated silicon: this seed is PUBLIC and for DEVELOPMENT ONLY'

/** As public. Its roots are others, for tests of evidence that a reader has no reason to trust. */
export const strangerSeed = 'a stranger: this seed is PUBLIC and for TESTS ONLY'

/** Where `findPrimeOffsets` found the primes of these seeds; a test checks them again. */
export const primeOffsets: Readonly<Record<string, AmdPrimeOffsets>> = {
  [developmentSeed]: {
    ark: [1388, 130],
    ask: [704, 1358],
    asvk: [50, 114],
    foreign: [2660, 786],
  },
  [strangerSeed]: {
    ark: [2106, 1034],
    ask: [328, 28],
    asvk: [184, 1090],
    foreign: [774, 468],
  },
}
