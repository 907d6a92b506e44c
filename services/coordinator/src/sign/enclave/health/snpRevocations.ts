import { QuoteError, type VerifiedReport, type Verifier } from '@countersign/attestation'
import { type KdsClient, VendorError } from '@countersign/evidence'
import type { Log } from '@countersign/service'
import { isAhead } from '../../../isAhead.ts'
import type { SnpChain } from './snpCertificates.ts'

/** AMD's list in DER, and its expiry. */
type SnpRevocationList = { bytes: Uint8Array; nextUpdate: Date }

/**
 * Returns AMD's revocation list for a report's certificates, or undefined if none is available: not every guest may reach AMD. Throws
 * `certificate_revoked` if the list names one of them.
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

/** The KDS allows few requests, and AMD's lists are valid for months. */
const REFRESH_MS = 86_400_000

/**
 * An enclave reads at most 128 KiB of an introduction, which holds this list in hex. A larger list would make the enclave refuse the
 * introduction.
 */
const MAX_LIST_BYTES = 32_768

/** Fetches the list once a day. An unusable list counts as none: only a revocation stops the coordinator. */
export function createSnpRevocations({ verifier, kds, log }: SnpRevocationsDeps): SnpRevocations {
  let known: { list: Uint8Array; fetchedAt: number } | undefined

  return async ({ certificates, verified }, at) => {
    if (kds === undefined) return undefined
    const { product, body } = verified

    /** Returns undefined if the list can't be used. */
    async function checkList(bytes: Uint8Array): Promise<SnpRevocationList | undefined> {
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
      // Store the list before checking it: a revocation must count even if AMD doesn't answer next time.
      if (list !== undefined) known = { list, fetchedAt: now }
      if (list !== undefined && (await checkList(list)) === undefined) known = before
    }
    const checked = known && (await checkList(known.list))
    if (checked === undefined) known = undefined
    if (checked === undefined || checked.bytes.length <= MAX_LIST_BYTES) return checked
    log.warn({ msg: 'AMD’s revocation list is too large to use', bytes: checked.bytes.length })
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
