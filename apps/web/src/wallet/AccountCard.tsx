import type { WalletInfo } from '@countersign/sdk'
import { type ReactNode, useState } from 'react'
import { formatEther, formatUnits, getAddress } from 'viem'
import { useCoin, useConfig } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { CopyText } from '../ui/CopyButton.tsx'
import { createLazyPart } from '../ui/createLazyPart.tsx'
import { Facts } from '../ui/Facts.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { toChainName, toCoin, toDateTime, toShortAmount } from '../words/format.ts'
import type { Deposit } from './checkedOwner.ts'
import { DepositAddress } from './DepositAddress.tsx'
import { FaucetButton } from './FaucetButton.tsx'
import type { Balance } from './useBalance.ts'

const QrCode = createLazyPart(
  () => import('../ui/QrCode.tsx').then((module) => module.QrCode),
  <div className="qr-code skeleton" />,
)

type AccountCardProps = {
  deposit: Deposit
  title: 'Your address' | 'Vault address'
  balance: Balance
  /** Called after the faucet has paid. */
  onFunded: () => void
  children: ReactNode
}

/** Balance and address of a wallet or vault. */
export function AccountCard({ deposit, title, balance, onFunded, children }: AccountCardProps) {
  const config = useConfig()
  const { faucetUrl } = config
  const address = getAddress(deposit.address)
  const chainName = toChainName(config)
  const isEmpty = balance.wei === 0n
  return (
    <section className="card account-card" aria-labelledby="account-heading">
      <h2 id="account-heading" className="visually-hidden">
        Balance and address
      </h2>
      <BalanceLine balance={balance} chainName={chainName} />
      <ErrorNotice error={balance.error}>
        <Button look="small" onClick={balance.refresh}>
          Reload balance
        </Button>
      </ErrorNotice>
      {isEmpty && title === 'Your address' ? (
        <p>
          This wallet has no {toCoin(config)} yet. You need some to pay network fees.{' '}
          {faucetUrl === undefined ? 'Send some to your address.' : 'Get some from the faucet for free.'}
        </p>
      ) : null}
      {faucetUrl === undefined ? null : (
        <FaucetButton faucetUrl={faucetUrl} address={address} onFunded={onFunded} isFirstStep={isEmpty} />
      )}
      <TokenList tokens={balance.tokens} />
      <ReceiveAddress deposit={deposit} title={title} chainName={chainName} />
      {children}
    </section>
  )
}

/** The random sample recorded when the wallet was created. */
export function Provenance({ wallet }: { wallet: WalletInfo }) {
  const { createdAt, provenance } = wallet
  return (
    <details className="provenance">
      <summary>How this wallet was created</summary>
      <p>
        When the wallet was created, the service recorded a random sample signed by a satellite. This record never
        changes. The key isn’t derived from the sample and never leaves the enclave.
      </p>
      <Facts
        facts={{
          Created: toDateTime(createdAt),
          Source: provenance.satelliteSource,
          'Sample hash': <CopyText text={provenance.entropyHash} what="the sample hash" />,
          'Sample signature': <CopyText text={provenance.entropySig} what="the sample signature" />,
        }}
      />
    </details>
  )
}

function TokenList({ tokens }: Pick<Balance, 'tokens'>) {
  if (tokens.length === 0) return null
  return (
    <ul className="tokens" aria-label="Tokens">
      {tokens.map(({ token, amount }) => (
        <li key={token.address}>
          <span className="token-name">{token.name}</span>
          {amount === null ? (
            <span className="fine-print">unavailable</span>
          ) : (
            <span title={`${formatUnits(amount, token.decimals)} ${token.symbol}`}>
              {toShortAmount(amount, token.decimals)} {token.symbol}
            </span>
          )}
        </li>
      ))}
    </ul>
  )
}

function BalanceLine({ balance, chainName }: { balance: Balance; chainName: string }) {
  const coin = useCoin()
  const { wei, isLoading, refresh } = balance
  return (
    <div className="balance">
      <div>
        <p className="balance-label" id="balance-label">
          Balance on {chainName}
        </p>
        <p className="balance-amount" aria-live="polite" aria-busy={isLoading}>
          {wei === null ? (
            <span className="balance-unit">{isLoading ? 'Loading…' : 'Unavailable'}</span>
          ) : (
            <span title={`${formatEther(wei)} ${coin}`}>
              {toShortAmount(wei, 18)} <span className="balance-unit">{coin}</span>
            </span>
          )}
        </p>
      </div>
      <button type="button" className="icon-button" onClick={refresh} aria-label="Refresh balance">
        <svg viewBox="0 0 24 24" aria-hidden="true" className={isLoading ? 'is-turning' : ''}>
          <path d="M20 11a8 8 0 1 0-.6 4M20 5v6h-6" />
        </svg>
      </button>
    </div>
  )
}

function ReceiveAddress({
  deposit,
  chainName,
  title,
}: Pick<AccountCardProps, 'deposit' | 'title'> & { chainName: string }) {
  const what = title === 'Your address' ? 'your address' : 'the address'
  return (
    <div className="address">
      <h3>{title}</h3>
      <DepositAddress deposit={deposit} what={what}>
        <Receive address={getAddress(deposit.address)} chainName={chainName} what={what} />
      </DepositAddress>
    </div>
  )
}

function Receive({ address, chainName, what }: { address: string; chainName: string; what: string }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <Button look="quiet" aria-expanded={isOpen} onClick={() => setIsOpen((before) => !before)}>
        Receive
      </Button>
      {isOpen ? (
        <div className="receive">
          <QrCode text={address} label={`QR code of ${what}`} />
          <p className="fine-print">
            To receive funds, share this code or {what}. Use {chainName} only: funds sent on another chain don’t arrive
            here.
          </p>
        </div>
      ) : null}
    </>
  )
}
