import type { Hash } from 'viem'
import type { Stack } from './startStack.ts'

/** Reads mined transactions by nonce. Throws if one is missing. */
export async function readMined({ chainClient }: Pick<Stack, 'chainClient'>, hashes: readonly Hash[]) {
  const mined = hashes.map(async (hash) => {
    const { status } = await chainClient.getTransactionReceipt({ hash })
    const { from, to, nonce, value } = await chainClient.getTransaction({ hash })
    return { status, from, to, nonce, value }
  })
  return (await Promise.all(mined)).toSorted((one, other) => one.nonce - other.nonce)
}
