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
  /** Says whether a TDX quote is genuine at a given time, under this collateral. Throws `QuoteError` when it is not. */
  verifyQuote(parameters: VerifyQuoteParameters): Promise<VerifiedQuote>
  /** Says whether an SEV-SNP report is genuine at a given time. Throws `QuoteError` when it is not. */
  verifyReport(parameters: VerifyReportParameters): Promise<VerifiedReport>
  /**
   * Says whether a revocation list of AMD is genuine and in date, and names none of a report's certificates. Throws `QuoteError` when
   * it does not. It does not judge the certificates otherwise: `verifyReport` does.
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
  /** How much evidence to remember, in characters for each kind of fact. */
  cacheBudget?: number
}

const DEFAULT_CACHE_BUDGET = 4_194_304

/**
 * Creates a verifier for TDX quotes and SEV-SNP reports. It never touches the network or the clock. It remembers what it has
 * verified of collateral, platforms and endorsement keys, each for as long as it holds, so that the next quote of the same
 * platform costs one signature check.
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
      // Read once: a caller that changes its object meanwhile changes nothing here.
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

/** A private copy, so that the bytes that were checked are the bytes that are used. */
function copyBytes(bytes: Uint8Array, code: QuoteErrorCode): Uint8Array<ArrayBuffer> {
  if (!(bytes instanceof Uint8Array)) throw new QuoteError(code, 'expected bytes')
  return new Uint8Array(bytes)
}

/** Bytes as a text that no other bytes give: the encoding maps each byte to a character of its own. */
function toText(bytes: Uint8Array): string {
  return new TextDecoder('latin1').decode(bytes)
}

/**
 * Remembers verified facts by the content they were verified from. A fact is only handed out at a time inside its validity
 * window; outside, it is a miss, and verifying again gives the proper error. Least recently used facts leave first, and
 * the texts of all keys together never exceed `budget` characters.
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
