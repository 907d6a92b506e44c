import { equalBytes, isZero, type TcbStatus } from '@countersign/protocol/core'
import { verifyEcdsa } from '../crypto.ts'
import { QuoteError } from '../errors.ts'
import type { TrustedRoot } from '../roots.ts'
import { assertNotRevoked, intersectWindows, type ValidityWindow } from '../x509/verifyChain.ts'
import { evaluateTcb } from './evaluateTcb.ts'
import type { RuntimeEvents } from './eventLog.ts'
import { type ParsedQuote, readTdFlags, type TdFlags, type TdReport } from './parseQuote.ts'
import type { PckPlatform } from './pckCertificate.ts'
import { assertIsQuotingEnclave } from './qeIdentity.ts'
import type { VerifiedCollateral } from './verifyCollateral.ts'
import type { VerifiedPlatform } from './verifyPlatform.ts'

/** A genuine TDX quote. A policy must still check `tcb`, `flags` and the measurements in `body`. */
export type VerifiedQuote = {
  version: 4 | 5
  body: TdReport
  /** The root that verified it. Only `root.mode` distinguishes hardware from mock. */
  root: TrustedRoot
  tcb: {
    status: TcbStatus
    advisoryIds: readonly string[]
    tcbDate: Date
    /** The lower of TCB info's and the QE identity's number. */
    evaluationDataNumber: number
  }
  platform: PckPlatform
  flags: QuoteFlags
  /** The guest's run-time events in RTMR3, if an event log was given. */
  events?: RuntimeEvents
  /** When certificates and collateral are valid. */
  validity: ValidityWindow
}

export type QuoteFlags = TdFlags & {
  /** Bytes after the signature data. */
  trailingBytes: number
  trailingZero: boolean
}

/** Verifies a quote with its verified platform and collateral (evidence.md, section 6). */
export async function verifyQuote(
  quote: ParsedQuote,
  platform: VerifiedPlatform,
  collateral: VerifiedCollateral,
): Promise<VerifiedQuote> {
  const { tcbInfo, qeIdentity, pckCrl, rootCrl } = collateral
  if (platform.root.certificateSha256 !== collateral.root.certificateSha256) {
    throw new QuoteError('root_not_trusted', 'quote and collateral have different roots')
  }
  assertCrlCovers(collateral, platform)
  assertNotRevoked(platform.pckCa, rootCrl)
  assertNotRevoked(platform.pck, pckCrl)
  if (!(await verifyEcdsa(platform.attestationKey, 'P-256', quote.signature, quote.signed))) {
    throw new QuoteError('quote_signature_invalid', 'quote signature invalid')
  }
  assertIsQuotingEnclave(quote.qeReport, qeIdentity)
  if (platform.platform.fmspc !== tcbInfo.fmspc) throw mismatch('FMSPC')
  if (platform.platform.pceId !== tcbInfo.pceId) throw mismatch('PCEID')
  const { status, advisoryIds, tcbDate } = evaluateTcb(
    { body: quote.body, platform: platform.platform, qeIsvSvn: quote.qeReport.isvSvn },
    tcbInfo,
    qeIdentity.tcbLevels,
  )
  return {
    version: quote.version,
    body: quote.body,
    root: platform.root,
    tcb: {
      status,
      advisoryIds,
      tcbDate: new Date(tcbDate),
      evaluationDataNumber: Math.min(tcbInfo.tcbEvaluationDataNumber, qeIdentity.tcbEvaluationDataNumber),
    },
    platform: platform.platform,
    flags: {
      ...readTdFlags(quote.body),
      trailingBytes: quote.trailing.length,
      trailingZero: isZero(quote.trailing),
    },
    validity: intersectWindows([platform.window, collateral.window]),
  }
}

/** The issuer of the PCK CRL must have the name and the key of the issuer of this PCK certificate. */
function assertCrlCovers(collateral: VerifiedCollateral, { pckCa }: VerifiedPlatform) {
  const isSame =
    equalBytes(collateral.pckCa.subject, pckCa.subject) &&
    equalBytes(collateral.pckCa.publicKey.spki, pckCa.publicKey.spki)
  if (!isSame) throw new QuoteError('crl_signature_invalid', 'the PCK revocation list is of another authority')
}

function mismatch(details: string) {
  return new QuoteError('tcb_info_mismatch', 'TCB info is for another platform', { details })
}
