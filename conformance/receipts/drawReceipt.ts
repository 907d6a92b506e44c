import { createSimulatedSatellite, createSimulator, developmentSeed } from '@countersign/attestation/simulator'
import { checkPolicy, countSpends, createPolicy, type Policy, type PolicyRequest } from '@countersign/policy'
import type { Approval, Hex, TxMetadata, TypedData, VaultBudget } from '@countersign/protocol'
import { type GivenBlocks, nameSignature } from '@countersign/receipt'
import {
  createSimulatedLog,
  type SimulatedApprovalRequest,
  type SimulatedAttestationOptions,
  type SimulatedLogOptions,
} from '@countersign/receipt/simulator'
import { drawPolicy } from '../../packages/policy/fuzz/drawPolicy.ts'
import { CONTEXT, drawRequest } from '../../packages/policy/fuzz/drawRequest.ts'
import { createAgent } from '../../packages/policy/test/agentKey.ts'
import { passkeys } from '../../packages/policy/test/policies.ts'
import type { Random } from '../../packages/protocol/fuzz/random.ts'
import { drawTypedData, typedDataFaults } from '../../packages/protocol/fuzz/randomTypedData.ts'
import { GOLDEN_SIGNED_AT } from '../../packages/receipt/spec/createSpecFiles.ts'
import { asHardware, createEvent, service } from '../../packages/receipt/test/checkReceipt.ts'
import { goldenVaults } from '../../packages/receipt/test/vaults.ts'
import type { Reader } from './protocol.ts'

/** A receipt of the simulator, with its reader. */
export type DrawnReceipt = {
  receipt: Uint8Array
  blocks: GivenBlocks & { collateral?: Uint8Array }
  opening?: Uint8Array
  reader: Reader
}

type Options = SimulatedAttestationOptions
type Draw = (random: Random) => Partial<Options>

const filled = (random: Random, length: number) => new Uint8Array(length).fill(random.below(256))
const flag = <Name extends string>(name: Name) => ({ [name]: true }) as { [one in Name]: true }
const agents = [1, 2, 11, 12].map(createAgent)
const logOf = ({ below, pick, shuffle }: Random): SimulatedLogOptions => ({
  witnesses: 3,
  quorum: 2,
  cosigners: pick([[0, 1, 2], [0, 1, 2], [0, 2], [1, 2], [1], shuffle([0, 1, 2])]),
  size: 1 + below(12),
  index: 0,
})

const quoteFaults =
  'teeTypeSgx wrongAttestationKeyType wrongQeVendor wrongOuterCertificationType wrongInnerCertificationType qeWrongMrSigner qeDebug qeWrongProductId qeWrongAttributes qeWrongMiscSelect qeReportDataUnbound qeReportDataTail qeReportWrongSigner quoteWrongSigner reportDataFlipped moduleWrongMrSigner moduleAttributesSet pckCaNotCa pckForeignRoot pckExpired pckNotYetValid pckOtherFmspc pckOtherPceId pckWrongName chainSwapped chainExtraCertificate chainWithoutRoot'.split(
    ' ',
  )
const collateralFaults =
  'pckRevoked pckCaRevoked tcbSigningRevoked pckCrlExpired pckCrlNotYetValid pckCrlWrongSigner pckCrlEmpty pckCrlOtherIssuer pckCrlForeignChain pckCrlIssuerNotCa rootCrlExpired rootCrlNotYetValid rootCrlWrongSigner rootCrlEmpty rootCrlOtherIssuer tcbInfoMissingMember tcbInfoUnknownStatus qeIdentityTampered qeIdentityWrongSigner qeIdentityForeignChain qeIdentityExpired qeIdentityNotYetValid qeIdentityForSgx qeIdentityVersion1 tcbSigningWrongName tcbSigningExpired'.split(
    ' ',
  )
const statuses =
  'UpToDate SWHardeningNeeded ConfigurationNeeded ConfigurationAndSWHardeningNeeded OutOfDate OutOfDateConfigurationNeeded Revoked TDRelaunchAdvised TDRelaunchAdvisedConfigurationNeeded'.split(
    ' ',
  ) as NonNullable<NonNullable<Options['quote']>['status']>[]
const partStatuses = ['UpToDate', 'OutOfDate', 'Revoked', 'NotSupported'] as const
/** SEPT_VE_DISABLE (bit 28), and another bit. With 28, none. */
const attributes = ({ pick }: Random) =>
  new Uint8Array(
    new BigUint64Array([(1n << pick([0n, 1n, 5n, 28n, 28n, 29n, 30n, 31n, 62n, 63n])) ^ (1n << 28n)]).buffer,
  )
const tcbOf = ({ below }: Random) => ({
  bootLoader: 3 + below(3),
  tee: below(2),
  snp: 23 + below(3),
  microcode: 218 + below(3),
})

/** Differences from the default service, valid and slightly invalid. */
const variations: readonly Draw[] = [
  ({ pick }) => ({ sampleAgeMs: pick([0, 65_000, 65_001, -5_000, -5_001, 30_000]) }),
  ({ pick }) => ({ fetchedAt: new Date(GOLDEN_SIGNED_AT.getTime() + pick([5_000, 5_001, -1e9])).toISOString() }),
  ({ pick }) => ({
    fetchedAt: pick(['2026-02-30T12:00:00.000Z', '0000-01-01T00:00:00.000Z', '2026-06-15T24:00:00.000Z']),
  }),
  ({ pick }) => ({ quote: { status: pick(statuses) } }),
  ({ pick }) => ({ quote: { qeStatus: pick(partStatuses) } }),
  ({ pick }) => ({ quote: { moduleStatus: pick(partStatuses), status: pick(statuses) } }),
  ({ pick }) => ({ quote: { moduleVersion: pick([0, 1, 2, 3]), moduleStatus: pick(partStatuses) } }),
  (random) => ({ quote: { tdAttributes: attributes(random) } }),
  ({ pick }) => ({ quote: { faults: flag(pick(quoteFaults)) } }),
  ({ pick }) => ({ quote: { version: 5, body: pick(['td10', 'td15'] as const), status: pick(statuses) } }),
  (random) => {
    const register = random.pick(['mrtd', 'mrConfigId', 'mrOwner', 'mrOwnerConfig', 'mrServiceTd', 'mrSeam'] as const)
    return { quote: { [register]: filled(random, 48) } }
  },
  (random) => ({ quote: { version: 5, teeTcbSvn2: filled(random, 16) } }),
  (random) => ({
    quote: { trailing: filled({ ...random, below: () => random.pick([0, 0, 1]) }, random.pick([1, 70])) },
  }),
  ({ below }) => ({ report: { policy: (1n << 17n) | (1n << BigInt(below(26))) } }),
  ({ pick }) => ({ report: { vmpl: pick([0, 1, 3]), version: pick([2, 3, 5] as const) } }),
  ({ pick }) => ({
    report: {
      faults: flag(
        pick([
          'reportDataFlipped',
          'wrongSigner',
          'reservedByteSet',
          'tailByteSet',
          'signaturePaddingSet',
          'wrongSignatureAlgorithm',
        ]),
      ),
    },
  }),
  ({ pick }) => ({
    certificates: {
      faults: flag(
        pick([
          'otherTcb',
          'otherChip',
          'ekExpired',
          'ekWrongIssuer',
          'ekWrongName',
          'askNotCa',
          'askWrongIssuer',
          'foreignArk',
        ]),
      ),
    },
  }),
  () => ({ report: { signingKey: 'vlek' }, certificates: { signingKey: 'vlek' } }),
  () => ({ report: { product: 'Genoa' }, certificates: { product: 'Genoa' } }),
  (random) => {
    const tcb = { fmc: 1, ...tcbOf(random) }
    return { report: { product: 'Turin', reportedTcb: tcb }, certificates: { product: 'Turin', tcb } }
  },
  (random) => ({ report: { committedTcb: tcbOf(random) } }),
  (random) => ({ report: { launchTcb: tcbOf(random) } }),
  ({ below }) => ({ report: { platformInfo: 1n << BigInt(below(8)) } }),
  (random) => ({ report: { hostData: filled(random, 32) } }),
  (random) => ({ report: { chipId: filled(random, 64) }, certificates: { chipId: filled(random, 64) } }),
  ({ pick, below }) => ({
    events: ['compose-hash', 'app-id', 'key-provider', 'other']
      .slice(0, 1 + below(4))
      .map((name, index) => ({ name, payload: pick([`c${index}`, '', 'c0']) })),
  }),
  ({ pick }) => ({ config: { rootSecret: pick(['dstack', 'file', `attested:sha256:${'ab'.repeat(32)}`, '']) } }),
  ({ pick }) => ({
    config: {
      issuers: ['https://b.example', pick(['https://a.example', 'https://c.example', 'https://b.example'])].map(
        toIssuer,
      ),
    },
  }),
  ({ pick }) => ({ settings: { sessions: pick(['bound', 'any'] as const) }, clientKey: `04${'ab'.repeat(64)}` }),
  () => ({ settings: { sessions: 'bound' } }),
  ({ shuffle }) => ({
    settings: { implementations: shuffle(['7e', '01', 'ff']).map((one): Hex => `0x${one.repeat(20)}`) },
  }),
  ({ pick }) => ({
    settings: { entropy: pick([[], [{ kind: 'unsigned' }], [{ kind: 'satellite', key: '02'.padEnd(64, '0') }]]) },
  }),
  (random) => ({ log: logOf(random) }),
  (random) => ({
    log: { ...logOf(random), origin: random.pick(['log.example', 'log.example/b', 'other.example/log']) },
  }),
  (random) => ({
    log: { ...logOf(random), witnesses: random.pick([1, 2, 5]), quorum: random.pick([1, 2, 3]), cosigners: [0] },
  }),
  ({ pick }) => ({ revocations: { revoked: pick([[], ['ek'], ['ask'], ['ark'], ['asvk']] as const) } }),
  ({ pick }) => ({
    revocations: { faults: flag(pick(['expired', 'notYetValid', 'noNextUpdate', 'wrongSigner', 'otherProduct'])) },
  }),
  () => ({ isBeacon: true }),
  () => ({ unsignedSource: 'example', settings: { entropy: [{ kind: 'unsigned' }] } }),
  ({ below }) => ({ treeSize: 256, leafIndex: below(256), batchSequence: below(3) }),
  ({ pick }) => ({ satelliteSeed: pick(['another', developmentSeed]) }),
]

const toIssuer = (issuer: string) => ({ issuer, audience: 'countersign', jwksOrigin: issuer })

/** The signed content. */
const contents: readonly Draw[] = [
  (random) => ({ signing: { kind: 'transaction' }, txMetadata: drawTransaction(random) }),
  ({ pick }) => ({ signing: { kind: 'message', content: { message: pick(['0x', '0xff', '0x68656c6c6f']) } } }),
  (random) => {
    const { typedData } = drawTypedData(random)
    const content = random.below(4) === 0 ? (random.pick(typedDataFaults)(typedData) as TypedData) : typedData
    return { signing: { kind: 'typed-data', content } }
  },
  ({ pick, below }) => ({
    signing: {
      kind: 'authorization',
      authorization: {
        chainId: pick([0, 1, 31337]),
        nonce: below(3),
        address: `0x${pick(['7e', '7e', '01']).repeat(20)}`,
      },
    },
  }),
  () => ({ signing: { kind: 'address' } }),
  drawGoldenVault,
  drawGoldenVault,
  drawVault,
  drawVault,
  drawVault,
]

function drawTransaction({ pick, below, bytes }: Random): Partial<TxMetadata> {
  return {
    chainId: pick([1, 31337, 2 ** 53 - 1]),
    nonce: below(300),
    value: pick(['0', '1', String(2n ** 256n - 1n)]),
    data: `0x${Buffer.from(bytes(pick([0, 1, 55, 56, 300]))).toString('hex')}`,
    maxPriorityFeePerGas: pick(['0', '1000000000']),
  }
}

/** A vault of the golden files, with other counts, approvals or a rule that doesn't fit. */
function drawGoldenVault(random: Random): Partial<Options> {
  const { pick, below } = random
  const { transfer, eip3009, ...others } = goldenVaults
  const golden = below(2) === 0 ? pick([transfer, eip3009]) : pick(Object.values(others))
  const { vault } = golden
  if (vault === undefined) return golden
  const { budget, isSessionless, ...rest } = vault
  return {
    ...golden,
    ...(golden.log && { log: drawTimes(random, golden.log) }),
    vault: {
      ...rest,
      ...(below(2) === 0 && { approve: drawApprovals(random, vault.policy, GOLDEN_SIGNED_AT.getTime()) }),
      ...(budget && below(10) > 0 && { budget: drawCount(random, budget) }),
      ...(below(20) === 0 && { rule: below(4) }),
      ...(below(20) === 0 ? {} : { isSessionless: isSessionless === true }),
    },
  }
}

/** The witnesses' clocks, around the limits of counts. */
function drawTimes({ pick, below }: Random, log: SimulatedLogOptions): SimulatedLogOptions {
  if (below(2) === 0) return log
  const signedAtS = Math.floor(GOLDEN_SIGNED_AT.getTime() / 1000)
  const drawTime = () => signedAtS + pick([-61, -60, -13, -12, -11, 0, 1, 124, 125, 126])
  return { ...log, cosigners: [0, 1, 2], timestampS: [drawTime(), drawTime(), drawTime()] }
}

function drawCount({ pick, below }: Random, budget: VaultBudget): VaultBudget {
  const change = (amount: string) => String(BigInt(amount) + pick([0n, 0n, 1n, -1n, 5_000_000n]))
  const items = budget.items.map((item) => ({
    ...item,
    ...(below(4) === 0 && { window: item.window + pick([-1, 1]) }),
    ...(below(4) === 0 && { before: change(item.before) }),
    ...(below(4) === 0 && { after: change(item.after) }),
  }))
  const time = budget.time ?? 0
  return {
    ...budget,
    ...(below(3) === 0 && { time: pick([null, time - 48, time - 49, time + 12, time + 13, time - 648, time - 649]) }),
    ...(below(4) === 0 && { isRepeated: true }),
    items:
      below(2) === 0 ? budget.items : pick([items, items, items.slice(1), items.toReversed(), [...items, ...items]]),
  }
}

/** As many approvals as the rule requires, or one more or less, by any approvers, some with a fault. */
function drawApprovals(random: Random, { approvers, rules }: Policy, signedAtMs: number) {
  const { pick, below, shuffle } = random
  const drawn = { order: shuffle([...approvers.keys()]), more: pick([0, 0, 0, 0, 1, -1]), faulty: below(3) === 0 }
  const isSorted = below(10) > 0
  return (request: SimulatedApprovalRequest): Approval[] => {
    const rule = rules[request.rule]
    const fitting = drawn.order.filter(
      (place) => rule === undefined || rule.approvers === 'any' || rule.approvers.includes(place),
    )
    const places = (below(8) === 0 ? drawn.order : fitting).slice(0, Math.max(0, (rule?.approvals ?? 1) + drawn.more))
    return (isSorted ? places.toSorted((a, b) => a - b) : places).map((place) => {
      const approver = approvers[place]
      const agent = agents.find((one) => one.approver.publicKey === approver?.publicKey)
      const last = signedAtMs + (agent === undefined ? 3_600_000 : 60_000)
      const expiresMs = drawn.faulty
        ? pick([signedAtMs - 1, signedAtMs, last, last + 1, signedAtMs + 86_400_000, 0])
        : last
      const changed =
        drawn.faulty && below(3) === 0
          ? pick([{ rule: 0 }, { kind: 'message' as const }, { digest: new Uint8Array(32) }])
          : {}
      if (agent !== undefined) return agent.approve({ ...request, ...changed, expiresMs }, place)
      const passkey = passkeys.find((one) => one.approver.publicKey === approver?.publicKey) ?? passkeys[0]
      if (passkey === undefined) throw new Error('no passkey')
      const changes = drawn.faulty && below(2) === 0 ? pick(assertionChanges) : {}
      return passkey.approve({ ...request, ...changed, expiresMs }, place, changes)
    })
  }
}

const assertionChanges = [
  { flags: 0x01 },
  { flags: 0x04 },
  { flags: 0x05 },
  { flags: 0x45 },
  { flags: 0x85 },
  { flags: 0x15 },
  { flags: 0x07 },
  { rpId: 'other.example' },
  { extra: new Uint8Array(1) },
  { clientData: { crossOrigin: true } },
  { clientData: { type: 'webauthn.create' } },
  { clientData: { origin: 'https://other.example' } },
  { clientData: { topOrigin: 'https://vault.example' } },
  { clientData: { more: 'é' } },
  { clientDataText: (text: string) => text.replace('{', '{ ') },
  { clientDataText: (text: string) => text.replace('{', '{"type":"webauthn.get",') },
  { clientDataText: (text: string) => text.replace(',"crossOrigin":false', '') },
]

/** A random policy with a request that one of its rules may allow. */
function drawVault(random: Random): Partial<Options> {
  const { pick, below } = random
  const log = logOf(random)
  const { setting } = createSimulatedLog(developmentSeed, log)
  const drawn = drawPolicy(random)
  const signedAtMs = CONTEXT.nowMs
  const policy = createPolicy({
    ...drawn,
    ...(drawn.log &&
      below(6) > 0 && { log: { ...drawn.log, ...setting, origins: undefined, origin: setting.origins[0] } }),
    ...(drawn.schedule && {
      schedule: { ...drawn.schedule, startsAtMs: signedAtMs - pick([0, 1_000, 5_000, 20_000, 100_000]) },
      ...(below(6) > 0 && { time: [{ kind: 'satellite', key: createSimulatedSatellite().publicKey }] }),
    }),
  } as Policy)
  const request = drawRequest(random, policy) as PolicyRequest
  const verdict = checkPolicy(policy, request, undefined, CONTEXT)
  const hasSchedule = policy.schedule !== undefined
  if (!verdict.allowed && !hasSchedule && below(3) > 0) throw new Error('drawn again')
  const spends = verdict.allowed ? verdict.spends : undefined
  const nowS = Math.floor(signedAtMs / 1000)
  const timeS = nowS - pick([0, 12, 60])
  const counters = (policy.budgets ?? []).map(({ periodS }) => ({
    window: periodS === 0 ? 0 : Math.floor(timeS / periodS) - below(2),
    spent: BigInt(pick([0, 0, 1, 50])),
  }))
  const counted = spends && countSpends(policy.budgets ?? [], counters, spends, timeS)
  const isTimed = counted?.allowed && counted.changes.some(({ budget }) => policy.budgets?.[budget]?.periodS !== 0)
  const budget = counted?.allowed && {
    time: isTimed ? timeS : null,
    sequence: 1 + below(5),
    isRepeated: false,
    items: counted.changes.map((one) => ({ ...one, before: String(one.before), after: String(one.after) })),
  }
  const rule = policy.rules[verdict.allowed ? verdict.rule : (verdict.nearest ?? 0)]
  const isSessionless = rule?.kind === 'spend' && !rule.session
  const content = 'content' in request ? request.content : undefined
  // A vault can't sign the other kinds that are drawn to be refused.
  if (request.kind !== 'transaction' && content === undefined) throw new Error('drawn again')
  const ofVault = (address: Hex) =>
    JSON.parse(JSON.stringify(content).replace(new RegExp(`0x${'5a'.repeat(20)}`, 'gi'), address)) as TypedData
  return {
    signedAt: new Date(signedAtMs),
    ...(request.kind === 'transaction'
      ? { signing: { kind: 'transaction' as const }, txMetadata: request.txMetadata }
      : request.kind === 'message'
        ? { signing: { kind: 'message' as const, content: request.content } }
        : { signing: { kind: 'typed-data' as const, content: ofVault } }),
    vault: {
      policy,
      approve: drawApprovals(random, policy, signedAtMs),
      ...(budget && { budget: below(4) === 0 ? drawCount(random, budget) : budget }),
      ...(below(12) === 0 && { rule: below(5) }),
      ...(isSessionless && { isSessionless }),
    },
    ...((policy.log || below(5) === 0) && { log }),
  }
}

/** Draws a receipt: its content, up to two variations of the service, and its reader. */
export async function drawReceipt(random: Random): Promise<DrawnReceipt> {
  for (;;) {
    try {
      return await tryDraw(random)
    } catch (error) {
      // The simulator rejects some options. Other errors are ours.
      if (!(error instanceof Error) || error instanceof TypeError) throw error
    }
  }
}

async function tryDraw(random: Random): Promise<DrawnReceipt> {
  const { below, pick } = random
  const drawn = [pick(contents), ...Array.from({ length: pick([0, 0, 1, 1, 2]) }, () => pick(variations))].map((one) =>
    one(random),
  )
  const place = { treeSize: 5, leafIndex: 2, batchSequence: 3 }
  // With dstack, a reader needs events to know the code.
  const attested = below(3) > 0 && { config: { rootSecret: `attested:sha256:${'ab'.repeat(32)}` } }
  const merged = Object.assign({ signedAt: GOLDEN_SIGNED_AT, ...place, ...attested }, ...drawn.toReversed()) as Options
  if (below(5) > 0) {
    const { blocks, bytes, collateral, opening, owner, anchors, receipt, cid } = await service.issueV2(merged)
    const shown = opening ?? owner
    return {
      receipt: bytes,
      blocks: { ...blocks, collateral },
      ...(shown && below(6) > 0 && { opening: new TextEncoder().encode(JSON.stringify(shown)) }),
      reader: drawReader(random, { anchors, ...nameSignature(receipt), cid }),
    }
  }
  const { bytes, collateral, anchors, receipt, cid } = await service.issue(merged)
  return {
    receipt: bytes,
    blocks: { collateral },
    reader: drawReader(random, { anchors, ...nameSignature(receipt), cid }),
  }
}

type Issued = ReturnType<typeof nameSignature> & { anchors: Reader['anchors']; cid: string }

/** A reader who knows the service, as simulated or as hardware, and in half of the cases has a chain. */
function drawReader({ below, pick }: Random, { anchors, from, txHash, signedAt, cid }: Issued): Reader {
  const isHardware = below(2) === 0
  const roots = isHardware ? (asHardware().roots ?? []) : service.roots
  const contract = `0x${'ab'.repeat(20)}`
  const at = new Date(signedAt)
  const delays = [9_000, 9_000, -5_000, -5_001, 259_200_000, 259_200_001]
  const toEvent = () => {
    const blockTime = new Date(at.getTime() + pick(delays))
    const named = { contract: pick([contract, contract, contract, contract.toUpperCase().replace('X', 'x')]), cid }
    return { ...createEvent({ ...named, wallet: from, txHash, blockTime }), blockTime: blockTime.toISOString() }
  }
  const later = new Date(at.getTime() + pick([0, 31_536_000_000]))
  const collateral = () => {
    const simulator = createSimulator({ at: later })
    return JSON.stringify(simulator.collateral(below(2) === 0 ? {} : { faults: flag(pick(collateralFaults)) }))
  }
  return {
    roots: roots.map((root) => ({ ...root })),
    mockEntropyKeys: isHardware ? [] : service.mockEntropyKeys,
    anchors: { ...anchors, ...(below(2) === 0 && { contract }) },
    ...(below(2) === 0 && {
      chain: {
        events: Array.from({ length: pick([0, 1, 1, 1, 2]) }, toEvent),
        transaction: pick(['mined', 'pending', 'unknown'] as const),
      },
      ...(below(3) === 0 && { isEventDue: false }),
    }),
    ...(below(6) === 0 && {
      reevaluation: { at: later.toISOString(), collateral: Buffer.from(collateral()).toString('base64') },
    }),
  }
}
