import { QuoteError, type VerifiedReport, type Verifier } from '@countersign/attestation'
import { type KdsClient, VendorError } from '@countersign/evidence'
import type { Log } from '@countersign/service'
import { isAhead } from '../../../isAhead.ts'
import type { SnpChain } from './snpCertificates.ts'

/** AMD's list, DER, and until when it is in date. */
type SnpRevocationList = { bytes: Uint8Array; nextUpdate: Date }

/**
 * AMD's revocation list for the certificates of a report, or undefined where none can be had: not all guests may reach AMD.
 * Throws `certificate_revoked` where it names one of them.
 */
export type SnpRevocations = (
  evidence: { certificates: SnpChain; verified: VerifiedReport },
  at: Date,
) => Promise<SnpRevocationList | undefined>

export type SnpRevocationsDeps = {
  verifier: Pick<Verifier, 'verifyRevocations'>
  kds?: Pick<KdsClient, 'getRevocations'>
  log: Pick<Log, 'warn'>
}

/** The KDS allows few requests, and AMD issues its lists for months. */
const REFRESH_MS = 86_400_000

/** An enclave reads 128 KiB of an introduction, in which the list is hex: with a larger one it would refuse all of it. */
const MAX_LIST_BYTES = 32_768

/** The list is fetched once a day and kept meanwhile. A list that cannot be used is no list: only a revocation stops the coordinator. */
export function createSnpRevocations({ verifier, kds, log }: SnpRevocationsDeps): SnpRevocations {
  let known: { list: Uint8Array; fetchedAt: number } | undefined

  return async ({ certificates, verified }, at) => {
    if (kds === undefined) return undefined
    const { product, body } = verified

    /** Undefined where it cannot be used. */
    async function judge(bytes: Uint8Array): Promise<SnpRevocationList | undefined> {
      try {
        const { nextUpdate } = await verifier.verifyRevocations({ certificates, list: bytes, at })
        return { bytes, nextUpdate }
      } catch (error) {
        if (!(error instanceof QuoteError) || error.code === 'certificate_revoked') throw error
        log.warn({ msg: 'Could not use AMD’s revocation list', code: error.code })
        return undefined
      }
    }

    const now = at.getTime()
    if (known === undefined || !isAhead(known.fetchedAt + REFRESH_MS, { now, spanMs: REFRESH_MS })) {
      const list = await fetchList(() => kds.getRevocations({ product, kind: body.signingKey }), log)
      const before = known
      // Kept before it is judged: a revocation must count on where AMD does not answer the next time.
      if (list !== undefined) known = { list, fetchedAt: now }
      if (list !== undefined && (await judge(list)) === undefined) known = before
    }
    const judged = known && (await judge(known.list))
    if (judged === undefined) known = undefined
    if (judged === undefined || judged.bytes.length <= MAX_LIST_BYTES) return judged
    log.warn({ msg: 'Left out AMD’s revocation list, which is too large', bytes: judged.bytes.length })
    return undefined
  }
}

async function fetchList(get: () => Promise<Uint8Array>, log: SnpRevocationsDeps['log']) {
  try {
    return await get()
  } catch (error) {
    if (!(error instanceof VendorError)) throw error
    log.warn({ msg: 'Could not fetch AMD’s revocation list', code: error.code, reason: error.details })
    return undefined
  }
}
