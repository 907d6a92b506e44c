import { attestationPublishedTopic, type Hex, type ProofPayload } from '@countersign/protocol'
import { createReceiptSimulator, type SimulatedIssue } from '@countersign/receipt/simulator'
import type { WebConfig } from '../config.ts'
import { type FetchBytes, FetchError } from './fetchBytes.ts'

export const apiBaseUrl = 'https://api.test'
export const gatewayUrl = 'https://gateway.test'
export const rpcUrl = 'https://rpc.test'
const contractAddress: Hex = `0x${'ab'.repeat(20)}`
export const slug = 'q8Zk2vXo1fTn0uYbWcR3dA'
export const publishingTx: Hex = `0x${'77'.repeat(32)}`
export const publishedBlock = 12
const blockHash = `0x${'66'.repeat(32)}`
const signedAt = new Date('2026-06-15T12:00:00.123Z')

export type FakeIssue = Pick<SimulatedIssue, 'bytes' | 'cid' | 'collateral' | 'receipt' | 'anchors'>

/** The issue whose files are in the receipt's `spec/golden`. */
export function issueReceipt(options: { nonce?: number } = {}): Promise<FakeIssue> {
  const { nonce } = options
  return createReceiptSimulator().issue({
    signedAt,
    treeSize: 5,
    leafIndex: 2,
    batchSequence: 3,
    ...(nonce === undefined ? {} : { txMetadata: { nonce } }),
  })
}

/** `trust` of an operator who says everything, and allows mock evidence. */
export function toTrustJson({ anchors }: FakeIssue) {
  return {
    allowMock: true,
    measurements: anchors.measurements.map(({ mrTd, rtmr0, rtmr1, rtmr2, rtmr3 }) =>
      [mrTd, rtmr0, rtmr1, rtmr2, rtmr3].join(':'),
    ),
    configHashes: anchors.configHashes,
    coordinatorMeasurements: anchors.coordinatorMeasurements,
    coordinatorConfigHashes: anchors.coordinatorConfigHashes,
    entropyKeys: anchors.entropyKeys,
    contract: { address: contractAddress, chainId: 31337, rpcUrl },
  }
}

export function toConfig(issue: FakeIssue): WebConfig {
  return {
    apiBaseUrl,
    chainId: 31337,
    rpcUrl,
    explorerUrl: 'https://explorer.test',
    attestations: { chainId: 31337, rpcUrl, address: contractAddress },
    trust: toTrustJson(issue),
  }
}

export function toProof(issue: FakeIssue): ProofPayload {
  const { txHash, chainId, from } = issue.receipt.transaction
  return {
    slug,
    txHash,
    chainId,
    walletAddress: from,
    status: 'complete',
    ipfsCid: issue.cid,
    ipfsUrl: `${gatewayUrl}/ipfs/${issue.cid}`,
    onchainTxHash: publishingTx,
    onchainBlockNumber: publishedBlock,
    kmsQuoteVerified: true,
    receipt: issue.receipt,
    createdAt: signedAt.toISOString(),
  }
}

/** An event's log as a node answers it. */
export function toLog(issue: FakeIssue, cid = issue.cid) {
  const { from, txHash } = issue.receipt.transaction
  const word = (value: number) => value.toString(16).padStart(64, '0')
  const characters = [...cid].map((character) => character.charCodeAt(0).toString(16)).join('')
  return {
    address: contractAddress,
    topics: [attestationPublishedTopic, `0x${from.slice(2).padStart(64, '0')}`, txHash],
    data: `0x${word(32)}${word(cid.length)}${characters.padEnd(Math.ceil(characters.length / 64) * 64, '0')}`,
    blockNumber: `0x${publishedBlock.toString(16)}`,
    blockHash,
    transactionHash: publishingTx,
    removed: false,
  }
}

type Body = Uint8Array<ArrayBuffer>
type Answer = Response | Promise<Response>

/** Service, gateway and node behind one `fetch`. What a test wants otherwise it replaces in `blocks`, `rpc` or `routes`. */
export function createFakeNetwork(issue: FakeIssue) {
  const requests: string[] = []
  const blocks = new Map<string, Body>([
    [issue.cid, issue.bytes],
    [issue.receipt.signer.collateral, issue.collateral],
  ])
  const rpc: Record<string, unknown> = {
    eth_chainId: '0x7a69',
    eth_getLogs: [toLog(issue)],
    eth_getBlockByNumber: {
      hash: blockHash,
      timestamp: `0x${Math.floor(signedAt.getTime() / 1000 + 9).toString(16)}`,
    },
    eth_getTransactionByHash: { hash: issue.receipt.transaction.txHash, blockNumber: '0x2' },
  }
  /** By the beginning of a URL; the first that fits answers. */
  const routes: [prefix: string, answer: (url: URL, init: RequestInit) => Answer][] = []

  async function fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const url = new URL(String(input))
    requests.push(`${init.method ?? 'GET'} ${url.href}`)
    const route = routes.find(([prefix]) => url.href.startsWith(prefix))
    if (route !== undefined) return route[1](url, init)
    if (url.origin === rpcUrl) return answerRpc(String(init.body))
    const cid = /^\/ipfs\/([a-z0-9]+)$/.exec(url.pathname)?.[1]
    if (cid !== undefined) return answerBlock(blocks.get(cid))
    if (url.href === `${apiBaseUrl}/proof/${slug}`) return json(toProof(issue))
    throw new TypeError(`fetch failed: ${url.href}`)
  }

  function answerRpc(body: string): Response {
    const { id, method } = JSON.parse(body) as { id: number; method: string }
    return json({ jsonrpc: '2.0', id, result: rpc[method] ?? null })
  }

  return { fetch, requests, blocks, rpc, routes }
}

export type FakeNetwork = ReturnType<typeof createFakeNetwork>

function answerBlock(block: Body | undefined): Response {
  if (block === undefined) return new Response(null, { status: 404 })
  return new Response(block, { headers: { 'content-type': 'application/vnd.ipld.raw' } })
}

export function json(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })
}

export function html(): Response {
  return new Response('<!doctype html><h1>Hello</h1>', { headers: { 'content-type': 'text/html; charset=utf-8' } })
}

/** The port of the worker, over the fake network. */
export function toFetchBytes(network: FakeNetwork): FetchBytes {
  return async ({ url, body }) => {
    const init = body === undefined ? {} : { method: 'POST', body }
    const response = await network.fetch(url, init).catch(() => {
      throw new FetchError(`${new URL(url).host} could not be reached`)
    })
    if (response.status !== 200) throw new FetchError(`${new URL(url).host} answers ${response.status}`)
    return new Uint8Array(await response.arrayBuffer())
  }
}
