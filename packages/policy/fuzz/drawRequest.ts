import type { Hex, TxMetadata, TypedData } from '@countersign/protocol'
import type { Random } from '../../protocol/fuzz/random.ts'
import type { PolicyRequest } from '../src/checkPolicy.ts'
import type { ArgumentRule, DomainRule, Policy, Rule, TransactionRule, TypedDataRule } from '../src/policy.ts'
import {
  ADDRESSES,
  AMOUNTS,
  ARGUMENT_TYPES,
  CHAINS,
  drawArgumentValue,
  drawDomain,
  PRIMARY_TYPES,
  SELECTORS,
  SOURCES,
} from './drawPolicy.ts'

/** A request that one of the rules may allow. Half of them have a change. */
export function drawRequest(random: Random, policy: Policy): unknown {
  const { below, pick } = random
  const rule = pick(policy.rules)
  const request = drawFitting(random, policy, rule)
  if (below(2) === 0) return request
  return pick(CHANGES)(random, structuredClone(request))
}

function drawFitting(random: Random, policy: Policy, rule: Rule): PolicyRequest {
  if (rule.kind === 'typed-data') return { kind: 'typed-data', content: drawTypedData(random, rule) }
  if (rule.kind !== 'transaction')
    return { kind: 'message', content: { message: random.pick(['0x', '0x00', '0xABab']) } }
  const txMetadata = drawTransaction(random, rule)
  const { schedule, time } = policy
  if (schedule === undefined || time === undefined) return { kind: 'transaction', txMetadata }
  const period = Math.floor(txMetadata.nonce / schedule.count)
  const dueMs = schedule.startsAtMs + period * schedule.everyS * 1000
  const timeMs = Math.max(0, dueMs + random.pick([-1000, -1, 0, 0, 1, 5000, 100_000]))
  return { kind: 'transaction', txMetadata, sample: { source: random.pick([...time, ...SOURCES]), timeMs } }
}

function drawTransaction(random: Random, rule: TransactionRule): TxMetadata {
  const { below, pick } = random
  const upTo = (max: string) => pick(AMOUNTS.filter((amount) => amount <= BigInt(max)))
  const gas = pick([1n, 2n, 21_000n])
  return {
    chainId: rule.chainIds === 'any' ? pick(CHAINS) : pick(rule.chainIds),
    nonce: below(20),
    to: rule.to === 'any' ? pick(ADDRESSES) : pick(rule.to),
    value: String(upTo(rule.maxValueWei)),
    data: rule.selectors === undefined ? '0x' : drawData(random, rule),
    gas: String(gas),
    maxFeePerGas: String(upTo(rule.maxFeeWei) / gas),
    maxPriorityFeePerGas: '0',
  }
}

function drawData(random: Random, { selectors = [], words = 0, arguments: rules = [] }: TransactionRule): Hex {
  const drawn = Array.from({ length: words }, (_, at) =>
    drawWord(
      random,
      rules.find((one) => one.at === at),
    ),
  )
  return `${random.pick(selectors)}${drawn.join('')}` as Hex
}

function drawWord(random: Random, rule: ArgumentRule | undefined): string {
  const type = rule?.type ?? random.pick(ARGUMENT_TYPES)
  const value = random.pick(rule?.oneOf ?? [drawArgumentValue(random, type)])
  return BigInt(value).toString(16).padStart(64, '0')
}

function drawTypedData(random: Random, rule: TypedDataRule): TypedData {
  const { below, pick } = random
  const primaryType = rule.primaryTypes === 'any' ? pick(PRIMARY_TYPES) : pick(rule.primaryTypes)
  const allowed: DomainRule = rule.domains === 'any' ? drawDomain(random) : pick(rule.domains)
  const domain: Record<string, unknown> = { ...allowed }
  if (allowed.chainId !== undefined) {
    const spellings = [allowed.chainId, String(allowed.chainId), `0x${allowed.chainId.toString(16)}`]
    domain.chainId = pick(spellings)
  }
  if (allowed.verifyingContract !== undefined && below(2) === 0) {
    domain.verifyingContract = `0x${allowed.verifyingContract.slice(2).toUpperCase()}`
  }
  const types = { [primaryType]: [{ name: 'value', type: 'uint256' }] }
  return { domain, types, primaryType, message: { value: '1' } }
}

// biome-ignore lint/suspicious/noExplicitAny: changes make requests that no type allows.
type Request = any
type Change = (random: Random, request: Request) => unknown

/** Changes a part. Undefined if the request doesn't have it. */
const within =
  (part: 'txMetadata' | 'content' | 'sample', change: (random: Random, part: Request) => void): Change =>
  (random, request) => {
    if (request[part] !== undefined) change(random, request[part])
    return request
  }

const changeData = (change: (random: Random, data: string) => string) =>
  within('txMetadata', (random, tx) => {
    tx.data = change(random, tx.data)
  })

const CHANGES: readonly Change[] = [
  within('txMetadata', ({ pick }, tx) => Object.assign(tx, { chainId: pick([0, 2, ...CHAINS]) })),
  within('txMetadata', ({ pick }, tx) => Object.assign(tx, { to: pick(ADDRESSES) })),
  within('txMetadata', (_, tx) => Object.assign(tx, { to: `0x${tx.to.slice(2).toUpperCase()}` })),
  within('txMetadata', ({ pick }, tx) => Object.assign(tx, { value: String(pick(AMOUNTS)) })),
  within('txMetadata', (_, tx) => Object.assign(tx, { value: String(BigInt(tx.value) + 1n) })),
  within('txMetadata', ({ pick }, tx) => Object.assign(tx, { maxFeePerGas: String(pick(AMOUNTS)) })),
  within('txMetadata', ({ pick }, tx) => Object.assign(tx, { gas: String(pick([...AMOUNTS, 2n ** 64n - 1n])) })),
  within('txMetadata', ({ pick }, tx) => Object.assign(tx, { value: pick(['-1', '01', '1.5', '', 1, null]) })),
  within('txMetadata', (_, tx) => Object.assign(tx, { accessList: [] })),
  within('txMetadata', (_, tx) => delete tx.nonce),
  within('txMetadata', ({ below }, tx) => Object.assign(tx, { nonce: below(40) })),
  changeData(({ pick }) => pick(['0x', '0x00', '0x0', ...SELECTORS])),
  changeData((_, data) => `${data}00`),
  changeData((_, data) => `${data}${'00'.repeat(32)}`),
  changeData((_, data) => (data.length > 2 ? data.slice(0, -2) : data)),
  changeData((_, data) => `0x${data.slice(2).toUpperCase()}`),
  changeData(({ pick }, data) => `${pick(SELECTORS)}${data.slice(10)}`),
  // One random digit: in the selector, a padding or a value.
  changeData(({ below, pick }, data) => {
    const at = 2 + below(Math.max(1, data.length - 2))
    return data.slice(0, at) + pick(['0', '1', '8', 'f']) + data.slice(at + 1)
  }),
  // The first digit of a word, which is padding unless the type fills the word.
  changeData(({ below, pick }, data) => {
    const at = 10 + 64 * below(Math.max(1, Math.floor((data.length - 10) / 64))) + below(24)
    return at < data.length ? data.slice(0, at) + pick(['1', '8']) + data.slice(at + 1) : data
  }),
  within('sample', ({ pick }, sample) => Object.assign(sample, { source: pick([...SOURCES, { kind: 'unsigned' }]) })),
  within('sample', ({ below }, sample) => Object.assign(sample, { timeMs: 1000 * below(120) })),
  (_, { sample, ...rest }) => rest,
  within('content', ({ pick }, content) => {
    if (content.domain) Object.assign(content.domain, { salt: `0x${'00'.repeat(32)}`, name: pick(['Permits', 'é']) })
  }),
  within('content', (random, content) => {
    if (content.domain) content.domain = drawDomain(random)
  }),
  within('content', (_, content) => {
    if (content.domain) content.domain = { version: '2', ...content.domain }
  }),
  within('content', ({ pick }, content) => {
    if (content.domain) delete content.domain[pick(Object.keys(content.domain))]
  }),
  within('content', (_, content) => Object.assign(content.domain ?? content, { more: 1 })),
  within('content', ({ pick }, content) => {
    if (!content.types) return
    const name = pick(PRIMARY_TYPES)
    Object.assign(content, { types: { [name]: [{ name: 'value', type: 'uint256' }] }, primaryType: name })
  }),
  (_, request) => ({ ...request, more: 1 }),
  ({ pick }, request) => ({
    ...request,
    kind: pick(['transaction', 'message', 'typed-data', 'authorization', 'digest']),
  }),
]
