import type { WalletInfo } from '@countersign/sdk'
import { getAddress } from 'viem'
import { useConfig } from '../config.ts'
import { toChainName } from '../words/format.ts'
import { FaucetButton } from './FaucetButton.tsx'
import { BalanceLine, BalanceNotice, TokenList } from './Holdings.tsx'
import { Provenance } from './Provenance.tsx'
import { ReceiveAddress } from './ReceiveAddress.tsx'
import type { Balance } from './useBalance.ts'

export type AccountCardProps = {
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
