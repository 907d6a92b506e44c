import { isTerminalProofStatus, type ProofPayload } from '@countersign/protocol'

export type WaitForProofsParameters = {
  /** Of the coordinator. */
  url: string
  slugs: readonly string[]
  timeoutMs?: number
  /** `fetch` by default. */
  get?(url: string): Promise<Response>
}

/** A proof as it was read last. */
export type ReadProof = { slug: string; httpStatus: number; proof: ProofPayload | undefined }

const TIMEOUT_MS = 60_000
const INTERVAL_MS = 100

/** Reads proofs until each is terminal or refused, or the time is over. */
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

/** The proofs, once all are complete. Throws when one fails, is not there, or is not complete in time. */
export async function waitForCompleteProofs(parameters: WaitForProofsParameters): Promise<ProofPayload[]> {
  const read = await waitForProofs(parameters)
  return read.map(({ slug, httpStatus, proof }) => {
    if (proof?.status !== 'complete') throw new Error(`proof ${slug} is ${proof?.status ?? httpStatus}`)
    return proof
  })
}
