import { join } from 'node:path'
import { enclavePaths, type OpenSessionResponse } from '@countersign/protocol'
import { createTx, median, toDigest, withScope } from '@countersign/testing/stack'
import { callEnclave, createTestCoordinator, type TestCoordinator } from '../../../services/enclave/test/coordinator.ts'
import { type EnclaveProcess, startEnclave } from '../../../services/enclave/test/enclaveProcess.ts'
import { startTestIssuer, type TestIssuer } from '../../../services/enclave/test/issuer.ts'
import { createWitness } from '../../../services/enclave/test/witness.ts'
import { applyLoad } from '../applyLoad.ts'
import { toPost } from '../connectCaller.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { QUOTE_MS } from '../startStack.ts'

const CALLERS = [1, 8, 64, 256]

type Load = { enclave: EnclaveProcess; session: OpenSessionResponse; coordinator: TestCoordinator }

/**
 * Signatures per second through real enclave processes with quotes of 39 ms: callers that each wait for their signature before
 * they ask for the next, with group commit and with one quote per signature, in turns.
 */
export function benchEnclave({ rounds, isQuick, say }: Run): Promise<Report> {
  return withScope(async ({ add, createFolder }) => {
    const sliceMs = isQuick ? 300 : 2_000
    const rootSecretFile = join(await createFolder(), 'root-secret')
    const issuer = add(await startTestIssuer(), ({ close }) => close())
    const coordinator = createTestCoordinator()
    const start = async (limit: number) => {
      const enclave = await startEnclave({
        ROOT_SECRET: `file:${rootSecretFile}`,
        OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
        MOCK_QUOTE_LATENCY_MS: String(QUOTE_MS),
        BATCH_LIMIT: String(limit),
      })
      add(enclave, ({ kill }) => kill('SIGTERM'))
      return toLoad({ enclave, issuer, coordinator })
    }
    const batched = await start(256)
    const single = await start(1)
    const rows: Row[] = []
    const calms: Calm<unknown>[] = []
    for (const callers of CALLERS) {
      say(`${callers} callers`)
      const calm = await repeatCalmly({ rounds, isQuick }, async () => {
        const alone = await measure(single, callers, sliceMs)
        const together = await measure(batched, callers, sliceMs)
        return { ...together, alone: alone.rate, ratio: together.rate / alone.rate }
      })
      calms.push(calm)
      const of = (pick: (repeat: (typeof calm.repeats)[number]) => number) => median(calm.repeats.map(pick))
      const at = { value: callers, of: 'callers' }
      rows.push(
        {
          name: 'signatures',
          at,
          value: of(({ rate }) => rate),
          unit: '/s',
          ratios: [{ value: of(({ ratio }) => ratio), to: 'one quote each' }],
        },
        { name: 'signatures, one quote each', at, value: of(({ alone }) => alone), unit: '/s' },
        { name: 'p50', at, value: of(({ p50 }) => p50), unit: 'ms' },
      )
    }
    return {
      suite: 'enclave',
      title: 'Signing in the enclave',
      setting:
        `Real enclave processes, quotes of ${QUOTE_MS} ms; each caller waits for its signature before it asks for the next; ` +
        `median of ${rounds} rounds of ${sliceMs} ms, ${describeCalm(calms)}.`,
      rows,
    }
  })
}

async function toLoad(parameters: {
  enclave: EnclaveProcess
  issuer: TestIssuer
  coordinator: TestCoordinator
}): Promise<Load> {
  const { enclave, issuer, coordinator } = parameters
  const { body } = await callEnclave(enclave.url, coordinator, enclavePaths.openSession, await issuer.login('bench'))
  return { enclave, session: body, coordinator }
}

async function measure({ enclave, session, coordinator }: Load, callers: number, sliceMs: number) {
  // Signed once a slice: what the callers cost is not what is measured.
  const requests = Array.from({ length: callers }, (_, caller) => {
    const body = JSON.stringify({ items: [toItem(session, caller)] })
    const path = enclavePaths.sign
    return toPost(path, coordinator.sign({ path, body: Buffer.from(body), timeMs: Date.now() }), body)
  })
  const { latencies, rate } = await applyLoad({
    url: enclave.url,
    connections: callers,
    sliceMs,
    next: (caller) => requests[caller] ?? Buffer.alloc(0),
  })
  return { rate, p50: median(latencies) }
}

function toItem({ sid, grant, keyId }: OpenSessionResponse, nonce: number) {
  const txMetadata = createTx(nonce)
  const item = { sid, grant, keyId, digest: toDigest(txMetadata), txMetadata, witness: createWitness() }
  return { kind: 'transaction', statementVersion: 1, ...item }
}
