import { isLoopbackUrl } from '@countersign/protocol'
import type { Anchors } from '../anchors/trust.ts'
import { useConfig } from '../config.ts'
import { CopyButton } from '../ui/CopyButton.tsx'
import { Fold } from '../ui/Fold.tsx'
import { type CommandSubject, toCommand } from './toCommand.ts'

/** Shows the command for an independent check, because this page comes from the operator. */
export function IndependentCheck(props: { subject: CommandSubject; anchors: Pick<Anchors, 'trust' | 'source'> }) {
  const { subject, anchors } = props
  const { trust, source } = anchors
  const { apiBaseUrl, manifestFile } = useConfig()
  // Only a service on the visitor's own machine is trusted this far. Other operators' manifests and MOCK stay out of the command.
  const localManifest = isLoopbackUrl(apiBaseUrl) ? manifestFile : undefined
  const command = toCommand(subject, { trust, anchorSource: source, localManifest })
  return (
    <Fold title="Verify independently" note="Recommended, because this page comes from the operator">
      <p>
        This page’s code comes from the operator. A dishonest operator could serve a page that reports every receipt as
        verified.{' '}
        <strong>
          For an independent check, use the command-line verifier from a copy of Countersign that you got elsewhere.
        </strong>{' '}
        In that copy, run:
      </p>
      <div className="command stack">
        <pre>
          <code>{command}</code>
        </pre>
        <CopyButton text={command} what="the command" />
      </div>
      <p className="fine-print">
        Without a copy, download{' '}
        <a href="/countersign-verify.mjs" download>
          the verifier as one file
        </a>
        , compare its SHA-256 with a release, and replace <code>npm run verify --</code> by{' '}
        <code>node countersign-verify.mjs</code>.
      </p>
      <p className="fine-print">
        {source === 'operator' && localManifest !== undefined
          ? `The command uses the anchors that the local stack wrote to ${localManifest}. It accepts simulated evidence and marks it MOCK.`
          : source === 'operator'
            ? 'Add your own anchors with --manifest manifest.json. Without them, the best verdict is “unknown code”. The operator’s anchors are left out so that the check is independent.'
            : 'The command includes the anchors that you entered.'}
      </p>
    </Fold>
  )
}
