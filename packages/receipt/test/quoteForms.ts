import { type ParsedQuote, parsePem, parseQuote } from '@countersign/attestation'
import { concatBytes } from '@countersign/protocol'
import { p256 } from '@noble/curves/nist.js'

/** The parts of a quote after the signed ones. */
type QuoteParts = { signature: Uint8Array; qeReportSignature: Uint8Array; pem: string }

export type QuoteForms = {
  parsed: ParsedQuote
  /** As in the quote: the simulator ends it with a NUL, as some quoting services do. */
  pckChain: string
  /** The quote with parts replaced and all lengths corrected. */
  rebuild(changes: Partial<QuoteParts>): Uint8Array
  /** The PCK chain with n − s in the signature of one certificate, which may change its length. */
  withOtherSIn(index: number): string
}

/** Splits a simulated quote, to assemble it in other valid forms. */
export function createQuoteForms(quote: Uint8Array<ArrayBuffer>): QuoteForms {
  const parsed = parseQuote(quote)
  const pckChain = `${parsed.pckChain}\0`
  return {
    parsed,
    pckChain,
    rebuild(changes) {
      const { signature, qeReportSignature } = parsed
      const parts = { signature, qeReportSignature, pem: pckChain, ...changes }
      const chain = Uint8Array.from(parts.pem, (character) => character.charCodeAt(0))
      const { qeAuthData: auth } = parsed
      const inner = concatBytes(
        concatBytes(parsed.qeReport.raw, parts.qeReportSignature, toNumber(auth.length, 2), auth),
        concatBytes(toNumber(5, 2), toNumber(chain.length, 4), chain),
      )
      const data = concatBytes(
        concatBytes(parts.signature, parsed.attestationKey),
        concatBytes(toNumber(6, 2), toNumber(inner.length, 4), inner),
      )
      return concatBytes(parsed.signed, toNumber(data.length, 4), data)
    },
    withOtherSIn(index) {
      const chain = parsePem(parsed.pckChain)
      return `${chain
        .with(index, toOtherCertificate(chain[index] as Uint8Array<ArrayBuffer>))
        .map(toPem)
        .join('')}\0`
    },
  }
}

/**
 * Every form that a receipt of version 1 allows (receipt-v1.md, section 2.1). They are as valid as the quote itself, without a key. The names
 * are those of that page.
 */
export function createFreeForms(
  quote: Uint8Array<ArrayBuffer>,
): readonly (readonly [name: string, quote: Uint8Array])[] {
  const { parsed, rebuild, withOtherSIn } = createQuoteForms(quote)
  return [
    ['n − s of the quote’s signature', rebuild({ signature: toOtherS(parsed.signature) })],
    ['n − s of the signature of the QE report', rebuild({ qeReportSignature: toOtherS(parsed.qeReportSignature) })],
    ['n − s of the signature of the PCK certificate', rebuild({ pem: withOtherSIn(0) })],
    ['n − s of the signature of the PCK authority', rebuild({ pem: withOtherSIn(1) })],
    ['a zero after the quote', concatBytes(quote, new Uint8Array(1))],
    ['zeros after the quote, up to 64 KiB', concatBytes(quote, new Uint8Array(65_536 - quote.length))],
    ['no NUL at the end of the PCK chain', rebuild({ pem: parsed.pckChain })],
    ['neither line feed nor NUL at the end of the PCK chain', rebuild({ pem: parsed.pckChain.slice(0, -1) })],
  ]
}

/** Little-endian. */
function toNumber(value: number, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => value >> (8 * index))
}

/** r ‖ s → r ‖ n − s. */
function toOtherS(raw: Uint8Array): Uint8Array {
  const { r, s } = p256.Signature.fromBytes(raw, 'compact')
  return new p256.Signature(r, p256.Point.CURVE().n - s).toBytes('compact')
}

function toOtherCertificate(der: Uint8Array): Uint8Array<ArrayBuffer> {
  const length = (offset: number) => ((der[offset] ?? 0) << 8) | (der[offset + 1] ?? 0)
  // SEQUENCE (30 82 nn nn) of the signed part (30 82 nn nn), the algorithm (30 nn), and the signature in a BIT STRING (03 nn 00).
  const algorithm = 8 + length(6)
  const signature = algorithm + 2 + (der[algorithm + 1] ?? 0)
  const { r, s } = p256.Signature.fromBytes(der.subarray(signature + 3), 'der')
  const other = new p256.Signature(r, p256.Point.CURVE().n - s).toBytes('der')
  const bits = concatBytes(Uint8Array.of(3, other.length + 1, 0), other)
  const body = concatBytes(der.subarray(4, signature), bits)
  return concatBytes(Uint8Array.of(0x30, 0x82, body.length >> 8, body.length & 0xff), body)
}

export function toPem(der: Uint8Array): string {
  const lines = Buffer.from(der)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}
