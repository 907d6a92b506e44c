import 'reflect-metadata'
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import * as x509 from '@peculiar/x509'

const KEYS = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const VALID_MS = 86_400_000

export type Authority = {
  /** Its certificate in PEM, and the file that contains it. */
  pem: string
  file: string
  /** Issues a certificate for localhost and 127.0.0.1, with its key, in PEM. */
  issue(): Promise<{ certificate: string; key: string }>
}

/** Creates a certificate authority for one run. Its key stays in memory. */
export async function createAuthority(folder: string): Promise<Authority> {
  const keys = await crypto.subtle.generateKey(KEYS, true, ['sign', 'verify'])
  // A unique name, because clients with two authorities of one name would try the wrong one.
  const name = `CN=Countersign trial ${randomBytes(8).toString('hex')}`
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    ...toLife(),
    name,
    keys,
    signingAlgorithm: KEYS,
    extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
  })
  const file = join(folder, 'authority.pem')
  const pem = root.toString('pem')
  await mkdir(folder, { recursive: true })
  await writeFile(file, pem)
  return {
    pem,
    file,
    async issue() {
      const own = await crypto.subtle.generateKey(KEYS, true, ['sign', 'verify'])
      const certificate = await x509.X509CertificateGenerator.create({
        ...toLife(),
        subject: 'CN=localhost',
        issuer: name,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: KEYS,
        extensions: [
          new x509.SubjectAlternativeNameExtension([
            { type: 'dns', value: 'localhost' },
            { type: 'ip', value: '127.0.0.1' },
          ]),
        ],
      })
      const der = await crypto.subtle.exportKey('pkcs8', own.privateKey)
      return { certificate: certificate.toString('pem'), key: x509.PemConverter.encode(der, 'PRIVATE KEY') }
    },
  }
}

function toLife() {
  const now = Date.now()
  return {
    serialNumber: randomBytes(16).toString('hex'),
    notBefore: new Date(now - 60_000),
    notAfter: new Date(now + VALID_MS),
  }
}

/** Makes this process trust the authority for all connections. */
export function trust({ pem }: Pick<Authority, 'pem'>) {
  setDefaultCACertificates([...getCACertificates('default'), pem])
}
