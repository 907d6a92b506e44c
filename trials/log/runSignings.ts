import { createRandom } from '@countersign/testing'
import { createAccounts } from '@countersign/testing/stack'
import { signInAll } from '../bench/load.ts'
import { count, type Outcome, seed, type Trial, type TrialDeps, type Values } from '../trial.ts'
import { createAskers, findToldFaults, IMPLEMENTATION } from './askers.ts'
import type { BadWitness, Mood } from './badWitness.ts'
import { createLogSigner, startForkedWitness } from './fork.ts'
import { startMoodScript } from './moodScript.ts'
import { settleLog, startWitnessed } from './settleLog.ts'

const USERS = 8
const FORKED_SIZE = 7
const SAY_EVERY = 1_000

const options = {
  count: count(10_000, 'how often a signature is asked for'),
  seed: seed('of what witnesses do and callers ask for'),
  callers: count(48, 'callers that ask side by side'),
  receipts: count(500, 'how many receipts the verifier checks', { least: 0 }),
}
type Options = Values<typeof options>

export const logSignings: Trial = {
  summary: `Asks for signatures of all kinds through two coordinators, while three witnesses die, lag, lie, fork and answer slowly. Nothing may be
released without a quorum of honest cosignatures, every entry comes to its end, and a caller that got an error gets no signature.`,
  options,
  example: '--count 500 --seed 7',
  run: runSignings,
}

/** Signatures of all kinds through two coordinators, while witnesses die, lag, lie, fork and answer slowly. */
export async function runSignings({ scope, say }: TrialDeps, options: Options): Promise<Outcome> {
  const { count, seed, callers, receipts } = options
  const random = (stream: number) => createRandom(seed * 16 + stream)
  const forkUrls: string[] = []
  const { backend, witnessed } = await startWitnessed(
    scope,
    (place) => ({ forkUrl: () => forkUrls[place] ?? '', random: random(place) }),
    { accounts: createAccounts(USERS), enclaveEnv: { IMPLEMENTATIONS: IMPLEMENTATION } },
  )
  const { witnesses, logsFile, rootSecretFile } = backend
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
  const { told } = askers
  // A caller that got an error has no receipt, and what was answered has one.
  const answered = new Set(told.flatMap(({ slug }) => slug ?? []))
  const settled = await settleLog(scope, { backend, witnessed }, { answered, receipts, say })
  return {
    faults: [...findToldFaults(told), ...settled.faults],
    figures: {
      asked: told.length,
      answered: told.filter(({ status }) => status === 200).length,
      refused: countBy(told.flatMap(({ code }) => code ?? [])),
      entries: settled.entries,
      receipts: settled.receipts,
      changes: script.changes,
      witnesses: sum(witnessed.map(({ asked }) => asked)),
    },
  }
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
