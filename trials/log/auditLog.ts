import { createVerifier } from '@countersign/attestation'
import { simulatedRoots } from '@countersign/attestation/simulator'
import type { WitnessPolicy } from '@countersign/log'
import { checkReceipt, encodeCar, parseReceiptCar } from '@countersign/receipt'
import { type Backend, type StartBackendParameters, startBackend } from '@countersign/testing'
import type { Scope } from '@countersign/testing/stack'
import { assembleReceipt } from '../../services/coordinator/src/publish/assembleReceipt.ts'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { openQuery } from '../openQuery.ts'
import { until } from '../until.ts'
import { type BadWitness, startBadWitness } from './badWitness.ts'
import { checkLog, type LogVerdict, toPolicy } from './checkLog.ts'
import { readLogs, readNewest } from './readLogs.ts'

/** A backend with a log whose witnesses can misbehave. */
export type Witnessed = { backend: Backend; witnessed: readonly BadWitness[] }

/** Entries without a waiting caller are dropped after 30 seconds, and unacknowledged ones are reported after a minute. */
const COMPLETION_MS = 180_000

export async function startWitnessed(
  { add }: Scope,
  toBehaviour: (place: number) => Omit<Parameters<typeof startBadWitness>[0], 'witness'>,
  parameters: Omit<StartBackendParameters, 'env' | 'log'> = {},
): Promise<Witnessed> {
  const witnessed: BadWitness[] = []
  const backend = await startBackend({
    ...parameters,
    env: { WORKER: 'off' },
    log: {
      async route(witness, inner) {
        const bad = await startBadWitness({ witness, ...toBehaviour(witnessed.length) })
        witnessed.push(inner.add(bad, ({ stop }) => stop()))
        return bad.url
      },
    },
  })
  return { backend: add(backend, ({ stop }) => stop()), witnessed }
}

/**
 * Waits until each entry of the single log is completed. Checks that exactly the answered signatures are stored, and that the verifier
 * accepts their receipts.
 */
export async function auditLog(
  { add }: Scope,
  { backend, witnessed }: Witnessed,
  parameters: { answered: ReadonlySet<string>; receipts: number; say(line: string): void },
): Promise<{ faults: string[]; entries: LogVerdict['counts'] | undefined; receipts: number }> {
  const { answered, receipts, say } = parameters
  const { witnesses, databaseUrl, satellite } = backend
  const { query } = add(await openQuery(databaseUrl), ({ close }) => close())
  const policy = toPolicy(witnesses)
  const check = async () => {
    const logs = await readLogs(query)
    // Read after the rows, so that it includes all their cosignatures.
    const cosigned = witnessed.flatMap((each) => each.cosigned)
    const newest = await Promise.all(logs.map(({ origin }) => readNewest(witnesses, origin)))
    return logs.map((rows, place) => checkLog(rows, { policy, cosigned, newest: newest[place] ?? [] }))
  }
  say('waiting until all entries are completed')
  let checked: LogVerdict[] = []
  const isOver = async () => {
    checked = await check()
    return checked.every(({ open }) => open === 0)
  }
  await until(isOver, COMPLETION_MS, 1_000)
  const faults = checked.flatMap((each) => each.faults)
  for (const { open } of checked) if (open > 0) faults.push(`${open} entries are not completed`)
  if (checked.length !== 1) faults.push(`expected 1 log, got ${checked.length}`)
  const entries = checked[0]?.counts
  const stored = new Set((await query<{ slug: string }>('select slug from proofs')).map(({ slug }) => slug))
  for (const slug of stored) if (!answered.has(slug)) faults.push(`${slug} is stored but was not answered`)
  for (const slug of answered) if (!stored.has(slug)) faults.push(`${slug} was answered but is not stored`)
  if (entries?.committed !== stored.size)
    faults.push(`${stored.size} signatures are stored, but ${entries?.committed} have an entry`)
  say('verifying receipts')
  const slugs = [...stored].slice(0, receipts)
  const invalid = await checkReceipts({ databaseUrl, slugs, policy, entropyKey: satellite.publicKey })
  return { faults: [...faults, ...invalid], entries, receipts: slugs.length - invalid.length }
}

async function checkReceipts(parameters: {
  databaseUrl: string
  slugs: readonly string[]
  /** The verifier's witness policy, in addition to that of the enclave. */
  policy: WitnessPolicy
  entropyKey: string
}): Promise<string[]> {
  const { databaseUrl, slugs, policy, entropyKey } = parameters
  const { store, pipeline } = await openStores({ databaseUrl })
  const roots = simulatedRoots()
  const verifier = createVerifier({ roots })
  const faults: string[] = []
  try {
    for (const slug of slugs) {
      const work = await pipeline.pinning.findPin(slug)
      if (work === undefined) throw new Error(`${slug} not found`)
      const { receipt, collateral, others } = assembleReceipt(work)
      const car = encodeCar([receipt, collateral, ...others].map((block) => block.bytes))
      const { bytes, collateral: carried, blocks } = parseReceiptCar(car)
      const { steps, verdict, logged } = await checkReceipt(bytes, carried as Uint8Array, {
        roots,
        verifier,
        mockEntropyKeys: [entropyKey],
        cid: receipt.cid,
        blocks,
        anchors: { logWitnesses: [policy] },
      })
      const failed = steps.filter(({ id, status }) => status === 'fail' || (id === 'log' && status !== 'pass'))
      if (failed.length > 0 || verdict !== 'mock' || logged === undefined) {
        faults.push(`${slug} is ${verdict}: ${failed.map(({ id, detail }) => `${id}: ${detail}`).join('; ')}`)
      }
    }
  } finally {
    await store.close()
  }
  return faults
}
