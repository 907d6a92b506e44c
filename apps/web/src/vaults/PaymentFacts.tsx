import { mayTakeDataFee } from '@countersign/policy'
import type { TxMetadata } from '@countersign/protocol'
import { formatEther, getAddress, isAddressEqual, zeroAddress } from 'viem'
import { useConfig } from '../config.ts'
import { tellAmount, toRecipient, toShownPayment } from '../send/tellDraft.ts'
import { Address } from '../ui/Address.tsx'
import { Notice } from '../ui/Notice.tsx'
import { toChainName, toCoin } from '../words/format.ts'

/** A transaction as it is signed, from its own fields: amount, recipient and fee to the last digit. */
export function PaymentFacts({ content, vault }: { content: TxMetadata; vault: string }) {
  const config = useConfig()
  const { chainId, gas, maxFeePerGas, data, nonce } = content
  const shown = toShownPayment(content, config.tokens ?? [])
  const { transfer } = shown
  const recipient = getAddress(toRecipient(shown))
  const toCoins = (wei: bigint) => `${formatEther(wei)} ${toCoin(chainId, config)}`
  const isCall = data !== '0x' && transfer === null
  return (
    <>
      <dl className="facts">
        <dt>Amount</dt>
        <dd className="fact-strong">{transfer === null ? toCoins(shown.valueWei) : tellAmount(shown)}</dd>
        <dt>To</dt>
        <dd>
          <Address address={recipient} />
        </dd>
        <dt>From the vault</dt>
        <dd>
          <Address address={getAddress(vault)} />
        </dd>
        <dt>On</dt>
        <dd>{chainId === config.chainId ? toChainName(config) : toChainName({ chainId })}</dd>
        <dt>Network fee</dt>
        <dd>
          at most {toCoins(BigInt(gas) * BigInt(maxFeePerGas))}
          {mayTakeDataFee(chainId)
            ? ' for gas, and the chain’s fee for data, if it takes one: nothing limits that'
            : ''}
        </dd>
        {transfer === null ? null : (
          <>
            <dt>Token</dt>
            <dd>
              {transfer.token.name}, contract <Address address={getAddress(shown.to)} />
            </dd>
          </>
        )}
        <dt>Payment number</dt>
        <dd>{nonce}</dd>
        {isCall ? (
          <>
            <dt>Data</dt>
            <dd className="mono">{data}</dd>
          </>
        ) : null}
      </dl>
      {isCall ? (
        <Notice tone="warning" title="This calls a contract">
          <p>What the data does is not known here. It can move tokens.</p>
        </Notice>
      ) : null}
      {isAddressEqual(recipient, zeroAddress) ? (
        <Notice tone="warning" title="Nobody has the key of this address">
          <p>What is sent to the zero address is lost.</p>
        </Notice>
      ) : null}
    </>
  )
}
