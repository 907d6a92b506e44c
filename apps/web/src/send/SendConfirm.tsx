import { useEffect, useRef } from 'react'
import { isAddressEqual, zeroAddress } from 'viem'
import { Address } from '../ui/Address.tsx'
import { Notice } from '../ui/Notice.tsx'
import { toShortEther } from '../words/format.ts'
import type { Draft } from './prepareDraft.ts'
import { tellAmount, toRecipient } from './tellDraft.ts'

export type SendConfirmProps = {
  draft: Draft
  from: `0x${string}`
  chainName: string
  /** What the wallet pays for a unit of gas at the very most, whatever the RPC says meanwhile. */
  maxFeePerGas: bigint
  onConfirm: () => void
  onChange: () => void
}

/** The last look before the signature. */
export function SendConfirm({ draft, from, chainName, maxFeePerGas, onConfirm, onChange }: SendConfirmProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  const { data, gas, transfer, isDearer } = draft
  const amount = tellAmount(draft)
  const to = toRecipient(draft)
  return (
    <section className="send-confirm" aria-labelledby="confirm-heading">
      <h3 id="confirm-heading" ref={heading} tabIndex={-1}>
        Is this right?
      </h3>
      {isDearer ? (
        <Notice tone="warning" title="The network fee has risen" isAlert>
          <p>Nothing was signed. Look at the new {draft.isMax ? 'amount and fee' : 'fee'} before you confirm.</p>
        </Notice>
      ) : null}
      <dl className="facts">
        <dt>Amount</dt>
        <dd className="fact-strong">{amount}</dd>
        <dt>To</dt>
        <dd>
          <Address address={to} />
        </dd>
        <dt>On</dt>
        <dd>{chainName}</dd>
        <dt>Network fee</dt>
        <dd>{tellFee(draft, maxFeePerGas)}</dd>
        {transfer === null ? null : (
          <>
            <dt>Token</dt>
            <dd>
              {transfer.token.name}, contract <Address address={draft.to} />
            </dd>
          </>
        )}
        {transfer !== null || (data === '0x' && gas === 21_000n) ? null : (
          <>
            <dt>Gas limit</dt>
            <dd>{String(gas)}</dd>
          </>
        )}
        {data === '0x' || transfer !== null ? null : (
          <>
            <dt>Data</dt>
            <dd>
              <details>
                <summary>{data.length / 2 - 1} bytes</summary>
                <p className="mono">{data}</p>
              </details>
            </dd>
          </>
        )}
      </dl>
      {isAddressEqual(to, zeroAddress) ? (
        <Notice tone="warning" title="Nobody has the key of this address">
          <p>What is sent to the zero address is lost.</p>
        </Notice>
      ) : null}
      {transfer !== null && isAddressEqual(to, transfer.token.address) ? (
        <Notice tone="warning" title="This is the token’s own contract">
          <p>Few contracts give back what is sent to them. These tokens would most likely be lost.</p>
        </Notice>
      ) : null}
      {draft.isMax && transfer === null ? (
        <p className="fine-print">
          This is all that can be sent: a reserve for the fee stays behind, and what the network does not take of it
          remains yours.
        </p>
      ) : null}
      {isAddressEqual(to, from) ? <p className="fine-print">This is your own address.</p> : null}
      <p className="fine-print">
        Once you confirm, the enclave signs this transaction and its signature becomes public, on IPFS and on the chain,
        whether or not the transaction is broadcast. It cannot be taken back.
      </p>
      <div className="actions">
        <button type="button" className="button" onClick={onConfirm}>
          Sign and send {amount}
        </button>
        <button type="button" className="button button-quiet" onClick={onChange}>
          Change
        </button>
      </div>
    </section>
  )
}

function tellFee({ gas, feeWei, dataFeeWei }: Draft, maxFeePerGas: bigint): string {
  const now = `at most about ${toShortEther(feeWei)} ETH`
  // The price of data is set by the chain, and no transaction can cap it.
  if (dataFeeWei > 0n) return `${now}, of which ${toShortEther(dataFeeWei)} ETH for data`
  return `${now}, and never more than ${toShortEther(gas * maxFeePerGas)} ETH`
}
