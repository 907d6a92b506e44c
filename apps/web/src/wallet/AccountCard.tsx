import type { WalletInfo } from '@countersign/sdk'
import { getAddress } from 'viem'
import { useConfig } from '../config.ts'
import { CopyButton } from '../ui/CopyButton.tsx'
import { toChainName, toDateTime } from '../words/format.ts'
import { FaucetButton } from './FaucetButton.tsx'
import { BalanceLine, BalanceNotice, TokenList } from './Holdings.tsx'
import { ReceiveAddress } from './ReceiveAddress.tsx'
import type { Balance } from './useBalance.ts'

type AccountCardProps = {
  wallet: WalletInfo
  balance: Balance
  /** The faucet has paid. */
  onFunded: () => void
}

/** What the wallet holds, and where to send to. */
export function AccountCard({ wallet, balance, onFunded }: AccountCardProps) {
  const config = useConfig()
  const address = getAddress(wallet.address)
  const { faucetUrl } = config
  const isEmpty = balance.wei === 0n
  return (
    <section className="card account-card" aria-labelledby="account-heading">
      <h2 id="account-heading" className="visually-hidden">
        Balance and address
      </h2>
      <BalanceLine balance={balance} chainName={toChainName(config)} />
      <BalanceNotice balance={balance} />
      {isEmpty ? (
        <p>
          This wallet has no ETH yet, and sending takes a little for the network fee.{' '}
          {faucetUrl === undefined ? 'Have some sent to your address.' : 'Start with some from the faucet: it is free.'}
        </p>
      ) : null}
      {faucetUrl === undefined ? null : <FaucetButton {...{ faucetUrl, address, onFunded }} isFirstStep={isEmpty} />}
      <TokenList tokens={balance.tokens} />
      <ReceiveAddress address={address} title="Your address" chainName={toChainName(config)} />
      <Provenance wallet={wallet} />
    </section>
  )
}

/** The witness of the wallet's making. */
function Provenance({ wallet }: { wallet: WalletInfo }) {
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
