import type { SignResult, WalletInfo } from '@countersign/protocol'
import { broadcast } from './broadcast.ts'
import type { Connection } from './connection.ts'
import type { Call } from './parseSignRequest.ts'
import { readNonceAndFees } from './readNonceAndFees.ts'
import { withSendLock } from './sendLock.ts'
import { signTransaction, type UnsignedTransaction } from './signTransaction.ts'
import { verifyWallet } from './verifyWallet.ts'

export type SignAndSendParameters = {
  wallet: WalletInfo
  /** Whether the service is told which wallet has to sign; where it is not told, it gets exactly what specification §4 says. */
  isNamed?: boolean | undefined
  call: Call
  /** The last word before the signing: what it throws ends it. */
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
    // Only now: a node can take seconds, in which somebody else may sign in.
    await verifyWallet(client, wallet)
    assertWanted?.(transaction)
    const { serializedTransaction, signed } = await signTransaction(client, { wallet, isNamed, transaction }) // 4, 5
    onSigned?.(signed)
    await broadcast(client.publicClient, { serializedTransaction, signed }) // 6
    line.last = { nonce: transaction.nonce, txHash: signed.txHash }
    return signed // 7
  })
}
