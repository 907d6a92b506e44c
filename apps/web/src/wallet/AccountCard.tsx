import type { WalletInfo } from '@countersign/sdk'
import { lazy, Suspense, useState } from 'react'
import { formatEther, formatUnits, getAddress } from 'viem'
import { useConfig } from '../config.ts'
import { Address } from '../ui/Address.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { toChainName, toShortAmount, toShortEther } from '../words/format.ts'
import { FaucetButton } from './FaucetButton.tsx'
import { Provenance } from './Provenance.tsx'
import type { Balance } from './useBalance.ts'

const QrCode = lazy(() => import('../ui/QrCode.tsx').then((module) => ({ default: module.QrCode })))

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
      {balance.error === null ? null : (
        <ErrorNotice error={balance.error}>
          <button type="button" className="button button-small" onClick={balance.refresh}>
            Read the balance again
          </button>
        </ErrorNotice>
      )}
      {isEmpty ? (
        <p>
          This wallet has no ETH yet, and sending takes a little for the network fee.{' '}
          {faucetUrl === undefined ? 'Have some sent to your address.' : 'Start with some from the faucet: it is free.'}
        </p>
      ) : null}
      {faucetUrl === undefined ? null : <FaucetButton {...{ faucetUrl, address, onFunded }} isFirstStep={isEmpty} />}
      <TokenList tokens={balance.tokens} />
      <div className="address">
        <h3>Your address</h3>
        <p className="address-line">
          <Address address={address} /> <CopyButton text={address} what="your address" />
        </p>
        <Receive address={address} chainName={toChainName(config)} />
      </div>
      <Provenance wallet={wallet} />
    </section>
  )
}

function Receive({ address, chainName }: { address: string; chainName: string }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <button
        type="button"
        className="button button-quiet"
        aria-expanded={isOpen}
        onClick={() => setIsOpen((before) => !before)}
      >
        Receive
      </button>
      {isOpen ? (
        <div className="receive">
          <Suspense fallback={<div className="qr-code skeleton" />}>
            <QrCode text={address} label="QR code of your address" />
          </Suspense>
          <p className="fine-print">
            Whoever pays you scans this or copies your address. It must be on {chainName}: what is sent on another chain
            does not arrive here.
          </p>
        </div>
      ) : null}
    </>
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
            <span className="fine-print">not known</span>
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
  const { wei, isLoading, refresh } = balance
  return (
    <div className="balance">
      <div>
        <p className="balance-label" id="balance-label">
          Balance on {chainName}
        </p>
        <p className="balance-amount" aria-live="polite" aria-busy={isLoading}>
          {wei === null ? (
            <span className={isLoading ? 'skeleton skeleton-amount' : ''}>{isLoading ? 'Reading …' : 'Not known'}</span>
          ) : (
            <span title={`${formatEther(wei)} ETH`}>
              {toShortEther(wei)} <span className="balance-unit">ETH</span>
            </span>
          )}
        </p>
      </div>
      <button type="button" className="icon-button" onClick={refresh} aria-label="Refresh the balance">
        <svg viewBox="0 0 24 24" aria-hidden="true" className={isLoading ? 'is-turning' : ''}>
          <path d="M20 11a8 8 0 1 0-.6 4M20 5v6h-6" />
        </svg>
      </button>
    </div>
  )
}
