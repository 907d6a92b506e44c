import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  assertCosigned,
  createConsistencyProof,
  createInclusionProof,
  createLeafReader,
  decodeLogEntry,
  formatAddCheckpoint,
  hashLogEntry,
  parseCheckpoint,
  parseNote,
  parseVkey,
  toVkey,
} from '@countersign/log'
import {
  type AttestResponse,
  enclavePaths,
  fromHex,
  hashLeaf,
  hashTreeLeaf,
  type LoggedItemsResponse,
  type LogRequest,
  type LogResponse,
  type OpenSessionResponse,
  type ReleaseRequest,
  type ReleaseResponse,
  toHex,
} from '@countersign/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createKeyFile, readSigners } from '../../witness/src/signers.ts'
import { createTestWitness } from '../../witness/test/witness.ts'
import { callEnclave, createTestCoordinator } from '../test/coordinator.ts'
import { type EnclaveProcess, startEnclave } from '../test/enclaveProcess.ts'
import { startTestIssuer, type TestIssuer } from '../test/issuer.ts'
import { toItem } from '../test/items.ts'
import { createWitness } from '../test/witness.ts'

/* An enclave process that requires its log, and three witnesses that are real except for their disk. */

const origins = ['log.example/a', 'log.example/b']
const allSigners = [1, 2, 3].map((index) =>
  readSigners(createKeyFile(`w${index}.example`, (length) => new Uint8Array(length).fill(index))),
)
const keys = allSigners.map(([signer]) => signer?.key as NonNullable<typeof signer>['key'])
const policy = { witnesses: keys.map(({ publicKey }) => toHex(publicKey)), quorum: 2 }
const coordinator = createTestCoordinator()
const other = createTestCoordinator()
let folder = ''
let issuer: TestIssuer
const running: EnclaveProcess[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logged-enclave-'))
  issuer = await startTestIssuer()
})
afterEach(async () => {
  for (const { kill } of running.splice(0)) await kill('SIGKILL')
})
afterAll(async () => {
  await issuer.close()
  await rm(folder, { recursive: true })
})

async function start() {
  const enclave = await startEnclave({
    ROOT_SECRET: `file:${folder}/root-secret`,
    OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
    MOCK_QUOTE_LATENCY_MS: '5',
    LOG_ORIGINS: origins.join(),
    LOG_WITNESSES: keys.map((key) => `${toVkey(key)}@https://${key.name}`).join(),
  })
  running.push(enclave)
  const call = async <Answer>(path: string, request: unknown, caller = coordinator) => {
    const { status, body } = await callEnclave(enclave.url, caller, path, request)
    if (status !== 200) throw new Error((body as { error: { code: string } }).error.code)
    return body as Answer
  }
  const attested = await call<AttestResponse>(enclavePaths.attest, { nonce: '11'.repeat(32) })
  return {
    ...enclave,
    attested,
    bootId: attested.bootId,
    openSession: async (subject: string) =>
      call<OpenSessionResponse>(enclavePaths.openSession, await issuer.login(subject)),
    sign: (items: readonly object[]) => call<LoggedItemsResponse>(enclavePaths.sign, { items }),
    log: async (request: LogRequest) => (await call<LogResponse>(enclavePaths.log, request)).log,
    release: async (request: Partial<ReleaseRequest>, caller = coordinator) => {
      const { statements } = await call<ReleaseResponse>(
        enclavePaths.release,
        { bootId: attested.bootId, ...request },
        caller,
      )
      return statements
    },
  }
}

type Enclave = Awaited<ReturnType<typeof start>>

/** A coordinator's copy of a log, and the witnesses that it asks. */
function createCoordinatorLog({ logs }: AttestResponse) {
  const known = new Map((logs?.keys ?? []).map((key) => [parseVkey(key).name, [parseVkey(key)]]))
  const clock = { now: Date.now }
  const witnesses = allSigners.map((signers) => createTestWitness({ logs: known, signers, clock }).witness)
  const leaves: Uint8Array[] = []
  const sizes = witnesses.map(() => 0)
  return {
    leaves,
    write({ from, entries }: { from: number; entries: readonly string[] }) {
      for (const [index, entry] of entries.entries()) leaves[from + index] = hashTreeLeaf(fromHex(entry))
    },
    /** Asks this many of them. */
    async cosign(checkpoint: string, count = 3) {
      const { size } = parseCheckpoint(parseNote(checkpoint).text)
      const replies = await Promise.all(
        witnesses.slice(0, count).map((witness, index) => {
          const oldSize = sizes[index] ?? 0
          sizes[index] = size
          const proof = oldSize === 0 ? [] : createConsistencyProof(createLeafReader(leaves), { oldSize, size })
          return witness.addCheckpoint(new TextEncoder().encode(formatAddCheckpoint({ oldSize, proof, checkpoint })))
        }),
      )
      expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
      const cosignatures = replies.map(({ body }) => body.trim().split('\n')[0] ?? '')
      return { checkpoint, cosignatures }
    },
  }
}

async function open(enclave: Enclave, start: Partial<LogRequest['start']> = {}) {
  const log = await enclave.log({ start: { origin: origins[0] ?? '', checkpoint: null, hashes: [], ...start } })
  if (log === null) throw new Error('no log')
  return log
}

const toTransaction = (session: OpenSessionResponse, nonce: number, statementVersion = 2) => ({
  ...toItem(session, nonce),
  statementVersion,
})

const toMessage = ({ sid, grant, keyId }: OpenSessionResponse) => {
  const content = { message: '0x6869' }
  return { kind: 'message', sid, grant, keyId, content, witness: createWitness() }
}

const leafOf = ({ batches, results }: LoggedItemsResponse, index: number) => {
  const result = results[index]
  if (result === undefined || 'error' in result) throw new Error(result?.error)
  return batches[result.batch]?.leaves[result.leafIndex] ?? ''
}

/** An enclave with an open log, the coordinator's side of it, and a session. */
async function startOpen() {
  const enclave = await start()
  const logService = createCoordinatorLog(enclave.attested)
  const boot = await open(enclave)
  logService.write(boot)
  await enclave.release(await logService.cosign(boot.checkpoint))
  return { enclave, logService, alice: await enclave.openSession('alice') }
}

/** A signature that waits for its release, and the note for it. */
async function signOne({ enclave, logService, alice }: Awaited<ReturnType<typeof startOpen>>) {
  const signed = await enclave.sign([toTransaction(alice, 0)])
  logService.write(signed.log as NonNullable<typeof signed.log>)
  return { signed, cosigned: await logService.cosign(signed.log?.checkpoint ?? '') }
}

test('sign, log, witnesses, release: a statement is released last, and only to its coordinator', async () => {
  const enclave = await start()
  expect(enclave.attested.logs?.own).toEqual(origins)
  expect(enclave.attested.settings.log).toEqual({ origins, witnesses: policy.witnesses.toSorted(), quorum: 2 })
  const logService = createCoordinatorLog(enclave.attested)

  await expect(enclave.openSession('alice')).rejects.toThrow('log_unavailable')
  await expect(enclave.sign([{}])).rejects.toThrow('log_unavailable')
  expect((await fetch(`${enclave.url}/health`)).status).toBe(200)
  expect(await enclave.log({})).toBeNull()
  const boot = await open(enclave)
  logService.write(boot)
  await expect(enclave.openSession('alice')).rejects.toThrow('log_unavailable')
  const alone = await logService.cosign(boot.checkpoint, 1)
  await expect(enclave.release(alone)).rejects.toThrow('log_refused')
  await enclave.release(await logService.cosign(boot.checkpoint))

  const alice = await enclave.openSession('alice')
  const signed = await enclave.sign([toTransaction(alice, 0), toMessage(alice), toTransaction(alice, 1, 1)])
  expect(signed.results[2]).toEqual({ error: 'invalid_request' })
  expect(JSON.stringify(signed)).not.toMatch(/signature"|opening|subject|statement"|commitment/)
  const leaves = [leafOf(signed, 0), leafOf(signed, 1)]
  const { log } = signed
  if (log === null) throw new Error('no log')
  logService.write(log)
  const entries = log.entries.map((entry) => decodeLogEntry(fromHex(entry)))
  expect(entries.map((entry) => ('leaf' in entry ? entry.leaf : entry.kind))).toEqual([
    'boot',
    'table',
    ...leaves,
    'table',
  ])
  expect(logService.leaves.map(toHex)).toEqual(entries.map((entry) => toHex(hashLogEntry(entry))))

  expect(await enclave.release({ leaves })).toEqual([null, null])
  const cosigned = await logService.cosign(log.checkpoint)
  expect(await enclave.release({ ...cosigned, leaves }, other)).toEqual([null, null])
  const [transaction, message] = await enclave.release({ ...cosigned, leaves })
  expect(transaction && toHex(hashLeaf(transaction.statement))).toBe(leaves[0])
  expect(message && toHex(hashLeaf(message.statement))).toBe(leaves[1])
  expect(transaction).toMatchObject({
    subject: { from: alice.address },
    statement: { coordinatorKey: coordinator.key },
  })
  expect(message).toHaveProperty('opening.signature.signature')
  const vkey = parseVkey(enclave.attested.logs?.keys[0] ?? '')
  const note = cosigned.checkpoint + cosigned.cosignatures.map((line) => `${line}\n`).join('')
  expect(assertCosigned(note, { log: vkey, policy }).checkpoint.size).toBe(5)
  await enclave.release({ acknowledge: leaves })
  expect(await enclave.release({ ...cosigned, leaves })).toEqual([null, null])
  expect(enclave.output.join()).not.toContain(alice.keyId)
})

test('concurrent calls: one tree with every leaf once, all released by one note', async () => {
  const { enclave, logService, alice } = await startOpen()
  const calls = await Promise.all(
    Array.from({ length: 24 }, (_, index) => enclave.sign([0, 1].map((one) => toTransaction(alice, 2 * index + one)))),
  )
  for (const { log } of calls) if (log !== null) logService.write(log)
  const newest = await enclave.log({})
  expect(newest?.from).toBeLessThanOrEqual(1)
  // The boot, and a root of the table for each checkpoint.
  const { length } = logService.leaves
  expect(length).toBeGreaterThan(49)
  expect(Object.keys(logService.leaves)).toHaveLength(length)
  const cosigned = await logService.cosign(newest?.checkpoint ?? '')
  const leaves = calls.flatMap((call) => [leafOf(call, 0), leafOf(call, 1)])
  const statements = await enclave.release({ ...cosigned, leaves })
  expect(statements.map((one) => one && toHex(hashLeaf(one.statement)))).toEqual(leaves)
  expect(new Set(leaves).size).toBe(48)
})

test('a restart continues the log, ends the earlier boot, and witnesses accept one history', async () => {
  const opened = await startOpen()
  const { enclave: first, logService, alice } = opened
  const { signed, cosigned } = await signOne(opened)
  await first.kill('SIGKILL')

  const second = await start()
  // A tree of four has one hash: its root.
  const root = parseCheckpoint(parseNote(cosigned.checkpoint).text).root
  const proof = createInclusionProof(createLeafReader(logService.leaves), { index: 3, size: 4 })
  const table = { entry: signed.log?.entries.at(-1) ?? '', path: proof.map(toHex) }
  const again = await open(second, { checkpoint: cosigned.checkpoint, hashes: [toHex(root)], table })
  expect(again).toMatchObject({ from: 4, isOpen: false })
  logService.write(again)
  const request = { ...cosigned, leaves: [leafOf(signed, 0)] }
  await expect(second.release({ ...request, bootId: first.bootId })).rejects.toThrow('boot_unknown')
  await expect(second.release(request)).rejects.toThrow('log_refused')
  await second.release(await logService.cosign(again.checkpoint))
  expect(await second.log({})).toMatchObject({ isOpen: true })
  // The grant depends on the root secret, so it is still valid.
  expect(leafOf(await second.sign([toTransaction(alice, 0)]), 0)).not.toBe(leafOf(signed, 0))
})

test('while stopping: signs nothing new, releases pending signatures, then exits', async () => {
  const opened = await startOpen()
  const { enclave, alice } = opened
  const { signed, cosigned } = await signOne(opened)
  const ended = enclave.kill('SIGTERM')
  await expect.poll(() => enclave.output.join()).toContain('Stopping the enclave')
  await expect(enclave.sign([toTransaction(alice, 1)])).rejects.toThrow('shutting_down')
  const leaves = [leafOf(signed, 0)]
  expect(await enclave.release({ ...cosigned, leaves })).toMatchObject([{ subject: { from: alice.address } }])
  expect(await enclave.log({})).toMatchObject({ isOpen: true })
  await enclave.release({ acknowledge: leaves })
  expect(await ended).toBe(0)
})
