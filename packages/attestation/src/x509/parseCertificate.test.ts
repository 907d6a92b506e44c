import 'reflect-metadata'
import { toHex } from '@countersign/protocol'
import { X509Certificate, X509Crl } from '@peculiar/x509'
import { describe, expect, test } from 'vitest'
import { QuoteError } from '../errors.ts'
import { createSimulator } from '../simulator/index.ts'
import { parseQuote } from '../tdx/parseQuote.ts'
import { parseCertificate } from './parseCertificate.ts'
import { parseCrl } from './parseCrl.ts'
import { parsePem } from './pem.ts'

const simulator = createSimulator({ at: new Date('2026-06-15T00:00:00Z') })
const collateral = simulator.collateral({ faults: { pckRevoked: true } })
const quote = simulator.quote({ reportData: new Uint8Array(64) })
const snp = simulator.certificates()
const certificates: [string, Uint8Array<ArrayBuffer>][] = [
  ...parsePem(parseQuote(new Uint8Array(quote)).pckChain).map((der, index): [string, typeof der] => [
    `PCK chain ${index}`,
    der,
  ]),
  ...parsePem(collateral.tcb_info_issuer_chain).map((der, index): [string, typeof der] => [`TCB chain ${index}`, der]),
  ['VCEK', new Uint8Array(snp.ek)],
  ['ASK', new Uint8Array(snp.ask)],
  ['ARK', new Uint8Array(snp.ark)],
]

describe('the strict parser and @peculiar/x509 read the same certificate', () => {
  test.each(certificates)('%s', (_, der) => {
    const ours = parseCertificate(der)
    const theirs = new X509Certificate(der)
    expect(toHex(ours.subject)).toBe(toHex(new Uint8Array(theirs.subjectName.toArrayBuffer())))
    expect(toHex(ours.issuer)).toBe(toHex(new Uint8Array(theirs.issuerName.toArrayBuffer())))
    expect(BigInt(`0x${ours.serial}`)).toBe(BigInt(`0x${theirs.serialNumber}`))
    expect(ours.notBefore).toBe(theirs.notBefore.getTime())
    expect(ours.notAfter).toBe(theirs.notAfter.getTime())
    expect(toHex(ours.publicKey.spki)).toBe(toHex(new Uint8Array(theirs.publicKey.rawData)))
    expect([...ours.extensions.keys()]).toEqual(theirs.extensions.map(({ type }) => type))
    expect(theirs.subject).toContain(`CN=${ours.commonName}`)
  })

  test('every 17th bit flip that still parses parses to what @peculiar/x509 reads too', () => {
    const [, der] = certificates[0] as [string, Uint8Array<ArrayBuffer>]
    let parsed = 0
    const differences: number[] = []
    for (let position = 0; position < der.length * 8; position += 17) {
      const changed = new Uint8Array(der)
      changed[position >> 3] = (changed[position >> 3] ?? 0) ^ (1 << (position & 7))
      const ours = tryParse(changed)
      if (ours === undefined) continue
      parsed += 1
      const theirs = new X509Certificate(changed)
      // Collected: an assertion for each of thousands would take longer than the parsing.
      const isSame =
        BigInt(`0x${ours.serial}`) === BigInt(`0x${theirs.serialNumber}`) &&
        ours.notAfter === theirs.notAfter.getTime() &&
        toHex(ours.publicKey.spki) === toHex(new Uint8Array(theirs.publicKey.rawData))
      if (!isSame) differences.push(position)
    }
    expect(differences).toEqual([])
    expect(parsed).toBeGreaterThan(50)
  })
})

test('a revocation list reads the same in both', () => {
  const der = new Uint8Array(Buffer.from(collateral.pck_crl, 'hex'))
  const ours = parseCrl(der)
  const theirs = new X509Crl(der)
  expect([...ours.revoked]).toEqual(theirs.entries.map(({ serialNumber }) => serialNumber))
  expect(ours.revoked.size).toBeGreaterThan(0)
  expect(ours.thisUpdate).toBe(theirs.thisUpdate.getTime())
  expect(ours.nextUpdate).toBe(theirs.nextUpdate?.getTime())
})

test.each([{}, { revoked: ['ask', 'asvk'] }, { faults: { noNextUpdate: true } }] as const)(
  'a revocation list under RSA-PSS reads the same in both: %j',
  (options) => {
    const der = new Uint8Array(simulator.revocations(options))
    const ours = parseCrl(der)
    const theirs = new X509Crl(der)
    expect([...ours.revoked]).toEqual(theirs.entries.map(({ serialNumber }) => serialNumber))
    expect(ours.thisUpdate).toBe(theirs.thisUpdate.getTime())
    expect(ours.nextUpdate).toBe(theirs.nextUpdate?.getTime())
    expect(ours.signatureAlgorithm).toBe('rsa-pss-sha384')
  },
)

test('RFC 5280 §4.1.1.2: rejects two different algorithm fields', () => {
  const [, der] = certificates[0] as [string, Uint8Array<ArrayBuffer>]
  const ecdsaSha256 = Buffer.from('300a06082a8648ce3d040302', 'hex')
  const outer = Buffer.from(der).lastIndexOf(ecdsaSha256)
  const changed = new Uint8Array(der)
  changed[outer + 11] = 0x03
  expect(new X509Certificate(changed).subject).toContain('PCK')
  expect(() => parseCertificate(changed)).toThrow(expect.objectContaining({ code: 'certificate_malformed' }))
})

test('rejects a certificate larger than 16 KiB without reading it', () => {
  expect(() => parseCertificate(new Uint8Array(16_385))).toThrow(
    expect.objectContaining({ message: 'certificate too large' }),
  )
})

function tryParse(der: Uint8Array<ArrayBuffer>) {
  try {
    return parseCertificate(der)
  } catch (error) {
    expect(error).toBeInstanceOf(QuoteError)
    return undefined
  }
}
