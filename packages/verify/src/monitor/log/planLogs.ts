import type { WitnessPolicy } from '@countersign/log'
import type { ReceiptFacts } from '../checkReceipts.ts'
import type { ListedLog } from './createLogSource.ts'
import type { LogsMemory } from './logMemory.ts'

/** A log to check, with prior information. */
export type PlannedLog = {
  origin: string
  /** Verifier key, from receipts in this log or otherwise from the service. */
  key: string | undefined
  /** All must be satisfied. Empty if the witnesses are unknown. */
  policies: readonly WitnessPolicy[]
  /** The policies of all settings that name the log, and the reader's. An enclave with any of these settings could have released signatures under it. */
  releasePolicies: readonly WitnessPolicy[]
  /** No settings name it, so the witnesses of other logs are assumed, which rarely change. */
  isGuessed: boolean
  /** It has receipts or was seen before, so it must exist. */
  isExpected: boolean
  listed: ListedLog | undefined
}

export type PlanParameters = {
  /** Only accepted ones: the settings of others are not trustworthy. */
  receipts: readonly ReceiptFacts[]
  listed: readonly ListedLog[]
  memory: Pick<LogsMemory, 'known'>
  /** The reader's policies, in addition to those in settings. */
  policies: readonly WitnessPolicy[]
}

/**
 * All logs that an enclave could have written to: those in the settings of the wallet's receipts, those that the service lists, and those
 * seen before.
 */
export function planLogs({ receipts, listed, memory, policies }: PlanParameters): PlannedLog[] {
  const logged = receipts.toSorted((a, b) => a.signedAtMs - b.signedAtMs).flatMap(({ log }) => log ?? [])
  const settings = new Map(logged.flatMap(({ setting }) => setting.origins.map((origin) => [origin, setting])))
  const keys = new Map(logged.map(({ origin, key }) => [origin, key]))
  const distinct = [...new Map(logged.map(({ setting }) => [JSON.stringify(setting), setting])).values()]
  const newest = logged.at(-1)?.setting
  const origins = new Set([...settings.keys(), ...listed.map(({ origin }) => origin), ...memory.known.keys()])
  return [...origins].map((origin) => {
    const own = listed.find((log) => log.origin === origin)
    const stated = settings.get(origin) ?? newest
    const named = distinct.filter(({ origins }) => origins.includes(origin))
    return {
      origin,
      key: keys.get(origin) ?? own?.key,
      policies: [...(stated === undefined ? [] : [stated]), ...policies],
      releasePolicies: [...(named.length > 0 || stated === undefined ? named : [stated]), ...policies],
      isGuessed: !settings.has(origin),
      isExpected: keys.has(origin) || memory.known.has(origin),
      listed: own,
    }
  })
}
