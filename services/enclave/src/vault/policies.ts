import { hash } from 'node:crypto'
import { isSatisfied } from '@countersign/log/core'
import { type Policy, parsePolicy, VaultPolicyError } from '@countersign/policy/core'
import type { LogSetting } from '@countersign/protocol/core'
import { createPolicyMemory } from './policyMemory.ts'

/** Policies by hash, with a cache of parsed ones. */
export type Policies = {
  /** `text` is hashed and parsed if the policy isn't cached. */
  get(hash: string, text: string): Policy | { error: 'policy_unknown' | 'policy_not_supported' }
}

/** Bytes of text. A parsed policy takes several times as much. */
const MAX_BYTES = 4_194_304

export function createPolicies({
  log = null,
  maxBytes = MAX_BYTES,
}: {
  /** From the settings. */
  log?: LogSetting | null
  maxBytes?: number
} = {}): Policies {
  const memory = createPolicyMemory<Policy>({ maxBytes })
  return {
    get(name, text) {
      const known = memory.get(name)
      if (known !== undefined) return known
      const bytes = Buffer.from(text)
      // The key is derived from this hash. With another text, rules of the caller's choice would apply.
      if (hash('sha256', bytes, 'hex') !== name) return { error: 'policy_unknown' }
      const policy = readPolicy(bytes)
      if (policy === undefined || !isSupported(policy, log)) return { error: 'policy_not_supported' }
      memory.set(name, policy, bytes.length)
      return policy
    },
  }
}

/**
 * Whether this enclave can do what a policy requires. If its witnesses aren't asked here, none of its signatures would be released. Rules that
 * count payments need more, which is checked when they are used.
 */
export function isSupported({ log }: Policy, setting: LogSetting | null): boolean {
  return log === null || isSatisfied(log, setting?.witnesses ?? [])
}

/** Whether budgets can be counted here: in a log of this service, by witnesses that are all asked here. */
export function canCount({ log, budgets }: Policy, setting: LogSetting | null): boolean {
  if (budgets === undefined) return true
  const { origins = [], witnesses = [] } = setting ?? {}
  return (
    origins.some((origin) => origin === log?.origin) && log?.witnesses.every((key) => witnesses.includes(key)) === true
  )
}

/** Returns undefined for a policy with any member that this version doesn't know. */
function readPolicy(bytes: Uint8Array): Policy | undefined {
  try {
    return parsePolicy(bytes)
  } catch (error) {
    if (error instanceof VaultPolicyError) return undefined
    throw error
  }
}
