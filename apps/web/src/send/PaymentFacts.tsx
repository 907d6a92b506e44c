import { getAddress, isAddressEqual, zeroAddress } from 'viem'
import { useConfig } from '../config.ts'
import { Address } from '../ui/Address.tsx'
import { Facts, type FactsByName } from '../ui/Facts.tsx'
import { Notice } from '../ui/Notice.tsx'
import { toChainName, toCoin } from '../words/format.ts'
import { formatPaymentAmount, type ShownPayment, toRecipient } from './shownPayment.ts'

export type PaymentFactsProps = {
  payment: ShownPayment
  chainId: number
  /** The maximum network fee. */
  fee: string
  /** The paying vault, if any. */
  vault?: string
  more: FactsByName
}

/** A payment before signing: exact amount, recipient and fee, with warnings. */
export function PaymentFacts({ payment, chainId, fee, vault, more }: PaymentFactsProps) {
  const config = useConfig()
  const { transfer } = payment
  const recipient = getAddress(toRecipient(payment))
  return (
    <>
      <Facts
        facts={{
          Amount: <span className="fact-strong">{formatPaymentAmount(payment, toCoin({ chainId }))}</span>,
          To: <Address address={recipient} />,
          'From vault': vault !== undefined && <Address address={getAddress(vault)} />,
          Network: toChainName(chainId === config.chainId ? config : { chainId }),
          'Network fee': fee,
          Token: transfer && (
            <>
              {transfer.token.name}, contract <Address address={getAddress(payment.to)} />
            </>
          ),
          ...more,
        }}
      />
      {isAddressEqual(recipient, zeroAddress) ? (
        <Notice tone="warning" title="This is the zero address">
          <p>No one has its key. Funds sent there are lost.</p>
        </Notice>
      ) : null}
      {transfer !== null && isAddressEqual(recipient, transfer.token.address) ? (
        <Notice tone="warning" title="This is the token’s own contract">
          <p>Tokens sent to their own contract are most likely lost.</p>
        </Notice>
      ) : null}
    </>
  )
}
