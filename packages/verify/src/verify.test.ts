import { readFileSync } from 'node:fs'
import { createVerifier } from '@countersign/attestation'
import { simulatedRoots } from '@countersign/attestation/simulator'
import { ServiceError, toCanonicalJson } from '@countersign/protocol'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  contract,
  issueGolden,
  issueGoldenV2,
  issue as issueReceipt,
  publishedBlock,
  publishingTx,
  toLog,
  toManifest,
  toProof,
} from '../test/issues.ts'
import { apiBaseUrl, createFakeNetwork, type FakeNetwork, gatewayUrl, json, rpcUrl } from '../test/network.ts'
import {
  createSubjectNetwork,
  judgedAt,
  type Subject as Row,
  subjects,
  toFound,
  toSubjectManifest,
  toWanted,
} from '../test/subjects.ts'
import { withCode } from '../test/withCode.ts'
import { findLies } from './compareClaims.ts'
import { createFetchBytes } from './fetchBytes.ts'
import { findApi } from './getProof.ts'
import { chooseReceipt } from './loadReceipt.ts'
import { emptyManifest } from './parseManifest.ts'
import { recogniseSubject } from './recogniseSubject.ts'
import { type Progress, type VerifyRequest, verify as verifyReceipt } from './verify.ts'

const golden = new URL('../../receipt/spec/golden/', import.meta.url)
const issue = await issueGolden()
const other = await issueReceipt({ txMetadata: { nonce: 1 } })
const manifest = toManifest(issue)

let network: FakeNetwork
let progress: Progress[]
beforeEach(() => {
  network = createFakeNetwork(issue)
  progress = []
})

const createDeps = ({ fetch }: FakeNetwork) => ({
  fetchBytes: createFetchBytes({ fetch, timeoutMs: 5_000 }),
  now: () => judgedAt,
  onProgress: (entry: Progress) => progress.push(entry),
})

const verify = (change: Partial<VerifyRequest> = {}) =>
  verifyReceipt(createDeps(network), {
    subject: { kind: 'cid', cid: issue.cid },
    manifests: [manifest],
    gateways: [gatewayUrl],
    api: apiBaseUrl,
    rpc: rpcUrl,
    allowMock: true,
    ...change,
  })

const verifyOffline = (...files: { name: string; bytes: Uint8Array<ArrayBuffer> }[]) =>
  verifyReceipt(createDeps(network), {
    manifests: [manifest],
    gateways: [gatewayUrl],
    allowMock: true,
    ...chooseReceipt(files),
  })

const failedSteps = ({ steps }: { steps: readonly { id: string; status: string }[] }) =>
  steps.filter(({ status }) => status === 'fail').map(({ id }) => id)
const statusOf = ({ steps }: { steps: readonly { id: string; status: string }[] }, id: string) =>
  steps.find((step) => step.id === id)?.status

async function runCheck(row: Row) {
  const { subject, opening, revocations, collaterals = [], hasSources = true, hasNode = true, at } = row
  const deps = createDeps(createSubjectNetwork(row))
  const named = typeof subject === 'string' ? recogniseSubject(subject) : { kind: 'file' as const, ...subject }
  const toApi = (origin = apiBaseUrl) => (hasSources ? apiBaseUrl : findApi(deps, origin))
  try {
    const outcome = await verifyReceipt(deps, {
      subject: named.kind === 'proof' ? { ...named, api: await toApi(named.origin) } : named,
      manifests: [toSubjectManifest(row)],
      collaterals,
      tcbStatuses: row.tcbStatuses ?? [],
      allowMock: row.allowMock ?? true,
      isEventDue: row.isEventDue ?? true,
      ...(hasSources && { gateways: [gatewayUrl], api: apiBaseUrl }),
      ...(hasNode && { rpc: rpcUrl }),
      ...(row.maximumEventDelayS !== undefined && { maximumEventDelayS: row.maximumEventDelayS }),
      ...(opening && { opening: opening.bytes }),
      ...(revocations && { revocations: revocations.bytes }),
      ...(at && { at }),
    })
    return toFound({ ...outcome, lies: findLies(outcome.claims) })
  } catch (error) {
    if (error instanceof ServiceError) return { error: error.code }
    throw error
  }
}

test.each(subjects)('the verdict on $name', async (row) => {
  expect(await runCheck(row)).toEqual(toWanted(row.expected))
})

describe('the golden receipt', () => {
  test('passes every step except those that need a log, a list of machines or AMD’s revocation list', async () => {
    const result = await verify()
    expect(result).toMatchObject({ cid: issue.cid, isMock: true, isKnownCode: true, isEventMissing: false })
    expect(result.problems).toEqual([])
    expect(result.steps).toHaveLength(29)
    expect(result.publications).toEqual([
      { txHash: publishingTx, blockNumber: publishedBlock, blockTime: expect.any(Date), ipfsCid: issue.cid },
    ])
    expect(result.bytes).toEqual(new Uint8Array(readFileSync(new URL('receipt.json', golden))))
  })

  test('reports each phase, and each step as it finishes', async () => {
    const { steps } = await verify()
    expect(progress).toEqual([
      ...['receipt', 'collateral', 'steps'].map((phase) => ({ kind: 'phase', phase })),
      ...steps.map((step) => ({ kind: 'step', step })),
    ])
  })
})

test('makes no request for a text that is not the CID of a receipt', async () => {
  const cid = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'
  await expect(verify({ subject: { kind: 'cid', cid } })).rejects.toThrow(withCode('invalid_arguments'))
  expect(network.requests.filter((entry) => entry.startsWith('GET'))).toEqual([])
})

test('missing collateral makes the verdict incomplete, and names the gateways without it', async () => {
  network.blocks.delete(issue.receipt.signer.collateral)
  const problems = ['gateway.test returned 404', 'api.test returned 404']
  expect(await verify()).toMatchObject({ verdict: 'incomplete', problems })
})

describe('the chain', () => {
  const subject = { kind: 'transaction', txHash: issue.receipt.transaction.txHash } as const

  test('without an event, nothing confirms the time', async () => {
    network.rpc.eth_getLogs = []
    await expect(verify({ subject })).rejects.toThrow(withCode('event_not_found'))
  })

  test('more than 16 events for one transaction make the verdict incomplete', async () => {
    network.rpc.eth_getLogs = Array(17).fill(toLog(issue))
    expect(await verify()).toMatchObject({ verdict: 'incomplete' })
  })

  test('an event for the receipt of another transaction proves nothing', async () => {
    network.blocks.set(other.cid, other.bytes)
    network.rpc.eth_getLogs = [toLog({ ...issue, cid: other.cid })]
    expect(await verify({ subject })).toMatchObject({ verdict: 'failed' })
    expect(progress).toContainEqual({ kind: 'step', step: expect.objectContaining({ id: 'subject', status: 'fail' }) })
  })

  test('a missing event that is not required hides no other failure', async () => {
    network.rpc.eth_getLogs = []
    const early = await verify({ isEventDue: false })
    expect(early).toMatchObject({ verdict: 'mock', publications: [], isEventMissing: true })
    expect(statusOf(early, 'transaction')).toBe('pass')
    const enclave = { ...manifest.enclave, configHashes: ['00'.repeat(32)] }
    expect(failedSteps(await verify({ isEventDue: false, manifests: [{ ...manifest, enclave }] }))).toEqual(['config'])
  })

  test.each<[string, unknown]>([
    ['with another CID', toLog({ ...issue, cid: other.cid })],
    ['that cannot be read', { ...toLog(issue), data: '0x00' }],
  ])('an event %s is not missing', async (_name, log) => {
    network.rpc.eth_getLogs = [log]
    expect(await verify({ isEventDue: false })).toMatchObject({ verdict: 'failed', isEventMissing: false })
  })

  test('a node of another chain than required gets no further requests', async () => {
    const contracts = [...manifest.contracts, { chainId: 1, address: contract }]
    const manifests = [{ ...manifest, contracts }]
    expect(await verify({ manifests, chainId: 1 })).toMatchObject({ verdict: 'incomplete', publications: [] })
    expect(network.requests.filter((entry) => entry.startsWith('POST'))).toHaveLength(1)
    expect(await verify({ manifests, chainId: 31337 })).toMatchObject({ conclusion: 'accepted' })
    expect(await verify({ manifests: [emptyManifest], contract, chainId: 1 })).toMatchObject({ verdict: 'incomplete' })
  })
})

describe('files', () => {
  const receiptFile = { name: 'receipt.json', bytes: issue.bytes }
  const collateralFile = { name: 'collateral.json', bytes: issue.collateral }

  test('with its collateral, in either order, fetches nothing', async () => {
    expect(await verifyOffline(receiptFile, collateralFile)).toMatchObject({ verdict: 'mock' })
    expect(await verifyOffline(collateralFile, receiptFile)).toMatchObject({ verdict: 'mock' })
    expect(network.requests).toEqual([])
  })

  test('of only the receipt, fetches the collateral by its CID', async () => {
    expect(await verifyOffline(receiptFile)).toMatchObject({ verdict: 'mock' })
    expect(network.requests).toEqual([`GET ${gatewayUrl}/ipfs/${issue.receipt.signer.collateral}?format=raw`])
  })

  test('rejects a file that is neither the collateral nor a receipt, by its name', async () => {
    const refusal = (...files: Parameters<typeof verifyOffline>) => expect(verifyOffline(...files)).rejects
    const notes = { name: 'notes.json', bytes: new Uint8Array([1]) }
    await refusal(receiptFile, notes).toThrow(withCode('collateral_malformed', 'notes.json'))
    const stranger = { name: 'other.json', bytes: other.collateral }
    await refusal(receiptFile, stranger).toThrow(withCode('collateral_not_named', 'other.json'))
    const page = { name: 'page.html', bytes: new TextEncoder().encode('<!doctype html>') }
    await refusal(page).toThrow(withCode('receipt_not_canonical', 'page.html'))
    expect(() => chooseReceipt([])).toThrow(expect.objectContaining({ code: 'invalid_arguments' }))
  })

  test.each(['', 'a/', 'a\nb/', 'a\n\\'])(
    'compares a file named after a CID with it, in the folder %j',
    async (folder) => {
      const bytes = toCanonicalJson(issue.receipt)
      expect(failedSteps(await verifyOffline({ name: `${folder}${other.cid}.json`, bytes }))).toEqual(['cid'])
    },
  )
})

describe('a proof', () => {
  test('has its claims compared with the evidence', async () => {
    network.routes.push([`${apiBaseUrl}/proof/`, () => json(toProof(issue))])
    const result = await verify({ subject: { kind: 'proof', slug: toProof(issue).slug, api: apiBaseUrl } })
    expect(result).toMatchObject({ conclusion: 'accepted', proof: { status: 'complete' } })
    expect(result.claims.map(({ verdict }) => verdict)).toEqual(Array(9).fill('holds'))
  })

  test('from the caller is not fetched again', async () => {
    const subject = { kind: 'proof', slug: 'x', api: apiBaseUrl, proof: toProof(issue) } as const
    expect(await verify({ subject })).toMatchObject({ conclusion: 'accepted' })
    expect(network.requests.filter((entry) => entry.includes('/proof/'))).toEqual([])
  })
})

describe('a sample of a simulated source makes the whole verdict MOCK, even with an anchor for its key', () => {
  /** Accepts the simulated machines as real ones, so that only the sample is simulated. */
  const verifier = createVerifier({ roots: simulatedRoots().map((root) => ({ ...root, mode: 'hardware' as const })) })
  /** With dstack, the registers don't identify the whole code. */
  const config = { rootSecret: `attested:sha256:${'ab'.repeat(32)}` } as const

  test.each([
    ['a satellite', false],
    ['a beacon', true],
  ])('%s', async (_, isBeacon) => {
    const issued = await issueGoldenV2({ isBeacon, config })
    const request = { subject: { kind: 'cid', cid: issued.cid }, manifests: [toManifest(issued)] } as const
    const deps = { ...createDeps(createFakeNetwork(issued)), verifier }
    const { conclusion, isMock, steps } = await verifyReceipt(deps, { ...request, gateways: [gatewayUrl], rpc: rpcUrl })
    expect({ conclusion, isMock }).toEqual({ conclusion: 'mock', isMock: true })
    expect(steps.filter(({ detail }) => detail.includes('MOCK')).map(({ id }) => id)).toEqual(['entropy-key'])
  })
})
