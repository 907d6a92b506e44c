import { setTimeout } from 'node:timers/promises'
import { parseVkey } from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { createRandom, startBackend } from '@countersign/testing'
import { createAccounts, withScope } from '@countersign/testing/stack'
import { signInAll } from '../bench/signer.ts'
import { openQuery } from '../openQuery.ts'
import { createAskers, findToldFaults, IMPLEMENTATION } from './askers.ts'
import { type BadWitness, type Mood, startBadWitness } from './badWitness.ts'
import { createLogSigner, startForkedWitness } from './fork.ts'
import { judgeLog, type LogVerdict } from './judgeLog.ts'
import { judgeReceipts } from './judgeReceipts.ts'
import { type MoodScript, startMoodScript } from './moodScript.ts'
import { readLogs } from './readLogs.ts'
import { readNewest } from './readNewest.ts'

export type SigningsParameters = {
  /** How often a signature is asked for. */
  count: number
  seed: number
  /** Who ask side by side. */
  callers: number
  /** Of how many signatures the receipt is assembled and verified. */
  receipts: number
  say(line: string): void
}

export type SigningsReport = {
  asked: number
  answered: number
  refused: Record<string, number>
  entries: LogVerdict['counts']
  /** Receipts that the verifier accepted. */
  receipts: number
  changes: MoodScript['changes']
  /** How often witnesses were asked, by what they did then. */
  witnesses: Partial<Record<Mood, number>>
  faults: string[]
}

const USERS = 8
const QUORUM = 2
const FORKED_SIZE = 7
/** What nobody waits for is dropped after half a minute, what nobody acknowledged is reported after a minute. */
const SETTLE_MS = 180_000
const SAY_EVERY = 1_000

/** Signatures of all kinds through two coordinators, while witnesses die, lag, lie, fork and answer slowly. */
export function runSignings({ count, seed, callers, receipts, say }: SigningsParameters): Promise<SigningsReport> {
  return withScope(async (scope) => {
    const random = (stream: number) => createRandom(seed * 16 + stream)
    const witnessed: BadWitness[] = []
    const forkUrls: string[] = []
    const backend = scope.add(
      await startBackend({
        accounts: createAccounts(USERS),
        enclaveEnv: { IMPLEMENTATIONS: IMPLEMENTATION },
        env: { WORKER: 'off' },
        log: {
          async route(witness, { add }) {
            const place = witnessed.length
            const forkUrl = () => forkUrls[place] ?? ''
            const bad = add(await startBadWitness({ witness, forkUrl, random: random(place) }), ({ stop }) => stop())
            witnessed.push(bad)
            return bad.url
          },
        },
      }),
      ({ stop }) => stop(),
    )
    const { witnesses, logsFile, rootSecretFile, databaseUrl = '' } = backend
    const log = await createLogSigner(rootSecretFile, backend.logOrigins[0] ?? '')
    for (const witness of witnesses) {
      forkUrls.push(await startForkedWitness(scope, { witness, logsFile, log, size: FORKED_SIZE }))
    }
    await backend.untilReady()
    const second = await backend.startSecond()
    const cookies = await signInAll(backend, USERS)
    const askers = createAskers({ urls: [backend.url, second.url], cookies, random: random(8) })
    say(`started two coordinators and ${witnesses.length} witnesses`)

    const script = startMoodScript({
      witnesses: witnesses.map((real, place) => ({ real, bad: witnessed[place] as BadWitness })),
      random: random(9),
    })
    let said = 0
    const lanes = Array.from({ length: callers }, async () => {
      while (askers.told.length < count) {
        await askers.askOnce()
        if (askers.told.length < said + SAY_EVERY) continue
        said = askers.told.length
        say(`${said} asked for, ${askers.told.filter(({ status }) => status === 200).length} signed`)
      }
    })
    await Promise.all(lanes)
    await script.stop()
    say('waiting until each entry has come to its end')

    const { query } = scope.add(await openQuery(databaseUrl), ({ close }) => close())
    const policy = { witnesses: witnesses.map(({ vkey }) => toHex(parseVkey(vkey).publicKey)), quorum: QUORUM }
    const judge = async () => {
      const logs = await readLogs(query)
      // Read after the rows: what they have was cosigned by then.
      const cosigned = witnessed.flatMap((each) => each.cosigned)
      const newest = await Promise.all(logs.map(({ origin }) => readNewest(witnesses, origin)))
      return logs.map((rows, place) => ({ rows, ...judgeLog(rows, { policy, cosigned, newest: newest[place] ?? [] }) }))
    }
    const until = performance.now() + SETTLE_MS
    let judged = await judge()
    while (judged.some(({ open }) => open > 0) && performance.now() < until) {
      await setTimeout(1_000)
      judged = await judge()
    }
    const faults = [...findToldFaults(askers.told), ...judged.flatMap((each) => each.faults)]
    for (const { open, rows } of judged) if (open > 0) faults.push(`${rows.origin}: ${open} entries have no end`)
    if (judged.length !== 1) faults.push(`there are ${judged.length} logs`)
    const counts = judged[0]?.counts ?? { signatures: 0, committed: 0, dropped: 0, unacknowledged: 0, ofDeadBoots: 0 }

    // Who was told of a failure has no receipt, and what was answered has one.
    const stored = new Set((await query<{ slug: string }>('select slug from attestations')).map(({ slug }) => slug))
    const answered = new Set(askers.told.flatMap(({ slug }) => slug ?? []))
    for (const slug of stored) if (!answered.has(slug)) faults.push(`${slug} is stored, and was given to nobody`)
    for (const slug of answered) if (!stored.has(slug)) faults.push(`${slug} was answered, and is not stored`)
    if (counts.committed !== stored.size) faults.push(`${stored.size} are stored, ${counts.committed} have an entry`)

    say('verifying receipts')
    const slugs = [...stored].slice(0, receipts)
    const verified = await judgeReceipts({ databaseUrl, slugs, policy, entropyKey: backend.satellite.publicKey })
    return {
      asked: askers.told.length,
      answered: askers.told.filter(({ status }) => status === 200).length,
      refused: countBy(askers.told.flatMap(({ code }) => code ?? [])),
      entries: counts,
      receipts: slugs.length - verified.length,
      changes: script.changes,
      witnesses: sum(witnessed.map(({ asked }) => asked)),
      faults: [...faults, ...verified],
    }
  })
}

function countBy(names: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]))
}

function sum(all: readonly Partial<Record<Mood, number>>[]): Partial<Record<Mood, number>> {
  const total: Partial<Record<Mood, number>> = {}
  for (const one of all) {
    for (const [mood, count] of Object.entries(one) as [Mood, number][]) total[mood] = (total[mood] ?? 0) + count
  }
  return total
}
