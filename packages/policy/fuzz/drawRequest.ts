import type { Hex, TxMetadata, TypedData } from '@countersign/protocol'
import type { Random } from '../../protocol/fuzz/random.ts'
import type { PolicyRequest } from '../src/checkPolicy.ts'
import type {
  ArgumentRule,
  DomainRule,
  Policy,
  Rule,
  SpendForm,
  SpendRule,
  TransactionRule,
  TypedDataRule,
} from '../src/policy.ts'
import type { SpendContext } from '../src/readSpend.ts'
import {
  ADDRESSES,
  AMOUNTS,
  ARGUMENT_TYPES,
  CHAINS,
  drawArgumentValue,
  drawDomain,
  FORMS,
  PRIMARY_TYPES,
  SELECTORS,
  SOURCES,
  SPENDERS,
} from './drawPolicy.ts'

/** The vault and the time of every request. */
export const CONTEXT: SpendContext = { vaultAddress: `0x${'5a'.repeat(20)}`, nowMs: 1_800_000_000_999 }
const NOW_S = 1_800_000_000

/** A request that one of the rules may allow. Half of them have a change. */
export function drawRequest(random: Random, policy: Policy): unknown {
  const { below, pick } = random
  const rule = pick(policy.rules)
  const request = drawFitting(random, policy, rule)
  if (below(2) === 0) return request
  return pick(CHANGES)(random, structuredClone(request))
}

function drawFitting(random: Random, policy: Policy, rule: Rule): PolicyRequest {
  if (rule.kind === 'spend') return drawPayment(random, policy, rule)
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

function drawPayment(random: Random, { budgets = [] }: Policy, rule: SpendRule): PolicyRequest {
  const { below, pick } = random
  const form = below(8) === 0 ? pick(FORMS) : pick(rule.forms)
  const chainId = pick(rule.chainIds)
  const tokens = budgets.flatMap((budget) => (budget.chainId === chainId && budget.token ? budget.token : []))
  const token = pick(tokens.length === 0 ? ADDRESSES : [...tokens, ...tokens, ...ADDRESSES])
  const payee = rule.payees === 'any' ? pick(ADDRESSES) : pick(rule.payees)
  const amount = pick(AMOUNTS)
  if (form !== 'coin' && form !== 'transfer') {
    const payment = { chainId, token, payee, amount, spender: pick(rule.spenders ?? SPENDERS) }
    return { kind: 'typed-data', content: drawAuthorization(random, form, payment) }
  }
  const word = (value: bigint) => value.toString(16).padStart(64, '0')
  const call = { to: token, value: '0', data: `0xa9059cbb${word(BigInt(payee))}${word(amount)}` as Hex }
  const fee = { maxFeePerGas: pick(['0', '1', '100']), maxPriorityFeePerGas: '0' }
  const pays = form === 'coin' ? { to: payee, value: String(amount), data: '0x' as Hex } : call
  return { kind: 'transaction', txMetadata: { chainId, nonce: below(20), gas: '21000', ...pays, ...fee } }
}

type Authorized = { chainId: number; token: Hex; payee: Hex; amount: bigint; spender: Hex }

const STRUCTS = {
  TransferWithAuthorization:
    'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce',
  PermitWitnessTransferFrom:
    'TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness',
  TokenPermissions: 'address token,uint256 amount',
  Witness: 'address to,uint256 validAfter',
}
const toTypes = (...names: (keyof typeof STRUCTS)[]) =>
  Object.fromEntries(
    names.map((name) => [
      name,
      STRUCTS[name].split(',').map((member) => {
        const [type = '', name = ''] = member.split(' ')
        return { name, type }
      }),
    ]),
  )

function drawAuthorization(
  { pick }: Random,
  form: Exclude<SpendForm, 'coin' | 'transfer'>,
  { chainId, token, payee, amount, spender }: Authorized,
): TypedData {
  const spell = (value: bigint | number) => pick([String(value), `0x${value.toString(16)}`])
  const inCase = (address: Hex) => pick([address, address, `0x${address.slice(2).toUpperCase()}`])
  const validAfter = pick([0, NOW_S - 1, NOW_S, NOW_S])
  const end = pick([0, NOW_S + 60, NOW_S + 3_600])
  const chain = pick([chainId, chainId, String(chainId), `0x${chainId.toString(16)}`])
  if (form === 'eip3009') {
    return {
      domain: { name: 'USDC', version: '2', chainId: chain, verifyingContract: inCase(token) },
      types: toTypes('TransferWithAuthorization'),
      primaryType: 'TransferWithAuthorization',
      message: {
        from: inCase(CONTEXT.vaultAddress),
        to: inCase(payee),
        value: spell(amount),
        validAfter: pick([validAfter, spell(validAfter)]),
        validBefore: pick([end, spell(end)]),
        nonce: `0x${'ab'.repeat(32)}`,
      },
    }
  }
  return {
    domain: {
      name: 'Permit2',
      chainId: chain,
      verifyingContract: inCase('0x000000000022d473030f116ddee9f6b43ac78ba3'),
    },
    types: toTypes('PermitWitnessTransferFrom', 'TokenPermissions', 'Witness'),
    primaryType: 'PermitWitnessTransferFrom',
    message: {
      permitted: { token: inCase(token), amount: spell(amount) },
      spender: inCase(spender),
      nonce: '7',
      deadline: spell(end),
      witness: { to: inCase(payee), validAfter: spell(validAfter) },
    },
  }
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

/** Changes a member of the message, at any depth. */
const changeMessage = (name: string, draw: (random: Random) => unknown) =>
  within('content', (random, { message }) => {
    for (const part of [message, message?.permitted, message?.witness]) {
      if (part && Object.hasOwn(part, name)) part[name] = draw(random)
    }
  })

const CHANGES: readonly Change[] = [
  ...['from', 'to', 'spender', 'token'].map((name) => changeMessage(name, ({ pick }) => pick(ADDRESSES))),
  ...['value', 'amount'].map((name) =>
    changeMessage(name, ({ pick }) => pick([1, '0x', '-1', '01', '0x0', String(2n ** 256n), 0.5, null])),
  ),
  ...['validAfter', 'validBefore', 'deadline'].map((name) =>
    changeMessage(name, ({ pick }) => pick([NOW_S + 1, NOW_S + 3_600, NOW_S + 3_601, String(2n ** 256n - 1n)])),
  ),
  changeMessage('nonce', ({ pick }) => pick(['0x', '1', `0x${'00'.repeat(32)}`])),
  within('content', ({ pick }, { types }) => {
    if (types) types[pick(['Other', 'Witness'])] = [{ name: 'to', type: 'address' }]
  }),
  within('content', ({ pick }, { types, primaryType }) => {
    types?.[primaryType]?.[pick(['reverse', 'pop'])]?.()
  }),
  within('content', ({ pick }, { types, domain }) => {
    const all = { name: 'string', version: 'string', chainId: 'uint256', verifyingContract: 'address' }
    const given = Object.entries(all).filter(([name]) => domain && Object.hasOwn(domain, name))
    const listed = given.map(([name, type]) => ({ name, type }))
    if (types) types.EIP712Domain = pick([listed, listed, listed.toReversed(), listed.slice(1)])
  }),
  within('content', ({ pick }, { domain }) => {
    if (domain) domain[pick(['name', 'version', 'salt'])] = pick(['Permit2', 'USDC', `0x${'00'.repeat(32)}`])
  }),
  within('content', ({ pick }, { domain }) => {
    if (domain) domain.verifyingContract = pick(ADDRESSES)
  }),
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
