import { createRandom } from '@countersign/testing'
import { createAccounts } from '@countersign/testing/stack'
import { signInAll } from '../bench/load.ts'
import { count, type Outcome, seed, type Trial, type TrialDeps, type Values } from '../trial.ts'
import { auditLog, startWitnessed } from './auditLog.ts'
import type { BadWitness, Behaviour } from './badWitness.ts'
import { startBehaviourScript } from './behaviourScript.ts'
import { createCallers, findAnswerFaults, IMPLEMENTATION } from './callers.ts'
import { createLogSigner, startForkedWitness } from './fork.ts'

const USERS = 8
const FORKED_SIZE = 7
const SAY_EVERY = 1_000

const options = {
  count: count(10_000, 'number of requests'),
  seed: seed('chooses the behaviour of witnesses and the requests'),
  callers: count(48, 'concurrent callers'),
  receipts: count(500, 'number of receipts to verify', { least: 0 }),
}
type Options = Values<typeof options>

export const logSignings: Trial = {
  summary: `Requests signatures of all kinds through two coordinators while three witnesses die, lag, lie, fork and answer slowly. Checks that
nothing is released without a quorum of honest cosignatures, that every entry is completed, and that callers with an error get no signature.`,
  options,
  example: '--count 500 --seed 7',
  run: runSignings,
}

export async function runSignings({ scope, say }: TrialDeps, options: Options): Promise<Outcome> {
  const { count, seed, callers: concurrency, receipts } = options
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
  const callers = createCallers({ urls: [backend.url, second.url], cookies, random: random(8) })
  say(`started two coordinators and ${witnesses.length} witnesses`)

  const script = startBehaviourScript({
    witnesses: witnesses.map((real, place) => ({ real, bad: witnessed[place] as BadWitness })),
    random: random(9),
  })
  let said = 0
  const lanes = Array.from({ length: concurrency }, async () => {
    while (callers.answers.length < count) {
      await callers.call()
      if (callers.answers.length < said + SAY_EVERY) continue
      said = callers.answers.length
      say(`${said} requests, ${callers.answers.filter(({ status }) => status === 200).length} signed`)
    }
  })
  await Promise.all(lanes)
  await script.stop()
  const { answers } = callers
  // Exactly the answered requests must have a receipt.
  const answered = new Set(answers.flatMap(({ slug }) => slug ?? []))
  const audited = await auditLog(scope, { backend, witnessed }, { answered, receipts, say })
  return {
    faults: [...findAnswerFaults(answers), ...audited.faults],
    figures: {
      requests: answers.length,
      answered: answers.filter(({ status }) => status === 200).length,
      refused: countBy(answers.flatMap(({ code }) => code ?? [])),
      entries: audited.entries,
      receipts: audited.receipts,
      changes: script.changes,
      witnesses: sum(witnessed.map(({ requests }) => requests)),
    },
  }
}

function countBy(names: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]))
}

function sum(all: readonly Partial<Record<Behaviour, number>>[]): Partial<Record<Behaviour, number>> {
  const total: Partial<Record<Behaviour, number>> = {}
  for (const one of all) {
    for (const [behaviour, count] of Object.entries(one) as [Behaviour, number][])
      total[behaviour] = (total[behaviour] ?? 0) + count
  }
  return total
}
