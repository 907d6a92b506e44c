import { toBundlePath } from '@countersign/log'
import { nameSignature, toCid } from '@countersign/receipt'
import { createFetchBytes, createLogsMemory, createMonitorMemory, monitorWallet } from '@countersign/verify'
import { signedAt, toManifest } from '../../packages/verify/test/issues.ts'
import { createHistory } from '../../packages/verify/test/monitor/history.ts'
import { createFakeLog } from '../../packages/verify/test/monitor/log/log.ts'
import { createFakeNode } from '../../packages/verify/test/monitor/node.ts'
import { apiBaseUrl, createFakeNetwork, gatewayUrl, rpcUrl } from '../../packages/verify/test/network.ts'
import { count, type Outcome, type Trial, type TrialDeps, type Values } from '../trial.ts'

const PER_BLOCK = 100

const options = { count: count(10_000, 'signatures') }

export const monitorHistory: Trial = {
  summary: `Monitors an honest wallet with many signatures, 90 % transactions and 10 % messages, and expects no findings. Then plants
four faults, one after the other, and expects the monitor to report each by its kind.`,
  options,
  example: '--count 500',
  run: runHistory,
}
type Options = Values<typeof options>

/** Monitors an honest wallet, then plants one fault after the other and checks again, as `--follow` does. */
export async function runHistory({ say }: Pick<TrialDeps, 'say'>, { count }: Options): Promise<Outcome> {
  const { log, template, receipts, blocks } = await createHistory(count)
  say(`created ${receipts.length} receipts`)
  const wallet = nameSignature(template.receipt).from
  const network = createFakeNetwork(template)
  const node = createFakeNode({ wallet })
  // The manifest's contract starts at block 7.
  node.rest(7)
  for (const block of [...blocks, ...receipts.map(({ bytes }) => bytes)])
    network.blocks.set(toCid(block), Uint8Array.from(block))
  const sent = receipts.flatMap(({ receipt }) => (receipt.kind === 'transaction' ? [receipt.subject] : []))
  for (let start = 0; start < sent.length; start += PER_BLOCK) {
    node.mine(
      ...sent.slice(start, start + PER_BLOCK).map(({ txHash, nonce }) => ({ hash: txHash, from: wallet, nonce })),
    )
  }
  for (let start = 0; start < receipts.length; start += PER_BLOCK) {
    node.publishAll(receipts.slice(start, start + PER_BLOCK))
  }
  node.rest(60)
  let served = log
  const serve = (next: typeof log) => {
    served = next
    served.cosignedAtS = now.getTime() / 1000 - 60
  }
  const now = new Date(signedAt.getTime() + 7 * 86_400_000)
  serve(log)
  network.routes.push([rpcUrl, node.answer], [`${apiBaseUrl}/log`, (url) => served.answer(url)])

  const deps = {
    fetchBytes: createFetchBytes({ fetch: network.fetch, timeoutMs: 60_000 }),
    now: () => now,
    memory: createMonitorMemory(),
    logs: createLogsMemory(),
    onProgress({ checked, of }: { checked: number; of: number }) {
      if (checked % 1000 === 0) say(`verified ${checked} of ${of}`)
    },
  }
  const check = async () => {
    const startedAt = performance.now()
    const request = { address: wallet, rpc: rpcUrl, gateways: [gatewayUrl], log: apiBaseUrl, allowMock: true }
    const report = await monitorWallet(deps, { ...request, manifests: [toManifest(template)] })
    const findings = report.findings.map(({ kind, index, detail = '' }) => `${kind} ${index ?? ''} ${detail}`.trim())
    return { report, findings, seconds: (performance.now() - startedAt) / 1000 }
  }
  const { report, findings, seconds } = await check()
  const [seen] = report.logs ?? []
  const { keyId } = template.receipt.signer.statement
  const hidden = { kind: 'signature', keyId, leaf: '5e'.repeat(32), timeMs: signedAt.getTime() } as const
  const { proven, nonce, conclusion } = report
  const faults = findings.map((finding) => `finding in an honest history: ${finding}`)
  if (conclusion !== 'complete') faults.push(`conclusion of the honest history: ${conclusion}`)
  const plant = async (name: string, expected: string, change: () => () => void) => {
    const undo = change()
    const found = await check()
    const isFound = found.findings.length === 1 && found.findings[0]?.startsWith(expected)
    if (!isFound) faults.push(`${name}: expected the finding ${expected}, got ${found.findings.join('; ')}`)
    say(`${name}: ${found.findings.join('; ')} (${found.seconds.toFixed(1)} s)`)
    undo()
  }
  await plant('a transaction signed outside the service', 'no-receipt', () => {
    node.mine({ hash: `0x${'f0'.repeat(32)}`, from: wallet, nonce: sent.length })
    node.rest(20)
    return () => void node.blocks.splice(-21)
  })
  await plant('a withheld tile', 'log-withholds', () => {
    const grown = createFakeLog([...log.entries, { ...hidden, keyId: 'ee'.repeat(16) }])
    const last = grown.close() - 1
    serve(grown)
    served.gone.add(toBundlePath({ index: Math.floor(last / 256), width: (last % 256) + 1 }))
    return () => serve(log)
  })
  await plant('a second history', 'log-lies', () => {
    serve(createFakeLog([...log.entries.slice(0, -1), hidden, hidden]))
    return () => serve(log)
  })
  await plant('an entry without a receipt', 'hidden', () => {
    serve(createFakeLog([...log.entries, hidden]))
    return () => {}
  })
  return { faults, figures: { proven, nonce, size: seen?.size ?? 0, entries: seen?.entries ?? 0, seconds } }
}
