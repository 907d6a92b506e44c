import type { SignedBatch, SignItem, SignItemResult, SignTransactionsResponse } from '@countersign/protocol'
import type { Vault } from '../keys/vault.ts'
import type { Batcher } from './batch.ts'

/** Signs the items of one call. Each is signed on arrival and then waits for a quote; one that is refused fails alone. */
export async function signTransactions(
  { vault, batcher }: { vault: Vault; batcher: Batcher },
  { items, coordinatorKey }: { items: readonly SignItem[]; coordinatorKey: string },
): Promise<SignTransactionsResponse> {
  const batches: SignedBatch[] = []

  async function sign(item: SignItem): Promise<SignItemResult> {
    const signed = await vault.sign(item, coordinatorKey)
    if ('error' in signed) return signed
    try {
      const { batch, leafIndex, path } = await batcher.add(signed.leaf)
      if (!batches.includes(batch)) batches.push(batch)
      return { statement: signed.statement, batch: batches.indexOf(batch), leafIndex, path }
    } catch {
      return { error: 'quote_unavailable' }
    }
  }

  const results = await Promise.all(items.map(sign))
  return { batches, results }
}
