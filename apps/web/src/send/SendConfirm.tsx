import { isAddressEqual } from 'viem'
import { useCoin, useConfig } from '../config.ts'
import { Notice } from '../ui/Notice.tsx'
import { ConfirmStep } from '../ui/Step.tsx'
import { toShortAmount } from '../words/format.ts'
import { PaymentFacts } from './PaymentFacts.tsx'
import type { Draft } from './prepareDraft.ts'
import { formatPaymentAmount, toRecipient } from './shownPayment.ts'

export type SendConfirmProps = {
  draft: Draft
  from: `0x${string}`
  /** The hard limit per unit of gas, whatever the RPC reports later. */
  maxFeePerGas: bigint
  onConfirm: () => void
  onChange: () => void
}

/** The last review before signing. */
export function SendConfirm({ draft, from, maxFeePerGas, onConfirm, onChange }: SendConfirmProps) {
  const coin = useCoin()
  const { chainId } = useConfig()
  const { data, gas, feeWei, dataFeeWei, transfer, isMax, isDearer } = draft
  const toCoins = (wei: bigint) => `${toShortAmount(wei, 18)} ${coin}`
  const fee = `up to about ${toCoins(feeWei)}`
  // The chain sets the data fee. No transaction can cap it.
  const cap =
    dataFeeWei > 0n ? `including ${toCoins(dataFeeWei)} for data` : `never more than ${toCoins(gas * maxFeePerGas)}`
  return (
    <ConfirmStep
      id="confirm-heading"
      title="Review payment"
      action={`Sign and send ${formatPaymentAmount(draft, coin)}`}
      onConfirm={onConfirm}
      onChange={onChange}
    >
      {isDearer ? (
        <Notice tone="warning" title="The network fee went up" isAlert>
          <p>Nothing was signed. Check the new {isMax ? 'amount and fee' : 'fee'} before you confirm.</p>
        </Notice>
      ) : null}
      <PaymentFacts
        payment={draft}
        chainId={chainId}
        fee={`${fee}, ${cap}`}
        more={{
          'Gas limit': transfer === null && (data !== '0x' || gas !== 21_000n) && String(gas),
          Data: transfer === null && data !== '0x' && (
            <details>
              <summary>{data.length / 2 - 1} bytes</summary>
              <p className="mono">{data}</p>
            </details>
          ),
        }}
      />
      {isMax && transfer === null ? (
        <p className="fine-print">
          This is the maximum you can send. A reserve for the network fee stays in your wallet, and you keep what isn’t
          used.
        </p>
      ) : null}
      {isAddressEqual(toRecipient(draft), from) ? <p className="fine-print">This is your own address.</p> : null}
      <p className="fine-print">
        When you confirm, the enclave signs this transaction. Its signature becomes public on IPFS and on the chain,
        even if the transaction isn’t sent. You can’t undo this.
      </p>
    </ConfirmStep>
  )
}
