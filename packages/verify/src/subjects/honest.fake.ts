import { type FakeIssue, issue, issueGolden, toManifest } from '../issues.fake.ts'
import type { GivenFile } from '../loadCollateral.ts'

/** The time at which the subjects are judged. */
export const judgedAt = new Date('2026-07-01T00:00:00Z')

export const honest = await issueGolden()
export const other = await issue({ txMetadata: { nonce: 1 } })
export const manifest = toManifest(honest)

export const receiptFile: GivenFile = { name: 'receipt.json', bytes: honest.bytes }
export const collateralFile: GivenFile = { name: 'collateral.json', bytes: honest.collateral }

/** Nothing but two files. */
export const files = { subject: receiptFile, collaterals: [collateralFile], hasSources: false, hasNode: false } as const

export function toFiles(issued: FakeIssue) {
  return {
    ...files,
    subject: { name: 'receipt.json', bytes: issued.bytes },
    collaterals: [{ name: 'collateral.json', bytes: issued.collateral }],
  }
}

export function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}
