import type { PolicyLog } from '@countersign/policy'
import { isPlainObject } from '@countersign/protocol'
import type { WebConfig } from '../config.ts'

/** With two witnesses a majority is both of them: if either disappears, the vault is locked. */
const MIN_WITNESSES = 3

/**
 * The witnesses that a new vault requires: those of the operator's manifest, if there are at least three. `createPolicy` rejects
 * invalid keys, and the enclave rejects a new vault if its settings do not list the vault's witnesses.
 */
export function readPolicyLog({ trust }: Pick<WebConfig, 'trust'>): PolicyLog | null {
  const log = isPlainObject(trust) && isPlainObject(trust.log) ? trust.log : {}
  if (!Array.isArray(log.witnesses) || log.witnesses.length < MIN_WITNESSES) return null
  return { witnesses: log.witnesses, quorum: Number(log.quorum) }
}
