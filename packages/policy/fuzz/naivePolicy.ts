/*
 * An independent policy evaluator, written from the specification without shared code. It works on plain JSON and text instead of bytes. It
 * is
 * slow and returns only the number of required approvals.
 */

// biome-ignore lint/suspicious/noExplicitAny: it reads JSON without types, so that it shares none with the engine.
type Json = any

/** The number of approvals that a request needs, or undefined if it is refused. */
export function evaluateNaively(policyText: string, request: Json): number | undefined {
  const policy: Json = JSON.parse(policyText)
  if (!isReadable(request)) return undefined
  if (policy.schedule && !isInTime(policy, request)) return undefined
  let least: number | undefined
  for (const rule of policy.rules) {
    if (!fits(rule, request)) continue
    if (least === undefined || rule.approvals < least) least = rule.approvals
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

/** Only for the shape of the random requests: a struct with one number. */
function isTypedDataReadable(content: Json): boolean {
  if (Object.keys(content).sort().join() !== 'domain,message,primaryType,types') return false
  const { domain, types, primaryType, message } = content
  const known = ['name', 'version', 'chainId', 'verifyingContract', 'salt']
  const given = Object.keys(domain)
  if (given.length === 0 || given.some((name) => !known.includes(name))) return false
  return Object.keys(types).join() === primaryType && Object.keys(message).join() === 'value'
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
