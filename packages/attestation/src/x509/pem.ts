import { QuoteError } from '../errors.ts'

const BEGIN = '-----BEGIN CERTIFICATE-----\n'
const END = '\n-----END CERTIFICATE-----'
const LINE = 64

/**
 * Returns the certificates of a PEM bundle as DER. Accepts only the canonical form (RFC 7468 §3 "strict"; evidence.md, section 3.2):
 * with other spellings, anyone could change bytes of evidence unnoticed.
 */
export function parsePem(text: string): Uint8Array<ArrayBuffer>[] {
  return splitPem(text).map(decodePemBlock)
}

/** The base64 bodies of a canonical PEM bundle, line breaks included. */
export function splitPem(text: string): string[] {
  const blocks: string[] = []
  let offset = 0
  while (offset < text.length) {
    if (!text.startsWith(BEGIN, offset)) throw malformed('no certificate begins where one is expected')
    const start = offset + BEGIN.length
    const end = text.indexOf(END, start)
    if (end === start) throw malformed('empty certificate')
    if (end < 0) throw malformed('certificate without an end')
    if (text[end - 1] === '\n') throw malformed('blank line before the end of a certificate')
    blocks.push(text.slice(start, end))
    offset = end + END.length
    if (offset < text.length && text[offset] !== '\n') throw malformed('no line feed after a certificate')
    offset += 1
  }
  if (blocks.length === 0) throw malformed('no certificate')
  return blocks
}

/** Decodes one body that `splitPem` found. */
export function decodePemBlock(body: string): Uint8Array<ArrayBuffer> {
  const rows = Math.ceil((body.length + 1) / (LINE + 1))
  let base64 = ''
  for (let row = 0; row < rows; row++) {
    const start = row * (LINE + 1)
    if (row > 0 && body[start - 1] !== '\n') throw malformed('lines are not 64 columns wide')
    base64 += body.slice(start, start + LINE)
  }
  let binary: string
  try {
    // atob ignores white space and missing padding. The comparison below rejects both.
    binary = atob(base64)
  } catch {
    throw malformed('not base64')
  }
  if (btoa(binary) !== base64) throw malformed('base64 is not canonical')
  const bytes = new Uint8Array(binary.length)
  for (let index = 0; index < bytes.length; index++) bytes[index] = binary.charCodeAt(index)
  return bytes
}

function malformed(details: string) {
  return new QuoteError('certificate_malformed', 'malformed PEM', { details })
}
