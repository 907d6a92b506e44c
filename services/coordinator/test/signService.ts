import { createVerifier } from '@countersign/attestation'
import { createSimulator, simulatedRoots } from '@countersign/attestation/simulator'
import { createPolicy, hashPolicy, toPolicyBytes } from '@countersign/policy'
import { type Hex, hashMessage, type SignedBatch, type SignItem, toHex } from '@countersign/protocol'
import { createTx, toDigest } from '@countersign/testing/stack'
import { CoordinatorError } from '../src/errors.ts'
import { type SignDeps, signJobs } from '../src/sign/batchSigner.ts'
import { type BatchVerifierDeps, createBatchVerifier, createReleaser } from '../src/sign/checkBatch.ts'
import type { SignatureChecker } from '../src/sign/checkSignatures.ts'
import { type CommitDeps, createCommitter } from '../src/sign/commit.ts'
import type { SignContent } from '../src/sign/contents.ts'
import { createPlatformReader, createSimulatedCollateralStore } from '../src/sign/enclave/collateral/collateralStore.ts'
import type { SignJob, SignResult } from '../src/sign/job.ts'
import { createSignLog } from '../src/sign/signLog.ts'
import type { Store } from '../src/store/openStore.ts'
import { createManualTime } from './manualTime.ts'
import { createFakeEntropy, createFakeLog, createFakeRandom, createFakeSelfReport, createFakeWitness } from './ports.ts'
import type { SignedItemV2 } from './signingEnclave.ts'
import { createSigningEnclave, createTestWalletKey } from './signingEnclave.ts'
import { addLog, createFakeLogService } from './signingLog.ts'
import { createMemoryStore } from './store/memoryStore.ts'

export const NOW = Date.parse('2026-06-15T12:00:00.000Z')
export const alice = createTestWalletKey('alice')
export const bob = createTestWalletKey('bob')
export const vaultKey = createTestWalletKey('vault')
const wallets = new Map(
  [alice, bob, vaultKey].map(({ keyId }, index) => [keyId, `00000000-0000-4000-8000-00000000000${index}`]),
)

export function createJob(content: SignContent, { keyId, address } = alice): SignJob {
  return { sid: '51'.repeat(32), grant: 'grant', keyId, walletId: wallets.get(keyId) ?? '', address, content }
}

export function createTransfer(nonce: number, { wallet = alice, data = '0x' as Hex } = {}): SignJob {
  const txMetadata = createTx(nonce, { data })
  return createJob({ kind: 'transaction', digest: toDigest(txMetadata), txMetadata }, wallet)
}

export const createMessage = (): SignJob =>
  createJob({
    kind: 'message',
    content: { message: '0x68656c6c6f' },
    digest: `0x${toHex(hashMessage('0x68656c6c6f'))}`,
  })

export function createVaultTransfer(nonce: number, log: { witnesses: string[]; quorum: number } | null): SignJob {
  const rule = {
    kind: 'transaction',
    chainIds: 'any',
    to: 'any',
    maxValueWei: '1',
    maxFeeWei: '100000',
    approvers: 'any',
  } as const
  const policy = createPolicy({ version: 1, log, approvers: [], rules: [{ ...rule, approvals: 0 }] })
  const stored = { hash: toHex(hashPolicy(policy)), text: Buffer.from(toPolicyBytes(policy)).toString() }
  return { ...createTransfer(nonce, { wallet: vaultKey }), vault: { policy: stored, rules: policy } }
}

const COORDINATOR = 'c0'.repeat(32)

/** A job that a test's enclave signed, with the answer. `lie` changes the statement before it is quoted. */
export async function signJob(
  job: SignJob,
  item: SignItem,
  lie: (signed: SignedItemV2) => object = () => ({}),
): Promise<{ job: SignJob<'item' | 'leaf' | 'time'>; result: SignedItemV2 }> {
  const enclave = createSigningEnclave({
    clock: { now: () => NOW },
    coordinatorKey: COORDINATOR,
    wallets: [alice, bob, vaultKey],
  })
  enclave.stateV2 = (signed) => ({ ...signed, ...lie(signed as SignedItemV2) })
  const { batches, results } = await enclave.signItems([item])
  const batch = batches[0] as SignedBatch
  const call = { coordinatorKey: COORDINATOR, beganAt: NOW, endedAt: NOW }
  const leaf = { batch, index: 0, hash: batch.leaves[0] ?? '', call }
  return {
    job: { ...job, item, leaf, time: { signedAtMs: NOW, entryIndex: undefined } },
    result: results[0] as SignedItemV2,
  }
}

export const createGrant = ({ keyId } = alice) => ({
  sid: '51'.repeat(32),
  grant: 'grant',
  keyId,
  witness: createFakeWitness(0),
})

export type SignService = ReturnType<typeof createSignService>

/** A coordinator and its enclave, with or without a log. Store, entropy, timers, witnesses and the enclave's isolation are fakes. */
export function createSignService(
  signatures: SignatureChecker,
  {
    isLogged = false,
    logService = createFakeLogService(),
    store = createMemoryStore(),
  }: {
    isLogged?: boolean
    logService?: ReturnType<typeof createFakeLogService>
    store?: ReturnType<typeof createMemoryStore>
  } = {},
) {
  const time = createManualTime(new Date(NOW))
  const { clock } = time
  const selfReport = createFakeSelfReport()
  const entropy = createFakeEntropy()
  const log = createFakeLog()
  const signing = createSigningEnclave({
    clock,
    coordinatorKey: selfReport.publicKey,
    wallets: [alice, bob, vaultKey],
  })
  const parts: BatchVerifierDeps & Omit<CommitDeps, 'store'> = {
    verifier: createVerifier({ roots: simulatedRoots() }),
    policy: {},
    collateral: createSimulatedCollateralStore({ simulatorFactory: (at) => createSimulator({ at }), clock }),
    readPlatform: createPlatformReader(),
    releaser: createReleaser(selfReport),
    selfReport,
    clock,
    random: createFakeRandom(),
  }
  const inserted: Parameters<Store['insertSignings']>[0][] = []
  const insertSignings: Store['insertSignings'] = (parameters) => {
    inserted.push(parameters)
    return store.insertSignings(parameters)
  }
  const enclave = isLogged ? addLog(signing) : undefined
  /** The store's answers about earlier signatures, in turn. */
  const found: (SignResult | undefined)[] = []
  const finder: Pick<Store, 'findSigned'> = {
    async findSigned() {
      const signed = found.shift()
      return signed === undefined ? [] : [{ walletId: '', digest: null, ...signed }]
    },
  }
  const signLog =
    enclave &&
    createSignLog({
      logService,
      enclave,
      log,
      schedule: time.schedule,
      store: { findSigned: (pairs) => finder.findSigned(pairs) },
    })
  function toDeps(): SignDeps {
    return {
      entropy,
      clock,
      selfReport,
      signatures,
      log,
      signLog,
      enclave: enclave ?? signing,
      verifyBatch: createBatchVerifier(parts),
      commit: createCommitter({ ...parts, store: { insertSignings } }),
      receiptVersion: isLogged ? 2 : 1,
    }
  }
  const sent = { times: 0 }

  /** The answers in order of arrival. */
  function start(jobs: readonly SignJob[], changes: Partial<SignDeps> = {}) {
    // Each run has separate jobs, like each call of a route.
    const copies = jobs.map((job) => ({ ...job }))
    const answers = new Map<SignJob, PromiseSettledResult<SignResult>>()
    const over = signJobs({ ...toDeps(), ...changes }, copies, {
      onSent() {
        sent.times += 1
      },
      answer(job, settled) {
        if (!answers.has(job)) answers.set(job, settled)
      },
    })
    const settled = () => copies.map((job) => answers.get(job))
    const outcomes = () => settled().map(toOutcome)
    return { over, settled, outcomes }
  }
  /** Codes instead of reasons. */
  async function sign(...jobs: SignJob[]) {
    const { over, outcomes } = start(jobs)
    await over
    return outcomes()
  }
  return {
    time,
    clock,
    parts,
    store,
    signing,
    logService,
    entropy,
    log,
    inserted,
    found,
    finder,
    sent,
    selfReport,
    // Tests of a log request one.
    enclave: enclave as ReturnType<typeof addLog>,
    toDeps,
    start,
    sign,
  }
}

function toOutcome(settled: PromiseSettledResult<SignResult> | undefined) {
  if (settled === undefined) return undefined
  if (settled.status === 'fulfilled') return 'signed'
  return settled.reason instanceof CoordinatorError ? settled.reason.code : settled.reason
}
