import { isPlainObject, ServiceError, toCanonicalJson } from '@countersign/protocol'
import { createRandom, type Random } from '../../protocol/fuzz/random.ts'
import { createPolicy, parsePolicy } from '../src/assertPolicy.ts'
import { checkPolicy, type PolicyRequest } from '../src/checkPolicy.ts'
import type { Policy } from '../src/policy.ts'
import { drawPolicy } from './drawPolicy.ts'
import { CONTEXT, drawRequest } from './drawRequest.ts'
import { evaluateNaively } from './naivePolicy.ts'

/** How many of the requests were allowed without approval, allowed with approval, and refused; and how many of those allowed are counted. */
export type Tally = { free: number; approved: number; refused: number; counted: number }

/**
 * Draws policies, each with a request, and compares the engine with the naive evaluator. Then breaks each policy in one way and expects a
 * rejection. Throws at the first difference.
 */
export function checkRandomPolicies({ runs, seed }: { runs: number; seed: number }): Tally {
  const random = createRandom(seed)
  const tally: Tally = { free: 0, approved: 0, refused: 0, counted: 0 }
  for (let run = 0; run < runs; run++) {
    const bytes = toCanonicalJson(createPolicy(drawPolicy(random)))
    const policy = parsePolicy(bytes)
    const request = drawRequest(random, policy)
    const text = new TextDecoder().decode(bytes)
    for (const rule of [undefined, ...policy.rules.keys()]) {
      const verdict = checkPolicy(policy, request as PolicyRequest, rule, CONTEXT)
      const expected = evaluateNaively(text, request, rule, CONTEXT)
      const found = verdict.allowed ? verdict : undefined
      if (toText(found) !== toText(expected && { ...expected, allowed: true, log: policy.log })) {
        throw new Error(`run ${run}: the evaluators differ: ${toText({ policy, request, rule, verdict, expected })}`)
      }
      if (rule !== undefined) continue
      if (!verdict.allowed) tally.refused += 1
      else tally[verdict.approvals === 0 ? 'free' : 'approved'] += 1
      if (verdict.allowed && verdict.spends !== undefined) tally.counted += 1
    }
    const spoilt = spoil(random, policy)
    if (!isRefused(spoilt)) throw new Error(`run ${run}: not rejected: ${JSON.stringify(spoilt)}`)
  }
  return tally
}

/** Members in any order, and amounts as decimals. */
function toText(value: unknown): string {
  return JSON.stringify(value ?? null, (_, one) =>
    typeof one === 'bigint'
      ? String(one)
      : isPlainObject(one)
        ? Object.fromEntries(Object.entries(one).toSorted())
        : one,
  )
}

// biome-ignore lint/suspicious/noExplicitAny: what is spoilt has no type.
type Json = any

/** Adds or replaces one member, or reorders or extends one list, anywhere. */
function spoil(random: Random, policy: Policy): unknown {
  const spoilt: Json = structuredClone(policy)
  const objects: Json[] = []
  const lists: Json[][] = []
  const collect = (value: Json): void => {
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) lists.push(value)
    else objects.push(value)
    for (const member of Object.values(value)) collect(member)
  }
  collect(spoilt)
  const longLists = lists.filter((list) => list.length > 1)
  const object = random.pick(objects)
  const name = random.pick(Object.keys(object))
  const ways = [
    () => Object.assign(object, { more: 1 }),
    // A log and a token may be null.
    () => Object.assign(object, { [name]: name === 'log' || name === 'token' ? 0 : null }),
    () => Object.assign(object, { [name]: { nested: object[name] } }),
    () => random.pick(lists).push({ more: 1 }),
    () => longLists.length > 0 && random.pick(longLists).reverse(),
    () => longLists.length > 0 && longLists[0]?.push(structuredClone(longLists[0].at(-1))),
  ]
  const before = JSON.stringify(spoilt)
  random.pick(ways)()
  return JSON.stringify(spoilt) === before ? Object.assign(spoilt, { version: 2 }) : spoilt
}

function isRefused(policy: unknown): boolean {
  try {
    parsePolicy(toCanonicalJson(policy))
    return false
  } catch (error) {
    return error instanceof ServiceError && error.code === 'vault_policy_malformed'
  }
}
