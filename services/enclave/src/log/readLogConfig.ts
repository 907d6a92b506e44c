import { parseWitnessKey } from '@countersign/log/core'
import {
  assertEnclaveSettings,
  createEnclaveSettings,
  isHex,
  type LogSetting,
  ServiceError,
} from '@countersign/protocol/core'
import { type Env, type Fault, readInteger, readList } from '@countersign/service'

export type LogConfig = {
  /** For the settings, which quotes cover. */
  setting: LogSetting
  /** The origins of this enclave, the preferred one first. */
  origins: readonly string[]
}

/** The base point: a valid key, so that the fault of another setting isn't attributed to this one. */
const ANY_KEY = `58${'66'.repeat(31)}`

/** Undefined without `LOG_ORIGINS`: there is no log. */
export function readLogConfig(env: Env, fault: Fault): LogConfig | undefined {
  const origins = readList(env.LOG_ORIGINS)
  if (origins.length === 0) {
    const others = ['LOG_SERVICE_ORIGINS', 'LOG_WITNESSES', 'LOG_QUORUM'].filter((name) => (env[name] ?? '') !== '')
    if (others.length > 0) fault('LOG_ORIGINS', `required with ${others.join(', ')}`)
    return undefined
  }
  const named = readList(env.LOG_SERVICE_ORIGINS)
  const all = named.length > 0 ? named : origins
  const witnesses = readList(env.LOG_WITNESSES).map(toWitnessKey)
  if (!isLog({ origins: all, witnesses: [ANY_KEY], quorum: 1 })) {
    const name = named.length > 0 ? 'LOG_SERVICE_ORIGINS' : 'LOG_ORIGINS'
    fault(name, 'expected 1 to 16 log names without spaces, plus signs or duplicates')
  }
  if (new Set(origins).size !== origins.length || !origins.every((origin) => all.includes(origin)))
    fault('LOG_ORIGINS', 'expected names from LOG_SERVICE_ORIGINS, without duplicates')
  if (!isLog({ origins: ['any'], witnesses, quorum: witnesses.length }))
    fault('LOG_WITNESSES', 'expected 1 to 32 Ed25519 cosignature verifier keys, or keys in hex, without duplicates')
  const most = Math.max(1, witnesses.length)
  const majority = Math.floor(most / 2) + 1
  const quorum = readInteger(env, 'LOG_QUORUM', { fallback: majority, min: majority, max: most }, fault)
  return { setting: { origins: all, witnesses, quorum }, origins }
}

/** Coordinators read the same setting, in which each witness has its address after the key. An invalid key is rejected by its form. */
function toWitnessKey(item: string): string {
  if (isHex(item, 32)) return item
  const [, vkey = ''] = /^(.+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*)(?:@.*)?$/.exec(item) ?? []
  return parseWitnessKey(vkey) ?? ''
}

function isLog(log: LogSetting): boolean {
  try {
    assertEnclaveSettings(createEnclaveSettings([{ kind: 'unsigned' }], [], log))
    return true
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}
