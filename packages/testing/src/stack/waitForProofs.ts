import type { ProofPayload } from '@countersign/protocol'
import { expect } from 'vitest'
import type { Stack } from './startStack.ts'

/** The proofs of these slugs, as anybody reads them, once all are complete. */
export async function waitForProofs(
  { backend }: Pick<Stack, 'backend'>,
  slugs: readonly string[],
): Promise<ProofPayload[]> {
  async function readProof(slug: string): Promise<ProofPayload> {
    const response = await backend.call(`/proof/${slug}`)
    return (await response.json()) as ProofPayload
  }
  const readStatuses = async () => (await Promise.all(slugs.map(readProof))).map(({ status }) => status)
  await expect.poll(readStatuses, { timeout: 30_000, interval: 250 }).toEqual(slugs.map(() => 'complete'))
  return Promise.all(slugs.map(readProof))
}
