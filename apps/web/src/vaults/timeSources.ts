import type { TimeSource } from '@countersign/policy'
import { fromHex, isEd25519Key, isHex, isPlainObject, quicknet } from '@countersign/protocol'
import type { WebConfig } from '../config.ts'

/**
 * What can tell the time to a schedule here: the sources that the operator's manifest names, and a public beacon as a spare, which the
 * service can turn to if they end. None where the manifest names no source: the beacon alone may be one that the service never uses.
 */
export function readTimeSources({ trust }: Pick<WebConfig, 'trust'>): TimeSource[] {
  const keys = isPlainObject(trust) && Array.isArray(trust.entropyKeys) ? trust.entropyKeys : []
  const satellites = keys
    .filter((key): key is string => isHex(key, 32) && isEd25519Key(fromHex(key)))
    .map((key): TimeSource => ({ kind: 'satellite', key }))
  return satellites.length === 0 ? [] : [...satellites, { kind: 'drand', ...quicknet }]
}
