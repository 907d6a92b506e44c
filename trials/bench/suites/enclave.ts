import { join } from 'node:path'
import { enclavePaths, type OpenSessionResponse } from '@countersign/protocol'
import { createTx, median, toDigest, withScope } from '@countersign/testing/stack'
import { callEnclave, createTestCoordinator } from '../../../services/enclave/test/coordinator.ts'
import { startEnclave } from '../../../services/enclave/test/enclaveProcess.ts'
import { startTestIssuer } from '../../../services/enclave/test/issuer.ts'
import { createWitness } from '../../../services/enclave/test/witness.ts'
import { applyLoad, toPost } from '../load.ts'
import { describeRounds, measureLoads, type Report, type Run, toRow } from '../report.ts'
import { QUOTE_MS } from '../signer.ts'

const CALLERS = { of: 'callers', at: [1, 8, 64, 256] }

/**
 * Signatures per second through real enclave processes with quotes of 39 ms: callers that each wait for their signature before
 * they ask for the next, with group commit and with one quote per signature, in turns.
 */
export function benchEnclave(run: Run): Promise<Report> {
  return withScope(async ({ add, createFolder }) => {
    const sliceMs = run.isQuick ? 300 : 2_000
    const rootSecretFile = join(await createFolder(), 'root-secret')
    const issuer = add(await startTestIssuer(), ({ close }) => close())
    const coordinator = createTestCoordinator()
    const start = async (limit: number) => {
      const { url, kill } = await startEnclave({
        ROOT_SECRET: `file:${rootSecretFile}`,
        OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
        MOCK_QUOTE_LATENCY_MS: String(QUOTE_MS),
        BATCH_LIMIT: String(limit),
      })
      add(kill, () => kill('SIGTERM'))
      const { body } = await callEnclave(url, coordinator, enclavePaths.openSession, await issuer.login('bench'))
      return { url, session: body as OpenSessionResponse }
    }
    const batched = await start(256)
    const single = await start(1)
    const measure = async ({ url, session }: typeof batched, callers: number) => {
      // Signed once a slice: what the callers cost is not what is measured.
      const requests = Array.from({ length: callers }, (_, caller) => {
        const body = JSON.stringify({ items: [toItem(session, caller)] })
        const path = enclavePaths.sign
        return toPost(path, coordinator.sign({ path, body: Buffer.from(body), timeMs: Date.now() }), body)
      })
      const next = (caller: number) => requests[caller] ?? Buffer.alloc(0)
      const { latencies, rate } = await applyLoad({ url, connections: callers, sliceMs, next })
      return { rate, p50: median(latencies) }
    }
    const { rows, calms } = await measureLoads(
      run,
      CALLERS,
      async (callers) => {
        const alone = await measure(single, callers)
        return { alone, together: await measure(batched, callers) }
      },
      (of) => [
        toRow(
          'signatures',
          of(({ together }) => together.rate),
          '/s',
          {
            'one quote each': of(({ together, alone }) => together.rate / alone.rate),
          },
        ),
        toRow(
          'signatures, one quote each',
          of(({ alone }) => alone.rate),
          '/s',
        ),
        toRow(
          'p50',
          of(({ together }) => together.p50),
          'ms',
        ),
      ],
    )
    return {
      suite: 'enclave',
      title: 'Signing in the enclave',
      setting:
        `Real enclave processes, quotes of ${QUOTE_MS} ms; each caller waits for its signature before it asks for the next; ` +
        describeRounds(run, sliceMs, calms),
      rows,
    }
  })
}

function toItem({ sid, grant, keyId }: OpenSessionResponse, nonce: number) {
  const txMetadata = createTx(nonce)
  const item = { sid, grant, keyId, digest: toDigest(txMetadata), txMetadata, witness: createWitness() }
  return { kind: 'transaction', statementVersion: 1, ...item }
}
