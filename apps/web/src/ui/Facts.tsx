import { Fragment, type ReactNode } from 'react'

/** By name. Those that are `false` or null do not apply. */
export type FactsByName = Readonly<Record<string, ReactNode>>

/** Names and what they stand for, side by side. */
export function Facts({ facts }: { facts: FactsByName }) {
  const shown = Object.entries(facts).filter(([, value]) => value !== false && value !== null)
  return (
    <dl className="facts">
      {shown.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  )
}
