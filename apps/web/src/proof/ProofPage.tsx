import '../report/report.css'
import { isTerminalProofStatus, type ProofPayload } from '@countersign/protocol'
import type { VerifierError } from '@countersign/verify'
import { useMemo, useState } from 'react'
import { AnchorForm } from '../anchors/AnchorForm.tsx'
import { type Anchors, toVerifyRequest, useAnchors } from '../anchors/trust.ts'
import { useConfig, type WebConfig } from '../config.ts'
import { EvidenceDownloads } from '../report/EvidenceDownloads.tsx'
import { toProofFailureWords } from '../report/failureWords.ts'
import { IndependentCheck } from '../report/IndependentCheck.tsx'
import { canOpen, isAddressReceipt, OpeningForm } from '../report/OpeningForm.tsx'
import { FailureNotice, VerificationReport } from '../report/VerificationReport.tsx'
import { Button } from '../ui/Button.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { Notice } from '../ui/Notice.tsx'
import { useVerification } from '../worker/useVerification.ts'
import { ProofLinks } from './ProofLinks.tsx'
import { ServiceClaims } from './ServiceClaims.tsx'
import { useProof } from './useProof.ts'

/** `/proof/:slug`: shows a proof's status and verifies it in the visitor's browser. */
export function ProofPage({ slug }: { slug: string }) {
  const config = useConfig()
  const anchors = useAnchors(config)
  const { proof, error, isPolling, retry } = useProof({ apiBaseUrl: config.apiBaseUrl, slug })
  return (
    <div className="evidence-page stack">
      <h1>Proof of a signature</h1>
      {error === undefined ? null : <ProofFailure error={error} isPolling={isPolling} onRetry={retry} />}
      {proof === undefined && error === undefined ? <p role="status">Loading the proof…</p> : null}
      {proof === undefined ? null : <ProofView proof={proof} isPolling={isPolling} config={config} anchors={anchors} />}
    </div>
  )
}

type ProofViewProps = { proof: ProofPayload; isPolling: boolean; config: WebConfig; anchors: Anchors }

function ProofView({ proof, isPolling, config, anchors }: ProofViewProps) {
  const { apiBaseUrl } = config
  const { trust } = anchors
  const [round, setRound] = useState(0)
  const [opening, setOpening] = useState<Uint8Array | undefined>(undefined)
  const { ipfsCid, ipfsUrl, txHash, chainId, walletAddress, status } = proof
  // Keyed on the verifier's inputs, so that a service that changes other members in every response can't restart it forever.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the members above stand for the proof, and a new round asks again
  const request = useMemo(() => {
    if (proof.ipfsCid === null) return undefined
    const subject = { kind: 'proof', slug: proof.slug, api: apiBaseUrl, proof } as const
    return toVerifyRequest({ subject, opening, apiBaseUrl }, { trust, config })
  }, [ipfsCid, ipfsUrl, txHash, chainId, walletAddress, status, apiBaseUrl, trust, config, opening, round])
  const state = useVerification(request)
  const outcome = state.phase === 'done' ? state.outcome : undefined
  // Also if only the service says so, so that the form and its file stay during another verification.
  const canBeOpened = opening !== undefined || canOpen(proof) || canOpen(outcome?.receipt)
  return (
    <>
      {request === undefined ? <NotPinned status={proof.status} /> : null}
      <VerificationReport
        state={state}
        anchors={anchors}
        proof={proof}
        onRetry={() => setRound((previous) => previous + 1)}
      >
        {canBeOpened ? (
          <OpeningForm onOpen={setOpening} isAddress={isAddressReceipt(outcome?.receipt ?? proof)} />
        ) : null}
        <ShareLink url={`${window.location.origin}/proof/${proof.slug}`} />
      </VerificationReport>
      <div className="folds">
        {outcome === undefined ? null : <EvidenceDownloads outcome={outcome} />}
        <ProofLinks proof={proof} config={config} />
        <AnchorForm anchors={anchors} />
        <IndependentCheck subject={{ kind: 'proof', slug: proof.slug, apiBaseUrl }} anchors={anchors} />
        <ServiceClaims proof={proof} state={state} isPolling={isPolling} />
      </div>
    </>
  )
}

function NotPinned({ status }: { status: ProofPayload['status'] }) {
  return status === 'pin_failed' ? (
    <Notice tone="bad" title="The receipt isn’t public">
      <p>The service couldn’t pin it to IPFS. Ask the operator for the receipt file and verify that.</p>
    </Notice>
  ) : isTerminalProofStatus(status) ? null : (
    <Notice tone="good" title="The receipt isn’t public yet">
      <p>Publishing takes a few seconds. Verification starts automatically.</p>
    </Notice>
  )
}

function ProofFailure(props: { error: VerifierError; isPolling: boolean; onRetry: () => void }) {
  const { error, isPolling, onRetry } = props
  return (
    <FailureNotice words={toProofFailureWords(error)} detail={error.details ?? error.message}>
      {isPolling ? (
        'This page updates automatically.'
      ) : (
        <Button look="quiet" onClick={onRetry}>
          Try again
        </Button>
      )}
    </FailureNotice>
  )
}

/** Shares a proof's link with the device's share sheet, or copies it. */
export function ShareLink({ url }: { url: string }) {
  const [canShare, setCanShare] = useState(typeof navigator.share === 'function')

  async function share() {
    try {
      await navigator.share({ title: 'Proof of a signature', url })
    } catch (error) {
      // The user closed the sheet. Any other error means that the device can't share.
      if (!(error instanceof DOMException && error.name === 'AbortError')) setCanShare(false)
    }
  }

  return (
    <p className="share">
      <a href={url}>Link to this proof</a>
      {canShare ? (
        <Button look="small" onClick={share}>
          Share
          <span className="visually-hidden"> the link to this proof</span>
        </Button>
      ) : (
        <CopyButton text={url} what="the link to this proof" />
      )}
    </p>
  )
}
