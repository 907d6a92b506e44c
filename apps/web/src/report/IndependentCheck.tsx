import { isLoopbackUrl } from '@countersign/protocol'
import type { Anchors } from '../anchors/trust.ts'
import { useConfig } from '../config.ts'
import { CopyButton } from '../ui/CopyButton.tsx'
import { Fold } from '../ui/Fold.tsx'
import { type CommandSubject, toCommand } from './toCommand.ts'

/** This page comes from the operator whom it judges. What to do about that. */
export function IndependentCheck(props: { subject: CommandSubject; anchors: Pick<Anchors, 'trust' | 'source'> }) {
  const { subject, anchors } = props
  const { trust, source } = anchors
  const { apiBaseUrl, manifestFile } = useConfig()
  // Nobody but the visitor runs a service there. Any other operator's file, or a leave to accept MOCK, stays out of the command.
  const localManifest = isLoopbackUrl(apiBaseUrl) ? manifestFile : undefined
  const command = toCommand(subject, { trust, anchorSource: source, localManifest })
  return (
    <Fold title="Check it without this page" note="The real check: this page comes from the operator">
      <p>
        This page’s own code comes from the operator whose receipt it judges: a dishonest one could serve a page that
        says “verified” to everything.{' '}
        <strong>
          The real check is the command-line verifier, from a copy of Countersign that you got from elsewhere.
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
        {source === 'operator' && localManifest !== undefined
          ? `It uses the operator’s anchors, which the local stack wrote to ${localManifest}, and accepts its simulated evidence as MOCK.`
          : source === 'operator'
            ? 'Add anchors of your own with --manifest release.json; without them the best verdict is “unknown code”. The operator’s anchors are left out on purpose.'
            : 'The anchors that you entered are in it.'}
      </p>
    </Fold>
  )
}
