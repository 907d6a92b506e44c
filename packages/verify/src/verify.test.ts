import { readFileSync } from 'node:fs'
import { toCanonicalJson } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import { VerificationError } from './errors.ts'
import {
  apiBaseUrl,
  createFakeNetwork,
  type FakeNetwork,
  gatewayUrl,
  html,
  issueReceipt,
  json,
  publishedBlock,
  publishingTx,
  toFetchBytes,
  toLog,
  toTrustJson,
} from './service.fake.ts'
import { parseTrust } from './trust.ts'
import { type VerificationRequest, verifySubject } from './verifySubject.ts'

type Tampered = { name: string; changes: { path: (string | number)[]; value?: unknown }[]; step: string }

const golden = new URL('../../../../packages/receipt/spec/golden/', import.meta.url)
const tampered: Tampered[] = JSON.parse(readFileSync(new URL('tampered.json', golden), 'utf8'))
/** One for each step; the package that has the steps tries them all. */
const neighbours = tampered.filter(({ step }, index) => tampered.findIndex((entry) => entry.step === step) === index)
const issue = await issueReceipt()
const other = await issueReceipt({ nonce: 1 })
const trust = parseTrust(toTrustJson(issue))

let network: FakeNetwork
beforeEach(() => {
  network = createFakeNetwork(issue)
})

function verify(change: Partial<VerificationRequest> = {}) {
  const deps = { fetchBytes: toFetchBytes(network), onProgress: () => {} }
  return verifySubject(deps, {
    subject: { kind: 'cid', cid: issue.cid },
    trust,
    gateways: [gatewayUrl, apiBaseUrl],
    isEventDue: true,
    ...change,
  })
}

async function codeOf(result: Promise<unknown>): Promise<string> {
  const error = await result.then(
    () => undefined,
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(VerificationError)
  return `${error.code}: ${error.message}`
}

const failedSteps = ({ steps }: { steps: readonly { id: string; status: string }[] }) =>
  steps.filter(({ status }) => status === 'fail').map(({ id }) => id)
const statusOf = ({ steps }: { steps: readonly { id: string; status: string }[] }, id: string) =>
  steps.find((step) => step.id === id)?.status

describe('a receipt by its CID', () => {
  test('the golden receipt passes every step, as MOCK, with the event that the chain has', async () => {
    const result = await verify()
    expect(result).toMatchObject({ verdict: 'mock', isMock: true, isKnownCode: true, problems: [] })
    expect(result.steps.every(({ status }) => status === 'pass')).toBe(true)
    expect(result.publications).toEqual([
      { txHash: publishingTx, blockNumber: publishedBlock, blockTime: expect.any(Date), ipfsCid: issue.cid },
    ])
    expect(result.bytes).toEqual(new Uint8Array(readFileSync(new URL('receipt.json', golden))))
  })

  test('without leave for mock evidence, it fails like any forgery', async () => {
    expect(failedSteps(await verify({ trust: { ...trust, allowMock: false } }))).toEqual([
      'quote',
      'coordinator-report',
    ])
  })

  test('a simulated satellite is MOCK even where mock evidence is not allowed', async () => {
    const result = await verify({ trust: { ...trust, allowMock: false } })
    expect(result.isMock).toBe(true)
  })

  test('without anchors the code is unknown', async () => {
    const { contract } = trust
    const result = await verify({ trust: { ...parseTrust({ allowMock: true }), contract } })
    expect(result).toMatchObject({ verdict: 'mock', isKnownCode: false })
    expect(statusOf(result, 'measurement')).toBe('skip')
  })

  test('other anchors fail', async () => {
    const configHashes = ['00'.repeat(32)]
    expect(failedSteps(await verify({ trust: { ...trust, configHashes } }))).toEqual(['config'])
  })

  test('what is no CID of a receipt is not asked for', async () => {
    const cid = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'
    expect(await codeOf(verify({ subject: { kind: 'cid', cid } }))).toMatch(/^subject_invalid: /)
    expect(network.requests).toEqual([])
  })
})

describe('gateways', () => {
  test('one that sends other bytes is told and passed over', async () => {
    network.routes.push([`${gatewayUrl}/ipfs/${issue.cid}`, () => new Response('{}')])
    expect(await verify()).toMatchObject({ verdict: 'mock' })
  })

  test.each<[string, () => Response, RegExp]>([
    ['truncated bytes', () => new Response(issue.bytes.slice(0, 1000)), /sent 1000 other bytes.*cut short or changed/],
    ['another receipt', () => new Response(other.bytes), new RegExp(`with the CID ${other.cid}`)],
    ['a web page', html, /other bytes/],
    ['nothing', () => new Response(null, { status: 404 }), /gateway\.test answers 404/],
  ])('%s from the only gateway is no receipt', async (_name, answer, message) => {
    network.routes.push([gatewayUrl, answer])
    const code = await codeOf(verify({ gateways: [gatewayUrl] }))
    expect(code).toMatch(/^receipt_unavailable: /)
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
    ['with another CID', toLog(issue, other.cid)],
    ['that cannot be read', { ...toLog(issue), data: '0x00' }],
  ])('an event %s fails, also where none is due', async (_name, log) => {
    network.rpc.eth_getLogs = [log]
    const result = await verify({ isEventDue: false })
    expect(result).toMatchObject({ verdict: 'failed', isEventMissing: false })
    expect(failedSteps(result)).toEqual(['event'])
  })

  test('a missing event that is not due hides no other failure', async () => {
    network.rpc.eth_getLogs = []
    const result = await verify({ isEventDue: false, trust: { ...trust, configHashes: ['00'.repeat(32)] } })
    expect(result.verdict).toBe('failed')
    expect(failedSteps(result)).toEqual(['config'])
  })

  test('a node that does not answer leaves it open, also where no event is due', async () => {
    network.routes.push(['https://rpc.test', () => json({}, 503)])
    expect(await verify({ isEventDue: false })).toMatchObject({ verdict: 'incomplete', isEventMissing: false })
  })

  test('an event with another CID fails', async () => {
    network.rpc.eth_getLogs = [toLog(issue, other.cid)]
    expect(failedSteps(await verify())).toEqual(['event'])
  })

  test.each<[string, Record<string, unknown>]>([
    ['of another chain', { eth_chainId: '0x1' }],
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
    network.rpc.eth_getLogs = [toLog(issue, other.cid)]
    const result = await verify({ subject })
    expect(result.verdict).toBe('failed')
    expect(result.problems.join()).toContain('the receipt of another transaction')
  })

  test('two events with different receipts leave the choice to the visitor', async () => {
    network.rpc.eth_getLogs = [toLog(issue), toLog(issue, other.cid)]
    expect(await codeOf(verify({ subject }))).toContain(other.cid)
  })

  test('without a contract, or with a node that is down, nobody can say', async () => {
    expect(await codeOf(verify({ subject, trust: { ...trust, contract: undefined } }))).toMatch(/^chain_not_configured/)
    network.routes.push(['https://rpc.test', () => json({}, 503)])
    expect(await codeOf(verify({ subject }))).toMatch(/^chain_unavailable: .*503/)
  })
})

describe('a receipt as a file', () => {
  const receiptFile = { name: 'receipt.json', bytes: issue.bytes }
  const collateralFile = { name: 'collateral.json', bytes: issue.collateral }
  const files = (...list: { name: string; bytes: Uint8Array<ArrayBuffer> }[]) =>
    verify({ subject: { kind: 'files', files: list }, trust: { ...trust, contract: undefined } })

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
    expect(failedSteps(await files({ name: 'r', bytes: withLineFeed(issue.bytes) }))).toEqual(['format'])
  })

  test('a file that is not the collateral is told', async () => {
    const { problems } = await files(receiptFile, { name: 'notes.json', bytes: new Uint8Array([1]) })
    expect(problems).toEqual(['notes.json is not the collateral that the receipt names'])
  })

  test('a file named after a CID is held against it', async () => {
    expect(failedSteps(await files({ ...receiptFile, name: `${other.cid}.json` }))).toEqual(['cid'])
  })

  test('what is no receipt fails at the first step', async () => {
    const bytes = new TextEncoder().encode('<!doctype html>')
    expect(failedSteps(await files({ name: 'page.html', bytes }))).toEqual(['format'])
  })

  test.each(neighbours)('tampered: $name, found by $step', async ({ changes, step }) => {
    const value = structuredClone(issue.receipt)
    for (const change of changes) apply(value, change)
    const result = await files({ name: 'r.json', bytes: toCanonicalJson(value) }, collateralFile)
    expect(result.verdict).toBe('failed')
    // Collateral is looked for by its CID, so that of another receipt never comes as far as its step.
    expect(failedSteps(result)[0]).toBe(step === 'collateral' ? 'release' : step)
  })
})

test('the copy in the service’s answer is compared, never read', async () => {
  expect(await verify({ statedReceipt: issue.receipt })).toMatchObject({ isStatedReceiptSame: true })
  expect(await verify({ statedReceipt: other.receipt })).toMatchObject({ isStatedReceiptSame: false, verdict: 'mock' })
  expect(await verify({ statedReceipt: { version: 'x' } })).toMatchObject({ isStatedReceiptSame: false })
  expect(await verify({ statedReceipt: null })).toMatchObject({ isStatedReceiptSame: undefined })
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
