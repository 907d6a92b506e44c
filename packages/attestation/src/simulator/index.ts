import type { TrustedRoot } from '../roots.ts'
import type { SnpProduct } from '../snp/endorsementKey.ts'
import type { Collateral } from '../tdx/collateral.ts'
import {
  type AmdPki,
  amdTrustedRoot,
  createAmdPki,
  createRevocations,
  primeOffsets,
  type SimulatedCertificateOptions,
  type SimulatedCertificates,
  type SimulatedRevocationOptions,
} from './amdPki.ts'
import { createSimulatedBeacon, createSimulatedSatellite } from './entropy.ts'
import { createIntelPki, type IntelPki, intelTrustedRoot } from './intelPki.ts'
import { createMemo, developmentSeed } from './keys.ts'
import { createReport, type SimulatedReportOptions } from './snpReport.ts'
import { createCollateral, type SimulatedCollateralOptions } from './tdxCollateral.ts'
import { createQuote, type SimulatedQuoteOptions } from './tdxQuote.ts'

/** Simulated hardware of both vendors. The same seed, time and options always give the same bytes. */
export type Simulator = {
  readonly intelRoot: TrustedRoot
  /** The root of Milan. */
  readonly amdRoot: TrustedRoot
  amdRootOf: (product: SnpProduct) => TrustedRoot
  /** A TDX quote. */
  quote: (options: SimulatedQuoteOptions) => Uint8Array
  /** Intel's collateral for its quotes. */
  collateral: (options?: SimulatedCollateralOptions) => Collateral
  /** An SEV-SNP report. */
  report: (options: SimulatedReportOptions) => Uint8Array
  /** The chain of the key that signs a report with the same `signingKey`, `chipId` and reported TCB. */
  certificates: (options?: SimulatedCertificateOptions) => SimulatedCertificates
  /** AMD's revocation list, DER. */
  revocations: (options?: SimulatedRevocationOptions) => Uint8Array
}

/**
 * A development PKI that issues well-formed, correctly signed evidence under its own roots. It creates keys and certificates when
 * they are first needed. For a seed without stored primes, the first report or root takes some seconds.
 *
 * @example
 * const simulator = createSimulator({ at: new Date() })
 * const quote = simulator.quote({ reportData: new Uint8Array(64), status: 'OutOfDate' })
 * const collateral = simulator.collateral()
 */
export function createSimulator({ seed = developmentSeed, at }: { seed?: string; at: Date }): Simulator {
  const memo = createMemo()
  const pki = intelPkiOf(seed)
  const foreignPki = intelPkiOf(`${seed} (foreign)`)
  const amdPki = amdPkiOf(seed)
  return {
    get intelRoot() {
      return memo('intel root', () => intelTrustedRoot(pki))
    },
    get amdRoot() {
      return memo('amd root', () => amdTrustedRoot(amdPki))
    },
    amdRootOf: (product) => amdTrustedRoot(amdPki, product),
    quote: (options) => createQuote({ seed, memo, pki, foreignPki }, options),
    collateral: (options) => createCollateral({ seed, pki, foreignPki, at }, options),
    report: (options) => createReport({ seed, pki: amdPki }, options),
    certificates: (options) => amdPki.certificates(options),
    revocations: (options) => createRevocations({ pki: amdPki, at }, options),
  }
}

/** The roots of a seed. Trust them only where evidence may be simulated. */
export function simulatedRoots(seed: string = developmentSeed): readonly TrustedRoot[] {
  return [intelTrustedRoot(intelPkiOf(seed)), amdTrustedRoot(amdPkiOf(seed))]
}

/** The public keys of a seed's satellite and beacon. A sample signed with one of them is simulated. */
export function simulatedEntropyKeys(seed: string = developmentSeed): readonly string[] {
  return pkis(`entropy ${seed}`, () => [
    createSimulatedSatellite(seed).publicKey,
    createSimulatedBeacon(seed).beacon.key,
  ])
}

/** Simulators with one seed share keys and certificates, which depend only on the seed and take long to create. */
const pkis = createMemo()

function intelPkiOf(seed: string): IntelPki {
  return pkis(`intel ${seed}`, () => createIntelPki(seed))
}

function amdPkiOf(seed: string): AmdPki {
  return pkis(`amd ${seed}`, () => createAmdPki(seed, primeOffsets[seed]))
}

export type {
  SimulatedCertificateFaults,
  SimulatedCertificateOptions,
  SimulatedCertificates,
  SimulatedRevocationFaults,
  SimulatedRevocationOptions,
  SnpSigningKey,
  SnpTcb,
} from './amdPki.ts'
export {
  createSimulatedBeacon,
  createSimulatedSatellite,
  type SimulatedBeacon,
  type SimulatedSatellite,
} from './entropy.ts'
export { developmentSeed, strangerSeed } from './keys.ts'
export type { SimulatedReportFaults, SimulatedReportOptions } from './snpReport.ts'
export type { SimulatedPartStatus, SimulatedTcbStatus } from './tcbLevels.ts'
export type { SimulatedCollateralFaults, SimulatedCollateralOptions } from './tdxCollateral.ts'
export type { SimulatedQuoteFaults, SimulatedQuoteOptions } from './tdxQuote.ts'
