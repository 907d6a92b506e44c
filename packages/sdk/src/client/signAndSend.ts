import { isNatural, type SignResult, type WalletInfo } from '@countersign/protocol'
import type { PublicClient } from 'viem'
import { broadcast } from './broadcast.ts'
import type { Connection } from './connection.ts'
import type { Call } from './parseSignRequest.ts'
import { callRpc, isKnown, rpcFailed } from './rpc.ts'
import { type SendLine, withSendLock } from './sendLock.ts'
import { signTransaction, type UnsignedTransaction } from './signTransaction.ts'
import { verifyWallet } from './verifyWallet.ts'

/** Retries if the RPC doesn't count the last transaction yet. */
export const NONCE_RETRIES = 3
export const NONCE_RETRY_MS = 1000

/**
 * Reads nonce and fees from the chain (specification §2: callers can't set them), and checks the RPC's chain id.
 */
export async function readNonceAndFees(client: Connection, wallet: Pick<WalletInfo, 'address'>, line: SendLine) {
  const { publicClient } = client
  const [nonce, fees] = await Promise.all([
    readNonce(publicClient, wallet, line),
    callRpc(() => publicClient.estimateFeesPerGas()),
    client.verifyChain(),
  ])
  return { nonce, ...fees }
}

/**
 * An RPC may have many nodes, and the one that answers may not know our last transaction yet. It would return the same nonce again,
 * and the second payment would replace the first.
 */
async function readNonce(publicClient: PublicClient, { address }: Pick<WalletInfo, 'address'>, { last }: SendLine) {
  for (let retries = 0; ; retries += 1) {
    const nonce = await callRpc(() => publicClient.getTransactionCount({ address, blockTag: 'pending' }))
    if (!isNatural(nonce)) throw rpcFailed(`the nonce is ${nonce}`)
    if (last === undefined || nonce > last.nonce) return nonce
    if (retries === NONCE_RETRIES) {
      if (await isKnown(publicClient, last.txHash)) throw rpcFailed(`the RPC does not count nonce ${last.nonce} yet`)
      // It was dropped: its nonce is free.
      return nonce
    }
    await new Promise((resolve) => setTimeout(resolve, NONCE_RETRY_MS))
  }
}

type SignAndSendParameters = {
  wallet: WalletInfo
  /** Whether the request names the wallet. Specification §4 has requests without it. */
  isNamed?: boolean | undefined
  call: Call
  /** Called right before the signing. If it throws, nothing is signed. */
  assertWanted?: ((transaction: UnsignedTransaction) => void) | undefined
  /** Called between signing and broadcast. */
  onSigned?: ((signed: SignResult) => void) | undefined
}

/** The steps of specification §4; step 1 is `parseSignRequest`, before anything is sent. */
export function signAndSend(
  client: Connection,
  { wallet, isNamed, call, assertWanted, onSigned }: SignAndSendParameters,
): Promise<SignResult> {
  const { chainId } = client.config
  return withSendLock({ address: wallet.address, chainId }, async (line) => {
    const transaction = { chainId, ...call, ...(await readNonceAndFees(client, wallet, line)) } // 2, 3
    // Checked after the RPC's answers, which can take seconds, because another user may have signed in meanwhile.
    await verifyWallet(client, wallet)
    assertWanted?.(transaction)
    const { serializedTransaction, signed } = await signTransaction(client, { wallet, isNamed, transaction }) // 4, 5
    onSigned?.(signed)
    await broadcast(client.publicClient, { serializedTransaction, signed }) // 6
    line.last = { nonce: transaction.nonce, txHash: signed.txHash }
    return signed // 7
  })
}
