import { type SignOffChainResult, useAttestation } from '@countersign/sdk'
import type { ShownContent } from '@countersign/verify'
import { useMemo } from 'react'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { CopyText } from '../ui/CopyButton.tsx'
import { DownloadLink } from '../ui/DownloadLink.tsx'
import { Facts } from '../ui/Facts.tsx'
import { Notice } from '../ui/Notice.tsx'
import { Step } from '../ui/Step.tsx'
import { proofStatusWords } from '../words/proofStatus.ts'

export type SignResultProps = {
  shown: ShownContent
  result: SignOffChainResult
  isSaved: boolean
  onSaved: () => void
  onAgain: () => void
}

/** Shows the signature, its proof, and the opening, which exists only here. */
export function SignResult({ shown, result, isSaved, onSaved, onAgain }: SignResultProps) {
  const { signature, attestationSlug, opening } = result
  const { proof } = useAttestation(attestationSlug)
  // Without indentation, which could make nested lists exceed `MAX_OPENING_BYTES`.
  const file = useMemo(() => new TextEncoder().encode(`${JSON.stringify(opening)}\n`), [opening])
  return (
    <Step id="signed-heading" className="stack" title={`${shown.kind === 'message' ? 'Message' : 'Typed data'} signed`}>
      <Facts
        facts={{
          Signature: <CopyText text={signature} what="the signature" />,
          Proof: (
            <>
              <Link to={`/proof/${attestationSlug}`}>View proof</Link>
              {proof ? ` (${proofStatusWords[proof.status].label})` : null}
            </>
          ),
        }}
      />
      <Notice tone={isSaved ? 'good' : 'warning'} title={isSaved ? 'Opening saved' : 'Save the opening'}>
        <p>
          The opening shows what this proof is about. It isn’t stored anywhere else: without it, no one can open the
          proof, not even you. The file contains the signature, so share it with care.
        </p>
        <div className="actions">
          <DownloadLink bytes={file} name={`opening-${attestationSlug}.json`} onDownload={onSaved}>
            Download opening
          </DownloadLink>
        </div>
      </Notice>
      <div className="actions">
        <Button look="quiet" onClick={onAgain}>
          {isSaved ? 'Sign another' : 'Sign another without saving'}
        </Button>
      </div>
    </Step>
  )
}
