import type { Hex } from '@countersign/protocol'
import type { Random } from '../../protocol/fuzz/random.ts'
import type {
  ArgumentRule,
  ArgumentType,
  DomainRule,
  Policy,
  PolicyLog,
  Rule,
  TimeSource,
  TransactionRule,
} from '../src/policy.ts'
import { beacon, passkeys, satellite, toKey } from '../test/policies.ts'

/* Random policies over few values, so that requests often match or nearly match. */

export const CHAINS = [1, 10, 137, 8453]
export const ADDRESSES = ['00', 'a1', 'b2', 'c3', 'ff'].map((byte): Hex => `0x${byte.repeat(20)}`)
export const SELECTORS: readonly Hex[] = ['0xa9059cbb', '0x095ea7b3', '0x00000000']
export const AMOUNTS = [0n, 1n, 99n, 100n, 101n, 10n ** 18n, 2n ** 255n, 2n ** 256n - 1n]
const NAMES = ['Permits', 'permits', '', 'é']
export const PRIMARY_TYPES = ['Permit', 'Mail', '_']
export const SOURCES: readonly TimeSource[] = [satellite, { kind: 'satellite', key: toKey(2) }]
export const ARGUMENT_TYPES: readonly ArgumentType[] = ['address', 'bool', 'bytes32', 'uint8', 'uint96', 'uint256']

const LOGS: readonly PolicyLog[] = [
  { witnesses: [toKey(1)], quorum: 1 },
  { witnesses: [1, 2, 3].map(toKey), quorum: 2 },
]

/** With unsorted lists: `createPolicy` sorts them. */
export function drawPolicy(random: Random): Policy {
  const { below, pick, shuffle } = random
  const approvers = shuffle(passkeys)
    .slice(0, below(4))
    .map(({ approver }) => approver)
  const isScheduled = below(4) === 0
  const drawRule = () => {
    const kind =
      isScheduled || approvers.length === 0
        ? 'transaction'
        : pick(['transaction', 'transaction', 'message', 'typed-data'] as const)
    return kind === 'transaction'
      ? drawTransactionRule(random, approvers.length)
      : drawOffChainRule(random, kind, approvers.length)
  }
  return {
    version: 1,
    log: below(10) === 0 ? pick(LOGS) : null,
    approvers,
    rules: distinct(Array.from({ length: 1 + below(4) }, drawRule)),
    ...(isScheduled ? drawTiming(random) : {}),
  }
}

function drawTiming({ below, shuffle }: Random): Pick<Policy, 'schedule' | 'time'> {
  // Checking a beacon's key takes milliseconds.
  const sources = below(400) === 0 ? [beacon, ...SOURCES] : SOURCES
  return {
    schedule: { startsAtMs: 1000 * below(100), everyS: 1 + below(5), count: 1 + below(4) },
    time: shuffle(sources).slice(0, 1 + below(sources.length)),
  }
}

function drawTransactionRule(random: Random, approvers: number): TransactionRule {
  const { below, pick, shuffle } = random
  const some = <Item>(items: readonly Item[]) => shuffle(items).slice(0, 1 + below(items.length))
  const rule: TransactionRule = {
    kind: 'transaction',
    chainIds: below(3) === 0 ? 'any' : some(CHAINS),
    to: below(3) === 0 ? 'any' : some(ADDRESSES),
    maxValueWei: String(pick(AMOUNTS)),
    maxFeeWei: String(pick(AMOUNTS)),
    approvals: below(approvers + 1),
  }
  if (below(2) === 0) return rule
  const words = below(4)
  const places = shuffle(Array.from({ length: words }, (_, at) => at)).slice(0, below(words + 1))
  return {
    ...rule,
    selectors: some(SELECTORS),
    words,
    ...(places.length === 0 ? {} : { arguments: places.map((at) => drawArgument(random, at)) }),
  }
}

function drawArgument(random: Random, at: number): ArgumentRule {
  const { below, pick } = random
  const type = pick(ARGUMENT_TYPES)
  const shape = below(3)
  if (shape === 0) return { at, type }
  if (shape === 1 && type.startsWith('uint')) return { at, type, max: drawInteger(random, type) }
  const values = Array.from({ length: 1 + below(3) }, () => drawArgumentValue(random, type))
  return { at, type, oneOf: [...new Set(values)] }
}

/** In canonical form. */
export function drawArgumentValue(random: Random, type: ArgumentType): string | boolean {
  if (type === 'bool') return random.below(2) === 0
  if (type === 'address') return random.pick(ADDRESSES)
  if (type === 'bytes32') return `0x${random.pick(AMOUNTS).toString(16).padStart(64, '0')}`
  return drawInteger(random, type)
}

function drawInteger({ pick }: Random, type: ArgumentType): string {
  return String(pick(AMOUNTS) % 2n ** BigInt(type.slice(4)))
}

function drawOffChainRule(random: Random, kind: 'message' | 'typed-data', approvers: number): Rule {
  const { below, shuffle } = random
  const approvals = 1 + below(approvers)
  if (kind === 'message') return { kind, approvals }
  return {
    kind,
    domains: below(3) === 0 ? 'any' : distinct(Array.from({ length: 1 + below(3) }, () => drawDomain(random))),
    primaryTypes: below(3) === 0 ? 'any' : shuffle(PRIMARY_TYPES).slice(0, 1 + below(2)),
    approvals,
  }
}

export function drawDomain({ below, pick }: Random): DomainRule {
  const domain: DomainRule = {
    ...(below(2) === 0 ? { name: pick(NAMES) } : {}),
    ...(below(3) === 0 ? { version: pick(['1', '2']) } : {}),
    ...(below(2) === 0 ? { chainId: pick(CHAINS) } : {}),
    ...(below(2) === 0 ? { verifyingContract: pick(ADDRESSES) } : {}),
  }
  return Object.keys(domain).length === 0 ? { chainId: pick(CHAINS) } : domain
}

/** With lists in any order. */
function distinct<Item>(items: readonly Item[]): Item[] {
  return [...new Map(items.map((item) => [toUnorderedText(item), item])).values()]
}

function toUnorderedText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const parts = Array.isArray(value)
    ? value.map(toUnorderedText)
    : Object.entries(value).map(([name, member]) => `${name}:${toUnorderedText(member)}`)
  return `[${parts.sort().join()}]`
}
