import { randomBytes } from 'node:crypto'
import { createPolicy, hashPolicy, type Policy, parsePolicy, type SpendRule, toPolicyBytes } from '@countersign/policy'
import {
  fromHex,
  type Hex,
  hashTypedData,
  type OpenSessionResponse,
  type SignedStatement,
  toHex,
} from '@countersign/protocol'
import { createAgent } from '../../packages/policy/test/agentKey.ts'
import { createPasskey } from '../../packages/policy/test/passkey.ts'
import { toOwner } from '../../services/enclave/src/keys/deriveKey.ts'
import { createWitness } from '../../services/enclave/test/witness.ts'
import { count, flag, type Outcome, selectNames, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { type Database, type Enclave, emptyDatabase, type Operator, ORIGINS, startOperator } from './operator.ts'

const HOUR_S = 3_600
const DAY_MS = 86_400_000
/** Of the token, per hour and for the vault's life. */
const HOURLY = 1_000
const LIFELONG = 1_600
/** A statement is released at most this long after its signing time, which is at most a minute ahead of the witnesses. */
const LATEST_S = 200
/** The most items that one call takes. */
const MANY = 256

const token: Hex = `0x${'70'.repeat(20)}`
const [shop, thief] = [`0x${'a1'.repeat(20)}`, `0x${'66'.repeat(20)}`] as const
const passkey = createPasskey({ seed: 1, rpId: 'vault.example' })
const [agent, helper, outsider] = [createAgent(9), createAgent(10), createAgent(11)] as const
const DIRECTLY = 60_000

type Vault = { owner: string; keyId: string; address: Hex; policy: Policy; text: string; hash: string }
type Payment = { chainId: number; to: Hex; value: number; nonce: string }
type Context = {
  operator: Operator
  enclave: Enclave
  round: number
  createVault(enclave?: Enclave): Promise<Vault>
}
/** The tries of an attack, and everything that was released. */
type Result = {
  tries: number
  released: readonly { vault: Vault; statement: SignedStatement }[]
  codes: Record<string, number>
  faults?: string[]
}
type Attack = (context: Context) => Promise<Result>

const attacks: Readonly<Record<string, Attack>> = {
  'many at once': manyAtOnce,
  'the same again': sameAgain,
  'without the right approval': wrongApprovals,
  'statements that are dropped': droppedStatements,
  'an old database': (context) => restoreOld(context, (older) => ({ database: older })),
  'old states': (context) => restoreOld(context, (older, newest) => ({ database: newest, states: older.states })),
  'an old log': (context) => restoreOld(context, (older, newest) => ({ database: older, states: newest.states })),
  'no database': (context) => restoreOld(context, () => ({ database: emptyDatabase })),
  'the spare origin': spareOrigin,
  'a second enclave': secondEnclave,
  'a clock set back': (context) => setClock(context, -DAY_MS),
  'a clock set ahead': (context) => setClock(context, DAY_MS),
  'a revoked key': revokedKey,
  'killed at every step': killedAtEveryStep,
}

const options = {
  only: word('WORD', 'run only the attacks with this text in their names'),
  tries: count(10_000, 'tries in all'),
  'without-counting': flag('switch the counting off in the enclave: the trial must then report overspends'),
}
type Options = Values<typeof options>

export const budgets: Trial = {
  summary: `Tries to overspend budgets as the operator of enclave and witness processes: old databases and states, a second enclave, the spare origin,
a wrong clock, many payments at once, wrong approvals. Adds up everything that was released.`,
  options,
  example: '--only clock',
  run: runBudgets,
}

export async function runBudgets({ scope, say }: TrialDeps, given: Options): Promise<Outcome> {
  const names = selectNames(Object.keys(attacks), given.only)
  const operator = await startOperator({ scope, isCounting: !given['without-counting'] })
  let enclave = await operator.startEnclave()
  await enclave.open(emptyDatabase)
  const rows: [string, number, number, string][] = []
  const faults: string[] = []
  let users = 0
  const createVault = async (at = enclave) => openVault(operator, at, `user ${users++}`)
  const totals = new Map(names.map((name) => [name, { tries: 0, released: 0, codes: {} as Record<string, number> }]))
  for (let [tries, round] = [0, 0]; tries < given.tries; round += 1) {
    for (const name of names) {
      const result = await (attacks[name] as Attack)({ operator, enclave, createVault, round })
      const total = totals.get(name)
      if (total === undefined) continue
      total.tries += result.tries
      total.released += result.released.length
      for (const [code, times] of Object.entries(result.codes)) total.codes[code] = (total.codes[code] ?? 0) + times
      faults.push(...[...(result.faults ?? []), ...findOverspends(result.released)].map((fault) => `${name}: ${fault}`))
      tries += result.tries
      enclave = await restart(operator, enclave)
      say(`${name}: ${result.released.length} of ${result.tries} released`)
    }
    say(`${tries} tries, ${faults.length} faults`)
  }
  for (const [name, { tries, released, codes }] of totals) {
    rows.push([
      name,
      tries,
      released,
      Object.entries(codes)
        .map(([code, times]) => `${code} ${times}`)
        .join(', '),
    ])
  }
  const tries = rows.reduce((sum, [, each]) => sum + each, 0)
  return {
    faults,
    figures: { tries },
    tables: [{ head: ['attack', 'tries', 'released', 'refused'], rows }],
  }
}

/** An enclave that goes on with everything that the witnesses have seen, as an honest operator's does. */
async function restart(operator: Operator, last: Enclave): Promise<Enclave> {
  await last.kill()
  const next = await operator.startEnclave()
  await next.open(operator.findNewest())
  return next
}

async function openVault(operator: Operator, enclave: Enclave, subject: string): Promise<Vault> {
  const spend: SpendRule = {
    kind: 'spend',
    chainIds: [1],
    payees: [shop],
    forms: ['eip3009'],
    approvals: 1,
    approvers: [1],
    session: false,
  }
  const policy = createPolicy({
    version: 1,
    log: operator.policyLog,
    approvers: [passkey.approver, agent.approver, helper.approver],
    budgets: [
      { chainId: 1, token, limit: String(HOURLY), periodS: HOUR_S },
      { chainId: 1, token, limit: String(LIFELONG), periodS: 0 },
      { chainId: 137, token, limit: '1', periodS: 0 },
    ],
    rules: [
      spend,
      { ...spend, payees: 'any', approvers: [2] },
      { ...spend, chainIds: [137] },
      { kind: 'typed-data', domains: 'any', primaryTypes: 'any', approvals: 1, approvers: [0] },
    ],
  })
  const text = new TextDecoder().decode(toPolicyBytes(policy))
  const session: OpenSessionResponse = await enclave.openSession(subject)
  const { keyId, address } = await enclave.deriveVault(session, text)
  const owner = toOwner({ issuer: operator.issuer.url, subject })
  return {
    owner,
    keyId,
    address,
    policy: parsePolicy(toPolicyBytes(policy)),
    text,
    hash: toHex(hashPolicy(policy)),
  }
}

function createPayment(changes: Partial<Payment> = {}): Payment {
  return { chainId: 1, to: shop, value: 250, nonce: `0x${toHex(randomBytes(32))}`, ...changes }
}

function toTypedData({ address }: Vault, { chainId, to, value, nonce }: Payment, nowMs: number) {
  const nowS = Math.floor(nowMs / 1000)
  const members = [
    'from address',
    'to address',
    'value uint256',
    'validAfter uint256',
    'validBefore uint256',
    'nonce bytes32',
  ]
  return {
    domain: { name: 'USD', version: '2', chainId, verifyingContract: token },
    types: {
      TransferWithAuthorization: members.map((member) => {
        const [name = '', type = ''] = member.split(' ')
        return { name, type }
      }),
    },
    primaryType: 'TransferWithAuthorization',
    message: {
      from: address,
      to,
      value: String(value),
      validAfter: '0',
      validBefore: String(nowS + 300),
      nonce,
    },
  }
}

type Use = {
  signer: { approver: { publicKey: string }; approve: typeof agent.approve | typeof passkey.approve }
  named: Vault
  payment: Payment
  approved: Payment
  rule: number
  approvedRule: number
  expiresMs: number
}

function findRule({ policy }: Vault, isWanted: (rule: SpendRule) => boolean): number {
  return policy.rules.findIndex((rule) => rule.kind === 'spend' && isWanted(rule))
}

/** The rule under which the agent pays the shop. */
const findOwnRule = (vault: Vault) => findRule(vault, ({ chainIds, payees }) => chainIds[0] === 1 && payees !== 'any')

/** A payment with its approval, and what was approved in its place. */
function toItem(vault: Vault, enclave: Pick<Enclave, 'now'>, changes: Partial<Use> = {}) {
  const payment = changes.payment ?? createPayment()
  const rule = changes.rule ?? findOwnRule(vault)
  const { signer = agent, named = vault, approved = payment, approvedRule = rule } = changes
  const content = toTypedData(vault, payment, enclave.now())
  const approver = vault.policy.approvers.findIndex(({ publicKey }) => publicKey === signer.approver.publicKey)
  const digest = hashTypedData(approved === payment ? content : toTypedData(vault, approved, enclave.now()))
  const request = {
    vaultAddress: named.address,
    policyHash: fromHex(vault.hash),
    rule: approvedRule,
    kind: 'typed-data' as const,
    digest,
    expiresMs: changes.expiresMs ?? enclave.now() + DIRECTLY,
  }
  return {
    kind: 'typed-data',
    owner: vault.owner,
    keyId: vault.keyId,
    content,
    witness: createWitness(enclave.now()),
    vault: { policy: vault.hash, rule, approvals: [signer.approve(request, Math.max(0, approver))] },
  }
}

const repeat = <Item>(times: number, create: (index: number) => Item): Item[] =>
  Array.from({ length: times }, (_, index) => create(index))

async function pay(enclave: Enclave, vault: Vault, items: readonly object[]): Promise<Result> {
  const { released, codes } = await enclave.sign(items, { policies: [vault.text] })
  return { tries: items.length, released: released.map((statement) => ({ vault, statement })), codes }
}

function add(...results: readonly Result[]): Result {
  const codes: Record<string, number> = {}
  for (const result of results)
    for (const [code, times] of Object.entries(result.codes)) codes[code] = (codes[code] ?? 0) + times
  return {
    tries: results.reduce((sum, { tries }) => sum + tries, 0),
    released: results.flatMap(({ released }) => released),
    codes,
    faults: results.flatMap(({ faults = [] }) => faults),
  }
}

/** An attempt that ends with an error gives nothing. */
async function attempt(tries: number, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Error && /^[a-z_]+$/.test(error.message))) throw error
    return { tries, released: [], codes: { [error.message]: tries } }
  }
}

/** Adds up what was released by vault, independently of the enclave's counting. */
function findOverspends(released: Result['released']): string[] {
  const faults: string[] = []
  for (const [vault, own] of Map.groupBy(released, (each) => each.vault)) {
    const paid = own.map(({ statement }) => {
      const half = (
        statement as {
          opening?: { content: { content: { message: { value: string } }; budget?: { items: { window: number }[] } } }
        }
      ).opening?.content
      const window = Math.max(0, ...(half?.budget?.items ?? []).map((item) => item.window))
      return { value: Number(half?.content.message.value), window }
    })
    const nowS = Date.now() / 1000
    const sum = (list: typeof paid) => list.reduce((total, { value }) => total + value, 0)
    if (!(sum(paid) <= LIFELONG)) faults.push(`${vault.address} paid ${sum(paid)} of ${LIFELONG}`)
    for (const [window, list] of Map.groupBy(paid, (each) => each.window)) {
      if (!(sum(list) <= HOURLY)) faults.push(`${vault.address} paid ${sum(list)} of ${HOURLY} in one hour`)
      const isNow = window <= nowS / HOUR_S && window + 1 >= (nowS - LATEST_S) / HOUR_S
      if (!isNow) faults.push(`${vault.address} paid in window ${window}`)
    }
  }
  return faults
}

function expectReleased(result: Result, payments: number): Result {
  const { length } = result.released
  return length === payments ? result : { ...result, faults: [`released ${length} payments instead of ${payments}`] }
}

/** All fit alone, and four fit together. */
async function manyAtOnce({ enclave, createVault }: Context): Promise<Result> {
  const vault = await createVault()
  const items = repeat(MANY, () => toItem(vault, enclave))
  const half = MANY / 2
  const [first, second] = [items.slice(0, half), items.slice(half)]
  const calls = [first, second].map((part) => enclave.sign(part, { policies: [vault.text], isReleased: false }))
  const signed = await Promise.all(calls)
  const released: SignedStatement[] = []
  for (const { finish } of signed) released.push(...(await finish()))
  const codes = { budget_exceeded: signed.reduce((sum, each) => sum + (each.codes.budget_exceeded ?? 0), 0) }
  const result = { tries: MANY, released: released.map((statement) => ({ vault, statement })), codes }
  return expectReleased(result, HOURLY / 250)
}

/** One payment, repeated: the enclave signs it again, and counts it once. */
async function sameAgain({ enclave, createVault }: Context): Promise<Result> {
  const vault = await createVault()
  const payment = createPayment()
  const content = toItem(vault, enclave, { payment })
  const result = await pay(
    enclave,
    vault,
    repeat(MANY, () => ({ ...content, witness: createWitness(enclave.now()) })),
  )
  const [first] = result.released
  const rest = await pay(
    enclave,
    vault,
    repeat(4, () => toItem(vault, enclave)),
  )
  // An ERC-3009 nonce pays once, however often it is signed.
  return expectReleased(
    { ...rest, tries: MANY + 4, released: [...(first ? [first] : []), ...rest.released] },
    HOURLY / 250,
  )
}

async function wrongApprovals({ enclave, createVault }: Context): Promise<Result> {
  const [vault, twin] = [await createVault(), await createVault()]
  const other = findRule(vault, ({ payees }) => payees === 'any')
  const elsewhere = findRule(vault, ({ chainIds }) => chainIds[0] === 137)
  const free = vault.policy.rules.findIndex(({ kind }) => kind === 'typed-data')
  const payment = createPayment()
  const forged: (() => object)[] = [
    () => ({ ...toItem(vault, enclave), vault: { policy: vault.hash, rule: findOwnRule(vault), approvals: [] } }),
    () => ({ ...toItem(vault, enclave), vault: { policy: vault.hash, rule: findOwnRule(vault) } }),
    () => toItem(vault, enclave, { named: twin }),
    () => ({ ...toItem(vault, enclave), owner: twin.owner }),
    () => ({ ...toItem(vault, enclave), owner: twin.owner, keyId: twin.keyId }),
    () =>
      toItem(vault, enclave, { rule: other, approvedRule: findOwnRule(vault), payment: createPayment({ to: thief }) }),
    () => toItem(vault, enclave, { approvedRule: other }),
    () => toItem(vault, enclave, { rule: other, payment: createPayment({ to: thief }) }),
    () => toItem(vault, enclave, { payment: createPayment({ to: thief }) }),
    () => toItem(vault, enclave, { payment, approved: { ...payment, value: 1 } }),
    () => toItem(vault, enclave, { payment, approved: { ...payment, chainId: 137 } }),
    () => toItem(vault, enclave, { payment: createPayment({ chainId: 137 }) }),
    () => toItem(vault, enclave, { payment: createPayment({ chainId: 137, value: 2 }), rule: elsewhere }),
    () => toItem(vault, enclave, { payment, approved: { ...payment, to: thief } }),
    () => toItem(vault, enclave, { payment: createPayment({ value: HOURLY + 1 }) }),
    () => toItem(vault, enclave, { signer: outsider }),
    () => toItem(vault, enclave, { signer: passkey as never }),
    () => toItem(vault, enclave, { rule: free }),
    () => toItem(vault, enclave, { rule: free, signer: helper }),
    () => toItem(vault, enclave, { expiresMs: enclave.now() - 120_000 }),
    () => toItem(vault, enclave, { expiresMs: enclave.now() + 3_600_000 }),
    () => ({ ...toItem(vault, enclave), keyId: twin.keyId }),
    () => ({ ...toItem(vault, enclave), owner: undefined }),
  ]
  const items = repeat(MANY, (index) => (forged[index % forged.length] as () => object)())
  return expectReleased(await pay(enclave, vault, items), 0)
}

/** Dropped and expired statements stay counted. */
async function droppedStatements({ enclave, createVault }: Context): Promise<Result> {
  const vault = await createVault()
  const policies = [vault.text]
  const dropped = await enclave.sign(
    repeat(2, () => toItem(vault, enclave)),
    { policies, isReleased: false },
  )
  await enclave.release({ drop: dropped.leaves })
  const rest = await pay(
    enclave,
    vault,
    repeat(MANY - 2, () => toItem(vault, enclave)),
  )
  const late = await dropped.finish()
  const released = [...rest.released, ...late.map((statement) => ({ vault, statement }))]
  return expectReleased({ ...rest, tries: MANY, released }, HOURLY / 250 - 2)
}

/** Spends all, then starts an enclave from an older database. */
async function restoreOld(
  { operator, enclave, createVault }: Context,
  choose: (older: Database, newest: Database) => { database: Database; states?: readonly string[]; origin?: string },
): Promise<Result> {
  const vault = await createVault()
  const first = await pay(
    enclave,
    vault,
    repeat(1, () => toItem(vault, enclave)),
  )
  const older = enclave.database
  const rest = await pay(
    enclave,
    vault,
    repeat(5, () => toItem(vault, enclave)),
  )
  const tries = MANY - 6
  const attack = await attempt(tries, async () => {
    const other = await operator.startEnclave()
    const { database, ...how } = choose(older, enclave.database)
    try {
      await other.open(database, how)
      return await pay(
        other,
        vault,
        repeat(tries, () => toItem(vault, other)),
      )
    } finally {
      await other.kill()
    }
  })
  return expectReleased(add(first, rest, attack), HOURLY / 250)
}

/** Two enclaves continue the same log, and both count from there. The witnesses cosign only one of them. */
async function secondEnclave({ operator, enclave, createVault, round }: Context): Promise<Result> {
  const vault = await createVault()
  const { database } = enclave
  const tries = MANY / 2
  const items = (at: Enclave) => repeat(tries, () => toItem(vault, at))
  const first = await enclave.sign(items(enclave), { policies: [vault.text], isReleased: false })
  const other = await operator.startEnclave()
  const runs = [
    async () => {
      await other.open(database)
      return pay(other, vault, items(other))
    },
    async () => {
      const released = await first.finish()
      return { tries, released: released.map((statement) => ({ vault, statement })), codes: first.codes }
    },
  ]
  // The first of the two wins.
  if (round % 2 === 1) runs.reverse()
  const results: Result[] = []
  for (const run of runs) results.push(await attempt(tries, run))
  await other.kill()
  return expectReleased(add(...results), HOURLY / 250)
}

/** The vault's budgets live and end with the log that its rules name. */
async function spareOrigin(context: Context): Promise<Result> {
  const [, origin] = ORIGINS
  return restoreOld(context, () => ({ database: context.operator.findNewest(origin), origin }))
}

async function setClock({ operator, enclave, createVault }: Context, shiftMs: number): Promise<Result> {
  const vault = await createVault()
  const first = await pay(
    enclave,
    vault,
    repeat(5, () => toItem(vault, enclave)),
  )
  const tries = MANY - 5
  const attack = await attempt(tries, async () => {
    const other = await operator.startEnclave({ shiftMs })
    try {
      await other.open(enclave.database)
      return await pay(
        other,
        vault,
        repeat(tries, () => toItem(vault, other)),
      )
    } finally {
      await other.kill()
    }
  })
  return expectReleased(add(first, attack), HOURLY / 250)
}

/** Statements of a revoked key that still wait are erased, and it approves no others. */
async function revokedKey({ enclave, createVault }: Context): Promise<Result> {
  const vault = await createVault()
  const policies = [vault.text]
  const waiting = await enclave.sign(
    repeat(2, () => toItem(vault, enclave)),
    { policies, isReleased: false },
  )
  const request = {
    vaultAddress: vault.address,
    policyHash: fromHex(vault.hash),
    rule: 255,
    kind: 'revocation' as const,
    digest: await sha256(agent.approver.publicKey),
    expiresMs: enclave.now() + DIRECTLY,
  }
  const approver = vault.policy.approvers.findIndex(({ publicKey }) => publicKey === passkey.approver.publicKey)
  const revocation = {
    kind: 'revocation',
    owner: vault.owner,
    keyId: vault.keyId,
    key: agent.approver.publicKey,
    witness: createWitness(enclave.now()),
    vault: { policy: vault.hash, approvals: [passkey.approve(request, approver)] },
  }
  const revoked = await enclave.sign([revocation], { policies })
  if (revoked.released.length !== 1) return { tries: 1, released: [], codes: revoked.codes, faults: ['not revoked'] }
  const rest = await pay(
    enclave,
    vault,
    repeat(MANY - 3, () => toItem(vault, enclave)),
  )
  const late = await waiting.finish().catch(() => [])
  const released = [...rest.released, ...late.map((statement) => ({ vault, statement }))]
  return expectReleased({ ...rest, tries: MANY, released }, 0)
}

async function sha256(hex: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', Uint8Array.from(fromHex(hex))))
}

/** Kills the enclave around each step of a payment, and starts another one from what was stored by then. */
async function killedAtEveryStep({ operator, enclave, createVault }: Context): Promise<Result> {
  const results: Result[] = []
  let current = enclave
  for (const step of ['count', 'write', 'cosign', 'release'] as const) {
    const vault = await createVault(current)
    const policies = [vault.text]
    const items = repeat(3, () => toItem(vault, current))
    const before = current.database
    const released: SignedStatement[] = []
    if (step === 'count') {
      const call = current.sign(items, { policies, isReleased: false }).catch(() => undefined)
      await current.kill()
      await call
    } else {
      const signed = await current.sign(items, { policies, isReleased: false })
      if (step === 'cosign') await operator.cosign(current.database)
      if (step === 'release') released.push(...(await signed.finish()))
      await current.kill()
    }
    const next = await operator.startEnclave()
    // If the enclave ends while it counts, the coordinator has stored nothing.
    await next.open(step === 'count' ? before : current.database)
    current = next
    const rest = await pay(
      next,
      vault,
      repeat(MANY, () => toItem(vault, next)),
    )
    const all = { ...rest, released: [...released.map((statement) => ({ vault, statement })), ...rest.released] }
    // Without its entry in the log, a count is lost together with its signatures.
    results.push(expectReleased(all, step === 'count' || step === 'release' ? HOURLY / 250 : HOURLY / 250 - 3))
  }
  await current.kill()
  return add(...results)
}
