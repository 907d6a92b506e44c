import { equalBytes } from '@countersign/protocol/core'
import { QuoteError } from '../errors.ts'
import { DerError, parseDer, tags, toAscii, toNumber } from '../x509/der.ts'
import type { Certificate } from '../x509/parseCertificate.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** Processor families whose root key is known; they differ in the layout of a TCB version. */
export const snpProducts = ['Milan', 'Genoa', 'Turin'] as const

export type SnpProduct = (typeof snpProducts)[number]

/** The firmware parts of a TCB version. `fmc` exists from Turin on. */
export const snpTcbParts = ['fmc', 'bl', 'tee', 'snp', 'ucode'] as const

/** A TCB version as AMD numbers it: the security patch level of each firmware part. */
export type SnpTcb = Record<(typeof snpTcbParts)[number], number>

/** What AMD certifies about a VCEK or VLEK (AMD KDS specification 57230, "VCEK certificate extensions"). */
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

/** Older certificates carry the chip id as it is, newer ones as a DER octet string. */
function toHwId(value: Bytes | undefined): Bytes | undefined {
  const isWrapped = value !== undefined && (value.length === 66 || value.length === 10)
  return isWrapped ? parseDer(value, tags.octetString).value : value
}

/** Product lines that Genoa's root endorses: Siena and Bergamo are made of the same parts (AMD 57230). */
const PRODUCT_NAMES: Record<SnpProduct, readonly string[]> = {
  Milan: ['Milan'],
  Genoa: ['Genoa', 'Siena', 'Bergamo'],
  Turin: ['Turin'],
}

/** Whether a product name, for example `Milan-B0`, belongs under a product's root. */
export function isProductName(name: string, product: SnpProduct): boolean {
  return PRODUCT_NAMES[product].some((line) => name === line || name.startsWith(`${line}-`))
}

/** TCB_VERSION (SNP ABI, "TCB Version"): Milan and Genoa have bl, tee, …, snp, ucode; Turin has fmc, bl, tee, snp, …, ucode. */
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

/** CPUID family and (extended) model to the product line whose keys sign for it (AMD processor revision guides). */
export function toSnpProduct({ family, model }: { family: number; model: number }): SnpProduct | undefined {
  if (family === 0x1a) return 'Turin'
  if (family !== 0x19) return undefined
  return model < 0x10 ? 'Milan' : 'Genoa'
}

export function isSameTcb(left: SnpTcb, right: SnpTcb): boolean {
  return snpTcbParts.every((part) => left[part] === right[part])
}

/** Turin certificates carry the first 8 bytes of the chip id; the report fills the rest with zeros. */
export function isSameChip(hwId: Bytes, chipId: Bytes): boolean {
  const padded = new Uint8Array(64)
  if (hwId.length !== 64 && hwId.length !== 8) return false
  padded.set(hwId)
  return equalBytes(padded, chipId)
}
