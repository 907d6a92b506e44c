import { equalBytes } from '@countersign/protocol/core'
import { QuoteError } from '../errors.ts'
import { DerError, parseDer, tags, toAscii, toNumber } from '../x509/der.ts'
import type { Certificate } from '../x509/parseCertificate.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** Products with a known root key. They differ in the layout of a TCB version. */
export const snpProducts = ['Milan', 'Genoa', 'Turin'] as const

export type SnpProduct = (typeof snpProducts)[number]

/** The firmware parts of a TCB version. Only Turin has `fmc`. */
export const snpTcbParts = ['fmc', 'bl', 'tee', 'snp', 'ucode'] as const

/** The security patch level (SPL) of each firmware part. */
export type SnpTcb = Record<(typeof snpTcbParts)[number], number>

/** The extensions of a VCEK or VLEK (AMD 57230, VCEK certificate extensions; evidence.md, section 9.3). */
export type EndorsedKey = {
  /** Product name with stepping where AMD gives one, for example `Milan-B0`. */
  productName: string
  tcb: SnpTcb
  /** The chip, for a VCEK. */
  hwId: Bytes | undefined
}

const AMD = '1.3.6.1.4.1.3704.1'

export function parseEndorsementExtensions(certificate: Certificate, product: SnpProduct): EndorsedKey {
  const level = (oid: string) => {
    const extension = certificate.extensions.get(`${AMD}.3.${oid}`)
    return extension === undefined ? 0 : toNumber(parseDer(extension.value, tags.integer), 255)
  }
  try {
    const name = certificate.extensions.get(`${AMD}.2`)
    if (name === undefined) throw new DerError('no product name')
    const required = product === 'Turin' ? ['1', '2', '3', '8', '9'] : ['1', '2', '3', '8']
    for (const oid of required) if (!certificate.extensions.has(`${AMD}.3.${oid}`)) throw new DerError(`no SPL ${oid}`)
    if (level('4') + level('5') + level('6') + level('7') !== 0) throw new DerError('reserved SPL in use')
    return {
      productName: toAscii(parseDer(name.value, tags.ia5String).value),
      tcb: { fmc: level('9'), bl: level('1'), tee: level('2'), snp: level('3'), ucode: level('8') },
      hwId: toHwId(certificate.extensions.get(`${AMD}.4`)?.value),
    }
  } catch (cause) {
    if (!(cause instanceof DerError)) throw cause
    throw new QuoteError('certificate_malformed', 'malformed endorsement key certificate', {
      details: cause.message,
      cause,
    })
  }
}

/** Older certificates have the raw chip id, newer ones a DER OCTET STRING (04 40 or 04 08) of it. */
function toHwId(value: Bytes | undefined): Bytes | undefined {
  const isWrapped = value !== undefined && (value.length === 66 || value.length === 10)
  return isWrapped ? parseDer(value, tags.octetString).value : value
}

/** Product names by root: Genoa's also covers Siena and Bergamo (AMD 57230). */
const PRODUCT_NAMES: Record<SnpProduct, readonly string[]> = {
  Milan: ['Milan'],
  Genoa: ['Genoa', 'Siena', 'Bergamo'],
  Turin: ['Turin'],
}

/** Whether a product name, such as `Milan-B0`, belongs to a product's root. */
export function isProductName(name: string, product: SnpProduct): boolean {
  return PRODUCT_NAMES[product].some((line) => name === line || name.startsWith(`${line}-`))
}

/**
 * TCB_VERSION (AMD 56860, section 2.2), by byte offset. Milan and Genoa: 0 bl, 1 tee, 6 snp, 7 ucode. Turin: 0 fmc, 1 bl, 2 tee,
 * 3 snp, 7 ucode. All other bytes are reserved.
 */
export function parseSnpTcb(bytes: Bytes, product: SnpProduct): SnpTcb {
  const at = (index: number) => bytes[index] ?? 0
  const tcb =
    product === 'Turin'
      ? { fmc: at(0), bl: at(1), tee: at(2), snp: at(3), ucode: at(7) }
      : { fmc: 0, bl: at(0), tee: at(1), snp: at(6), ucode: at(7) }
  const reserved = product === 'Turin' ? [4, 5, 6] : [2, 3, 4, 5]
  if (reserved.some((index) => at(index) !== 0)) {
    throw new QuoteError('report_malformed', 'malformed report', { details: 'reserved TCB bytes are not zero' })
  }
  return tcb
}

/** The product of a CPUID family and (extended) model (AMD processor revision guides). */
export function toSnpProduct({ family, model }: { family: number; model: number }): SnpProduct | undefined {
  if (family === 0x1a) return 'Turin'
  if (family !== 0x19) return undefined
  return model < 0x10 ? 'Milan' : 'Genoa'
}

export function isSameTcb(left: SnpTcb, right: SnpTcb): boolean {
  return snpTcbParts.every((part) => left[part] === right[part])
}

/** Turin certificates have the first 8 bytes of the chip id. The other 56 in the report are zero. */
export function isSameChip(hwId: Bytes, chipId: Bytes): boolean {
  const padded = new Uint8Array(64)
  if (hwId.length !== 64 && hwId.length !== 8) return false
  padded.set(hwId)
  return equalBytes(padded, chipId)
}
