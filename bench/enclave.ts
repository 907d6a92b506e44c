import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { enclavePaths, hashUnsignedTransaction, type OpenSessionResponse, toHex } from '@countersign/protocol'
import { callEnclave, createTestCoordinator, type TestCoordinator } from '../services/enclave/test/coordinator.ts'
import { type EnclaveProcess, startEnclave } from '../services/enclave/test/enclaveProcess.ts'
import { startTestIssuer, type TestIssuer } from '../services/enclave/test/issuer.ts'
import { connectCaller, toRequest } from './connectCaller.ts'
import { median } from './takeTurns.ts'

const QUOTE_MS = 39
const CALLERS = [1, 8, 64, 256]
const SLICE_MS = 2_000

type Load = { enclave: EnclaveProcess; session: OpenSessionResponse; coordinator: TestCoordinator }

/**
 * Signatures per second through real enclave processes with quotes of 39 ms: callers that each wait for their signature before
 * they ask for the next, with group commit and with one quote per signature, in turns.
 */
export async function benchEnclave({ rounds }: { rounds: number }) {
  const folder = await mkdtemp(join(tmpdir(), 'bench-enclave-'))
  const issuer = await startTestIssuer()
  const coordinator = createTestCoordinator()
  const batched = await startLoad(folder, issuer, coordinator, 256)
  const single = await startLoad(folder, issuer, coordinator, 1)
  try {
    console.log(
      `quotes of ${QUOTE_MS} ms; ${rounds} rounds of ${SLICE_MS} ms each; Node ${process.version} on ${process.arch}`,
    )
    console.log('callers   signatures/s   p50 ms   one quote each/s   ratio')
    for (const callers of CALLERS) await compare(callers, { batched, single, rounds })
  } finally {
    await Promise.all([batched.enclave.kill('SIGTERM'), single.enclave.kill('SIGTERM')])
    await issuer.close()
    await rm(folder, { recursive: true })
  }
}

async function compare(callers: number, { batched, single, rounds }: { batched: Load; single: Load; rounds: number }) {
  const rates: number[] = []
  const ratios: number[] = []
  const baselines: number[] = []
  const latencies: number[] = []
  for (let round = 0; round < rounds; round++) {
    const baseline = await measure(single, callers)
    const { rate, p50 } = await measure(batched, callers)
    rates.push(rate)
    baselines.push(baseline.rate)
    ratios.push(rate / baseline.rate)
    latencies.push(p50)
  }
  const cells = [
    String(callers).padStart(7),
    median(rates).toFixed(0).padStart(14),
    median(latencies).toFixed(1).padStart(8),
    median(baselines).toFixed(1).padStart(18),
    `${median(ratios).toFixed(1)}×`.padStart(7),
  ]
  console.log(cells.join(' '))
}

async function startLoad(
  folder: string,
  issuer: TestIssuer,
  coordinator: TestCoordinator,
  limit: number,
): Promise<Load> {
  const enclave = await startEnclave({
    ROOT_SECRET: `file:${folder}/root-secret`,
    OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
    MOCK_QUOTE_LATENCY_MS: String(QUOTE_MS),
    BATCH_LIMIT: String(limit),
  })
  const { body } = await callEnclave(enclave.url, coordinator, enclavePaths.openSession, await issuer.login('bench'))
  return { enclave, session: body, coordinator }
}

/** Each caller asks again as soon as it is answered, for the length of a slice; then all wait for their last answer. */
async function measure({ enclave, session, coordinator }: Load, callers: number) {
  const latencies: number[] = []
  let isOver = false
  let done = 0

  async function call(caller: number) {
    // Signed once a slice: what the callers cost is not what is measured.
    const body = Buffer.from(JSON.stringify({ items: [toItem(session, caller)] }))
    const headers = coordinator.sign({ path: enclavePaths.signTransactions, body, timeMs: Date.now() })
    const connection = await connectCaller(enclave.url)
    const request = toRequest(enclavePaths.signTransactions, headers, body.toString())
    while (!isOver) {
      const start = performance.now()
      const answer = await connection.call(request)
      if (!answer.includes('"statement"')) throw new Error(`not signed: ${answer.slice(0, 200)}`)
      latencies.push(performance.now() - start)
      if (!isOver) done += 1
    }
    connection.close()
  }

  const start = performance.now()
  const all = Array.from({ length: callers }, (_, caller) => call(caller))
  await new Promise((resolve) => setTimeout(resolve, SLICE_MS))
  isOver = true
  const seconds = (performance.now() - start) / 1000
  const rate = done / seconds
  await Promise.all(all)
  return { rate, p50: median(latencies) }
}

function toItem({ sid, grant, keyId }: OpenSessionResponse, nonce: number) {
  const amounts = { value: '1', gas: '21000', maxFeePerGas: '2', maxPriorityFeePerGas: '1' }
  const txMetadata = { chainId: 1, nonce, to: `0x${'11'.repeat(20)}`, data: '0x', ...amounts } as const
  const digest = `0x${toHex(hashUnsignedTransaction(txMetadata))}`
  return { sid, grant, keyId, digest, txMetadata, entropyHash: '22'.repeat(32) }
}
