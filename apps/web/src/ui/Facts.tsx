import { Fragment, type ReactNode } from 'react'

/** By name. Entries that are `false` or null are hidden. */
export type FactsByName = Readonly<Record<string, ReactNode>>

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
