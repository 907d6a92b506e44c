import { inOrder } from './crypto.ts'
import { QuoteError, type QuoteErrorCode } from './errors.ts'
import type { TrustedRoot } from './roots.ts'
import { parseReport } from './snp/parseReport.ts'
import {
  type SnpCertificates,
  type VerifiedEndorsementKey,
  type VerifiedReport,
  type VerifiedRevocations,
  verifyEndorsementKey,
  verifyReport,
  verifyRevocations,
} from './snp/verifyReport.ts'
import { assertCollateral, type Collateral, toCollateralKey } from './tdx/collateral.ts'
import { verifyEventLog } from './tdx/eventLog.ts'
import { type ParsedQuote, parseQuote } from './tdx/parseQuote.ts'
import { type VerifiedCollateral, verifyCollateral } from './tdx/verifyCollateral.ts'
import { type VerifiedPlatform, verifyPlatform } from './tdx/verifyPlatform.ts'
import { type VerifiedQuote, verifyQuote } from './tdx/verifyQuote.ts'
import { createCertificateReader, isWithin, type ValidityWindow } from './x509/verifyChain.ts'

export type Verifier = {
  /** Verifies a TDX quote at a given time with this collateral. Throws `QuoteError` if it is not genuine. */
  verifyQuote(parameters: VerifyQuoteParameters): Promise<VerifiedQuote>
  /** Verifies an SEV-SNP report at a given time. Throws `QuoteError` if it is not genuine. */
  verifyReport(parameters: VerifyReportParameters): Promise<VerifiedReport>
  /**
   * Verifies that AMD's revocation list is genuine and in date, and lists none of a report's certificates. Throws `QuoteError`
   * otherwise. `verifyReport` verifies the certificates themselves.
   */
  verifyRevocations(parameters: VerifyRevocationsParameters): Promise<VerifiedRevocations>
}

export type VerifyQuoteParameters = {
  quote: Uint8Array
  collateral: Collateral
  /** A dstack event log, as JSON; it must explain the quote's RTMRs. */
  eventLog?: string
  at: Date
}

export type VerifyReportParameters = {
  report: Uint8Array
  certificates: { ek: Uint8Array; ask: Uint8Array; ark: Uint8Array }
  at: Date
}

export type VerifyRevocationsParameters = {
  certificates: VerifyReportParameters['certificates']
  /** DER. */
  list: Uint8Array
  at: Date
}

export type CreateVerifierParameters = {
  /** Usually `vendorRoots`. */
  roots: readonly TrustedRoot[]
  /** Size of each of the three caches, in characters. */
  cacheBudget?: number
}

const DEFAULT_CACHE_BUDGET = 4_194_304

/**
 * Creates a verifier for TDX quotes and SEV-SNP reports. It uses neither network nor clock. It caches verified collateral,
 * platforms and endorsement keys while they are valid, so the next quote of the same platform costs one signature check.
 *
 * @example
 * const verifier = createVerifier({ roots: vendorRoots })
 * const verified = await verifier.verifyQuote({ quote, collateral, at: new Date() })
 * assertQuotePolicy(verified, { measurements: [{ mrTd: '91eb…' }], reportData })
 */
export function createVerifier({ roots, cacheBudget = DEFAULT_CACHE_BUDGET }: CreateVerifierParameters): Verifier {
  const intelRoots = roots.filter(({ vendor }) => vendor === 'intel')
  const amdRoots = roots.filter(({ vendor }) => vendor === 'amd')
  const collaterals = createWindowCache<VerifiedCollateral>(cacheBudget)
  const platforms = createWindowCache<VerifiedPlatform>(cacheBudget)
  const endorsementKeys = createWindowCache<VerifiedEndorsementKey>(cacheBudget)

  return {
    async verifyQuote({ quote, collateral, eventLog, at }) {
      const parsed: ParsedQuote = parseQuote(copyBytes(quote, 'quote_malformed'))
      assertCollateral(collateral)
      // A copy, since the caller may change its object during the verification.
      const snapshot = { ...collateral }
      const context = { reader: createCertificateReader(), roots: intelRoots, at: at.getTime() }
      const [verifiedCollateral, platform] = await inOrder([
        remember(collaterals, toCollateralKey(snapshot), context.at, () => verifyCollateral(context, snapshot)),
        remember(platforms, toText(parsed.certification), context.at, () => verifyPlatform(context, parsed)),
      ])
      const verified = await verifyQuote(parsed, platform, verifiedCollateral)
      return eventLog === undefined ? verified : { ...verified, events: await verifyEventLog(parsed.body, eventLog) }
    },

    async verifyReport({ report, certificates, at }) {
      const parsed = parseReport(copyBytes(report, 'report_malformed'))
      const chain = copyChain(certificates)
      const key = [chain.ek, chain.ask, chain.ark].map((der) => `${der.length}:${toText(der)}`).join('')
      const context = { reader: createCertificateReader(), roots: amdRoots, at: at.getTime() }
      const endorsed = await remember(endorsementKeys, key, context.at, () => verifyEndorsementKey(context, chain))
      return verifyReport(parsed, endorsed)
    },

    async verifyRevocations({ certificates, list, at }) {
      const context = { reader: createCertificateReader(), roots: amdRoots, at: at.getTime() }
      const chain = copyChain(certificates)
      return verifyRevocations(context, { certificates: chain, list: copyBytes(list, 'crl_malformed') })
    },
  }
}

function copyChain({ ek, ask, ark }: VerifyReportParameters['certificates']): SnpCertificates {
  return {
    ek: copyBytes(ek, 'certificate_malformed'),
    ask: copyBytes(ask, 'certificate_malformed'),
    ark: copyBytes(ark, 'certificate_malformed'),
  }
}

async function remember<Fact extends { window: ValidityWindow }>(
  cache: WindowCache<Fact>,
  key: string,
  at: number,
  verify: () => Promise<Fact>,
): Promise<Fact> {
  const known = cache.get(key, at)
  if (known !== undefined) return known
  const fact = await verify()
  cache.set(key, fact)
  return fact
}

/** A private copy: the caller may change its bytes during the verification. */
function copyBytes(bytes: Uint8Array, code: QuoteErrorCode): Uint8Array<ArrayBuffer> {
  if (!(bytes instanceof Uint8Array)) throw new QuoteError(code, 'expected bytes')
  return new Uint8Array(bytes)
}

/** A cache key for bytes: latin1 maps each byte to a different character. */
function toText(bytes: Uint8Array): string {
  return new TextDecoder('latin1').decode(bytes)
}

/**
 * Caches verified facts by the content that they were verified from. Outside a fact's validity window `get` misses, so that
 * verifying again gives the right error. Removes the least recently used facts first. All keys together never exceed `budget`
 * characters.
 */
export type WindowCache<Fact> = {
  get(key: string, at: number): Fact | undefined
  set(key: string, fact: Fact): void
}

export function createWindowCache<Fact extends { window: ValidityWindow }>(budget: number): WindowCache<Fact> {
  const facts = new Map<string, Fact>()
  let used = 0

  function remove(key: string) {
    if (facts.delete(key)) used -= key.length
  }

  return {
    get(key, at) {
      const fact = facts.get(key)
      if (fact === undefined || !isWithin(fact.window, at)) return undefined
      facts.delete(key)
      facts.set(key, fact)
      return fact
    },
    set(key, fact) {
      remove(key)
      if (key.length > budget) return
      facts.set(key, fact)
      used += key.length
      for (const oldest of facts.keys()) {
        if (used <= budget) break
        remove(oldest)
      }
    },
  }
}
