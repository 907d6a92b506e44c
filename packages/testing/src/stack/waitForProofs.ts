import { isTerminalProofStatus, type ProofPayload } from '@countersign/protocol'

export type WaitForProofsParameters = {
  /** URL of the coordinator. */
  url: string
  slugs: readonly string[]
  timeoutMs?: number
  /** Default: `fetch`. */
  get?(url: string): Promise<Response>
}

/** The last answer for a proof. */
export type ReadProof = { slug: string; httpStatus: number; proof: ProofPayload | undefined }

const TIMEOUT_MS = 60_000
const INTERVAL_MS = 100

/** Polls proofs until each is final or not found, or the time is over. */
export async function waitForProofs(parameters: WaitForProofsParameters): Promise<ReadProof[]> {
  const { url, slugs, timeoutMs = TIMEOUT_MS, get = fetch } = parameters
  const until = performance.now() + timeoutMs
  const read: ReadProof[] = []
  for (const slug of slugs) {
    for (;;) {
      const response = await get(`${url}/proof/${slug}`)
      const proof = response.status === 200 ? ((await response.json()) as ProofPayload) : undefined
      if (proof === undefined || isTerminalProofStatus(proof.status) || performance.now() > until) {
        read.push({ slug, httpStatus: response.status, proof })
        break
      }
      await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS))
    }
  }
  return read
}

/** Waits until all proofs are complete. Throws if one fails, isn't found or isn't complete in time. */
export async function waitForCompleteProofs(parameters: WaitForProofsParameters): Promise<ProofPayload[]> {
  const read = await waitForProofs(parameters)
  return read.map(({ slug, httpStatus, proof }) => {
    if (proof?.status !== 'complete')
      throw new Error(`proof ${slug}: expected status complete, got ${proof?.status ?? httpStatus}`)
    return proof
  })
}
