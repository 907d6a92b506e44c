import { setTimeout } from 'node:timers/promises'
import type { Policy } from '@countersign/policy'
import type { VaultInfo } from '@countersign/protocol'

type CreateVaultDeps = {
  /** As the user whose vault it is to be. */
  post(path: string, body: unknown): Promise<Response>
  query(text: string): Promise<unknown>
}

const POLL_MS = 25

/**
 * A vault on a backend that publishes nothing: no worker runs there, so that what a worker would say of the policy's block is said
 * here. Only its address waits for that.
 */
export async function createVault({ post, query }: CreateVaultDeps, policy: Policy): Promise<VaultInfo> {
  let isOver = false
  const asked = post('/vaults', { policy }).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await query('update policies set pinned_at = now() where pinned_at is null')
    await Promise.race([asked, setTimeout(POLL_MS)])
  }
  const answer = await asked
  if (answer.status !== 201) throw new Error(`no vault: ${await answer.text()}`)
  return (await answer.json()) as VaultInfo
}
