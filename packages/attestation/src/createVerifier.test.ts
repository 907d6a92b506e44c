import { describe, expect, test, vi } from 'vitest'
import { createVerifier, createWindowCache } from './createVerifier.ts'
import { createSimulator } from './simulator/index.ts'

const at = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at })
const reportData = new Uint8Array(64)
const quote = simulator.quote({ reportData })
const collateral = simulator.collateral()
const report = simulator.report({ reportData })
const certificates = simulator.certificates()
const roots = [simulator.intelRoot, simulator.amdRoot]

async function createWarmVerifier() {
  const verifier = createVerifier({ roots })
  await verifier.verifyQuote({ quote, collateral, at })
  await verifier.verifyReport({ report, certificates, at })
  return verifier
}

describe('the cache of the verifier', () => {
  test('rejects cached collateral after nextUpdate', async () => {
    const verifier = await createWarmVerifier()
    const { notAfter } = (await verifier.verifyQuote({ quote, collateral, at })).validity
    await expect(verifier.verifyQuote({ quote, collateral, at: new Date(notAfter) })).resolves.toBeDefined()
    await expect(verifier.verifyQuote({ quote, collateral, at: new Date(notAfter + 1) })).rejects.toMatchObject({
      code: 'tcb_info_not_in_date',
    })
  })

  test('rejects cached collateral before it was issued', async () => {
    const verifier = await createWarmVerifier()
    const { notBefore } = (await verifier.verifyQuote({ quote, collateral, at })).validity
    await expect(verifier.verifyQuote({ quote, collateral, at: new Date(notBefore - 1) })).rejects.toMatchObject({
      code: 'tcb_info_not_in_date',
    })
  })

  test('rejects a cached endorsement key after it expired', async () => {
    const verifier = await createWarmVerifier()
    const { notAfter } = (await verifier.verifyReport({ report, certificates, at })).validity
    await expect(verifier.verifyReport({ report, certificates, at: new Date(notAfter + 1) })).rejects.toMatchObject({
      code: 'certificate_not_in_date',
    })
  })

  test('rejects a forged quote of a cached platform', async () => {
    const verifier = await createWarmVerifier()
    const forged = simulator.quote({ reportData, faults: { quoteWrongSigner: true } })
    await expect(verifier.verifyQuote({ quote: forged, collateral, at })).rejects.toMatchObject({
      code: 'quote_signature_invalid',
    })
    const forgedReport = simulator.report({ reportData, faults: { wrongSigner: true } })
    await expect(verifier.verifyReport({ report: forgedReport, certificates, at })).rejects.toMatchObject({
      code: 'report_signature_invalid',
    })
  })

  test('rejects a cached platform that newer collateral revokes', async () => {
    const verifier = await createWarmVerifier()
    const revoking = simulator.collateral({ faults: { pckRevoked: true } })
    await expect(verifier.verifyQuote({ quote, collateral: revoking, at })).rejects.toMatchObject({
      code: 'certificate_revoked',
    })
    await expect(verifier.verifyQuote({ quote, collateral, at })).resolves.toBeDefined()
  })

  test.each(['tcb_info_signature', 'qe_identity_signature'])(
    'leaves no rejection unhandled, if %s is malformed and a list is forged too',
    async (member) => {
      const unhandled = vi.fn()
      process.on('unhandledRejection', unhandled)
      const forged = { ...simulator.collateral({ faults: { rootCrlWrongSigner: true } }), [member]: 'no hex' }
      await expect(createVerifier({ roots }).verifyQuote({ quote, collateral: forged, at })).rejects.toMatchObject({
        name: 'QuoteError',
      })
      await new Promise(setImmediate)
      process.off('unhandledRejection', unhandled)
      expect(unhandled).not.toHaveBeenCalled()
    },
  )

  test('distinguishes collateral whose members have other boundaries', async () => {
    const verifier = await createWarmVerifier()
    const shifted = {
      ...collateral,
      tcb_info_signature: collateral.tcb_info_signature + collateral.qe_identity_issuer_chain.slice(0, 1),
      qe_identity_issuer_chain: collateral.qe_identity_issuer_chain.slice(1),
    }
    await expect(verifier.verifyQuote({ quote, collateral: shifted, at })).rejects.toMatchObject({ name: 'QuoteError' })
  })

  test('does not cache a failure, nor remove valid facts for one', async () => {
    const verifier = createVerifier({ roots })
    const late = new Date('2027-06-15T00:00:00Z')
    await expect(verifier.verifyQuote({ quote, collateral, at: late })).rejects.toMatchObject({
      code: 'tcb_info_not_in_date',
    })
    await expect(verifier.verifyQuote({ quote, collateral, at })).resolves.toBeDefined()
  })

  test('keeps its cache when a caller changes its input or result', async () => {
    const verifier = createVerifier({ roots })
    const bytes = new Uint8Array(quote)
    const pending = verifier.verifyQuote({ quote: bytes, collateral, at })
    bytes.fill(0)
    const verified = await pending
    expect(() => Object.assign(verified.platform, { fmspc: 'ffffffffffff' })).toThrow(TypeError)
    expect((await verifier.verifyQuote({ quote, collateral, at })).platform.fmspc).toBe('f0c06f000000')
  })

  test('gives the same result for a hundred parallel calls, warm and cold', async () => {
    const verifier = createVerifier({ roots })
    const all = await Promise.all(Array.from({ length: 100 }, () => verifier.verifyQuote({ quote, collateral, at })))
    expect(new Set(all.map(({ tcb }) => tcb.status))).toEqual(new Set(['UpToDate']))
  })
})

describe('input of the wrong type', () => {
  test.each([undefined, null, 'quote', [1, 2, 3], new ArrayBuffer(8), {}])('%j is no quote', async (value) => {
    const verifier = createVerifier({ roots })
    await expect(verifier.verifyQuote({ quote: value as never, collateral, at })).rejects.toMatchObject({
      code: 'quote_malformed',
    })
    await expect(verifier.verifyReport({ report: value as never, certificates, at })).rejects.toMatchObject({
      code: 'report_malformed',
    })
  })

  // A member that is computed at each read could show one text to a check and another to the next.
  const computed = {
    ...collateral,
    get pck_crl() {
      return collateral.pck_crl
    },
  }

  test.each([undefined, null, '{}', [], {}, { ...collateral, extra: '' }, { ...collateral, pck_crl: 1 }, computed])(
    '%# is not collateral',
    async (value) => {
      const verifier = createVerifier({ roots })
      await expect(verifier.verifyQuote({ quote, collateral: value as never, at })).rejects.toMatchObject({
        code: 'collateral_malformed',
      })
    },
  )

  test('rejects an invalid date', async () => {
    const verifier = await createWarmVerifier()
    const never = new Date(Number.NaN)
    await expect(verifier.verifyQuote({ quote, collateral, at: never })).rejects.toMatchObject({ name: 'QuoteError' })
    await expect(verifier.verifyReport({ report, certificates, at: never })).rejects.toMatchObject({
      name: 'QuoteError',
    })
  })

  test('rejects everything without roots', async () => {
    const verifier = createVerifier({ roots: [] })
    await expect(verifier.verifyQuote({ quote, collateral, at })).rejects.toMatchObject({ code: 'root_not_trusted' })
  })

  test('a root of the other vendor does not count', async () => {
    const verifier = createVerifier({ roots: [{ ...simulator.intelRoot, vendor: 'amd' }] })
    await expect(verifier.verifyQuote({ quote, collateral, at })).rejects.toMatchObject({ code: 'root_not_trusted' })
  })
})

describe('the window cache', () => {
  const fact = (name: string, notBefore = 0, notAfter = 10) => ({ name, window: { notBefore, notAfter } })

  test('returns a fact only inside its window, both ends included', () => {
    const cache = createWindowCache<ReturnType<typeof fact>>(100)
    cache.set('a', fact('a', 5, 7))
    expect([4, 5, 7, 8, Number.NaN].map((time) => cache.get('a', time)?.name)).toEqual([
      undefined,
      'a',
      'a',
      undefined,
      undefined,
    ])
  })

  test('stays within its budget and removes the least recently used fact first', () => {
    const cache = createWindowCache<ReturnType<typeof fact>>(30)
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(10)) as [string, string, string, string]
    for (const key of [a, b, c]) cache.set(key, fact(key))
    cache.get(a, 1)
    cache.set(d, fact(d))
    expect([a, b, c, d].filter((key) => cache.get(key, 1) !== undefined)).toEqual([a, c, d])
    cache.set('e'.repeat(31), fact('e'))
    expect(cache.get('e'.repeat(31), 1)).toBeUndefined()
    expect(cache.get(a, 1)).toBeDefined()
  })

  test('frees the budget of a replaced fact', () => {
    const cache = createWindowCache<ReturnType<typeof fact>>(20)
    for (let round = 0; round < 100; round++) cache.set('x'.repeat(10), fact(String(round)))
    cache.set('y'.repeat(10), fact('y'))
    expect(cache.get('x'.repeat(10), 1)?.name).toBe('99')
  })
})
