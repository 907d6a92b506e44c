import { toPlatformText } from '@countersign/verify'
import { findContract, type Trust } from './trust.ts'

/** The operator's anchors, for those who look. */
export function TrustList({ trust }: { trust: Trust }) {
  return (
    <>
      <p>
        <strong>These are the operator’s own words.</strong> A verdict against them shows that the operator keeps to
        what they say, not that it is good.
      </p>
      <details className="fine-print">
        <summary>Show the operator’s anchors</summary>
        <dl className="anchor-list">
          {toEntries(trust).map(([title, values]) => (
            <AnchorValues key={title} title={title} values={values} />
          ))}
        </dl>
      </details>
    </>
  )
}

function toEntries(trust: Trust): [title: string, values: readonly string[]][] {
  const { enclave, coordinator, entropyKeys, log, maximumEventDelayS: delay } = trust.manifest
  const contract = findContract(trust)
  const events = Object.entries(enclave.events ?? {}).map(([name, payloads]) => `${name}: ${payloads.join(' or ')}`)
  const { minimumTcbEvaluationDataNumber: evaluation } = enclave
  const minimumTcb = Object.entries(coordinator.minimumTcb ?? {}).map(
    ([product, parts]) =>
      `${product}: ${
        Object.entries(parts)
          .map(([part, level]) => `${part} ${level}`)
          .join(', ') || 'any'
      }`,
  )
  return [
    ['Code of the key enclave', enclave.measurements.map(nameRegisters)],
    ...(events.length === 0 ? [] : [['Run-time events of the key enclave', events] satisfies [string, string[]]]),
    ['Settings of the key enclave', enclave.configHashes],
    ...(evaluation === undefined
      ? []
      : [['Oldest evaluation by Intel', [String(evaluation)]] satisfies [string, string[]]]),
    ...(enclave.platforms === undefined
      ? []
      : [['Machines of the key enclave', enclave.platforms.map(toPlatformText)] satisfies [string, string[]]]),
    ['Code of the coordinator', coordinator.measurements],
    ['Settings of the coordinator', coordinator.configHashes],
    ...(minimumTcb.length === 0 ? [] : [['Patch levels of the coordinator', minimumTcb] satisfies [string, string[]]]),
    ...(coordinator.chips === undefined
      ? []
      : [['Chips of the coordinator', coordinator.chips] satisfies [string, readonly string[]]]),
    ['Entropy source', entropyKeys],
    ...(log === undefined
      ? []
      : [
          [`Witnesses of the log, ${log.quorum} of which must cosign`, log.witnesses] satisfies [
            string,
            readonly string[],
          ],
        ]),
    ['Accepted beside UpToDate', trust.tcbStatuses],
    ['Contract', contract === undefined ? [] : [`${contract.address} on chain ${contract.chainId}`]],
    ...(delay === undefined
      ? []
      : [['Longest time from signing to event', [`${delay} seconds`]] satisfies [string, string[]]]),
    ['Simulated evidence', [trust.allowMock ? 'is accepted, as MOCK' : 'is shown as MOCK, and not accepted']],
  ]
}

/** A manifest may leave out any register but MRTD, so that each is named. */
function nameRegisters(measurement: object): string {
  return Object.entries(measurement)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

function AnchorValues({ title, values }: { title: string; values: readonly string[] }) {
  return (
    <div>
      <dt>{title}</dt>
      {values.length === 0 ? <dd>none: not judged</dd> : values.map((value) => <dd key={value}>{value}</dd>)}
    </div>
  )
}
