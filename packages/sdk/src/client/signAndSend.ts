import type { SignResult, WalletInfo } from '@countersign/protocol'
import { broadcast } from './broadcast.ts'
import type { Call } from './parseSignRequest.ts'
import { readNonceAndFees } from './readNonceAndFees.ts'
import type { ServiceClient } from './ServiceClient.ts'
import { withSendLock } from './sendLock.ts'
import { signTransaction } from './signTransaction.ts'

/** The steps of specification §4; step 1 is `parseSignRequest`, before anything is sent. */
export function signAndSend(
  client: ServiceClient,
  { wallet, call }: { wallet: WalletInfo; call: Call },
): Promise<SignResult> {
  const { chainId } = client.config
  return withSendLock({ address: wallet.address, chainId }, async () => {
    const nonceAndFees = await readNonceAndFees(client, wallet) // 2
    const transaction = { chainId, ...call, ...nonceAndFees } // 3
    const { serializedTransaction, txHash, slug } = await signTransaction(client, { wallet, transaction }) // 4, 5
    const signed = { txHash, attestationSlug: slug }
    await broadcast(client.publicClient, { serializedTransaction, signed }) // 6
    return signed // 7
  })
}
