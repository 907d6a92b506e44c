import { expect, test } from 'vitest'
import { createVerifier } from '../createVerifier.ts'
import { QuoteError } from '../errors.ts'
import { createSimulator } from '../simulator/index.ts'
import { parseQuote } from './parseQuote.ts'
import { parsePckPlatform } from './pckCertificate.ts'

const at = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at })
const quote = Uint8Array.from(simulator.quote({ reportData: new Uint8Array(64) }))
const { pckChain } = parseQuote(quote)

test('reads the same platform as the verifier', async () => {
  const verifier = createVerifier({ roots: [simulator.intelRoot] })
  const { platform } = await verifier.verifyQuote({ quote, collateral: simulator.collateral(), at })
  expect(parsePckPlatform(pckChain)).toEqual(platform)
})

test.each([
  ['no PEM', 'hello'],
  ['an empty text', ''],
  ['PEM of something else', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
  ['a chain that begins with an authority', pckChain.slice(pckChain.indexOf('-----BEGIN', 1))],
])('rejects %s', (_, chain) => {
  expect(() => parsePckPlatform(chain)).toThrow(QuoteError)
  expect(() => parsePckPlatform(chain)).toThrow(expect.objectContaining({ code: 'certificate_malformed' }))
})
