import { readFileSync } from 'node:fs'
import { ServiceError, toCanonicalJson } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import { chooseReceipt } from './chooseReceipt.ts'
import { createFetchBytes } from './fetchBytes.ts'
import {
  contract,
  issueGolden,
  issue as issueReceipt,
  publishedBlock,
  publishingTx,
  toLog,
  toManifest,
  toProof,
} from './issues.fake.ts'
import { apiBaseUrl, createFakeNetwork, type FakeNetwork, gatewayUrl, html, json, rpcUrl } from './network.fake.ts'
import { emptyManifest } from './parseManifest.ts'
import { type Progress, type VerifyRequest, verify as verifyReceipt } from './verify.ts'

type Tampered = { name: string; changes: { path: (string | number)[]; value?: unknown }[]; step: string }

const golden = new URL('../../receipt/spec/golden/', import.meta.url)
const tampered: Tampered[] = JSON.parse(readFileSync(new URL('tampered.json', golden), 'utf8'))
/** One for each step; the package that has the steps tries them all. */
const neighbours = tampered.filter(({ step }, index) => tampered.findIndex((entry) => entry.step === step) === index)
const issue = await issueGolden()
const other = await issueReceipt({ txMetadata: { nonce: 1 } })
const manifest = toManifest(issue)

let network: FakeNetwork
let progress: Progress[]
beforeEach(() => {
  network = createFakeNetwork(issue)
  progress = []
})

function verify(change: Partial<VerifyRequest> = {}) {
  const deps = {
    fetchBytes: createFetchBytes({ fetch: network.fetch, timeoutMs: 5_000 }),
    now: () => new Date('2026-07-01T00:00:00Z'),
    onProgress: (entry: Progress) => progress.push(entry),
  }
  return verifyReceipt(deps, {
    subject: { kind: 'cid', cid: issue.cid },
    manifests: [manifest],
    gateways: [gatewayUrl],
    api: apiBaseUrl,
    rpc: rpcUrl,
    allowMock: true,
    ...change,
  })
}

/** Without the members that `exactOptionalPropertyTypes` does not let be undefined. */
function verifyOffline(change: Pick<VerifyRequest, 'subject' | 'collaterals'>) {
  const deps = {
    fetchBytes: createFetchBytes({ fetch: network.fetch, timeoutMs: 5_000 }),
    now: () => new Date('2026-07-01T00:00:00Z'),
  }
  return verifyReceipt(deps, { manifests: [manifest], gateways: [gatewayUrl], allowMock: true, ...change })
}

async function codeOf(result: Promise<unknown>): Promise<string> {
  const error = await result.then(
    () => undefined,
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(ServiceError)
  return `${error.code}: ${error.message}: ${error.details}`
}

const failedSteps = ({ steps }: { steps: readonly { id: string; status: string }[] }) =>
  steps.filter(({ status }) => status === 'fail').map(({ id }) => id)
const statusOf = ({ steps }: { steps: readonly { id: string; status: string }[] }, id: string) =>
  steps.find((step) => step.id === id)?.status

const withOtherConfig = { ...manifest, enclave: { ...manifest.enclave, configHashes: ['00'.repeat(32)] } }

describe('a receipt by its CID', () => {
  test('the golden receipt passes every step but those that need a log, a list of machines or AMD’s of revocations, as MOCK, with the event that the chain has', async () => {
    const result = await verify()
    expect(result).toMatchObject({ verdict: 'mock', isMock: true, isKnownCode: true, problems: [] })
    expect(result.conclusion).toBe('accepted')
    const notPassed = result.steps.filter(({ status }) => status !== 'pass')
    expect(notPassed.map(({ id, status }) => [id, status])).toEqual([
      ['log', 'skip'],
      ['platform', 'skip'],
      ['coordinator-revocation', 'skip'],
    ])
    expect(result.publications).toEqual([
      { txHash: publishingTx, blockNumber: publishedBlock, blockTime: expect.any(Date), ipfsCid: issue.cid },
    ])
    expect(result.bytes).toEqual(new Uint8Array(readFileSync(new URL('receipt.json', golden))))
  })

  test('without leave for mock evidence it is MOCK all the same, and no success', async () => {
    const result = await verify({ allowMock: false })
    expect(result).toMatchObject({ verdict: 'mock', conclusion: 'mock', isMock: true })
    expect(failedSteps(result)).toEqual([])
  })

  test('progress: each phase, and each step as it finishes', async () => {
    const { steps } = await verify()
    expect(progress).toEqual([
      ...['receipt', 'collateral', 'steps'].map((phase) => ({ kind: 'phase', phase })),
      ...steps.map((step) => ({ kind: 'step', step })),
    ])
  })

  test('without anchors the code is unknown', async () => {
    const result = await verify({ manifests: [{ ...emptyManifest, contracts: manifest.contracts }] })
    expect(result).toMatchObject({ verdict: 'mock', conclusion: 'unknown-code', isKnownCode: false })
    expect(statusOf(result, 'measurement')).toBe('skip')
  })

  test('other anchors fail', async () => {
    expect(failedSteps(await verify({ manifests: [withOtherConfig] }))).toEqual(['config'])
  })

  test('what is no CID of a receipt is not asked for', async () => {
    const cid = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'
    expect(await codeOf(verify({ subject: { kind: 'cid', cid } }))).toMatch(/^invalid_arguments: /)
    expect(network.requests.filter((entry) => entry.startsWith('GET'))).toEqual([])
  })
})

describe('gateways', () => {
  test('one that sends other bytes is reported and passed over', async () => {
    network.routes.push([`${gatewayUrl}/ipfs/${issue.cid}`, () => new Response('{}')])
    expect(await verify()).toMatchObject({ verdict: 'mock' })
  })

  test.each<[string, () => Response, RegExp]>([
    ['truncated bytes', () => new Response(issue.bytes.slice(0, 1000)), /sent 1000 other bytes.*cut short or changed/],
    ['another receipt', () => new Response(other.bytes), new RegExp(`with the CID ${other.cid}`)],
    ['a web page', html, /gateway\.test answers with a web page/],
    ['nothing', () => new Response(null, { status: 404 }), /gateway\.test answers 404/],
  ])('%s from the only gateway is no receipt', async (_name, answer, message) => {
    network.routes.push([gatewayUrl, answer])
    network.routes.push([apiBaseUrl, () => json({}, 503)])
    const code = await codeOf(verify())
    expect(code).toMatch(/^fetch_failed: /)
    expect(code).toMatch(message)
  })

  test('missing collateral makes the verdict incomplete, and it is said who did not have it', async () => {
    network.blocks.delete(issue.receipt.signer.collateral)
    const result = await verify()
    expect(result.verdict).toBe('incomplete')
    expect(result.problems).toEqual(['gateway.test answers 404', 'api.test answers 404'])
  })
})

describe('the chain', () => {
  test('without an event the proof fails, unless none is due', async () => {
    network.rpc.eth_getLogs = []
    expect(failedSteps(await verify())).toEqual(['event'])
    const early = await verify({ isEventDue: false })
    expect(early).toMatchObject({ verdict: 'mock', publications: [], isEventMissing: true })
    expect(statusOf(early, 'event')).toBe('skip')
    expect(statusOf(early, 'transaction')).toBe('pass')
  })

  test('an event that is not due is looked at all the same', async () => {
    const found = await verify({ isEventDue: false })
    expect(found).toMatchObject({ verdict: 'mock', isEventMissing: false })
    expect(statusOf(found, 'event')).toBe('pass')
    expect(found.publications).toHaveLength(1)
  })

  test.each<[string, unknown]>([
    ['with another CID', toLog({ ...issue, cid: other.cid })],
    ['that cannot be read', { ...toLog(issue), data: '0x00' }],
  ])('an event %s fails, also where none is due', async (_name, log) => {
    network.rpc.eth_getLogs = [log]
    const result = await verify({ isEventDue: false })
    expect(result).toMatchObject({ verdict: 'failed', isEventMissing: false })
    expect(failedSteps(result)).toEqual(['event'])
  })

  test('a missing event that is not due hides no other failure', async () => {
    network.rpc.eth_getLogs = []
    const result = await verify({ isEventDue: false, manifests: [withOtherConfig] })
    expect(result.verdict).toBe('failed')
    expect(failedSteps(result)).toEqual(['config'])
  })

  test('a node that does not answer leaves it open, also where no event is due', async () => {
    network.routes.push(['https://rpc.test', () => json({}, 503)])
    expect(await verify({ isEventDue: false })).toMatchObject({ verdict: 'incomplete', isEventMissing: false })
  })

  test('an event with another CID fails', async () => {
    network.rpc.eth_getLogs = [toLog({ ...issue, cid: other.cid })]
    expect(failedSteps(await verify())).toEqual(['event'])
  })

  test.each<[string, Record<string, unknown>]>([
    ['that does not say its chain', { eth_chainId: null }],
    ['that answers nonsense', { eth_getLogs: 'no' }],
    ['with too many logs', { eth_getLogs: Array(17).fill(toLog(issue)) }],
    ['with a malformed log', { eth_getLogs: [{ ...toLog(issue), blockHash: '0x' }] }],
    ['that names another block', { eth_getBlockByNumber: { hash: `0x${'01'.repeat(32)}`, timestamp: '0x1' } }],
  ])('a node %s was not asked: the verdict stays open', async (_name, answers) => {
    Object.assign(network.rpc, answers)
    const result = await verify()
    expect(result.verdict).toBe('incomplete')
    expect(statusOf(result, 'event')).toBe('skip')
  })

  test('a node of another chain than the manifest’s contract was not asked', async () => {
    network.rpc.eth_chainId = '0x1'
    const result = await verify()
    expect(result).toMatchObject({ verdict: 'incomplete', publications: [] })
    expect(statusOf(result, 'transaction')).toBe('skip')
  })

  test('a node of another chain than the one that it should be of was not asked, whatever the manifest names', async () => {
    const contracts = [...manifest.contracts, { chainId: 1, address: contract }]
    const manifests = [{ ...manifest, contracts }]
    const result = await verify({ manifests, chainId: 1 })
    expect(result).toMatchObject({ verdict: 'incomplete', publications: [] })
    expect(network.requests.filter((entry) => entry.startsWith('POST'))).toHaveLength(1)
    expect(await verify({ manifests, chainId: 31337 })).toMatchObject({ verdict: 'mock', conclusion: 'accepted' })
    expect(await verify({ manifests: [emptyManifest], contract, chainId: 1 })).toMatchObject({ verdict: 'incomplete' })
  })

  test('a node without any contract is bad input', async () => {
    expect(await codeOf(verify({ manifests: [emptyManifest] }))).toMatch(/^invalid_arguments: /)
  })

  test('a log that a reorganisation removed, and one of another contract, are no events', async () => {
    network.rpc.eth_getLogs = [
      { ...toLog(issue), removed: true },
      { ...toLog(issue), address: `0x${'cd'.repeat(20)}` },
    ]
    const result = await verify()
    expect(failedSteps(result)).toEqual(['event'])
    expect(result.publications).toEqual([])
  })
})

describe('a receipt by its transaction', () => {
  const { txHash } = issue.receipt.transaction
  const subject = { kind: 'transaction', txHash } as const

  test('the event leads to it', async () => {
    expect(await verify({ subject })).toMatchObject({ verdict: 'mock', cid: issue.cid })
  })

  test('without an event there is none', async () => {
    network.rpc.eth_getLogs = []
    expect(await codeOf(verify({ subject }))).toMatch(/^event_not_found: /)
  })

  test('an event that leads to the receipt of another transaction proves nothing', async () => {
    network.blocks.set(other.cid, other.bytes)
    network.rpc.eth_getLogs = [toLog({ ...issue, cid: other.cid })]
    const result = await verify({ subject })
    expect(result.verdict).toBe('failed')
    expect(statusOf(result, 'subject')).toBe('fail')
    expect(progress).toContainEqual({ kind: 'step', step: expect.objectContaining({ id: 'subject', status: 'fail' }) })
  })

  test('two events with different receipts leave the choice to the visitor', async () => {
    network.rpc.eth_getLogs = [toLog(issue), toLog({ ...issue, cid: other.cid })]
    expect(await codeOf(verify({ subject }))).toContain(other.cid)
  })

  test('without a contract, or with a node that is down, nobody can say', async () => {
    expect(await codeOf(verifyOffline({ subject }))).toMatch(/^invalid_arguments: .*a node and a contract/)
    network.routes.push(['https://rpc.test', () => json({}, 503)])
    expect(await codeOf(verify({ subject }))).toMatch(/^chain_unavailable: .*503/)
  })
})

describe('a receipt as a file', () => {
  const receiptFile = { name: 'receipt.json', bytes: issue.bytes }
  const collateralFile = { name: 'collateral.json', bytes: issue.collateral }
  const files = (...list: { name: string; bytes: Uint8Array<ArrayBuffer> }[]) => verifyOffline(chooseReceipt(list))

  test('with its collateral, in either order, nothing is fetched', async () => {
    expect(await files(receiptFile, collateralFile)).toMatchObject({ verdict: 'mock' })
    expect(await files(collateralFile, receiptFile)).toMatchObject({ verdict: 'mock' })
    expect(network.requests).toEqual([])
  })

  test('alone, its collateral is fetched by CID', async () => {
    expect(await files(receiptFile)).toMatchObject({ verdict: 'mock' })
    expect(network.requests).toEqual([`GET ${gatewayUrl}/ipfs/${issue.receipt.signer.collateral}?format=raw`])
  })

  test('a line feed after the collateral does no harm, after the receipt it does', async () => {
    const withLineFeed = (bytes: Uint8Array) => Uint8Array.from([...bytes, 0x0a])
    expect(await files(receiptFile, { name: 'c', bytes: withLineFeed(issue.collateral) })).toMatchObject({
      problems: [],
    })
    expect(await codeOf(files({ name: 'r', bytes: withLineFeed(issue.bytes) }))).toMatch(/^receipt_not_canonical: /)
  })

  test('a file that is not the collateral is refused by its name', async () => {
    const notes = { name: 'notes.json', bytes: new Uint8Array([1]) }
    expect(await codeOf(files(receiptFile, notes))).toMatch(/^collateral_malformed: .*notes\.json/)
    const stranger = { name: 'other.json', bytes: other.collateral }
    expect(await codeOf(files(receiptFile, stranger))).toMatch(/^collateral_not_named: .*other\.json/)
  })

  test('a file named after a CID is held against it', async () => {
    for (const folder of ['', 'a/', 'a\nb/', 'a\n\\']) {
      expect(failedSteps(await files({ ...receiptFile, name: `${folder}${other.cid}.json` }))).toEqual(['cid'])
    }
  })

  test('what is no receipt is refused by its name', async () => {
    const bytes = new TextEncoder().encode('<!doctype html>')
    expect(await codeOf(files({ name: 'page.html', bytes }))).toMatch(/^receipt_not_canonical: .*page\.html/)
    expect(() => chooseReceipt([])).toThrow('there is no file')
  })

  test.each(neighbours)('tampered: $name, found by $step', async ({ changes, step }) => {
    const value = structuredClone(issue.receipt)
    for (const change of changes) apply(value, change)
    const result = files({ name: 'r.json', bytes: toCanonicalJson(value) }, collateralFile)
    if (step === 'format') return expect(await codeOf(result)).toMatch(/^receipt_/)
    // Files are looked for by the CID that the receipt names, so that of another receipt never comes as far as its step.
    if (step === 'collateral') return expect(await codeOf(result)).toMatch(/^collateral_not_named: /)
    const { verdict, steps } = await result
    expect(verdict).toBe('failed')
    expect(failedSteps({ steps })[0]).toBe(step)
  })
})

describe('a receipt by its proof', () => {
  const verifyProof = (changes: Readonly<Record<string, unknown>> = {}) => {
    network.routes.push([`${apiBaseUrl}/proof/`, () => json(toProof(issue, changes))])
    return verify({ subject: { kind: 'proof', slug: 'q8Zk2vXo1fTn0uYbWcR3dA', api: apiBaseUrl } })
  }
  const claimOf = async (result: ReturnType<typeof verify>, member: string) =>
    (await result).claims.find((claim) => claim.member === member)?.verdict

  test('its claims are compared with what was found', async () => {
    const result = await verifyProof()
    expect(result).toMatchObject({ verdict: 'mock', conclusion: 'accepted', proof: { status: 'complete' } })
    expect(statusOf(result, 'subject')).toBe('pass')
    expect(result.claims.filter(({ verdict }) => verdict !== 'holds')).toEqual([])
    expect(result.claims).toHaveLength(9)
  })

  test('an answer that the caller has is not fetched again', async () => {
    const subject = { kind: 'proof', slug: 'x', api: apiBaseUrl, proof: toProof(issue) } as const
    expect(await verify({ subject })).toMatchObject({ conclusion: 'accepted' })
    expect(network.requests.filter((entry) => entry.includes('/proof/'))).toEqual([])
  })

  test('the copy in the service’s answer is compared, never read', async () => {
    expect(await claimOf(verifyProof({ receipt: issue.receipt }), 'receipt')).toBe('holds')
    network.routes.length = 0
    const changed = verifyProof({ receipt: other.receipt })
    expect(await changed).toMatchObject({ verdict: 'mock' })
    expect(await claimOf(changed, 'receipt')).toBe('false')
    network.routes.length = 0
    expect(await claimOf(verifyProof({ receipt: { version: 'x' } }), 'receipt')).toBe('false')
    network.routes.length = 0
    expect(await claimOf(verifyProof({ receipt: null }), 'receipt')).toBe('false')
  })

  test.each<[string, Record<string, unknown>]>([
    ['another transaction', { txHash: `0x${'00'.repeat(32)}` }],
    ['another chain', { chainId: 1 }],
    ['another wallet', { walletAddress: `0x${'00'.repeat(20)}` }],
  ])('a proof of %s fails the step of the subject', async (_, changes) => {
    const result = await verifyProof(changes)
    expect(result).toMatchObject({ verdict: 'failed', conclusion: 'failed' })
    expect(failedSteps(result)).toEqual(['subject'])
  })

  test('one that is not pinned has no receipt', async () => {
    expect(await codeOf(verifyProof({ ipfsCid: null, receipt: null, status: 'pin_failed' }))).toMatch(
      /^proof_not_pinned: .*gave up/,
    )
  })
})

function apply(target: unknown, { path, value }: Tampered['changes'][number]) {
  let node = target as Record<string | number, unknown>
  for (const key of path.slice(0, -1)) node = node[key] as Record<string | number, unknown>
  const last = path.at(-1) as string | number
  if (value === undefined) delete node[last]
  else node[last] = value
}

test('the files in this test are the golden ones', () => {
  expect(toCid(issue.bytes)).toBe(JSON.parse(readFileSync(new URL('expected.json', golden), 'utf8')).cid)
})
