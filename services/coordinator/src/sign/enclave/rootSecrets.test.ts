import { describe, expect, onTestFinished, test } from 'vitest'
import { setUp, unavailable } from '../../../test/sign/enclave/enclaveClient.ts'
import { type FakeEnclave, fakeSession, startFakeEnclave } from '../../../test/sign/enclave/httpEnclave.ts'

describe('enclaves with different root secrets', () => {
  const token = { idToken: 'token', loginSecret: '11'.repeat(32) }
  const [right, wrong] = ['c1'.repeat(32), 'c2'.repeat(32)]
  const isLine = ({ msg }: { msg: string }) => msg === 'Refused two enclaves with different root secrets'
  /** The second is only called if the first fails. */
  async function startTwo(commitments: readonly (string | undefined)[], changes: Parameters<typeof setUp>[1] = {}) {
    const fakes = [await startFakeEnclave(), await startFakeEnclave()] as const
    for (const [index, fake] of fakes.entries()) {
      onTestFinished(() => fake.close())
      fake.commitment = commitments[index]
    }
    const client = setUp(
      fakes.map(({ url }) => url),
      { patienceMs: 3_600_000, ...changes },
    )
    const check = async () => (await client.enclave.check()).map(({ isUp }) => isUp)
    return { fakes, check, ...client }
  }

  test('one with another secret than an attested one gets no users when that one fails', async () => {
    const { fakes, enclave, lines } = await startTwo([right, wrong])
    const [first, second] = fakes
    expect(await enclave.openSession(token)).toEqual(fakeSession)
    first.handlers['/open-session'] = () => ({ status: 503, body: {} })
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(second.paths).toEqual(['/attest'])
    const reason = `another root secret than ${first.url}`
    expect(lines).toContainEqual(expect.objectContaining({ enclave: second.url, code: 'not_attested', reason }))
  })

  test('uses neither if it cannot know which is right, and logs both in one line', async () => {
    const { fakes, enclave, lines, check } = await startTwo([right, wrong])
    const [first, second] = fakes
    expect(await enclave.openSession(token)).toEqual(fakeSession)
    await check()
    expect(await check()).toEqual([false, false])
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect([first, second].map(({ paths }) => paths.filter((path) => path === '/open-session').length)).toEqual([1, 0])
    const addresses = { enclave: second.url, other: first.url }
    expect(lines.filter(isLine)).toEqual([expect.objectContaining({ ...addresses, commitment: wrong })])
  })

  test.each([
    ['the one that was used', true],
    ['either, where none was used', false],
  ])('remembers one that is gone; uses both again when it returns with the secret of %s', async (_, isUsed) => {
    const { fakes, enclave, check } = await startTwo(isUsed ? [right, wrong] : [wrong, right])
    const [first, second] = isUsed ? fakes : fakes.toReversed()
    if (first === undefined || second === undefined) throw new Error('two were started')
    if (isUsed) await enclave.openSession(token)
    await check()
    second.handlers['/attest'] = () => ({ status: 503, body: {} })
    expect(await check()).toEqual([false, false])
    delete second.handlers['/attest']
    second.commitment = right
    // The first may be called before the second has shown that they agree.
    await check()
    expect(await check()).toEqual([true, true])
    expect(await enclave.openSession(token)).toEqual(fakeSession)
  })

  test.each([
    ['one enclave', 1],
    ['two that agree', 2],
  ])('this process keeps using the secret that it used first: %s', async (_, count) => {
    const fakes = await Promise.all(Array.from({ length: count }, () => startFakeEnclave()))
    for (const fake of fakes) onTestFinished(() => fake.close())
    const { enclave, lines } = setUp(
      fakes.map(({ url }) => url),
      { patienceMs: 3_600_000 },
    )
    const restartWith = (commitment: string) => {
      for (const fake of fakes) {
        Object.assign(fake, { commitment, paths: [] })
        // Until it is attested again.
        const isKnown = () => fake.paths.includes('/attest')
        fake.handlers['/open-session'] = () =>
          isKnown()
            ? { status: 200, body: fakeSession }
            : { status: 401, body: { error: { code: 'caller_unknown', message: '' } } }
      }
    }
    restartWith(right)
    expect(await enclave.openSession(token)).toEqual(fakeSession)
    restartWith(wrong)
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    const before = fakes.map(({ paths }) => paths.length)
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(fakes.map(({ paths }, index) => paths.slice(before[index]))).toEqual(fakes.map(() => ['/attest']))
    const [{ url }] = fakes as [FakeEnclave]
    expect(lines.find(isLine)).toMatchObject({ enclave: url, other: url, commitment: wrong })
    restartWith(right)
    expect(await enclave.openSession(token)).toEqual(fakeSession)
  })

  test('a policy that names the right one keeps that in use', async () => {
    const { check } = await startTwo([wrong, right], { policy: { commitments: [right] } })
    await check()
    expect(await check()).toEqual([false, true])
  })

  test.each([
    ['the same secret', [right, right]],
    ['one of an older release, which does not say', [right, undefined]],
    ['both of an older release', [undefined, undefined]],
  ])('%s: uses both', async (_, commitments) => {
    const { check } = await startTwo(commitments)
    await check()
    expect(await check()).toEqual([true, true])
  })
})
