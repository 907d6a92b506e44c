import type { ReactNode } from 'react'
import { getAddress, isAddressEqual, zeroAddress } from 'viem'
import { useConfig } from '../config.ts'
import { Address } from '../ui/Address.tsx'
import { Notice } from '../ui/Notice.tsx'
import { toChainName, toCoin } from '../words/format.ts'
import { type ShownPayment, tellAmount, toRecipient } from './tellDraft.ts'

export type PaymentFactsProps = {
  payment: ShownPayment
  chainId: number
  /** What the network takes at most. */
  fee: string
  /** The vault that pays, where it is one. */
  vault?: string
  /** Further facts, each a `dt` and its `dd`. */
  children?: ReactNode
}

/** A payment before it is signed: amount, recipient and fee to the last digit, and what speaks against it. */
export function PaymentFacts({ payment, chainId, fee, vault, children }: PaymentFactsProps) {
  const config = useConfig()
  const { transfer } = payment
  const recipient = getAddress(toRecipient(payment))
  return (
    <>
      <dl className="facts">
        <dt>Amount</dt>
        <dd className="fact-strong">{tellAmount(payment, toCoin({ chainId }))}</dd>
        <dt>To</dt>
        <dd>
          <Address address={recipient} />
        </dd>
        {vault === undefined ? null : (
          <>
            <dt>From the vault</dt>
            <dd>
              <Address address={getAddress(vault)} />
            </dd>
          </>
        )}
        <dt>On</dt>
        <dd>{toChainName(chainId === config.chainId ? config : { chainId })}</dd>
        <dt>Network fee</dt>
        <dd>{fee}</dd>
        {transfer === null ? null : (
          <>
            <dt>Token</dt>
            <dd>
              {transfer.token.name}, contract <Address address={getAddress(payment.to)} />
            </dd>
          </>
        )}
        {children}
      </dl>
      {isAddressEqual(recipient, zeroAddress) ? (
        <Notice tone="warning" title="Nobody has the key of this address">
          <p>What is sent to the zero address is lost.</p>
        </Notice>
      ) : null}
      {transfer !== null && isAddressEqual(recipient, transfer.token.address) ? (
        <Notice tone="warning" title="This is the token’s own contract">
          <p>Few contracts give back what is sent to them. These tokens would most likely be lost.</p>
        </Notice>
      ) : null}
    </>
  )
}
