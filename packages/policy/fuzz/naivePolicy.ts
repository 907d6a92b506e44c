/*
 * An independent policy evaluator, written from the specification without shared code. It works on plain JSON and text instead of bytes. It
 * is slow, and gives no reasons.
 */

// biome-ignore lint/suspicious/noExplicitAny: it reads JSON without types, so that it shares none with the engine.
type Json = any

export type NaiveVerdict = { rule: number; approvals: number; spends?: Json }

/**
 * The number of approvals that a request needs under a rule, or under the one of all that needs the fewest, and the amounts to count.
 * Undefined if it is refused.
 */
export function evaluateNaively(
  policyText: string,
  request: Json,
  only?: number,
  context?: Json,
): NaiveVerdict | undefined {
  const policy: Json = JSON.parse(policyText)
  if (!isReadable(request)) return undefined
  if (policy.schedule && !isInTime(policy, request)) return undefined
  let least: NaiveVerdict | undefined
  for (const [index, rule] of policy.rules.entries()) {
    if (only !== undefined && only !== index) continue
    const spends = rule.kind === 'spend' ? findSpends(policy, rule, request, context) : undefined
    if (rule.kind === 'spend' ? spends === undefined : !fits(rule, request)) continue
    const found = { rule: index, approvals: rule.approvals, ...(spends && { spends }) }
    if (least === undefined || found.approvals < least.approvals) least = found
  }
  return least
}

function isReadable(request: Json): boolean {
  const names = Object.keys(request).sort().join()
  if (request.kind === 'message') {
    if (names !== 'content,kind' || Object.keys(request.content).join() !== 'message') return false
    return /^0x([0-9a-f][0-9a-f])*$/i.test(request.content.message)
  }
  if (request.kind === 'typed-data') return names === 'content,kind' && isTypedDataReadable(request.content)
  if (request.kind !== 'transaction') return false
  if (names !== 'kind,txMetadata' && names !== 'kind,sample,txMetadata') return false
  const tx = request.txMetadata
  const members = 'chainId,data,gas,maxFeePerGas,maxPriorityFeePerGas,nonce,to,value'
  if (Object.keys(tx).sort().join() !== members) return false
  for (const amount of [tx.value, tx.gas, tx.maxFeePerGas, tx.maxPriorityFeePerGas]) {
    if (typeof amount !== 'string' || !/^\d+$/.test(amount) || String(BigInt(amount)) !== amount) return false
    if (BigInt(amount) >= 2n ** 256n) return false
  }
  if (BigInt(tx.gas) >= 2n ** 64n || BigInt(tx.maxPriorityFeePerGas) > BigInt(tx.maxFeePerGas)) return false
  if (!/^0x[0-9a-f]{40}$/i.test(tx.to) || !/^0x([0-9a-f]{2})*$/i.test(tx.data)) return false
  return Number.isSafeInteger(tx.chainId) && tx.chainId > 0 && Number.isSafeInteger(tx.nonce) && tx.nonce >= 0
}

/** Only for the types of the random requests. */
function isTypedDataReadable(content: Json): boolean {
  if (Object.keys(content).sort().join() !== 'domain,message,primaryType,types') return false
  const { domain, types, primaryType, message } = content
  const domainTypes: Json = {
    name: 'string',
    version: 'string',
    chainId: 'uint256',
    verifyingContract: 'address',
    salt: 'bytes32',
  }
  const given = Object.keys(domainTypes).filter((name) => name in domain)
  if (given.length === 0 || Object.keys(domain).length !== given.length) return false
  if (!given.every((name) => isValue({}, domainTypes[name], domain[name]))) return false
  const { EIP712Domain, ...structs } = types
  const expected = given.map((name) => `${name} ${domainTypes[name]}`).join()
  if (EIP712Domain && EIP712Domain.map(({ name, type }: Json) => `${name} ${type}`).join() !== expected) return false
  const known = ['string', 'uint256', 'address', 'bytes32', ...Object.keys(structs)]
  const all = Object.values(structs).flat() as Json[]
  if (!all.every(({ type }) => known.includes(type))) return false
  return primaryType in structs && isValue(structs, primaryType, message)
}

function isValue(structs: Json, type: string, value: Json): boolean {
  if (type === 'string') return typeof value === 'string'
  if (type === 'address') return /^0x[0-9a-f]{40}$/i.test(value)
  if (type === 'bytes32') return /^0x[0-9a-f]{64}$/i.test(value)
  if (type === 'uint256') {
    if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0
    return /^(0|[1-9]\d*|0x[0-9a-f]{1,64})$/i.test(value) && BigInt(value) < 2n ** 256n
  }
  const names = structs[type].map(({ name }: Json) => name)
  if (typeof value !== 'object' || value === null) return false
  if (Object.keys(value).sort().join() !== names.toSorted().join()) return false
  return structs[type].every((member: Json) => isValue(structs, member.type, value[member.name]))
}

const PERMIT2 = BigInt('0x000000000022D473030F116dDEE9F6B43aC78BA3')
const AUTHORIZATION =
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)'
const PERMIT = [
  'PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)',
  'TokenPermissions(address token,uint256 amount)',
  'Witness(address to,uint256 validAfter)',
].join(';')

/** The amounts of a payment that this rule allows, each with a budget. Addresses are compared as numbers. */
function findSpends({ budgets }: Json, rule: Json, request: Json, context: Json): Json {
  const pays = readPayment(request, context)
  if (pays === undefined || !rule.forms.includes(pays.form)) return undefined
  const has = (list: Json, value: bigint) => list.some((one: Json) => BigInt(one) === value)
  if (!has(rule.chainIds, pays.chain)) return undefined
  if (rule.payees !== 'any' && !has(rule.payees, pays.payee)) return undefined
  if (pays.spender !== undefined && !has(rule.spenders, pays.spender)) return undefined
  const spends = pays.amounts.map(([token, amount]: Json) => ({
    chainId: Number(pays.chain),
    token: token === null ? null : `0x${token.toString(16).padStart(40, '0')}`,
    amount,
  }))
  const isBudgeted = ({ chainId, token }: Json) =>
    budgets.some((one: Json) => one.chainId === chainId && one.token === token)
  return spends.every(isBudgeted) ? spends : undefined
}

function readPayment(request: Json, context: Json): Json {
  if (request.kind === 'transaction') {
    const { chainId, to, value, data, gas, maxFeePerGas } = request.txMetadata
    const fee = BigInt(gas) * BigInt(maxFeePerGas)
    const chain = BigInt(chainId)
    if (data === '0x') return { form: 'coin', chain, payee: BigInt(to), amounts: [[null, BigInt(value) + fee]] }
    const [, payee, amount] = /^0xa9059cbb0{24}([0-9a-f]{40})([0-9a-f]{64})$/i.exec(data) ?? []
    if (payee === undefined || value !== '0') return undefined
    const amounts = [[BigInt(to), BigInt(`0x${amount}`)], ...(fee === 0n ? [] : [[null, fee]])]
    return { form: 'transfer', chain, payee: BigInt(`0x${payee}`), amounts }
  }
  if (request.kind !== 'typed-data') return undefined
  const { domain, types, primaryType, message } = request.content
  const names = Object.keys(types).filter((name) => name !== 'EIP712Domain')
  const toText = (name: string) => `${name}(${types[name].map((one: Json) => `${one.type} ${one.name}`).join()})`
  const text = names.sort().map(toText).join(';')
  const members = Object.keys(domain).sort().join()
  const latest = BigInt(Math.floor(context.nowMs / 1000))
  if (text === AUTHORIZATION) {
    if (members !== 'chainId,name,verifyingContract,version') return undefined
    if (BigInt(message.from) !== BigInt(context.vaultAddress)) return undefined
    if (BigInt(message.validAfter) > latest || BigInt(message.validBefore) - 3600n > latest) return undefined
    const amounts = [[BigInt(domain.verifyingContract), BigInt(message.value)]]
    return { form: 'eip3009', chain: BigInt(domain.chainId), payee: BigInt(message.to), amounts }
  }
  if (text !== PERMIT || primaryType !== 'PermitWitnessTransferFrom') return undefined
  if (members !== 'chainId,name,verifyingContract' || domain.name !== 'Permit2') return undefined
  if (BigInt(domain.verifyingContract) !== PERMIT2) return undefined
  const { permitted, spender, deadline, witness } = message
  if (BigInt(witness.validAfter) > latest || BigInt(deadline) - 3600n > latest) return undefined
  const amounts = [[BigInt(permitted.token), BigInt(permitted.amount)]]
  return {
    form: 'x402-permit2',
    chain: BigInt(domain.chainId),
    payee: BigInt(witness.to),
    spender: BigInt(spender),
    amounts,
  }
}

function isInTime({ schedule, time }: Json, { sample, txMetadata, kind }: Json): boolean {
  // A policy with a schedule only has rules for transactions.
  if (kind !== 'transaction' || !sample) return false
  const key = (source: Json) => Object.entries(source).sort().join(';')
  if (!time.map(key).includes(key(sample.source))) return false
  let due = BigInt(schedule.startsAtMs)
  let left = BigInt(txMetadata.nonce) - BigInt(schedule.count)
  // Counts periods one by one, without the engine's formula.
  while (left >= 0n) {
    due += BigInt(schedule.everyS) * 1000n
    left -= BigInt(schedule.count)
  }
  return BigInt(sample.timeMs) >= due
}

function fits(rule: Json, request: Json): boolean {
  if (rule.kind !== request.kind) return false
  if (rule.kind === 'message') return true
  if (rule.kind === 'typed-data') return fitsTypedData(rule, request.content)
  const tx = request.txMetadata
  if (rule.chainIds !== 'any' && rule.chainIds.indexOf(tx.chainId) === -1) return false
  if (rule.to !== 'any' && !rule.to.join().includes(tx.to.toLowerCase())) return false
  if (BigInt(rule.maxValueWei) < BigInt(tx.value)) return false
  if (BigInt(rule.maxFeeWei) < BigInt(tx.gas) * BigInt(tx.maxFeePerGas)) return false
  if (!rule.selectors) return tx.data === '0x'
  const data = tx.data.slice(2).toLowerCase()
  if (data.length !== 8 + 64 * rule.words) return false
  if (!rule.selectors.some((selector: string) => selector.slice(2) === data.slice(0, 8))) return false
  return (rule.arguments ?? []).every((argument: Json) => {
    const word = data.slice(8 + 64 * argument.at, 8 + 64 * (argument.at + 1))
    return fitsArgument(argument, word)
  })
}

function fitsArgument({ type, oneOf, max }: Json, word: string): boolean {
  const number = BigInt(`0x${word}`)
  const bits = type === 'address' ? 160n : type === 'bool' ? 1n : type === 'bytes32' ? 256n : BigInt(type.slice(4))
  if (number >= 2n ** bits) return false
  if (max !== undefined) return number <= BigInt(max)
  if (oneOf === undefined) return true
  // `true` and `false` as numbers; hex and decimal texts by value.
  return oneOf.some((value: Json) => (typeof value === 'boolean' ? (value ? 1n : 0n) : BigInt(value)) === number)
}

function fitsTypedData({ domains, primaryTypes }: Json, { domain, primaryType }: Json): boolean {
  if ('salt' in domain) return false
  if (primaryTypes !== 'any' && !primaryTypes.includes(primaryType)) return false
  if (domains === 'any') return true
  const spell = (one: Json) =>
    JSON.stringify([
      one.name,
      one.version,
      one.chainId === undefined ? undefined : String(BigInt(one.chainId)),
      one.verifyingContract?.toLowerCase(),
    ])
  return domains.map(spell).includes(spell(domain))
}
