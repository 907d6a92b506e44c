import { formatEther, formatUnits } from 'viem'
import { useCoin } from '../config.ts'
import { RetryButton } from '../ui/ListCard.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { toShortAmount } from '../words/format.ts'
import type { Balance } from './useBalance.ts'

/** That the balance could not be read, and a way to try again. */
export function BalanceNotice({ balance }: { balance: Balance }) {
  if (balance.error === null) return null
  return (
    <ErrorNotice error={balance.error}>
      <RetryButton label="Read the balance again" onRetry={balance.refresh} />
    </ErrorNotice>
  )
}

/** The tokens of an address. */
export function TokenList({ tokens }: Pick<Balance, 'tokens'>) {
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

/** What an address holds of the chain's coin, large. */
export function BalanceLine({ balance, chainName }: { balance: Balance; chainName: string }) {
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
            <span className="balance-unit">{isLoading ? 'Reading …' : 'Not known'}</span>
          ) : (
            <span title={`${formatEther(wei)} ${coin}`}>
              {toShortAmount(wei, 18)} <span className="balance-unit">{coin}</span>
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
