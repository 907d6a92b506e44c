import type { WebConfig } from '../config.ts'
import { noTrust, parseTrust, type Trust, TrustError } from './trust.ts'

/** What the operator says is to be trusted, and what is wrong with how they say it. */
export type OperatorTrust = { trust: Trust; fault: string | undefined }

/** Anchors that cannot be read are no anchors: the page goes on without them, and says so. */
export function readOperatorTrust({ trust: stated, attestations }: WebConfig): OperatorTrust {
  try {
    const trust = parseTrust(stated)
    if (trust.contract !== undefined || attestations === undefined) return { trust, fault: undefined }
    const { contract } = parseTrust({ contract: attestations })
    return { trust: { ...trust, contract }, fault: undefined }
  } catch (error) {
    if (!(error instanceof TrustError)) throw error
    return { trust: noTrust, fault: error.message }
  }
}
