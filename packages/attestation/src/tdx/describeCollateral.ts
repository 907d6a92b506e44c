import { toHex } from '@countersign/protocol/core'
import type { Crl } from '../x509/parseCrl.ts'
import { toCrlWindow } from '../x509/verifyChain.ts'
import { type Collateral, parseHexCrl } from './collateral.ts'
import { parseQeIdentity } from './qeIdentity.ts'
import { parseTcbInfo } from './tcbInfo.ts'

/** A document that Intel issues again before `nextUpdate`. */
type IssuedDocument = { issueDate: Date; nextUpdate: Date; tcbEvaluationDataNumber: number }

/** A TCB level with Intel's status. */
type DescribedLevel = { status: string; tcbDate: Date }

export type CrlDescription = {
  thisUpdate: Date
  nextUpdate: Date
  /** The number of certificates that it lists. */
  revoked: number
}

export type CollateralDescription = {
  tcbInfo: IssuedDocument & {
    /** The platforms that it is for. A quote's own FMSPC is in its PCK certificate (`parsePckPlatform`). */
    fmspc: string
    pceId: string
    /** Highest first. */
    tcbLevels: readonly DescribedLevel[]
    /** Ids of the listed modules of TDX 1.5 and later. */
    tdxModules: readonly string[]
  }
  qeIdentity: IssuedDocument & { mrSigner: string; isvProdId: number }
  rootCrl: CrlDescription
  pckCrl: CrlDescription
}

/**
 * Describes collateral: its platforms and validity. It verifies nothing, and anyone can write such a text. Throws `QuoteError` if a
 * part is malformed or not for TDX.
 */
export function describeCollateral(collateral: Collateral): CollateralDescription {
  const tcbInfo = parseTcbInfo(collateral.tcb_info)
  const qeIdentity = parseQeIdentity(collateral.qe_identity)
  return {
    tcbInfo: {
      ...toIssued(tcbInfo),
      fmspc: tcbInfo.fmspc,
      pceId: tcbInfo.pceId,
      tcbLevels: tcbInfo.tcbLevels.map(({ status, tcbDate }) => ({ status, tcbDate: new Date(tcbDate) })),
      tdxModules: tcbInfo.tdxModuleIdentities.map(({ id }) => id),
    },
    qeIdentity: { ...toIssued(qeIdentity), mrSigner: toHex(qeIdentity.mrSigner), isvProdId: qeIdentity.isvProdId },
    rootCrl: describeCrl(parseHexCrl(collateral.root_ca_crl)),
    pckCrl: describeCrl(parseHexCrl(collateral.pck_crl)),
  }
}

function toIssued(document: {
  issueDate: number
  nextUpdate: number
  tcbEvaluationDataNumber: number
}): IssuedDocument {
  return {
    issueDate: new Date(document.issueDate),
    nextUpdate: new Date(document.nextUpdate),
    tcbEvaluationDataNumber: document.tcbEvaluationDataNumber,
  }
}

function describeCrl(crl: Crl): CrlDescription {
  const { notBefore, notAfter } = toCrlWindow(crl)
  return { thisUpdate: new Date(notBefore), nextUpdate: new Date(notAfter), revoked: crl.revoked.size }
}
