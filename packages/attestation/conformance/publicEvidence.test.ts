import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createVerifier, parseCollateral, QuoteError, vendorRoots } from '@countersign/attestation'
import { toHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import list from '../spec/public-evidence.json' with { type: 'json' }

const FIXTURES = join(import.meta.dirname, '../../../../shared/fixtures')

const verifier = createVerifier({ roots: vendorRoots })

type Source = { repository: string; path: string; sha256: string }

/** The fixtures have the listed files under other names. */
function readFixtures(): Map<string, Uint8Array> {
  const names = readdirSync(FIXTURES, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    names.map(({ parentPath, name }) => {
      const bytes = readFileSync(join(parentPath, name))
      return [createHash('sha256').update(bytes).digest('hex'), new Uint8Array(bytes)]
    }),
  )
}

/** DER, or PEM in any spelling. */
function toDer(bytes: Uint8Array): Uint8Array[] {
  if (bytes[0] === 0x30) return [bytes]
  const blocks = new TextDecoder()
    .decode(bytes)
    .matchAll(/-{5}BEGIN CERTIFICATE-{5}([\w+/=\s]+)-{5}END CERTIFICATE-{5}/g)
  return [...blocks].map(([, body = '']) => new Uint8Array(Buffer.from(body, 'base64')))
}

test('every file is from a listed repository', () => {
  const sources = [
    ...list.quotes.flatMap(({ quote, collateral }) => [quote, collateral]),
    ...list.reports.flatMap(({ report, ek, chain }) => [report, ek, chain]),
  ]
  expect(new Set(sources.map(({ repository }) => repository))).toEqual(new Set(Object.keys(list.repositories)))
})

if (existsSync(FIXTURES)) {
  const files = readFixtures()
  const read = ({ sha256 }: Source) => files.get(sha256) ?? new Uint8Array()
  const orCode = (error: unknown) => {
    if (error instanceof QuoteError) return error.code
    throw error
  }

  test.each(list.quotes)('quote $name', async ({ quote, collateral, at, isGenuine, ...expected }) => {
    const parsed = parseCollateral(new TextDecoder().decode(read(collateral)).trim())
    const result = await verifier
      .verifyQuote({ quote: read(quote), collateral: parsed, at: new Date(at) })
      .catch(orCode)
    if (!isGenuine || typeof result === 'string') return expect([isGenuine, typeof result]).toEqual([false, 'string'])
    const { version, tcb, platform, body } = result
    expect({
      name: expected.name,
      version,
      tcbStatus: tcb.status,
      fmspc: platform.fmspc,
      mrTd: toHex(body.mrTd),
      reportData: toHex(body.reportData),
    }).toEqual(expected)
  })

  test.each(list.reports)('report $name', async ({ report, ek, chain, at, isGenuine, ...expected }) => {
    const [key] = toDer(read(ek))
    const [ask, ark] = toDer(read(chain))
    if (key === undefined || ask === undefined || ark === undefined) throw new Error('certificates are missing')
    const certificates = { ek: key, ask, ark }
    const result = await verifier.verifyReport({ report: read(report), certificates, at: new Date(at) }).catch(orCode)
    if (!isGenuine || typeof result === 'string') return expect([isGenuine, typeof result]).toEqual([false, 'string'])
    const { body, productName, tcb } = result
    const { fmc: _, ...reportedTcb } = tcb.reported
    expect({
      name: expected.name,
      version: body.version,
      signingKey: body.signingKey,
      productName,
      reportedTcb,
      measurement: toHex(body.measurement),
      reportData: toHex(body.reportData),
    }).toEqual(expected)
  })
} else {
  console.log('skipped the public evidence: the folder of evidence fixtures does not exist')
}
