import { setTimeout } from 'node:timers/promises'
import type { Policy } from '@countersign/policy'
import type { VaultInfo } from '@countersign/protocol'

type CreateVaultDeps = {
  /** Sends a request as the vault's owner. */
  post(path: string, body: unknown): Promise<Response>
  query(text: string): Promise<unknown>
}

const POLL_MS = 25

/**
 * Creates a vault on a backend without a worker. The address is withheld until the worker has pinned the policy's block, so this marks it as
 * pinned.
 */
export async function createVault({ post, query }: CreateVaultDeps, policy: Policy): Promise<VaultInfo> {
  let isOver = false
  const pending = post('/vaults', { policy }).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await query('update policies set pinned_at = now() where pinned_at is null')
    await Promise.race([pending, setTimeout(POLL_MS)])
  }
  const answer = await pending
  if (answer.status !== 201) throw new Error(`vault not created: ${await answer.text()}`)
  return (await answer.json()) as VaultInfo
}
