import type { Hex } from '@countersign/protocol'
import type { Random } from '../../protocol/fuzz/random.ts'
import type {
  ArgumentRule,
  ArgumentType,
  Budget,
  DomainRule,
  Policy,
  PolicyLog,
  Rule,
  RuleApprovers,
  SpendForm,
  SpendRule,
  TimeSource,
  TransactionRule,
} from '../src/policy.ts'
import { X402_SPENDERS } from '../src/readSpend.ts'
import { createAgent } from '../test/agentKey.ts'
import { beacon, passkeys, satellite, toKey } from '../test/policies.ts'

/* Random policies over few values, so that requests often match or nearly match. */

export const CHAINS = [1, 10, 137, 8453]
export const ADDRESSES = ['00', 'a1', 'b2', 'c3', 'ff'].map((byte): Hex => `0x${byte.repeat(20)}`)
export const SELECTORS: readonly Hex[] = ['0xa9059cbb', '0x095ea7b3', '0x00000000']
export const AMOUNTS = [0n, 1n, 99n, 100n, 101n, 10n ** 18n, 2n ** 255n, 2n ** 256n - 1n]
const NAMES = ['Permits', 'permits', '', 'é']
export const PRIMARY_TYPES = ['Permit', 'Mail', '_']
export const SOURCES: readonly TimeSource[] = [satellite, { kind: 'satellite', key: toKey(2) }]
export const FORMS: readonly SpendForm[] = ['coin', 'transfer', 'eip3009', 'x402-permit2']
export const SPENDERS = [...X402_SPENDERS, ADDRESSES[1]] as readonly Hex[]
const AGENTS = [11, 12].map(createAgent)
export const ARGUMENT_TYPES: readonly ArgumentType[] = ['address', 'bool', 'bytes32', 'uint8', 'uint96', 'uint256']

const LOGS: readonly PolicyLog[] = [
  { witnesses: [toKey(1)], quorum: 1 },
  { witnesses: [1, 2, 3].map(toKey), quorum: 2 },
]

/** With unsorted lists: `createPolicy` sorts them. */
export function drawPolicy(random: Random): Policy {
  const { below, pick, shuffle } = random
  const people = shuffle(passkeys).slice(0, below(4))
  if (people.length > 0 && below(3) === 0) return drawBudgeted(random, people)
  const approvers = people.map(({ approver }) => approver)
  const places = [...approvers.keys()]
  const isScheduled = below(4) === 0
  const drawRule = () => {
    const kind =
      isScheduled || approvers.length === 0
        ? 'transaction'
        : pick(['transaction', 'transaction', 'message', 'typed-data'] as const)
    const by = drawApprovers(random, places)
    return kind === 'transaction' ? drawTransactionRule(random, by) : drawOffChainRule(random, kind, by)
  }
  return {
    version: 1,
    log: below(10) === 0 ? pick(LOGS) : null,
    approvers,
    rules: distinct(Array.from({ length: 1 + below(4) }, drawRule)),
    ...(isScheduled ? drawTiming(random) : {}),
  }
}

/** Who may approve a rule, and the most and least approvals that it can require. */
type By = { approvers: RuleApprovers; most: number; least: number }

function drawApprovers({ below, shuffle }: Random, places: readonly number[]): By {
  if (places.length === 0 || below(2) === 0) return { approvers: 'any', most: places.length, least: 0 }
  const approvers = shuffle(places).slice(0, 1 + below(places.length))
  return { approvers, most: approvers.length, least: 0 }
}

function drawBudgeted(random: Random, people: typeof passkeys): Policy {
  const { below, pick, shuffle } = random
  const given = shuffle([...people, ...shuffle(AGENTS).slice(0, below(3))])
  const approvers = given.map(({ approver }) => approver)
  const places = [...approvers.keys()]
  const ofPeople = places.filter((place) => approvers[place]?.type === 'passkey')
  const budgets = Array.from({ length: 1 + below(6) }, () => drawBudget(random))
  const drawOther = () => {
    const chosen = shuffle(ofPeople).slice(0, 1 + below(ofPeople.length))
    const by: By = { approvers: chosen, most: chosen.length, least: 1 }
    const kind = pick(['transaction', 'message', 'typed-data'] as const)
    return kind === 'transaction' ? drawTransactionRule(random, by) : drawOffChainRule(random, kind, by)
  }
  const spending = Array.from({ length: 1 + below(2) }, () => drawSpendRule(random, places, budgets))
  return {
    version: 1,
    log: { ...pick(LOGS), origin: 'log.vault.example/1' },
    approvers,
    budgets: [...new Map(budgets.map((one) => [`${one.chainId} ${one.token} ${one.periodS}`, one])).values()],
    rules: distinct([...spending, ...Array.from({ length: below(3) }, drawOther)]),
  }
}

function drawBudget({ pick }: Random): Budget {
  return {
    chainId: pick(CHAINS),
    token: pick([null, null, ...ADDRESSES]),
    limit: String(pick(AMOUNTS)),
    periodS: pick([0, 3_600, 86_400, 31_536_000]),
  }
}

function drawSpendRule(random: Random, places: readonly number[], budgets: readonly Budget[]): SpendRule {
  const { below, pick, shuffle } = random
  const some = <Item>(items: readonly Item[]) => shuffle(items).slice(0, 1 + below(items.length))
  const withCoin = CHAINS.filter((id) => budgets.some(({ chainId, token }) => chainId === id && token === null))
  const forms = some(withCoin.length === 0 ? FORMS.slice(2) : FORMS)
  const isPaidByVault = forms.includes('coin') || forms.includes('transfer')
  const isByPermit = forms.includes('x402-permit2')
  const payees = below(2) === 0 ? 'any' : some(ADDRESSES)
  const session = below(2) === 0
  const approvers = session && below(3) === 0 ? [] : some(places)
  return {
    kind: 'spend',
    chainIds: some(isPaidByVault ? withCoin : CHAINS),
    payees,
    forms,
    ...(isByPermit && { spenders: payees === 'any' ? some(SPENDERS) : (X402_SPENDERS as Hex[]) }),
    approvals: session ? below(approvers.length + 1) : pick([...approvers.keys()]) + 1,
    approvers,
    session,
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

function drawTransactionRule(random: Random, { approvers, most, least }: By): TransactionRule {
  const { below, pick, shuffle } = random
  const some = <Item>(items: readonly Item[]) => shuffle(items).slice(0, 1 + below(items.length))
  const rule: TransactionRule = {
    kind: 'transaction',
    chainIds: below(3) === 0 ? 'any' : some(CHAINS),
    to: below(3) === 0 ? 'any' : some(ADDRESSES),
    maxValueWei: String(pick(AMOUNTS)),
    maxFeeWei: String(pick(AMOUNTS)),
    approvals: least + below(most - least + 1),
    approvers,
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

function drawOffChainRule(random: Random, kind: 'message' | 'typed-data', { approvers, most }: By): Rule {
  const { below, shuffle } = random
  const approvals = 1 + below(most)
  if (kind === 'message') return { kind, approvals, approvers }
  return {
    kind,
    domains: below(3) === 0 ? 'any' : distinct(Array.from({ length: 1 + below(3) }, () => drawDomain(random))),
    primaryTypes: below(3) === 0 ? 'any' : shuffle(PRIMARY_TYPES).slice(0, 1 + below(2)),
    approvals,
    approvers,
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
