import { mkdirSync, writeFileSync } from 'node:fs'
import type { TrustedRoot } from '@countersign/attestation'
import { createSimulator, developmentSeed } from '@countersign/attestation/simulator'
import { createPolicy, type Policy } from '@countersign/policy'
import { type Opening, toHex, type VaultBudget, withholdHalf } from '@countersign/protocol'
import {
  type Anchors,
  type ChainLog,
  type CheckReceiptOptions,
  encodeReceiptCar,
  nameSignature,
  type StepId,
  type StepStatus,
  type Verdict,
} from '@countersign/receipt'
import {
  createSimulatedLog,
  type SimulatedAttestation,
  type SimulatedAttestationOptions,
} from '@countersign/receipt/simulator'
import { sha256 } from '@noble/hashes/sha2.js'
import { createEvent, service } from '../test/checkReceipt.ts'
import { approved, approvedTwice, approveWith, goldenVaults } from '../test/vaults.ts'
import { GOLDEN_SIGNED_AT, goldenSignings, parseGolden } from './createSpecFiles.ts'
import { createFaultTamperings } from './tamperedFaults.ts'
import { goldenLog } from './tamperedLog.ts'

/* Receipts of version 2 with what a reader adds, and the result: golden-v2/cases. */

const witnesses = createSimulatedLog(developmentSeed, goldenLog).setting
const loggedPolicy: Policy = createPolicy({
  ...approved,
  log: { witnesses: witnesses.witnesses, quorum: witnesses.quorum },
})
const countedVault = goldenVaults.eip3009.vault as NonNullable<SimulatedAttestationOptions['vault']> & {
  budget: VaultBudget
}
const vlek = { signingKey: 'vlek' } as const
const events = ['compose-hash', 'app-id', 'key-provider'].map((name, index) => ({ name, payload: `c${index}` }))
const turinTcb = { fmc: 1, bootLoader: 2, tee: 3, snp: 4, microcode: 5 }

/** New receipts. */
const caseReceipts = {
  message: { signing: { kind: 'message' } },
  beacon: { isBeacon: true },
  /** Its secret is not dstack's, which needs events. */
  attested: { config: { rootSecret: `attested:sha256:${'ab'.repeat(32)}` } },
  revocations: { revocations: {} },
  'revoked-ask': { revocations: { revoked: ['ask'] } },
  'revoked-serial-0': { revocations: { revoked: ['ek'] } },
  vlek: { report: vlek, certificates: vlek },
  genoa: { report: { product: 'Genoa' }, certificates: { product: 'Genoa' } },
  turin: {
    report: { product: 'Turin', reportedTcb: turinTcb },
    certificates: { product: 'Turin', tcb: turinTcb },
  },
  dstack: { events },
  'attested-events': { events, config: { rootSecret: `attested:sha256:${'ab'.repeat(32)}` } },
  'old-sample': { sampleAgeMs: 65_000 },
  'older-sample': { sampleAgeMs: 65_001 },
  'younger-sample': { sampleAgeMs: -5_001 },
  'unordered-settings': { settings: { implementations: [`0x${'7e'.repeat(20)}`, `0x${'01'.repeat(20)}`] } },
  'low-quorum': { log: goldenLog, settings: { log: { ...witnesses, quorum: 1 } } },
  'invalid-witness': {
    log: goldenLog,
    settings: { log: { ...witnesses, witnesses: ['02'.padEnd(64, '0'), ...witnesses.witnesses], quorum: 3 } },
  },
  'unordered-approvals': {
    vault: { policy: approvedTwice, approve: approveWith(approvedTwice, { by: [1, 0] }) },
  },
  'unsigned-source': { unsignedSource: 'example', settings: { entropy: [{ kind: 'unsigned' }] } },
  'report-of-year-0': { fetchedAt: '0000-01-01T00:00:00.000Z' },
  'report-of-30-february': { fetchedAt: '2026-02-30T12:00:00.000Z' },
  'report-after-signing': { fetchedAt: new Date(GOLDEN_SIGNED_AT.getTime() + 5_001).toISOString() },
  relaunch: { quote: { status: 'TDRelaunchAdvised' } },
  miscounted: {
    ...goldenVaults.eip3009,
    vault: { ...countedVault, budget: { ...countedVault.budget, items: countedVault.budget.items.slice(0, 1) } },
  },
  'logged-vault': { log: goldenLog, vault: { policy: loggedPolicy, approve: approveWith(loggedPolicy) } },
} as const satisfies Record<string, Partial<SimulatedAttestationOptions>>

/** Receipts of other folders that cases are about. */
const otherReceipts = {
  transaction: { signing: goldenSignings.transaction },
  'off-chain': { signing: goldenSignings['off-chain'] },
  logged: { log: goldenLog },
  'vaults/off-chain': goldenVaults['off-chain'],
  'vaults/address': goldenVaults.address,
  'vaults/transfer': goldenVaults.transfer,
  'vaults/eip3009': goldenVaults.eip3009,
  'vaults/revocation': goldenVaults.revocation,
  'vaults/bound': goldenVaults.bound,
} as const satisfies Record<string, Partial<SimulatedAttestationOptions>>

type OtherName = keyof typeof otherReceipts
type NewName = keyof typeof caseReceipts

export type Case = {
  name: string
  /** The receipt's folder in golden-v2. */
  receipt: string
  /** Blocks that the reader does not have. */
  without?: ('release' | 'batch' | 'coordinator' | 'collateral')[]
  /** The text of an opening. */
  opening?: string
  reader?: {
    /** The simulated roots count as hardware, and no source as simulated. */
    isHardware?: true
    /** In place of the simulated roots in golden/expected.json. */
    roots?: readonly TrustedRoot[]
    /** Members that replace those of the receipt's anchors. A null leaves the member out. */
    anchors?: { [Name in keyof Anchors]?: Anchors[Name] | null }
    policy?: NonNullable<CheckReceiptOptions['policy']>
    /** AMD's list, DER in hex. */
    revocations?: { list: string; at: string }
    chain?: { events: CaseEvent[]; transaction: 'mined' | 'pending' | 'unknown' }
    isEventDue?: false
    reevaluation?: { at: string; collateral: string }
  }
  verdict: Verdict
  /** Results of some steps. */
  steps: Partial<Record<StepId, StepStatus>>
}

export type CaseEvent = Omit<ChainLog, 'blockTime'> & { blockTime: string }

/** A change to `transaction.car`: its sections in another order, then bytes replaced. `error` is null if a reader accepts the file. */
export type CarCase = {
  name: string
  sections?: CarBlock[]
  replace?: { start: number; end: number; hex: string }
  error: 'car_malformed' | 'car_mismatch' | null
  verdict?: Verdict
}
export type CarBlock = 'attestation' | 'release' | 'coordinator' | 'batch' | 'collateral'

const CAR_ORDER: readonly CarBlock[] = ['attestation', 'release', 'coordinator', 'batch', 'collateral']

/** The files, by their path in this folder. */
export async function createCaseFiles(): Promise<Map<string, string | Uint8Array>> {
  const files = new Map<string, string | Uint8Array>()
  const issued: Record<string, SimulatedAttestation> = {}
  const receipts: Record<string, object> = {}
  const entries = Object.entries({ ...otherReceipts, ...caseReceipts }) as [
    string,
    Partial<SimulatedAttestationOptions>,
  ][]
  for (const [name, options] of entries) {
    const issue = await service.issueV2({ ...golden, ...options })
    const { cid, anchors } = issue
    const folder = name in caseReceipts ? `cases/${name}` : name
    issued[name] = issue
    receipts[folder] = { cid, anchors, carSha256: toHex(sha256(encodeReceiptCar(issue))) }
    const { blocks } = issued.transaction ?? issue
    if (name in caseReceipts) addReceipt(files, `golden-v2/${folder}`, issue, blocks.coordinator)
  }
  const get = (name: OtherName | NewName) => issued[name] as SimulatedAttestation
  files.set('golden-v2/cases/transaction.car', encodeReceiptCar(get('transaction')))
  files.set('golden-v2/cases/collateral-2028.json', JSON.stringify(later.collateral(), undefined, 2))
  const cases = [...createKindCases(), ...createOpeningCases(get), ...createReaderCases(get), ...createChainCases(get)]
  files.set('golden-v2/cases/cases.json', toJson({ receipts, cases }))
  const faulty = { transaction: get('transaction'), ...(await issueFaultReceipts()) }
  const parsed = Object.entries(faulty).map(([name, issue]) => [name, parseGolden(issue)] as const)
  files.set(
    'golden-v2/cases/tampered.json',
    toJson(createFaultTamperings(Object.fromEntries(parsed) as Parameters<typeof createFaultTamperings>[0])),
  )
  files.set('golden-v2/cases/cars.json', toJson(createCarCases(get('transaction'))))
  return files
}

/** Receipts of other folders for `createFaultTamperings`. */
export async function issueFaultReceipts() {
  const authorization = await service.issueV2({ ...golden, signing: goldenSignings.authorization })
  const address = await service.issueV2({ ...golden, ...goldenVaults['wallet-address'] })
  return { authorization, 'vaults/wallet-address': address }
}

type Get = (name: OtherName | NewName) => SimulatedAttestation

const golden = { signedAt: GOLDEN_SIGNED_AT, treeSize: 5, leafIndex: 2, batchSequence: 3 }
const LATER = '2028-06-15T12:00:00.000Z'
const later = createSimulator({ at: new Date(LATER) })

const faults: [name: string, receipt: string, step: StepId][] = [
  ['settings whose lists are out of order', 'cases/unordered-settings', 'config'],
  ['settings with a quorum of less than half', 'cases/low-quorum', 'log'],
  ['settings with a witness key that is not a point', 'cases/invalid-witness', 'log'],
  ['a source that does not sign, named in the settings', 'cases/unsigned-source', 'entropy'],
  ['a coordinator’s report of a day that does not exist', 'cases/report-of-30-february', 'time'],
  ['a coordinator’s report of 5.001 s after the signing', 'cases/report-after-signing', 'time'],
  ['approvals out of order', 'cases/unordered-approvals', 'vault-approvals'],
]

const products = [
  { product: 'Genoa', receipt: 'cases/genoa', minimum: { bl: 4, snp: 24, ucode: 219 } },
  { product: 'Turin', receipt: 'cases/turin', minimum: { fmc: 1, bl: 2, tee: 3, snp: 4, ucode: 5 } },
] as const

function createKindCases(): Case[] {
  const plain = (name: string, receipt: string, steps: Case['steps'] = {}): Case => {
    return { name, receipt, verdict: 'mock', steps }
  }
  const half: Partial<Record<StepId, StepStatus>> = { blocks: 'skip', digest: 'pass' }
  return [
    plain('a message without its opening', 'cases/message', { opening: 'skip', digest: 'skip', signature: 'skip' }),
    plain('a round of drand as the sample', 'cases/beacon', { entropy: 'pass', 'entropy-key': 'pass' }),
    plain('a vault whose policy names witnesses of the log', 'cases/logged-vault', {
      log: 'pass',
      'vault-policy': 'pass',
      'vault-rule': 'pass',
      'vault-approvals': 'pass',
    }),
    plain('a payment from a budget, by an agent without a session', 'vaults/transfer', {
      'vault-rule': 'pass',
      'vault-approvals': 'pass',
      'vault-budget': 'pass',
    }),
    plain('a payment from a budget as typed data, without its opening', 'vaults/eip3009', {
      'vault-rule': 'skip',
      'vault-approvals': 'skip',
      'vault-budget': 'skip',
    }),
    plain('a revocation by a passkey without a session', 'vaults/revocation', {
      'vault-rule': 'pass',
      'vault-approvals': 'pass',
    }),
    plain('a transaction in a session with a browser key', 'vaults/bound', { statement: 'pass' }),
    plain('a coordinator’s report of the year 0', 'cases/report-of-year-0', { time: 'pass' }),
    plain('AMD’s revocation list in the coordinator block', 'cases/revocations', { 'coordinator-revocation': 'pass' }),
    ...(['cases/revoked-ask', 'cases/revoked-serial-0'] as const).map((receipt): Case => {
      const name = `a list in the coordinator block that names ${receipt === 'cases/revoked-ask' ? 'the ASK' : 'serial number 0'}`
      return { name, receipt, verdict: 'failed', steps: { 'coordinator-revocation': 'fail' } }
    }),
    ...(['release', 'batch', 'coordinator'] as const).map((block): Case => {
      return { name: `no ${block}`, receipt: 'transaction', without: [block], verdict: 'incomplete', steps: half }
    }),
    {
      name: 'no collateral',
      receipt: 'transaction',
      without: ['collateral'],
      verdict: 'incomplete',
      steps: { blocks: 'pass', collateral: 'skip', quote: 'skip' },
    },
    ...faults.map(([name, receipt, step]): Case => ({ name, receipt, verdict: 'failed', steps: { [step]: 'fail' } })),
    { name: 'a VLEK', receipt: 'cases/vlek', verdict: 'failed', steps: { 'coordinator-policy': 'fail' } },
    {
      name: 'a VLEK, for a reader who accepts VLEKs and lists no chips',
      receipt: 'cases/vlek',
      reader: { policy: { coordinator: { signingKeys: ['VLEK'] } }, anchors: { coordinatorChips: null } },
      verdict: 'mock',
      steps: { 'coordinator-report': 'pass', 'coordinator-policy': 'pass', 'coordinator-chip': 'skip' },
    },
    {
      name: 'a VLEK, for a reader who accepts VLEKs and lists its CHIP_ID',
      receipt: 'cases/vlek',
      reader: { policy: { coordinator: { signingKeys: ['VLEK'] } } },
      verdict: 'failed',
      steps: { 'coordinator-policy': 'pass', 'coordinator-chip': 'fail' },
    },
    ...products.map(({ product, receipt, minimum }): Case => {
      return {
        name: `a coordinator on ${product}`,
        receipt,
        reader: {
          roots: [later.intelRoot, later.amdRootOf(product)],
          anchors: { coordinatorMinimumTcb: { [product]: minimum } },
        },
        verdict: 'mock',
        steps: { 'coordinator-report': 'pass', 'coordinator-policy': 'pass', 'coordinator-chip': 'pass' },
      }
    }),
    {
      name: 'a coordinator on Turin, one patch level too low',
      receipt: 'cases/turin',
      reader: {
        roots: [later.intelRoot, later.amdRootOf('Turin')],
        anchors: { coordinatorMinimumTcb: { Turin: { fmc: 2 } } },
      },
      verdict: 'failed',
      steps: { 'coordinator-report': 'pass', 'coordinator-policy': 'fail' },
    },
    {
      name: 'a coordinator on Turin, for a reader without its root',
      receipt: 'cases/turin',
      verdict: 'failed',
      steps: { 'coordinator-report': 'fail' },
    },
    {
      name: 'a quote of version 5 with the status TDRelaunchAdvised',
      receipt: 'cases/relaunch',
      verdict: 'failed',
      steps: { quote: 'pass', 'quote-policy': 'fail' },
    },
    {
      name: 'a quote with the status TDRelaunchAdvised, for a reader who accepts it',
      receipt: 'cases/relaunch',
      reader: { policy: { signer: { statuses: ['UpToDate', 'TDRelaunchAdvised'] } } },
      verdict: 'mock',
      steps: { quote: 'pass', 'quote-policy': 'pass' },
    },
  ]
}

function createOpeningCases(get: Get): Case[] {
  const of = (receipt: OtherName | NewName) => get(receipt).opening as Opening
  const text = JSON.stringify(of('off-chain'))
  const opened = (name: string, receipt: string, opening: string, steps: Case['steps']): Case => {
    return { name, receipt, opening, verdict: 'mock', steps: { opening: 'pass', ...steps } }
  }
  const both = { digest: 'pass', signature: 'pass' } as const
  const allowed = { 'vault-rule': 'pass', 'vault-approvals': 'pass' } as const
  const unknown = { 'vault-rule': 'skip', 'vault-approvals': 'skip' } as const
  const hidden = withholdHalf(of('off-chain'), 'content').content as string
  const alsoHidden = withholdHalf(of('off-chain'), 'signature').signature as string
  const content = JSON.stringify(withholdHalf(of('off-chain'), 'signature'))
  const signature = JSON.stringify(withholdHalf(of('off-chain'), 'content'))
  const refused: [name: string, opening: string][] = [
    ['both halves withheld', JSON.stringify({ content: hidden, signature: alsoHidden })],
    ['a number with a decimal point', text.replace('31337', '31337.0')],
    ['a number with an exponent', text.replace('31337', '3.1337e4')],
    ['another number', text.replace('31337', '31338')],
    [
      'a digest in upper case',
      text.replace(/"digest":"0x\w+"/, (member) =>
        member.toUpperCase().replace('DIGEST', 'digest').replace('0X', '0x'),
      ),
    ],
    ['a member twice', text.replace('{', `{"content":"${hidden}",`)],
    ['a member too many', text.replace('{', '{"note":1,')],
    ['a byte order mark', `\ufeff${text}`],
    ['an empty list of approvals', text.replace('{"content":{', '{"content":{"approvals":[],')],
    ['another salt', text.replace(/"salt":"../, '"salt":"00')],
    ['the opening of another signature', JSON.stringify(of('message'))],
    ['a text that is not JSON', `${text}}`],
  ]
  return [
    opened('a message, both halves', 'cases/message', JSON.stringify(of('message')), both),
    opened('a message, only the content', 'cases/message', JSON.stringify(withholdHalf(of('message'), 'signature')), {
      digest: 'pass',
      signature: 'skip',
    }),
    opened('a message, only the signature', 'cases/message', JSON.stringify(withholdHalf(of('message'), 'content')), {
      digest: 'skip',
      signature: 'skip',
    }),
    opened('typed data, both halves', 'off-chain', text, both),
    opened('typed data, only the content', 'off-chain', content, { digest: 'pass', signature: 'skip' }),
    opened('typed data, only the signature', 'off-chain', signature, { digest: 'skip', signature: 'skip' }),
    opened('white space around members', 'off-chain', JSON.stringify(of('off-chain'), undefined, '\t'), both),
    opened('an escaped letter', 'off-chain', text.replace('"content"', '"\\u0063ontent"'), both),
    opened('typed data of a vault, both halves', 'vaults/off-chain', JSON.stringify(of('vaults/off-chain')), {
      ...both,
      ...allowed,
    }),
    opened(
      'typed data of a vault, only the content',
      'vaults/off-chain',
      JSON.stringify(withholdHalf(of('vaults/off-chain'), 'signature')),
      { digest: 'pass', signature: 'skip', ...allowed },
    ),
    opened(
      'typed data of a vault, only the signature',
      'vaults/off-chain',
      JSON.stringify(withholdHalf(of('vaults/off-chain'), 'content')),
      { digest: 'skip', signature: 'skip', ...unknown },
    ),
    ...refused.map(([name, opening]): Case => {
      return { name: `rejected: ${name}`, receipt: 'off-chain', opening, verdict: 'failed', steps: { opening: 'fail' } }
    }),
    opened('the owner of an address', 'vaults/address', JSON.stringify(get('vaults/address').owner), {}),
    opened('a payment from a budget as typed data', 'vaults/eip3009', JSON.stringify(of('vaults/eip3009')), {
      ...both,
      ...allowed,
      'vault-budget': 'pass',
    }),
    {
      ...opened('typed data counted against one budget of two', 'cases/miscounted', JSON.stringify(of('miscounted')), {
        ...allowed,
        'vault-budget': 'fail',
      }),
      verdict: 'failed',
    },
    {
      name: 'rejected: an opening for a transaction',
      receipt: 'transaction',
      opening: text,
      verdict: 'failed',
      steps: { opening: 'fail' },
    },
  ]
}

function createReaderCases(get: Get): Case[] {
  const [measurement] = get('attested').anchors.measurements
  const [code = ''] = get('attested').anchors.coordinatorMeasurements
  const lists = createSimulator({ at: GOLDEN_SIGNED_AT })
  const at = GOLDEN_SIGNED_AT.toISOString()
  const registers = (name: NewName) => get(name).anchors.measurements
  const withoutRtmr3 = (name: NewName) => registers(name).map(({ rtmr3: _, ...others }) => others)
  const payloads = Object.fromEntries(events.map(({ name, payload }) => [name, [payload]]))
  const otherPayloads = { ...payloads, 'compose-hash': ['ff'] }
  const { 'key-provider': _, ...twoPayloads } = payloads
  const eventful = (
    name: string,
    receipt: 'dstack' | 'attested-events',
    anchors: Anchors,
    status: StepStatus,
    isHardware?: true,
  ): Case => ({
    name,
    receipt: `cases/${receipt}`,
    reader: { ...(isHardware && { isHardware }), anchors },
    verdict: status === 'fail' ? 'failed' : status === 'skip' ? 'unknown-code' : isHardware ? 'unbounded' : 'mock',
    steps: { quote: 'pass', measurement: status },
  })
  const read = (name: string, reader: Case['reader'] & object, verdict: Verdict, steps: Case['steps']): Case => {
    return { name, receipt: 'transaction', reader, verdict, steps }
  }
  const real = (
    name: string,
    anchors: NonNullable<Case['reader']>['anchors'] & object,
    verdict: Verdict,
    steps: Case['steps'],
  ): Case => {
    return { name, receipt: 'cases/attested', reader: { isHardware: true, anchors }, verdict, steps }
  }
  const list = (name: string, receipt: string, revoked: ('ask' | 'asvk')[], status: StepStatus): Case => ({
    name,
    receipt,
    reader: { revocations: { list: toHex(lists.revocations({ revoked })), at } },
    verdict: status === 'fail' ? 'failed' : 'mock',
    steps: { 'coordinator-revocation': status },
  })
  const other = '00'.repeat(32)
  return [
    real('no measurements', { measurements: null }, 'unknown-code', { measurement: 'skip' }),
    real('an empty list of measurements', { measurements: [] }, 'unknown-code', { measurement: 'skip' }),
    real(
      'a measurement without RTMR3',
      { measurements: [{ ...measurement, rtmr3: undefined }] as never },
      'unknown-code',
      { measurement: 'skip' },
    ),
    real(
      'a measurement of the coordinator without HOST_DATA',
      { coordinatorMeasurements: [code.slice(0, 96)] },
      'unknown-code',
      { 'coordinator-measurement': 'skip' },
    ),
    real(
      'a measurement of the coordinator with other HOST_DATA',
      { coordinatorMeasurements: [`${code.slice(0, 96)}:${'01'.repeat(32)}`] },
      'failed',
      { 'coordinator-measurement': 'fail' },
    ),
    real('no patch levels', { coordinatorMinimumTcb: null }, 'unknown-code', { 'coordinator-policy': 'skip' }),
    real('patch levels for no product', { coordinatorMinimumTcb: {} }, 'failed', { 'coordinator-policy': 'fail' }),
    real('patch levels for another product', { coordinatorMinimumTcb: { Genoa: { snp: 1 } } }, 'failed', {
      'coordinator-policy': 'fail',
    }),
    real('no patch level above 0', { coordinatorMinimumTcb: { Milan: { snp: 0 } } }, 'unknown-code', {
      'coordinator-policy': 'skip',
    }),
    real('a patch level above that of the chip', { coordinatorMinimumTcb: { Milan: { snp: 25 } } }, 'failed', {
      'coordinator-policy': 'fail',
    }),
    real('no chips, for a Milan under a root of hardware', { coordinatorChips: null }, 'failed', {
      'coordinator-chip': 'fail',
    }),
    read('no chips, for a simulated Milan', { anchors: { coordinatorChips: null } }, 'mock', {
      'coordinator-chip': 'skip',
    }),
    real('no entropy keys', { entropyKeys: null }, 'unknown-code', { 'entropy-key': 'skip' }),
    real('the other key of a source', { entropyKeys: [other] }, 'failed', { 'entropy-key': 'fail' }),
    read('no entropy keys, for a simulated source', { anchors: { entropyKeys: null } }, 'mock', {
      'entropy-key': 'pass',
    }),
    read('another entropy key, for a simulated source', { anchors: { entropyKeys: [other] } }, 'failed', {
      'entropy-key': 'fail',
    }),
    eventful(
      'dstack: seven registers and three events',
      'dstack',
      { measurements: withoutRtmr3('dstack'), events: payloads },
      'pass',
      true,
    ),
    eventful(
      'dstack: seven registers and two events',
      'dstack',
      { measurements: withoutRtmr3('dstack'), events: twoPayloads },
      'skip',
      true,
    ),
    eventful(
      'dstack: another payload',
      'dstack',
      { measurements: withoutRtmr3('dstack'), events: otherPayloads },
      'fail',
      true,
    ),
    eventful('dstack: eight registers without events', 'dstack', { measurements: registers('dstack') }, 'skip', true),
    eventful(
      'dstack: eight registers without events, simulated',
      'dstack',
      { measurements: registers('dstack') },
      'pass',
    ),
    eventful(
      'dstack: eight registers and another payload',
      'dstack',
      { measurements: registers('dstack'), events: otherPayloads },
      'fail',
    ),
    eventful(
      'not dstack: eight registers and another payload',
      'attested-events',
      { measurements: registers('attested-events'), events: otherPayloads },
      'pass',
      true,
    ),
    {
      name: 'a sample of 65 s before the signing',
      receipt: 'cases/old-sample',
      verdict: 'mock',
      steps: { time: 'pass' },
    },
    {
      name: 'a sample of 65.001 s before the signing',
      receipt: 'cases/older-sample',
      verdict: 'failed',
      steps: { time: 'fail' },
    },
    {
      name: 'a sample of 5.001 s after the signing',
      receipt: 'cases/younger-sample',
      verdict: 'failed',
      steps: { time: 'fail' },
    },
    read('another machine', { anchors: { platforms: [{ fmspc: '00'.repeat(6) }] } }, 'failed', { platform: 'fail' }),
    read(
      'witnesses, for a receipt without a log',
      { anchors: { logWitnesses: [{ witnesses: [...witnesses.witnesses], quorum: 2 }] } },
      'failed',
      { log: 'fail' },
    ),
    {
      name: 'witnesses that cosigned',
      receipt: 'logged',
      reader: { anchors: { logWitnesses: [{ witnesses: [...witnesses.witnesses], quorum: 2 }] } },
      verdict: 'mock',
      steps: { log: 'pass' },
    },
    {
      name: 'a higher quorum than cosigned',
      receipt: 'logged',
      reader: { anchors: { logWitnesses: [{ witnesses: [...witnesses.witnesses], quorum: 3 }] } },
      verdict: 'failed',
      steps: { log: 'fail' },
    },
    list('the reader’s revocation list names the ASK', 'transaction', ['ask'], 'fail'),
    list('the reader’s revocation list names only the ASVK', 'transaction', ['asvk'], 'pass'),
    list('the reader’s revocation list replaces the one in the block', 'cases/revoked-ask', [], 'pass'),
    read(
      'fresh collateral at a later time, with white space',
      { reevaluation: { at: LATER, collateral: 'collateral-2028.json' } },
      'mock',
      { quote: 'pass', reevaluation: 'pass' },
    ),
    read(
      'the receipt’s own collateral at a later time',
      { reevaluation: { at: LATER, collateral: '../../golden/collateral.json' } },
      'failed',
      { quote: 'pass', reevaluation: 'fail' },
    ),
  ]
}

function createChainCases(get: Get): Case[] {
  const contract = `0x${'ab'.repeat(20)}`
  const { receipt, cid } = get('attested')
  const { from: wallet, txHash } = nameSignature(receipt)
  const event = (delayMs: number, changes: { contract?: string; cid?: string } = {}): CaseEvent => {
    const blockTime = new Date(GOLDEN_SIGNED_AT.getTime() + delayMs)
    const made = createEvent({ contract, wallet, txHash, cid, blockTime, ...changes })
    return { ...made, blockTime: blockTime.toISOString() }
  }
  const chain = (
    name: string,
    events: CaseEvent[],
    verdict: Verdict,
    steps: Case['steps'],
    transaction: 'mined' | 'pending' | 'unknown' = 'mined',
    changes: { isEventDue?: false } = {},
  ): Case => {
    return {
      name,
      receipt: 'cases/attested',
      reader: { isHardware: true, anchors: { contract }, chain: { events, transaction }, ...changes },
      verdict,
      steps,
    }
  }
  const bounded = { event: 'pass', time: 'pass', 'time-bound': 'pass' } as const
  const { cid: otherCid } = get('transaction')
  return [
    chain('an event after 9 s', [event(9_000)], 'verified', { ...bounded, transaction: 'pass' }),
    chain(
      'an event after 9 s, the transaction pending',
      [event(9_000)],
      'verified',
      { ...bounded, transaction: 'skip' },
      'pending',
    ),
    chain(
      'an event after 9 s, the transaction unknown',
      [event(9_000)],
      'verified',
      { ...bounded, transaction: 'skip' },
      'unknown',
    ),
    chain('an event 5 s before the signing', [event(-5_000)], 'verified', bounded),
    chain('an event 5.001 s before the signing', [event(-5_001)], 'failed', { event: 'pass', time: 'fail' }),
    chain('an event after 72 h', [event(259_200_000)], 'verified', bounded),
    chain('an event after 72 h and 1 ms', [event(259_200_001)], 'late', { ...bounded, 'time-bound': 'skip' }),
    chain('two events, the earlier in time', [event(259_200_001), event(9_000)], 'verified', bounded),
    chain(
      'an event of another CID, and one of this CID',
      [event(8_000, { cid: otherCid }), event(9_000)],
      'verified',
      bounded,
    ),
    chain('only an event of another CID', [event(9_000, { cid: otherCid })], 'failed', { event: 'fail' }),
    chain('only an event of another contract', [event(9_000, { contract: `0x${'cd'.repeat(20)}` })], 'failed', {
      event: 'fail',
    }),
    chain('no event', [], 'failed', { event: 'fail' }),
    chain('no event, and none is due yet', [], 'unbounded', { event: 'skip', 'time-bound': 'skip' }, 'mined', {
      isEventDue: false,
    }),
    {
      name: 'no chain',
      receipt: 'cases/attested',
      reader: { isHardware: true },
      verdict: 'unbounded',
      steps: { event: 'skip', 'time-bound': 'skip' },
    },
    {
      name: 'no chain, and no measurements',
      receipt: 'cases/attested',
      reader: { isHardware: true, anchors: { measurements: null } },
      verdict: 'unknown-code',
      steps: { measurement: 'skip', 'time-bound': 'skip' },
    },
  ]
}

function createCarCases(issue: SimulatedAttestation): CarCase[] {
  const { length } = encodeReceiptCar(issue)
  const without = (...blocks: CarBlock[]) => CAR_ORDER.filter((block) => !blocks.includes(block))
  const replace = (start: number, end: number, hex: string) => ({ replace: { start, end, hex } })
  return [
    { name: 'the file as it is', error: null, verdict: 'mock' },
    { name: 'another order', sections: [...CAR_ORDER].reverse(), error: null, verdict: 'mock' },
    { name: 'without the batch', sections: without('batch'), error: null, verdict: 'incomplete' },
    { name: 'without the collateral', sections: without('collateral'), error: null, verdict: 'incomplete' },
    { name: 'only the attestation', sections: ['attestation'], error: null, verdict: 'incomplete' },
    { name: 'without the release', sections: without('release'), error: 'car_mismatch' },
    { name: 'without the attestation', sections: without('attestation'), error: 'car_mismatch' },
    { name: 'a block twice', sections: [...CAR_ORDER, 'batch'], error: 'car_malformed' },
    { name: 'version 2 in the header', ...replace(58, 59, '02'), error: 'car_malformed' },
    { name: 'a codec other than raw in the header', ...replace(15, 16, '70'), error: 'car_malformed' },
    { name: 'a root that is not in the file', ...replace(49, 50, 'ff'), error: 'car_mismatch' },
    { name: 'a byte of a block changed', ...replace(length - 1, length, '00'), error: 'car_mismatch' },
    { name: 'a byte after the end', ...replace(length, length, '00'), error: 'car_malformed' },
    {
      name: 'an empty block',
      ...replace(length, length, `24015512${'20'}${toHex(sha256(new Uint8Array()))}`),
      error: 'car_malformed',
    },
    {
      name: 'a longer form of a length',
      ...replace(length, length, `a58000015512${'20'}${toHex(sha256(Uint8Array.of(0)))}00`),
      error: 'car_malformed',
    },
    {
      name: 'a block that the receipt does not name',
      ...replace(length, length, `25015512${'20'}${toHex(sha256(Uint8Array.of(0)))}00`),
      error: 'car_mismatch',
    },
  ]
}

function addReceipt(
  files: Map<string, string | Uint8Array>,
  folder: string,
  { bytes, blocks, opening }: SimulatedAttestation,
  sharedCoordinator: Uint8Array,
) {
  const { coordinator, ...others } = blocks
  files.set(`${folder}/attestation.json`, bytes)
  for (const [name, block] of Object.entries(others))
    if (block !== undefined) files.set(`${folder}/${name}.json`, block)
  if (toHex(coordinator) !== toHex(sharedCoordinator)) files.set(`${folder}/coordinator.json`, coordinator)
  if (opening !== undefined) files.set(`${folder}/opening.json`, toJson(opening))
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

if (import.meta.main) {
  for (const [path, content] of await createCaseFiles()) {
    const file = new URL(path, import.meta.url)
    mkdirSync(new URL('.', file), { recursive: true })
    writeFileSync(file, content)
  }
}
