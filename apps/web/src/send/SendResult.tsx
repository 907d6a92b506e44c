import { type SignResult, useAttestation } from '@countersign/sdk'
import { useEffect } from 'react'
import { toExplorerLink, useCoin, useConfig } from '../config.ts'
import { Link } from '../router.tsx'
import { Address } from '../ui/Address.tsx'
import { Button } from '../ui/Button.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { Notice } from '../ui/Notice.tsx'
import { Step } from '../ui/Step.tsx'
import { toShortHex } from '../words/format.ts'
import { type SendStep, toSendSteps, useInclusion } from './sendSteps.ts'
import { formatPaymentAmount, type ShownPayment, toRecipient } from './shownPayment.ts'

type SendResultProps = {
  draft: ShownPayment
  result: SignResult
  onIncluded: () => void
  onAgain: () => void
}

/** The progress of a sent payment. */
export function SendResult({ draft, result, onIncluded, onAgain }: SendResultProps) {
  const { txHash, attestationSlug } = result
  const coin = useCoin()
  const inclusion = useInclusion(txHash)
  const { proof } = useAttestation(attestationSlug)
  useEffect(() => {
    if (inclusion.state !== 'waiting') onIncluded()
  }, [inclusion.state, onIncluded])
  const steps = toSendSteps({ inclusion, proofStatus: proof?.status })
  return (
    <Step
      id="sent-heading"
      className="stack"
      title={inclusion.state === 'reverted' ? 'Transaction failed' : `Sent ${formatPaymentAmount(draft, coin)}`}
    >
      <p className="fine-print">
        to <Address address={toRecipient(draft)} />
      </p>
      <SendSteps steps={steps} />
      <TransactionHash txHash={txHash} />
      <div className="actions">
        <Link to={`/proof/${attestationSlug}`} className="button">
          View proof
        </Link>
        <Button look="quiet" onClick={onAgain}>
          Send another
        </Button>
      </div>
    </Step>
  )
}

const STATES: Record<SendStep['state'], string> = {
  done: 'done',
  active: 'in progress',
  waiting: 'not started',
  failed: 'failed',
}

export function SendSteps({ steps }: { steps: SendStep[] }) {
  const active = steps.find(({ state }) => state === 'failed') ?? steps.findLast(({ state }) => state !== 'waiting')
  return (
    <>
      <ol className="steps">
        {steps.map(({ label, state }) => (
          <li key={label} className={`step step-${state}`}>
            {label}
            <span className="visually-hidden">: {STATES[state]}</span>
          </li>
        ))}
      </ol>
      <p className="visually-hidden" role="status">
        {active === undefined ? '' : `${active.label}: ${STATES[active.state]}`}
      </p>
    </>
  )
}

export function TransactionHash({ txHash }: { txHash: string }) {
  const href = toExplorerLink(useConfig(), txHash)
  const short = <span className="mono">{toShortHex(txHash)}</span>
  return (
    <p className="hash-line">
      Transaction{' '}
      {href === undefined ? (
        <span title={txHash}>{short}</span>
      ) : (
        <a href={href} target="_blank" rel="noreferrer">
          {short}
        </a>
      )}{' '}
      <CopyButton text={txHash} what="the transaction hash" />
    </p>
  )
}

/** Shown until dismissed, because the user might pay twice. */
export function UnsettledNotice({ signed, onDismiss }: { signed: SignResult; onDismiss: () => void }) {
  return (
    <Notice tone="warning" title="An earlier payment may still go through">
      <p>Check the earlier transaction before you pay again. Otherwise you might pay twice.</p>
      <TransactionHash txHash={signed.txHash} />
      <div className="actions">
        <Button look="small" onClick={onDismiss}>
          I’ve checked
        </Button>
      </div>
    </Notice>
  )
}
