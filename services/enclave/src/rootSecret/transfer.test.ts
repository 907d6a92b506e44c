import { VendorError } from '@countersign/evidence'
import {
  type PeerEvidence,
  rootSecretPaths,
  type TransferRequest,
  type TransferResponse,
  toHex,
} from '@countersign/protocol'
import { type CallPeer, PeerError } from '@countersign/root-secret'
import { seal } from '@countersign/root-secret/sealing'
import { describe, expect, test } from 'vitest'
import {
  at,
  createTestPeer,
  createTestPolicy,
  foreignSimulator,
  type TestPeer as Peer,
  simulator,
} from '../../test/peers.ts'
import { createDonor, type Donor } from './donor.ts'
import { join } from './join.ts'
import { parseTransferRequest } from './parseTransfer.ts'

type Change = {
  request?(request: TransferRequest): unknown
  response?(response: TransferResponse): unknown | Promise<unknown>
}

/** Enclaves at an address, as the network would have it: whoever is between may change what passes. */
function connect(donors: Record<string, Donor>, change: Change = {}): CallPeer & { calls: string[] } {
  const calls: string[] = []
  const callPeer = async (url: string, path: string, body: unknown) => {
    calls.push(`${url}${path}`)
    const donor = donors[url]
    if (donor === undefined) throw new PeerError('peer_unreachable', 'no answer from the enclave')
    try {
      if (path === rootSecretPaths.challenge) return donor.challenge()
      const request = JSON.parse(JSON.stringify(change.request?.(body as TransferRequest) ?? body))
      const response = await donor.transfer(parseTransferRequest(request))
      return (await change.response?.(response)) ?? response
    } catch (error) {
      const { code, status = 403 } = error as { code: string; status?: number }
      throw new PeerError('peer_refused', 'the enclave refused', { details: code, status })
    }
  }
  return Object.assign(callPeer, { calls })
}

async function createGiving(options: Parameters<typeof createTestPeer>[0] = {}) {
  const peer = createTestPeer(options)
  await peer.holder.generate()
  return { peer, donor: createDonor(peer) }
}

const joinFrom = (peer: Peer, donor: Donor, change: Change = {}) =>
  join({ ...peer, callPeer: connect({ a: donor }, change) }, ['a'])

const reasons = ({ lines }: Peer) => lines.map((line) => JSON.parse(line).reason).filter(Boolean)

test('an enclave gets the secret of one that is configured as it is, and can give it on', async () => {
  const { peer: first, donor } = await createGiving()
  const second = createTestPeer()
  await joinFrom(second, donor)
  const third = createTestPeer()
  await joinFrom(third, createDonor(second))
  expect(second.secrets).toEqual(first.secrets)
  expect(third.secrets).toEqual(first.secrets)
  const log = [first, second, third].flatMap(({ lines }) => lines).join()
  expect(log).toContain('Gave the root secret to an enclave')
  expect(log).not.toContain(first.secrets[0])
})

describe('who does not get it, and costs no quote', () => {
  test.each<[string, Parameters<typeof createTestPeer>[0], string]>([
    ['other code', { quote: { mrtd: new Uint8Array(48).fill(1) } }, 'measurement_not_allowed'],
    [
      'code that can be debugged',
      { quote: { tdAttributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) } },
      'debug_enabled',
    ],
    ['a machine that is out of date', { quote: { status: 'OutOfDate' } }, 'tcb_status_not_accepted'],
    ['silicon of another root', { silicon: foreignSimulator }, 'root_not_trusted'],
    ['a forged quote', { quote: { faults: { quoteWrongSigner: true } } }, 'quote_signature_invalid'],
    ['a changed quote', { quote: { faults: { reportDataFlipped: true } } }, 'quote_signature_invalid'],
    ['another version', { config: { version: '0.0.1' } }, 'another configuration'],
    [
      'another identity provider',
      { config: { issuers: [{ issuer: 'https://evil.example', audience: 'a', jwksOrigin: 'https://evil.example' }] } },
      'another configuration',
    ],
    ['another policy', { policy: createTestPolicy({ statuses: ['UpToDate', 'OutOfDate'] }) }, 'another configuration'],
  ])('%s', async (_, options, reason) => {
    const { peer, donor } = await createGiving()
    const joiner = createTestPeer(options)
    // Its own source would refuse a quote over other data than was asked; an attacker's would not.
    const quoteSource = {
      mode: 'mock',
      getQuote: async (reportData: Uint8Array) => ({
        quote: (options?.silicon ?? simulator).quote({ ...options?.quote, reportData }),
      }),
    } as const
    await expect(joinFrom({ ...joiner, quoteSource } as Peer, donor)).rejects.toThrow('no enclave gives us')
    expect(joiner.secrets).toEqual([])
    expect(reasons(joiner)).toEqual(['the enclave refused: transfer_refused'])
    expect(peer.countQuotes()).toBe(0)
    await expect(transferDirectly(donor, { ...joiner, quoteSource } as Peer)).rejects.toMatchObject({
      details: expect.stringContaining(reason),
    })
  })

  test('a platform, or an evaluation of it, that the policy does not take', async () => {
    for (const changes of [{ platforms: ['00906ed50000'] }, { minimumTcbEvaluationDataNumber: 999 }]) {
      const policy = createTestPolicy(changes)
      const { donor } = await createGiving({ policy })
      await expect(joinFrom(createTestPeer({ policy }), donor)).rejects.toThrow('no enclave gives us')
    }
  })
})

/** The joiner's half by hand. */
async function transferDirectly(donor: Donor, peer: Peer, change: (request: TransferRequest) => unknown = (r) => r) {
  let captured: TransferRequest | undefined
  const capture: Donor = {
    challenge: () => donor.challenge(),
    transfer: async (request) => {
      captured = request
      throw Object.assign(new Error('captured'), { code: 'captured' })
    },
  }
  await joinFrom(peer, capture).catch(() => {})
  if (captured === undefined) throw new Error('nothing was sent')
  return donor.transfer(change(captured) as TransferRequest)
}

describe('a joiner’s quote is for one transfer', () => {
  test.each<[string, (request: TransferRequest) => Partial<TransferRequest>]>([
    ['another key', () => ({ publicKey: toHex(createTestPeer().random(32)) })],
    ['another nonce', () => ({ nonce: '00'.repeat(32) })],
  ])('%s than it covers', async (_, change) => {
    const { peer, donor } = await createGiving()
    const answer = transferDirectly(donor, createTestPeer(), (request) => ({ ...request, ...change(request) }))
    await expect(answer).rejects.toMatchObject({ code: 'transfer_refused', details: 'report_data_mismatch' })
    expect(peer.countQuotes()).toBe(0)
  })

  test('another challenge of ours', async () => {
    const { donor } = await createGiving()
    const answer = transferDirectly(donor, createTestPeer(), (request) => ({ ...request, ...donor.challenge() }))
    await expect(answer).rejects.toMatchObject({ code: 'transfer_refused', details: 'report_data_mismatch' })
  })

  test('a challenge twice, one after the other and at once', async () => {
    const { peer, donor } = await createGiving()
    let sent: TransferRequest | undefined
    await transferDirectly(donor, createTestPeer(), (request) => (sent = request))
    await expect(donor.transfer(sent as TransferRequest)).rejects.toMatchObject({ code: 'challenge_unknown' })
    expect(peer.countQuotes()).toBe(1)
    const twice = transferDirectly(donor, createTestPeer(), (request) => (sent = request))
    await twice
    const results = await Promise.allSettled([1, 2, 3].map(() => donor.transfer(sent as TransferRequest)))
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(peer.countQuotes()).toBe(2)
  })

  test('a challenge that has lapsed, of another enclave, or made up', async () => {
    const { peer, donor } = await createGiving()
    const { donor: other } = await createGiving()
    for (const { challenge } of [other.challenge(), { challenge: '00'.repeat(32) }, { challenge: 'ff'.repeat(32) }]) {
      const answer = transferDirectly(donor, createTestPeer(), (request) => ({ ...request, challenge }))
      await expect(answer).rejects.toMatchObject({ code: 'challenge_unknown' })
    }
    const late = transferDirectly(donor, createTestPeer(), (request) => {
      peer.pass(120_000)
      return request
    })
    await expect(late).rejects.toMatchObject({ code: 'challenge_unknown' })
  })

  test('a key of small order', async () => {
    const { donor } = await createGiving()
    const answer = transferDirectly(donor, createTestPeer(), (request) => ({ ...request, publicKey: '00'.repeat(32) }))
    await expect(answer).rejects.toMatchObject({ code: 'transfer_refused', details: 'not a key' })
  })

  test('a donor’s quote is no joiner’s, and a joiner’s no donor’s', async () => {
    const { donor } = await createGiving()
    let donorEvidence: PeerEvidence | undefined
    await joinFrom(createTestPeer(), donor, {
      response: (response) => {
        donorEvidence = response.evidence
        return response
      },
    })
    const answer = transferDirectly(donor, createTestPeer(), (request) => ({ ...request, evidence: donorEvidence }))
    await expect(answer).rejects.toMatchObject({ details: 'report_data_mismatch' })
    const joiner = createTestPeer()
    let own: PeerEvidence | undefined
    const change: Change = {
      request: (request) => {
        own = request.evidence
        return request
      },
      response: (response) => ({ ...response, evidence: own }),
    }
    await expect(joinFrom(joiner, donor, change)).rejects.toThrow('no enclave gives us')
    expect(reasons(joiner)).toEqual(['the enclave is not accepted: report_data_mismatch'])
    expect(joiner.secrets).toEqual([])
  })
})

describe('a joiner takes no secret from anybody else', () => {
  const injected = new Uint8Array(32).map((_, index) => index + 1)

  test('a secret that somebody between has sealed to its key, with the donor’s own quote', async () => {
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
    expect(reasons(joiner)).toEqual(['the enclave is not accepted: report_data_mismatch'])
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
    expect(reasons(joiner)).toEqual([`the enclave is not accepted: ${reason}`])
    expect(joiner.secrets).toEqual([])
  })

  test('a donor that says another configuration', async () => {
    const { peer, donor } = await createGiving()
    const joiner = createTestPeer()
    const config = { ...peer.config, callerPolicy: 'all' }
    const change: Change = { response: (response) => ({ ...response, evidence: { ...response.evidence, config } }) }
    await expect(joinFrom(joiner, donor, change)).rejects.toThrow('no enclave gives us')
    expect(reasons(joiner)).toEqual(['the enclave is not accepted: another configuration'])
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

describe('which donor, and for how long', () => {
  test('those that are not up yet are asked again; the first that gives is enough', async () => {
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

  test('not for ever', async () => {
    const joiner = createTestPeer()
    const callPeer = connect({})
    await expect(join({ ...joiner, callPeer }, ['a', 'b'])).rejects.toThrow('in time')
    expect(callPeer.calls).toHaveLength(120)
  })

  test('nor longer where nobody answers at all', async () => {
    const joiner = createTestPeer()
    const start = joiner.clock.now()
    const urls = Array.from({ length: 16 }, (_, index) => `https://${index}.example`)
    const silent: CallPeer = async (_, __, ___, timeoutMs = 60_000) => {
      joiner.pass(timeoutMs)
      throw new PeerError('peer_unreachable', 'no answer from the enclave', { details: 'not in time' })
    }
    await expect(join({ ...joiner, callPeer: silent }, urls)).rejects.toThrow('in time')
    expect(joiner.clock.now() - start).toBeLessThanOrEqual(305_000)
    // A challenge, and then nothing: the whole of the time is not for one enclave.
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

  test('one whose configuration is no Unicode, or who brings about what nobody has thought of, does not end it', async () => {
    const { donor } = await createGiving()
    const honest = connect({ b: donor })
    const config = { ...createTestPeer().config, version: '\ud800' }
    const broken = connect({ a: donor }, { response: (r) => ({ ...r, evidence: { ...r.evidence, config } }) })
    const unthoughtOf: CallPeer = () => Promise.reject(new RangeError('secret'))
    for (const [first, reason] of [
      [broken, 'not the answer of an enclave'],
      [unthoughtOf, 'unexpected RangeError'],
    ] as const) {
      const joiner = createTestPeer()
      const callPeer: CallPeer = (url, ...rest) => (url === 'a' ? first : honest)(url, ...rest)
      await join({ ...joiner, callPeer }, ['a', 'b'])
      expect(joiner.secrets).toHaveLength(1)
      expect(reasons(joiner)).toEqual([reason])
    }
  })

  test('a challenge that lapsed on the way is asked for again', async () => {
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
    expect(reasons(joiner)).toEqual(['the enclave refused: challenge_unknown'])
    expect(joiner.secrets).toHaveLength(1)
  })

  test('one that refuses does not keep another from giving; a busy one is asked again', async () => {
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

  test('a donor without collateral says so, and gives nothing', async () => {
    const peer = createTestPeer()
    await peer.holder.generate()
    const fetchCollateral = () => Promise.reject(new VendorError('vendor_unreachable', 'down'))
    const donor = createDonor({ ...peer, fetchCollateral })
    await expect(transferDirectly(donor, createTestPeer())).rejects.toMatchObject({ code: 'collateral_stale' })
  })

  test('an enclave without a secret gives none', async () => {
    const joiner = createTestPeer()
    await expect(transferDirectly(createDonor(createTestPeer()), joiner)).rejects.toThrow('no secret here')
  })
})

describe('floods', () => {
  test('twenty thousand challenges keep nothing, and crowd nobody out', async () => {
    const { peer, donor } = await createGiving()
    const answer = transferDirectly(donor, createTestPeer(), (request) => {
      for (let count = 0; count < 20_000; count++) donor.challenge()
      return request
    })
    await expect(answer).resolves.toHaveProperty('ciphertext')
    expect(peer.countQuotes()).toBe(1)
  })

  test('of transfers at once four are looked at, one after the other, and the rest refused', async () => {
    const { peer, donor } = await createGiving()
    const requests: TransferRequest[] = []
    for (let count = 0; count < 12; count++) {
      const capture: Donor = {
        challenge: () => donor.challenge(),
        async transfer(request) {
          requests.push(request)
          throw Object.assign(new Error(), { code: 'captured' })
        },
      }
      await joinFrom(createTestPeer(), capture).catch(() => {})
    }
    const results = await Promise.allSettled(requests.map((request) => donor.transfer(request)))
    const given = results.filter(({ status }) => status === 'fulfilled')
    expect(given).toHaveLength(4)
    expect(peer.countQuotes()).toBe(4)
    const codes = results.map((result) => (result.status === 'rejected' ? result.reason.code : 'given'))
    expect(codes.filter((code) => code === 'quote_unavailable')).toHaveLength(8)
  })
})

test('requests of another shape are refused before anything is verified', async () => {
  const evidence = { quote: '00', config: createTestPeer().config, collateral: simulator.collateral({ at }) }
  const hex = '11'.repeat(32)
  const whole = { challenge: hex, nonce: hex, publicKey: hex, evidence }
  expect(parseTransferRequest(whole)).toEqual(whole)
  for (const wrong of [
    null,
    [],
    'text',
    {},
    { ...whole, extra: 1 },
    { ...whole, challenge: hex.slice(2) },
    { ...whole, nonce: hex.toUpperCase().replaceAll('1', 'A') },
    { ...whole, publicKey: 7 },
    { ...whole, evidence: null },
    { ...whole, evidence: { ...evidence, extra: 1 } },
    { ...whole, evidence: { ...evidence, quote: '0' } },
    { ...whole, evidence: { ...evidence, config: { ...evidence.config, extra: '1' } } },
    { ...whole, evidence: { ...evidence, collateral: { ...evidence.collateral, extra: '1' } } },
  ]) {
    expect(() => parseTransferRequest(wrong)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  }
})
