import { describeContent, type ShownContent } from '@countersign/verify'
import { Fragment, useMemo } from 'react'
import { useConfig } from '../config.ts'
import { Notice } from '../ui/Notice.tsx'

export type ContentDetailsProps = {
  shown: ShownContent
  /** The signing address. */
  wallet: string
}

/** Shows the content to sign, in words and field by field. */
export function ContentDetails({ shown, wallet }: ContentDetailsProps) {
  const { chainId } = useConfig()
  const { title, sentence, warnings, facts } = useMemo(
    () => describeContent(shown, { wallet, page: { host: window.location.host, chainId } }),
    [shown, wallet, chainId],
  )
  return (
    <>
      <p>
        <span className="fact-strong">{title}</span>
        <br />
        {sentence}
      </p>
      {warnings.length === 0 ? null : (
        <Notice tone="warning" title="Warning">
          {warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
        </Notice>
      )}
      <dl className="facts shown-facts">
        {facts.map(({ name, value }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two fields may have one name, and none ever moves
          <Fragment key={index}>
            <dt>{name}</dt>
            <dd>{value === '' ? <em>empty</em> : value}</dd>
          </Fragment>
        ))}
      </dl>
    </>
  )
}
