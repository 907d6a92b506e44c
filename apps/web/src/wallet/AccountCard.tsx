import type { Hex, WalletInfo } from '@countersign/sdk'
import type { ReactNode } from 'react'
import { getAddress } from 'viem'
import { useConfig } from '../config.ts'
import { CopyButton } from '../ui/CopyButton.tsx'
import { toChainName, toCoin, toDateTime } from '../words/format.ts'
import { FaucetButton } from './FaucetButton.tsx'
import { BalanceLine, BalanceNotice, TokenList } from './Holdings.tsx'
import { ReceiveAddress, type ReceiveAddressProps } from './ReceiveAddress.tsx'
import type { Balance } from './useBalance.ts'

type AccountCardProps = {
  address: Hex
  title: ReceiveAddressProps['title']
  balance: Balance
  /** The faucet has paid. */
  onFunded: () => void
  children: ReactNode
}

/** What a wallet or a vault holds, and where to send to. */
export function AccountCard({ address: given, title, balance, onFunded, children }: AccountCardProps) {
  const config = useConfig()
  const { faucetUrl } = config
  const address = getAddress(given)
  const chainName = toChainName(config)
  const isEmpty = balance.wei === 0n
  return (
    <section className="card account-card" aria-labelledby="account-heading">
      <h2 id="account-heading" className="visually-hidden">
        Balance and address
      </h2>
      <BalanceLine balance={balance} chainName={chainName} />
      <BalanceNotice balance={balance} />
      {isEmpty && title === 'Your address' ? (
        <p>
          This wallet has no {toCoin(config)} yet, and sending takes a little for the network fee.{' '}
          {faucetUrl === undefined ? 'Have some sent to your address.' : 'Start with some from the faucet: it is free.'}
        </p>
      ) : null}
      {faucetUrl === undefined ? null : <FaucetButton {...{ faucetUrl, address, onFunded }} isFirstStep={isEmpty} />}
      <TokenList tokens={balance.tokens} />
      <ReceiveAddress {...{ address, title, chainName }} />
      {children}
    </section>
  )
}

/** The witness of the wallet's making. */
export function Provenance({ wallet }: { wallet: WalletInfo }) {
  const { createdAt, provenance } = wallet
  return (
    <details className="provenance">
      <summary>How this wallet was made</summary>
      <p>
        When it was made, a satellite’s signed random sample was recorded as a witness. It never changes. The key does
        not come from it and has never left the enclave.
      </p>
      <dl className="facts">
        <dt>Made</dt>
        <dd>{toDateTime(createdAt)}</dd>
        <dt>Source</dt>
        <dd>{provenance.satelliteSource}</dd>
        <dt>Sample’s hash</dt>
        <dd>
          <span className="mono">{provenance.entropyHash}</span>{' '}
          <CopyButton text={provenance.entropyHash} what="the hash of the sample" />
        </dd>
        <dt>Its signature</dt>
        <dd>
          <span className="mono">{provenance.entropySig}</span>{' '}
          <CopyButton text={provenance.entropySig} what="the signature of the sample" />
        </dd>
      </dl>
    </details>
  )
}
