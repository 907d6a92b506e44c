import { useState } from 'react'
import { useConfig, type WebConfig } from '../config.ts'
import { AnchorForm } from '../verification/AnchorForm.tsx'
import { IndependentCheck } from '../verification/IndependentCheck.tsx'
import type { CommandSubject } from '../verification/toCommand.ts'
import { toGateways } from '../verification/toGateways.ts'
import { useAnchors } from '../verification/useAnchors.ts'
import { useVerification } from '../verification/useVerification.ts'
import { VerificationReport } from '../verification/VerificationReport.tsx'
import '../verification/verification.css'
import './verify.css'
import type { Verification } from '../verification/verifySubject.ts'
import type { Asked } from './asked.ts'
import { SubjectForm } from './SubjectForm.tsx'
import { useRequest } from './useRequest.ts'

/** `/verify`: any receipt, by file, CID, proof link or transaction. */
export function VerifyPage() {
  const config = useConfig()
  const anchors = useAnchors(config)
  const [asked, setAsked] = useState<Asked | undefined>(undefined)
  const request = useRequest(asked, { trust: anchors.trust, config })
  const state = useVerification(request)
  return (
    <div className="evidence-page">
      <h1>Verify a receipt</h1>
      <p className="evidence-lead">
        Your browser checks it here, step by step. Files that you choose are not sent anywhere.
      </p>
      <SubjectForm config={config} onAsk={setAsked} />
      {asked === undefined || request === undefined ? null : (
        <>
          <VerificationReport
            state={state}
            anchors={anchors}
            proof={asked.proof}
            onRetry={() => setAsked({ ...asked })}
          />
          <IndependentCheck
            subject={toCommandSubject(config, asked, state.phase === 'done' ? state.verification : undefined)}
            anchors={anchors}
            isEventDue={request.isEventDue}
          />
        </>
      )}
      <AnchorForm anchors={anchors} />
    </div>
  )
}

function toCommandSubject(
  config: WebConfig,
  { subject, proof, apiBaseUrl }: Asked,
  verification: Verification | undefined,
): CommandSubject {
  if (proof !== undefined) return { kind: 'proof', slug: proof.slug, apiBaseUrl }
  const [gateway = apiBaseUrl] = toGateways({ ...config, apiBaseUrl })
  switch (subject.kind) {
    case 'files': {
      const names = verification?.fileNames ?? { receipt: subject.files[0]?.name ?? '', collateral: undefined }
      // Without its file, the command has to be told where collateral can be had.
      return { kind: 'files', ...names, gateway }
    }
    case 'cid':
      return { kind: 'cid', cid: subject.cid, gateway }
    case 'transaction':
      return { kind: 'cid', cid: verification?.cid ?? subject.txHash, gateway }
  }
}
