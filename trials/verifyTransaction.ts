import type { StackAnchors, VerifyTransaction } from '@countersign/testing/stack'
import { toMeasurementText } from '@countersign/verify'
import { runCli } from '../apps/verifier/src/runCli.ts'

type Step = { id: string; status: 'pass' | 'fail' | 'skip' }

const TIMEOUT_MS = 30_000

/** Verifies by transaction, as a stranger does: with the command-line verifier, from chain and IPFS alone. */
export function createVerifyTransaction(parameters: {
  chainUrl: string
  contract: string
  ipfsUrl: string
  anchors: StackAnchors
}): VerifyTransaction {
  const { chainUrl, contract, ipfsUrl, anchors } = parameters
  const deps = { fetch: globalThis.fetch, timeoutMs: TIMEOUT_MS, now: () => new Date(), isColored: false }
  const trust = [
    ...['--rpc', chainUrl, '--contract', contract, '--ipfs', ipfsUrl, '--allow-mock'],
    ...['--measurement', toMeasurementText(anchors.measurement), '--config-hash', anchors.configHash],
    ...['--coordinator-measurement', anchors.coordinatorMeasurement],
    ...['--coordinator-config-hash', anchors.coordinatorConfigHash, '--entropy-key', anchors.entropyKey],
  ]
  return async (txHash) => {
    const { exitCode, stdout } = await runCli(deps, ['verify', txHash, ...trust, '--json'])
    const {
      steps = [],
      cid,
      error,
    } = JSON.parse(stdout) as {
      steps?: readonly Step[]
      cid?: string
      error?: { code: string; message: string }
    }
    if (exitCode === 0 && cid !== undefined) return { cid }
    const failed = steps.filter(({ status }) => status !== 'pass').map(({ id, status }) => `${id} ${status}`)
    return { fault: `exit code ${exitCode}: ${error?.message ?? failed.join(', ')}` }
  }
}
