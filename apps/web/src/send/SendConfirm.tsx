import { isAddressEqual } from 'viem'
import { useCoin, useConfig } from '../config.ts'
import { Notice } from '../ui/Notice.tsx'
import { ConfirmStep } from '../ui/Step.tsx'
import { toShortAmount } from '../words/format.ts'
import { PaymentFacts } from './PaymentFacts.tsx'
import type { Draft } from './prepareDraft.ts'
import { tellAmount, toRecipient } from './tellDraft.ts'

export type SendConfirmProps = {
  draft: Draft
  from: `0x${string}`
  /** What the wallet pays for a unit of gas at the very most, whatever the RPC says meanwhile. */
  maxFeePerGas: bigint
  onConfirm: () => void
  onChange: () => void
}

/** The last look before the signature. */
export function SendConfirm({ draft, from, maxFeePerGas, onConfirm, onChange }: SendConfirmProps) {
  const coin = useCoin()
  const { chainId } = useConfig()
  const { data, gas, feeWei, dataFeeWei, transfer, isMax, isDearer } = draft
  const toCoins = (wei: bigint) => `${toShortAmount(wei, 18)} ${coin}`
  const fee = `at most about ${toCoins(feeWei)}`
  // The price of data is set by the chain, and no transaction can cap it.
  const cap =
    dataFeeWei > 0n ? `of which ${toCoins(dataFeeWei)} for data` : `and never more than ${toCoins(gas * maxFeePerGas)}`
  return (
    <ConfirmStep
      id="confirm-heading"
      title="Is this right?"
      action={`Sign and send ${tellAmount(draft, coin)}`}
      onConfirm={onConfirm}
      onChange={onChange}
    >
      {isDearer ? (
        <Notice tone="warning" title="The network fee has risen" isAlert>
          <p>Nothing was signed. Look at the new {isMax ? 'amount and fee' : 'fee'} before you confirm.</p>
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
          This is all that can be sent: a reserve for the fee stays behind, and what the network does not take of it
          remains yours.
        </p>
      ) : null}
      {isAddressEqual(toRecipient(draft), from) ? <p className="fine-print">This is your own address.</p> : null}
      <p className="fine-print">
        Once you confirm, the enclave signs this transaction and its signature becomes public, on IPFS and on the chain,
        whether or not the transaction is broadcast. It cannot be taken back.
      </p>
    </ConfirmStep>
  )
}
