import { SNP_REPORT_BYTES } from '@countersign/attestation'
import { type Hex, tcbStatuses } from '@countersign/protocol'
import { z } from 'zod'

/* The forms of members in receipts of both versions. */

export const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`))
export const hexUpTo = (bytes: number) =>
  z
    .string()
    .regex(/^(?:[0-9a-f]{2})+$/)
    .max(2 * bytes)
/** The type for values that match the pattern. */
const toHexType = (schema: z.ZodString) => schema as unknown as z.ZodType<Hex, Hex>
/** Read-only arrays. Not zod's `readonly`, which would freeze them and mark the JSON schema. */
export const toReadonly = <Item>(schema: z.ZodArray<z.ZodType<Item>>) =>
  schema as unknown as z.ZodType<readonly Item[], readonly Item[]>
export const ethereum = (bytes: number) => toHexType(z.string().regex(new RegExp(`^0x[0-9a-f]{${2 * bytes}}$`)))
export const decimal: z.ZodString = z.string().regex(/^(?:0|[1-9][0-9]{0,77})$/)
export const natural = z.int().min(0)
export const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
/** In code points, like zod and JSON Schema. */
export const text = (length: number) => z.string().min(1).max(length)
/** Same as the protocol's `isSourceName`. */
export const sourceName = z.string().regex(/^[ -~]{1,256}$/, { error: 'expected 1 to 256 printable ASCII characters' })
export const cid = z.string().regex(/^b[a-z2-7]{58}$/)
export const tcbStatus = z.enum(tcbStatuses)

export const transaction = z.strictObject({
  chainId: z.int().min(1),
  txHash: ethereum(32),
  from: ethereum(20),
  to: ethereum(20),
  nonce: natural,
  value: decimal,
  data: toHexType(z.string().regex(/^0x(?:[0-9a-f]{2})*$/)),
  gas: decimal,
  maxFeePerGas: decimal,
  maxPriorityFeePerGas: decimal,
  digestSigned: ethereum(32),
  signature: ethereum(65),
  signedAt: time,
})

export const config = z.strictObject({
  issuers: toReadonly(
    z.array(z.strictObject({ issuer: text(2048), audience: text(2048), jwksOrigin: text(2048) })).min(1),
  ),
  caSet: text(256),
  rootSecret: text(256),
  quoteSource: text(256),
  callerPolicy: text(256),
  version: text(256),
})

export const quoteHex = hexUpTo(65_536)
export const eventLog = text(131_072)
export const reportHex = hex(SNP_REPORT_BYTES)
export const certificates = z.strictObject({ ek: hexUpTo(16_384), ask: hexUpTo(16_384), ark: hexUpTo(16_384) })

/** An entropy sample with its source's signature. */
export const witness = z.strictObject({
  source: sourceName,
  valueHex: hex(32),
  signatureHex: hex(64),
  publicKey: hex(32),
  timestamp: time,
  sequence: natural,
})
