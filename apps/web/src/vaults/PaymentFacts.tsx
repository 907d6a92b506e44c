import { mayTakeDataFee } from '@countersign/policy'
import type { TxMetadata } from '@countersign/protocol'
import { formatEther } from 'viem'
import { useConfig } from '../config.ts'
import { PaymentFacts } from '../send/PaymentFacts.tsx'
import { toShownPayment } from '../send/shownPayment.ts'
import { Notice } from '../ui/Notice.tsx'
import { toCoin } from '../words/format.ts'

/** A vault transaction, shown from the fields that are signed. */
export function VaultPaymentFacts({ content, vault }: { content: TxMetadata; vault: string }) {
  const { tokens = [] } = useConfig()
  const { chainId, gas, maxFeePerGas, data, nonce } = content
  const payment = toShownPayment(content, tokens)
  const isCall = data !== '0x' && payment.transfer === null
  const dataFee = ' for gas, plus the chain’s data fee, if any, which has no limit'
  const fee = `at most ${formatEther(BigInt(gas) * BigInt(maxFeePerGas))} ${toCoin(content)}`
  return (
    <>
      <PaymentFacts
        payment={payment}
        chainId={chainId}
        vault={vault}
        fee={mayTakeDataFee(chainId) ? fee + dataFee : fee}
        more={{ Nonce: nonce, Data: isCall && <span className="mono">{data}</span> }}
      />
      {isCall ? (
        <Notice tone="warning" title="This calls a contract">
          <p>This page can’t tell what the call does. It might move tokens.</p>
        </Notice>
      ) : null}
    </>
  )
}
