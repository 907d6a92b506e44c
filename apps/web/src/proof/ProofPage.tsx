import { isTerminalProofStatus, type ProofPayload } from '@countersign/protocol'
import { useMemo, useState } from 'react'
import { useConfig, type WebConfig } from '../config.ts'
import { Notice } from '../ui/Notice.tsx'
import { AnchorForm } from '../verification/AnchorForm.tsx'
import type { ProofError } from '../verification/getProof.ts'
import { IndependentCheck } from '../verification/IndependentCheck.tsx'
import { proofErrorWords } from '../verification/proofErrorWords.ts'
import { toGateways } from '../verification/toGateways.ts'
import { toPrintable } from '../verification/toPrintable.ts'
import type { Trust } from '../verification/trust.ts'
import { type Anchors, useAnchors } from '../verification/useAnchors.ts'
import { useVerification } from '../verification/useVerification.ts'
import { VerificationReport } from '../verification/VerificationReport.tsx'
import type { VerificationRequest } from '../verification/verifySubject.ts'
import '../verification/verification.css'
import './proof.css'
import { ProofLife } from './ProofLife.tsx'
import { ProofLinks } from './ProofLinks.tsx'
import { useProof } from './useProof.ts'

/** `/proof/:slug`: where a proof is, and what the visitor's own browser finds when it verifies it. */
export function ProofPage({ slug }: { slug: string }) {
  const config = useConfig()
  const anchors = useAnchors(config)
  const { proof, error, isPolling, retry } = useProof({ apiBaseUrl: config.apiBaseUrl, slug })
  return (
    <div className="evidence-page">
      <h1>Proof of a signature</h1>
      <p className="evidence-lead">
        A receipt, hardware evidence and an event on the chain show how this signature was made. Your browser fetches
        and checks them itself.
      </p>
      {error === undefined ? null : <ProofFailure error={error} isPolling={isPolling} onRetry={retry} />}
      {proof === undefined && error === undefined ? <p role="status">Asking the service for this proof …</p> : null}
      {proof === undefined ? null : <ProofView proof={proof} config={config} anchors={anchors} />}
    </div>
  )
}

function ProofView({ proof, config, anchors }: { proof: ProofPayload; config: WebConfig; anchors: Anchors }) {
  const { apiBaseUrl } = config
  const isEventDue = proof.status === 'complete'
  const [round, setRound] = useState(0)
  const request = useProofRequest({ proof, config, trust: anchors.trust, round })
  const state = useVerification(request)
  return (
    <>
      <ProofLife status={proof.status} />
      {request === undefined ? <NotPinned status={proof.status} /> : null}
      <VerificationReport
        state={state}
        anchors={anchors}
        proof={proof}
        onRetry={() => setRound((previous) => previous + 1)}
      >
        <ProofLinks proof={proof} config={config} />
      </VerificationReport>
      <AnchorForm anchors={anchors} />
      <IndependentCheck
        subject={{ kind: 'proof', slug: proof.slug, apiBaseUrl }}
        anchors={anchors}
        isEventDue={isEventDue}
      />
    </>
  )
}

/** Another object, and so another verification, only where something changed that it looks at. */
function useProofRequest(parameters: {
  proof: ProofPayload
  config: WebConfig
  trust: Trust
  round: number
}): VerificationRequest | undefined {
  const { proof, config, trust, round } = parameters
  const { ipfsCid, ipfsUrl, status } = proof
  // biome-ignore lint/correctness/useExhaustiveDependencies: the copy of the receipt is a new object at each poll; a new round asks again
  return useMemo(() => {
    if (ipfsCid === null) return undefined
    const gateways = toGateways({ ...config, ipfsUrl })
    const isEventDue = status === 'complete'
    return { subject: { kind: 'cid', cid: ipfsCid }, trust, gateways, isEventDue, statedReceipt: proof.receipt }
  }, [ipfsCid, ipfsUrl, status, trust, config, round])
}

function NotPinned({ status }: { status: ProofPayload['status'] }) {
  return status === 'pin_failed' ? (
    <Notice tone="danger" title="There is no public receipt to verify">
      <p>The service gave up pinning it. Only its operator can export it; ask them for the file, and verify that.</p>
    </Notice>
  ) : isTerminalProofStatus(status) ? null : (
    <Notice tone="info" title="The receipt is not public yet">
      <p>It takes some seconds after the signing. The verification starts by itself.</p>
    </Notice>
  )
}

function ProofFailure(props: { error: ProofError; isPolling: boolean; onRetry: () => void }) {
  const { error, isPolling, onRetry } = props
  const { title, advice } = proofErrorWords[error.code]
  return (
    <Notice tone="danger" title={title} isAlert>
      <p>{advice}</p>
      <p className="transcript-detail">{toPrintable(error.message)}</p>
      {isPolling ? (
        <p>This page asks again every few seconds.</p>
      ) : (
        <p className="actions">
          <button type="button" className="button button-quiet" onClick={onRetry}>
            Ask again
          </button>
        </p>
      )}
    </Notice>
  )
}
