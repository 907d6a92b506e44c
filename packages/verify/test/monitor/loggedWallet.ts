import type { LogEntry } from '@countersign/log'
import { nameSignature, toCid } from '@countersign/receipt'
import type { SimulatedAttestation } from '@countersign/receipt/simulator'
import { createFetchBytes } from '../../src/fetchBytes.ts'
import { createLogsMemory, type LogsMemory } from '../../src/monitor/log/logMemory.ts'
import type { MonitorDeps, MonitorRequest } from '../../src/monitor/monitorLogs.ts'
import { monitorWallet } from '../../src/monitor/monitorWallet.ts'
import { emptyManifest, type Manifest } from '../../src/parseManifest.ts'
import { type FakeIssue, issue, issueGoldenV2, signedAt, toManifest } from '../issues.ts'
import { apiBaseUrl, createFakeNetwork, gatewayUrl, rpcUrl } from '../network.ts'
import { createFakeLog, type FakeLog, logReceipt, nameEntry, origin } from './log/log.ts'
import { createFakeNode } from './node.ts'

export const spareOrigin = 'log.example/enclave-b'
export const now = new Date('2026-07-01T00:00:00Z')
export const later = (seconds: number) => new Date(signedAt.getTime() + seconds * 1000)
export const issueLogged = (
  seconds: number,
  options: Parameters<typeof issueGoldenV2>[0] = {},
): Promise<SimulatedAttestation> => {
  const plain = { treeSize: 1, leafIndex: 0, batchSequence: 0 }
  return issueGoldenV2({ ...plain, log: { origin }, signedAt: later(seconds), ...options })
}

const begun = await issueLogged(0, { txMetadata: { nonce: 0 } })
export const boot = (at: number, configHash: string = begun.anchors.configHashes[0] as string): LogEntry => ({
  kind: 'boot',
  bootId: `${at}`.padStart(32, 'b'),
  configHash,
  timeMs: later(at - 60).getTime(),
})

/** Two transactions and a message, in the log in this order. */
export const history: FakeLog = createFakeLog()
history.append(boot(0))
export const first: SimulatedAttestation = logReceipt(history, begun)
export const message: SimulatedAttestation = logReceipt(history, await issueLogged(1, { signing: { kind: 'message' } }))
export const second: SimulatedAttestation = logReceipt(history, await issueLogged(2, { txMetadata: { nonce: 1 } }))
export const all: readonly SimulatedAttestation[] = [first, message, second]

/** Signed, but not published. */
export const secret: SimulatedAttestation = await issueLogged(3, { signing: { kind: 'typed-data' } })
export const authorized: SimulatedAttestation = await issueLogged(4, {
  signing: { kind: 'authorization', authorization: { nonce: 2 } },
})
/** By an enclave whose settings name a second log that was never started. */
const setting = { origins: [origin, spareOrigin], witnesses: history.witnesses, quorum: 2 }
const spareLog = createFakeLog(history.entries.slice(0, 1))
export const spared: SimulatedAttestation = logReceipt(spareLog, await issueLogged(0, { settings: { log: setting } }))
/** By an enclave without a log: from before there was one, and from after. */
export const old: FakeIssue = await issue({ signedAt: later(-3600), txMetadata: { nonce: 0 } })
export const unlogged: FakeIssue = await issue({ signedAt: later(5), txMetadata: { nonce: 2 } })

export const wallet: string = nameSignature(first.receipt).from
export const manifests: readonly Manifest[] = [first, spared, old].map(toManifest)
const { keyId, leaf: secretLeaf } = nameEntry(secret)
const strangers = 'ee'.repeat(16)

/** The entry of the secret signature by default. */
export const signature = ({ leaf = secretLeaf, key = keyId, timeMs = later(3).getTime() } = {}): LogEntry => ({
  kind: 'signature',
  keyId: key,
  leaf,
  timeMs,
})
/** Entries of others. */
export const others = (count: number, name = ''): LogEntry[] =>
  Array.from({ length: count }, (_, at) => signature({ key: strangers, leaf: `${name}${at}`.padStart(64, '0') }))
export const ending = (kind: 'dropped' | 'unacknowledged', issued: SimulatedAttestation = secret): LogEntry => ({
  kind,
  ...nameEntry(issued),
  timeMs: later(40).getTime(),
})

export const kindsOf = ({ findings }: { findings: readonly { kind: string; index?: number }[] }): string[] =>
  findings.map(({ kind, index }) => `${kind} ${index ?? ''}`.trim())

/** A wallet on a chain whose service has a log: node, gateway, log, and the monitor. */
export function createLoggedWallet() {
  const network = createFakeNetwork(old)
  const node = createFakeNode({ wallet })
  // The manifest's contract begins at block 7.
  node.rest(7)
  network.routes.push([rpcUrl, node.answer])
  const stack = {
    network,
    node,
    log: createFakeLog(history.entries),

    /** Replaces the log. */
    serve(entries: readonly LogEntry[]) {
      stack.log = createFakeLog(entries)
      stack.log.cosignedAtS = now.getTime() / 1000 - 60
    },
    append(...entries: LogEntry[]) {
      for (const entry of entries) stack.log.append(entry)
    },
    addBlocks({ bytes, collateral, blocks = {} }: FakeIssue) {
      for (const block of [bytes, collateral, ...Object.values(blocks)])
        network.blocks.set(toCid(block), Uint8Array.from(block))
    },
    /** On the chain, and published. Then an hour passes. */
    publish(...issues: readonly FakeIssue[]) {
      for (const one of issues) {
        const { txHash } = nameSignature(one.receipt)
        const nonce = readNonce(one)
        if (nonce !== undefined) node.mine({ hash: txHash, from: wallet, nonce })
        node.publish(one)
      }
      node.rest(60)
    },
    monitor(
      change: Partial<MonitorRequest> = {},
      logs: LogsMemory = createLogsMemory(),
      more: Partial<Pick<MonitorDeps, 'wait' | 'now' | 'logTime' | 'memory'>> = {},
    ) {
      const fetchBytes = createFetchBytes({ fetch: network.fetch, timeoutMs: 5_000 })
      const deps = { fetchBytes, now: () => now, logs, ...more }
      const request = { address: wallet, rpc: rpcUrl, manifests, gateways: [gatewayUrl], allowMock: true }
      return monitorWallet(deps, { ...request, log: apiBaseUrl, ...change })
    },
    /** The options of a reader who knows the witnesses. */
    withPolicy: () => [...manifests, { ...emptyManifest, log: { witnesses: stack.log.witnesses, quorum: 2 } }],
  }
  network.routes.push([`${apiBaseUrl}/log`, (url) => stack.log.answer(url)])
  stack.serve(history.entries)
  for (const one of [...all, spared, old, unlogged]) stack.addBlocks(one)
  return stack
}

/** Of a transaction. */
function readNonce({ receipt }: FakeIssue): number | undefined {
  if ('transaction' in receipt) return receipt.transaction.nonce
  return receipt.kind === 'transaction' ? receipt.subject.nonce : undefined
}
