import { type Hex, type TransactionSummary, useAttestation } from '@countersign/sdk'
import { type ReactNode, useEffect } from 'react'
import { getAddress } from 'viem'
import { toExplorerLink, useConfig } from '../config.ts'
import type { Incoming } from '../incoming/payment.ts'
import { Link } from '../router.tsx'
import { toAgo, toChainName, toCoin, toDateTime, toShortAddress, toShortAmount } from '../words/format.ts'
import { proofStatusWords } from '../words/proofStatus.ts'
import { type Description, describeSigned } from './describeSigned.ts'
import type { Broadcast } from './useBroadcasts.ts'
import type { History } from './useHistory.ts'

type SignedRowProps = {
  transaction: TransactionSummary
  from: Hex
  /** Undefined if unknown, or if nothing goes to the chain. */
  broadcast: Broadcast | undefined
  isFollowed: boolean
  onStatus: History['noteStatus']
}

export function SignedRow({ transaction, from, broadcast, isFollowed, onStatus }: SignedRowProps) {
  const { kind, slug, createdAt, chainId, status } = transaction
  const config = useConfig()
  const { proof } = useAttestation(isFollowed ? slug : null)
  const seen = proof?.status
  useEffect(() => {
    if (seen !== undefined) onStatus(slug, seen)
  }, [slug, seen, onStatus])
  const { label, meaning, tone } = proofStatusWords[status]
  const isOnChain = kind === undefined || kind === 'authorization'
  const isElsewhere = isOnChain && chainId !== config.chainId
  const signer = transaction.walletAddress ?? from
  const trouble = broadcast === undefined || broadcast === 'included' ? undefined : broadcastWords[broadcast]
  return (
    <li>
      <Link to={`/proof/${slug}`} className="history-row">
        <HistoryLine
          description={describeSigned(transaction, { from: signer, page: config })}
          isVoid={broadcast === 'reverted' || broadcast === 'not_broadcast'}
          time={createdAt}
          chainName={isElsewhere ? toChainName({ chainId }) : undefined}
          vault={signer === from ? undefined : signer}
        >
          {trouble === undefined ? null : (
            <span className="history-trouble" title={trouble.meaning}>
              {trouble.label}
            </span>
          )}
          <span className={`badge badge-${tone}`} title={meaning} aria-live="polite">
            {label}
          </span>
        </HistoryLine>
      </Link>
    </li>
  )
}

/** A payment to the wallet. It has no proof, because someone else signed it. */
export function ReceivedRow({ payment }: { payment: Incoming }) {
  const config = useConfig()
  const { from, amount, token, txHash, time } = payment
  const { decimals, symbol } = token ?? { decimals: 18, symbol: toCoin(config) }
  const description: Description = {
    direction: 'in',
    what: from === null ? 'Received from a contract' : 'Received from',
    counterparty: from,
    amount: `+${toShortAmount(amount, decimals)} ${symbol}`,
  }
  const href = txHash === null ? undefined : toExplorerLink(config, txHash)
  const line = <HistoryLine description={description} time={time} />
  return (
    <li>
      {href === undefined ? (
        <div className="history-row">{line}</div>
      ) : (
        <a className="history-row" href={href} target="_blank" rel="noreferrer">
          {line}
        </a>
      )}
    </li>
  )
}

type HistoryLineProps = {
  description: Description
  /** Whether the payment failed or was never sent. */
  isVoid?: boolean
  time: string
  chainName?: string | undefined
  /** The vault, if it signed instead of the wallet. */
  vault?: Hex | undefined
  children?: ReactNode
}

const ARROWS: Record<Description['direction'], string> = {
  out: 'M7 17 17 7M9 7h8v8',
  in: 'M17 7 7 17M7 9v8h8',
  none: 'M4 20h4L19 9l-4-4L4 16v4Z',
}

function HistoryLine({ description, isVoid, time, chainName, vault, children }: HistoryLineProps) {
  const { direction, what, counterparty, amount } = description
  return (
    <>
      <svg className={`history-icon history-icon-${direction}`} viewBox="0 0 24 24" aria-hidden="true">
        <path d={ARROWS[direction]} />
      </svg>
      <span className="history-what">
        <span>
          {what}{' '}
          {counterparty === null ? null : (
            <span className="mono history-counterparty" title={getAddress(counterparty)}>
              {toShortAddress(counterparty)}
            </span>
          )}
        </span>
        <time dateTime={time} title={toDateTime(time)}>
          {toAgo(time, Date.now())}
          {chainName === undefined ? null : ` on ${chainName}`}
          {vault === undefined ? null : `, from vault ${toShortAddress(vault)}`}
        </time>
      </span>
      <span className="history-outcome">
        {amount === null ? null : (
          <span className={isVoid ? 'history-amount history-void' : 'history-amount'}>{amount}</span>
        )}
        {children}
      </span>
    </>
  )
}

/** Words for every state except success. */
const broadcastWords: Record<Exclude<Broadcast, 'included'>, { label: string; meaning: string }> = {
  waiting: { label: 'Pending', meaning: 'Sent, but not in a block yet.' },
  reverted: { label: 'Failed', meaning: 'The transaction failed on the chain. Only the network fee was paid.' },
  not_broadcast: {
    label: 'Not broadcast',
    meaning: 'Signed, but the node doesn’t know it. Its signature is public, so anyone can still send it.',
  },
  unknown: {
    label: 'May have been paid',
    meaning:
      'The node doesn’t know this transaction, but its nonce is used. Check a block explorer before you pay again.',
  },
}
