import { createSign, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { createSelfSignedCertificate } from './createSelfSignedCertificate.ts'
import { parseCertificate } from './parseCertificate.ts'
import { parsePem } from './pem.ts'

test('a self-signed certificate is read by OpenSSL and by the strict parser, and carries the key', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const validity = { notBefore: new Date('2026-01-01T00:00:00Z'), notAfter: new Date('2027-01-01T00:00:00Z') }
  const pem = createSelfSignedCertificate({
    commonName: 'countersign-enclave',
    publicKey: spki,
    sign: (message) => createSign('sha256').update(message).sign(privateKey),
    validity,
  })
  const certificate = new X509Certificate(pem)
  expect(certificate.verify(publicKey)).toBe(true)
  expect(certificate.subject).toBe('CN=countersign-enclave')
  expect(certificate.publicKey.export({ type: 'spki', format: 'der' })).toEqual(spki)
  const [der] = parsePem(pem)
  expect(parseCertificate(der as Uint8Array<ArrayBuffer>)).toMatchObject({
    commonName: 'countersign-enclave',
    isCa: false,
    notAfter: validity.notAfter.getTime(),
  })
})
