import { VendorError } from '@countersign/evidence'
import { toHex } from '@countersign/protocol'
import { type PeerEvidence, type TransferRequest, transferRequest } from '@countersign/root-secret'
import { describe, expect, test } from 'vitest'
import {
  at,
  createTestPeer,
  createTestPolicy,
  foreignSimulator,
  type TestPeer as Peer,
  simulator,
} from '../../test/peers.ts'
import { type Change, createGiving, joinFrom, readReasons, transferDirectly } from '../../test/transfer.ts'
import { parseRequest } from '../parseRequest.ts'
import { createDonor, type Donor } from './donor.ts'

test('an enclave with the same configuration gets the secret and can pass it on', async () => {
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

describe('rejects other joiners without creating a quote', () => {
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
    // Its own quote source would reject other data than requested. An attacker's would not.
    const quoteSource = {
      mode: 'mock',
      getQuote: async (reportData: Uint8Array) => ({
        quote: (options?.silicon ?? simulator).quote({ ...options?.quote, reportData }),
      }),
    } as const
    await expect(joinFrom({ ...joiner, quoteSource } as Peer, donor)).rejects.toThrow('no enclave gives us')
    expect(joiner.secrets).toEqual([])
    expect(readReasons(joiner)).toEqual(['the enclave refused: transfer_refused'])
    expect(peer.countQuotes()).toBe(0)
    await expect(transferDirectly(donor, { ...joiner, quoteSource } as Peer)).rejects.toMatchObject({
      details: expect.stringContaining(reason),
    })
  })

  test('rejects a platform or TCB evaluation that the policy does not allow', async () => {
    for (const changes of [{ platforms: [{ fmspc: '00906ed50000' }] }, { minimumTcbEvaluationDataNumber: 999 }]) {
      const policy = createTestPolicy(changes)
      const { donor } = await createGiving({ policy })
      await expect(joinFrom(createTestPeer({ policy }), donor)).rejects.toThrow('no enclave gives us')
    }
  })
})
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

  test('another challenge of this enclave', async () => {
    const { donor } = await createGiving()
    const answer = transferDirectly(donor, createTestPeer(), (request) => ({ ...request, ...donor.challenge() }))
    await expect(answer).rejects.toMatchObject({ code: 'transfer_refused', details: 'report_data_mismatch' })
  })

  test('a challenge twice, sequentially and concurrently', async () => {
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

  test('an expired, foreign or invented challenge', async () => {
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

  test('a donor’s quote is not accepted as a joiner’s, nor the other way round', async () => {
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
    expect(readReasons(joiner)).toEqual(['the enclave is not accepted: report_data_mismatch'])
    expect(joiner.secrets).toEqual([])
  })
})

describe('a donor that cannot transfer', () => {
  test('returns an error without collateral', async () => {
    const peer = createTestPeer()
    await peer.holder.generate()
    const fetchCollateral = () => Promise.reject(new VendorError('vendor_unreachable', 'down'))
    const donor = createDonor({ ...peer, fetchCollateral })
    await expect(transferDirectly(donor, createTestPeer())).rejects.toMatchObject({ code: 'collateral_stale' })
  })

  test('returns an error without a secret', async () => {
    const joiner = createTestPeer()
    await expect(transferDirectly(createDonor(createTestPeer()), joiner)).rejects.toThrow('no secret here')
  })
})

describe('floods', () => {
  test('twenty thousand challenges take no memory and block no joiner', async () => {
    const { peer, donor } = await createGiving()
    const answer = transferDirectly(donor, createTestPeer(), (request) => {
      for (let count = 0; count < 20_000; count++) donor.challenge()
      return request
    })
    await expect(answer).resolves.toHaveProperty('ciphertext')
    expect(peer.countQuotes()).toBe(1)
  })

  test('checks four concurrent transfers in sequence and rejects the rest', async () => {
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

test('rejects malformed requests before verification', async () => {
  const evidence = { quote: '00', config: createTestPeer().config, collateral: simulator.collateral({ at }) }
  const hex = '11'.repeat(32)
  const whole = { challenge: hex, nonce: hex, publicKey: hex, evidence }
  expect(parseRequest(transferRequest, whole)).toEqual(whole)
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
    expect(() => parseRequest(transferRequest, wrong)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  }
})
