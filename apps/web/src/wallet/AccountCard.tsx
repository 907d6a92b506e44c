import type { WalletInfo } from '@countersign/sdk'
import { lazy, Suspense } from 'react'
import { formatEther, getAddress } from 'viem'
import { useConfig } from '../config.ts'
import { Address } from '../ui/Address.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { toChainName, toShortEther } from '../words/format.ts'
import { FaucetButton } from './FaucetButton.tsx'
import { Provenance } from './Provenance.tsx'
import type { Balance } from './useBalance.ts'

const QrCode = lazy(() => import('../ui/QrCode.tsx').then((module) => ({ default: module.QrCode })))

export type AccountCardProps = { wallet: WalletInfo; balance: Balance }

/** What the wallet holds, and where to send to. */
export function AccountCard({ wallet, balance }: AccountCardProps) {
  const config = useConfig()
  const address = getAddress(wallet.address)
  const { faucetUrl } = config
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
      {faucetUrl === undefined ? null : (
        <FaucetButton faucetUrl={faucetUrl} address={address} onFunded={balance.refresh} />
      )}
      <div className="address">
        <Suspense fallback={<div className="qr-code skeleton" />}>
          <QrCode text={address} label="QR code of your address" />
        </Suspense>
        <div className="address-text">
          <h3>Your address</h3>
          <p>
            <Address address={address} />
          </p>
          <CopyButton text={address} what="your address" />
        </div>
      </div>
      <Provenance wallet={wallet} />
    </section>
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
