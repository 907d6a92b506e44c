import { rootSecretPaths, toHex } from '@countersign/protocol'
import type { TransferResponse } from '@countersign/root-secret'
import { type CallPeer, PeerError } from '@countersign/root-secret'
import { seal } from '@countersign/root-secret/sealing'
import { describe, expect, test } from 'vitest'
import { createTestPeer, foreignSimulator, simulator } from '../../test/peers.ts'
import { type Change, connect, createGiving, joinFrom, readReasons } from '../../test/transfer.ts'
import type { Donor } from './donor.ts'
import { join } from './join.ts'

describe('a joiner accepts a secret only from its donor', () => {
  const injected = new Uint8Array(32).map((_, index) => index + 1)

  test('rejects a secret that a man in the middle sealed to its key, with the donor’s own quote', async () => {
    const { donor } = await createGiving()
    const joiner = createTestPeer()
    let publicKey = ''
    const change: Change = {
      request: (request) => {
        publicKey = request.publicKey
        return request
      },
      response: (response) => {
        const context = { info: new TextEncoder().encode('countersign/key-transfer/v1\0'), aad: new Uint8Array(64) }
        const sealed = seal(injected, { recipient: Buffer.from(publicKey, 'hex'), ...context })
        return { ...response, enc: toHex(sealed.enc), ciphertext: toHex(sealed.ciphertext) }
      },
    }
    await expect(joinFrom(joiner, donor, change)).rejects.toThrow('no enclave gives us')
    expect(readReasons(joiner)).toEqual(['the enclave is not accepted: report_data_mismatch'])
    expect(joiner.secrets).toEqual([])
  })

  test.each<[string, Parameters<typeof createTestPeer>[0], string]>([
    ['of other code', { quote: { mrtd: new Uint8Array(48).fill(1) } }, 'measurement_not_allowed'],
    ['that can be debugged', { quote: { tdAttributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) } }, 'debug_enabled'],
    ['of other silicon', { silicon: foreignSimulator }, 'root_not_trusted'],
    ['with a forged quote', { quote: { faults: { quoteWrongSigner: true } } }, 'quote_signature_invalid'],
  ])('a donor %s', async (_, options, reason) => {
    const { donor } = await createGiving(options)
    const joiner = createTestPeer()
    await expect(joinFrom(joiner, donor)).rejects.toThrow('no enclave gives us')
    expect(readReasons(joiner)).toEqual([`the enclave is not accepted: ${reason}`])
    expect(joiner.secrets).toEqual([])
  })

  test('rejects a donor that claims another configuration', async () => {
    const { peer, donor } = await createGiving()
    const joiner = createTestPeer()
    const config = { ...peer.config, callerPolicy: 'all' }
    const change: Change = { response: (response) => ({ ...response, evidence: { ...response.evidence, config } }) }
    await expect(joinFrom(joiner, donor, change)).rejects.toThrow('no enclave gives us')
    expect(readReasons(joiner)).toEqual(['the enclave is not accepted: another configuration'])
  })

  test.each<[string, (response: TransferResponse) => unknown]>([
    ['a changed ciphertext', (response) => ({ ...response, ciphertext: flip(response.ciphertext) })],
    ['another encapsulated key', (response) => ({ ...response, enc: flip(response.enc) })],
    ['a short ciphertext', (response) => ({ ...response, ciphertext: response.ciphertext.slice(2) })],
    ['no quote', ({ evidence: _, ...response }) => response],
    ['an empty quote', (response) => ({ ...response, evidence: { ...response.evidence, quote: '' } })],
    [
      'an endless quote',
      (response) => ({ ...response, evidence: { ...response.evidence, quote: '00'.repeat(70_000) } }),
    ],
    [
      'collateral without a member',
      (response) => ({ ...response, evidence: { ...response.evidence, collateral: {} } }),
    ],
    [
      'collateral that has lapsed',
      (response) => ({
        ...response,
        evidence: { ...response.evidence, collateral: simulator.collateral({ faults: { tcbInfoExpired: true } }) },
      }),
    ],
    ['nothing', () => []],
  ])('%s', async (_, response) => {
    const { donor } = await createGiving()
    const joiner = createTestPeer()
    await expect(joinFrom(joiner, donor, { response })).rejects.toThrow('no enclave gives us')
    expect(joiner.secrets).toEqual([])
  })

  const flip = (hex: string) => (hex.startsWith('0') ? `1${hex.slice(1)}` : `0${hex.slice(1)}`)
})

describe('which donors are asked, and how long', () => {
  test('retries unavailable ones, and the first that succeeds is enough', async () => {
    const { donor } = await createGiving()
    const donors: Record<string, Donor> = {}
    const callPeer = connect(donors)
    const joiner = createTestPeer()
    let waits = 0
    const wait = async (durationMs: number) => {
      waits += 1
      if (waits === 3) donors.b = donor
      await joiner.wait(durationMs)
    }
    await join({ ...joiner, callPeer, wait }, ['a', 'b'])
    expect(joiner.secrets).toHaveLength(1)
    expect(waits).toBe(3)
    expect(joiner.lines.filter((line) => line.includes('Got no root secret'))).toHaveLength(7)
  })

  test('gives up after the time limit', async () => {
    const joiner = createTestPeer()
    const callPeer = connect({})
    await expect(join({ ...joiner, callPeer }, ['a', 'b'])).rejects.toThrow('in time')
    expect(callPeer.calls).toHaveLength(120)
  })

  test('also if no donor responds at all', async () => {
    const joiner = createTestPeer()
    const start = joiner.clock.now()
    const urls = Array.from({ length: 16 }, (_, index) => `https://${index}.example`)
    const silent: CallPeer = async (_, __, ___, timeoutMs = 60_000) => {
      joiner.pass(timeoutMs)
      throw new PeerError('peer_unreachable', 'no response from the enclave', { details: 'not in time' })
    }
    await expect(join({ ...joiner, callPeer: silent }, urls)).rejects.toThrow('in time')
    expect(joiner.clock.now() - start).toBeLessThanOrEqual(305_000)
    // A challenge and then nothing: one enclave must not use the whole time.
    const late = createTestPeer()
    const timeouts: number[] = []
    const slow: CallPeer = async (url, path, body, timeoutMs = 60_000) => {
      if (path === rootSecretPaths.challenge) {
        late.pass(3_000)
        return { challenge: '00'.repeat(32) }
      }
      timeouts.push(timeoutMs)
      late.pass(timeoutMs)
      return silent(url, path, body, 0)
    }
    const lateStart = late.clock.now()
    await expect(join({ ...late, callPeer: slow }, urls)).rejects.toThrow('in time')
    expect(late.clock.now() - lateStart).toBeLessThanOrEqual(305_000)
    expect(Math.max(...timeouts)).toBe(60_000)
  })

  test('an invalid configuration or an unexpected error of one donor does not end the search', async () => {
    const { donor } = await createGiving()
    const honest = connect({ b: donor })
    const config = { ...createTestPeer().config, version: '\ud800' }
    const broken = connect({ a: donor }, { response: (r) => ({ ...r, evidence: { ...r.evidence, config } }) })
    const unthoughtOf: CallPeer = () => Promise.reject(new RangeError('secret'))
    for (const [first, reason] of [
      [broken, 'not the response of an enclave: evidence.config is not valid'],
      [unthoughtOf, 'unexpected RangeError'],
    ] as const) {
      const joiner = createTestPeer()
      const callPeer: CallPeer = (url, ...rest) => (url === 'a' ? first : honest)(url, ...rest)
      await join({ ...joiner, callPeer }, ['a', 'b'])
      expect(joiner.secrets).toHaveLength(1)
      expect(readReasons(joiner)).toEqual([reason])
    }
  })

  test('requests a new challenge if one expires on the way', async () => {
    const { peer, donor } = await createGiving()
    let isFirst = true
    const slow: Donor = {
      challenge: () => donor.challenge(),
      transfer(request) {
        if (isFirst) peer.pass(120_000)
        isFirst = false
        return donor.transfer(request)
      },
    }
    const joiner = createTestPeer()
    await joinFrom(joiner, slow)
    expect(readReasons(joiner)).toEqual(['the enclave refused: challenge_unknown'])
    expect(joiner.secrets).toHaveLength(1)
  })

  test('a donor that refuses does not affect others, and a busy one is asked again', async () => {
    const { donor } = await createGiving()
    const { donor: stranger } = await createGiving({ config: { version: '9' } })
    let isBusy = true
    const busy: Donor = {
      challenge: () => donor.challenge(),
      async transfer(request) {
        if (!isBusy) return donor.transfer(request)
        isBusy = false
        throw Object.assign(new Error('busy'), { code: 'quote_unavailable', status: 503 })
      },
    }
    const joiner = createTestPeer()
    await join({ ...joiner, callPeer: connect({ a: stranger, b: busy }) }, ['a', 'b'])
    expect(joiner.secrets).toHaveLength(1)
  })
})
