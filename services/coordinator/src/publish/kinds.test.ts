import { randomBytes } from 'node:crypto'
import { createVerifier } from '@countersign/attestation'
import { createSimulator, simulatedRoots } from '@countersign/attestation/simulator'
import { createSimulatedReportSource } from '@countersign/evidence'
import {
  createEnclaveSettings,
  type Hex,
  hashAuthorization,
  hashEnclaveConfig,
  hashMessage,
  hashTypedData,
  type Opening,
  toCanonicalJson,
  toEnclaveVersion,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { checkReceipt, parseBlock, parseReceiptCar } from '@countersign/receipt'
import { createTx, toDigest } from '@countersign/testing/stack'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFakeClock, createFakeLog } from '../../test/ports.ts'
import { createFakeSatellite } from '../../test/sign/entropy/entropy.ts'
import { createSigningEnclave, createTestWalletKey, type SigningEnclave } from '../../test/signingEnclave.ts'
import { createTestUser, startTestStore, type TestStore } from '../../test/store/store.ts'
import { exportReceipt } from '../operate/admin/exportReceipt.ts'
import { signJobs } from '../sign/batchSigner.ts'
import { createBatchVerifier, createReleaser } from '../sign/checkBatch.ts'
import { createSignatureChecker, type SignatureChecker } from '../sign/checkSignatures.ts'
import { createCommitter } from '../sign/commit.ts'
import type { SignContent } from '../sign/contents.ts'
import { createPlatformReader, createSimulatedCollateralStore } from '../sign/enclave/collateral/collateralStore.ts'
import type { SelfReport } from '../sign/enclave/health/selfReport.ts'
import { createSelfReport } from '../sign/enclave/health/selfReport.ts'
import { createSnpCertificates } from '../sign/enclave/health/snpCertificates.ts'
import type { SignJob, SignResult } from '../sign/job.ts'
import { createPinningStore } from '../store/pinning.ts'
import { encodePublish } from './chain/contract.ts'
import { getIpfsBlock } from './ipfs/gateway.ts'
import { PinError } from './ipfs/pinError.ts'
import type { Block, Pinner } from './ipfs/pinner.ts'
import { createPinStage } from './pin.ts'

const clock = createFakeClock()
const log = createFakeLog()
const key = createTestWalletKey('kinds')
const satellite = createFakeSatellite()
const settings = createEnclaveSettings([{ kind: 'satellite', key: satellite.publicKey }], [`0x${'22'.repeat(20)}`])

const authorization = { chainId: 31337, address: `0x${'22'.repeat(20)}` as const, nonce: 3 }
const typedData = {
  domain: { name: 'Permit', chainId: 1 },
  types: { Permit: [{ name: 'spender', type: 'address' }] },
  primaryType: 'Permit',
  message: { spender: `0x${'Ab'.repeat(20)}` },
}
const toMessage = (message: Hex): SignContent => ({
  kind: 'message',
  content: { message },
  digest: toPrefixedHex(hashMessage(message)),
})
const toTransaction = (nonce: number): SignContent => {
  const txMetadata = createTx(nonce)
  return { kind: 'transaction', txMetadata, digest: toDigest(txMetadata) }
}
const asked: Record<string, SignContent> = {
  transaction: toTransaction(0),
  authorization: { kind: 'authorization', authorization, digest: toPrefixedHex(hashAuthorization(authorization)) },
  message: toMessage('0x68656c6c6f'),
  'typed-data': { kind: 'typed-data', content: typedData, digest: toPrefixedHex(hashTypedData(typedData)) },
}

describe('every kind of signature, from the enclave to its blocks', () => {
  let subject: TestStore
  let selfReport: SelfReport
  let signatures: SignatureChecker
  let walletId: string
  let enclave: SigningEnclave
  const blocks = new Map<string, Uint8Array<ArrayBuffer>>()
  const pinner: Pick<Pinner, 'pin' | 'read'> = {
    async pin({ cid, bytes }: Block) {
      blocks.set(cid, bytes)
    },
    read: async (cid) => blocks.get(cid) ?? new Uint8Array(),
  }

  beforeAll(async () => {
    subject = await startTestStore()
    const simulator = createSimulator({ at: new Date(clock.now()) })
    const made = createSelfReport({
      reportSource: createSimulatedReportSource({ simulator, latencyMs: 0, wait: async () => {} }),
      certificates: createSnpCertificates({ verifier: createVerifier({ roots: simulatedRoots() }), log }),
      configHash: '5c'.repeat(32),
      clock,
      log,
      schedule: () => () => {},
    })
    await made.ready()
    selfReport = made
    enclave = createSigningEnclave({ clock, coordinatorKey: selfReport.publicKey, wallets: [key] })
    enclave.settings = settings
    enclave.config = { ...enclave.config, version: toEnclaveVersion('0.1.0', settings) }
    signatures = await createSignatureChecker()
    const user = await subject.store.upsertUser(createTestUser({ kmsKeyId: key.keyId }))
    const witness = satellite.createWitness({ timestampMs: clock.now() })
    const wallet = { userId: user.id, address: key.address, kmsKeyId: key.keyId, witness, now: clock.now() }
    walletId = (await subject.store.createWallet(wallet)).id
  })
  afterAll(async () => {
    await signatures.stop()
    await selfReport.stop()
    await subject.stop()
  })

  async function sign(all: readonly SignContent[], receiptVersion: 1 | 2 = 2): Promise<SignResult[]> {
    const session = { sid: '51'.repeat(32), grant: 'grant', keyId: key.keyId, walletId, address: key.address }
    const requests: SignJob[] = all.map((one) => ({ ...session, content: one }))
    const results = new Map<SignJob, SignResult>()
    const releaser = createReleaser(selfReport)
    const take = async (count: number) =>
      Array.from({ length: count }, () => satellite.createWitness({ timestampMs: clock.now() - 500 }))
    await signJobs(
      {
        entropy: { take, takeVerified: take },
        enclave,
        selfReport,
        signatures,
        clock,
        verifyBatch: createBatchVerifier({
          verifier: createVerifier({ roots: simulatedRoots() }),
          policy: {},
          collateral: createSimulatedCollateralStore({ simulatorFactory: (at) => createSimulator({ at }), clock }),
          readPlatform: createPlatformReader(),
          releaser,
        }),
        commit: createCommitter({
          store: subject.store,
          selfReport,
          clock,
          random: (size) => new Uint8Array(randomBytes(size)),
          releaser,
        }),
        receiptVersion,
        log: createFakeLog(),
      },
      requests,
      {
        onSent() {},
        answer(request, settled) {
          if (settled.status === 'rejected') throw settled.reason
          results.set(request, settled.value)
        },
      },
    )
    return requests.map((request) => results.get(request) as SignResult)
  }

  const createStage = (changed = pinner, { pinDeadlineMs = 3_600_000 } = {}) =>
    createPinStage({
      store: createPinningStore({ db: subject.database.db, jobs: subject.jobs }),
      pinner: changed,
      clock,
      random: () => 0.5,
      log,
      pinDeadlineMs,
    })

  async function check(slug: string, opening?: Opening) {
    const cid = (await subject.store.findProof(slug))?.ipfsCid ?? ''
    const car = await getIpfsBlock({ getBlock: async (one) => blocks.get(one) }, { method: 'GET', cid, format: 'car' })
    if (car.body === null) throw new Error('no blocks')
    return checkCar(car.body, { cid, ...(opening && { opening: toCanonicalJson(opening) }) })
  }

  function checkCar(car: Uint8Array, options: { cid?: string; opening?: Uint8Array } = {}) {
    const { bytes, collateral, blocks: given } = parseReceiptCar(car)
    const coordinator = parseBlock('coordinator', given.coordinator as Uint8Array)
    return checkReceipt(bytes, collateral as Uint8Array, {
      roots: simulatedRoots(),
      mockEntropyKeys: [satellite.publicKey],
      anchors: {
        configHashes: [toHex(hashEnclaveConfig(enclave.config))],
        coordinatorConfigHashes: [coordinator.configHash],
      },
      blocks: given,
      ...options,
    })
  }

  test('pins every kind of one batch block by block, and each receipt verifies from its CAR', async () => {
    const results = await sign(Object.values(asked))
    const stage = createStage()
    for (const [index, name] of Object.keys(asked).entries()) {
      const { slug, opening } = results[index] as SignResult
      expect([name, await stage.pin(slug)]).toEqual([name, 'pinned'])
      const { verdict, steps } = await check(slug, opening)
      const failed = steps.filter(({ status }) => status === 'fail')
      expect([name, verdict, failed]).toEqual([name, 'mock', []])
      const passed = steps.filter(({ status }) => status === 'pass').map(({ id }) => id)
      const wanted = ['blocks', 'signature', 'statement', 'inclusion', 'quote', 'release', 'cid']
      expect(passed).toEqual(expect.arrayContaining(opening ? ['opening', ...wanted.slice(2)] : wanted))
    }
    // Receipts share collateral, batch, coordinator and release.
    expect(blocks.size).toBe(4 + Object.keys(asked).length)
  })

  test('pins the same blocks after a worker dies between two pins', async () => {
    for (let died = 0; died < 5; died += 1) {
      const [result] = await sign([toMessage(`0x0${died}`)])
      const { slug } = result as SignResult
      let pins = 0
      const order: string[] = []
      const dying: typeof pinner = {
        async pin(block, options) {
          if (pins++ === died) throw new Error('killed')
          order.push(block.cid)
          await pinner.pin(block, options)
        },
        read: pinner.read,
      }
      expect(await createStage(dying).pin(slug)).toBe('retried')
      const watched: string[] = []
      const stage = createStage({
        pin: (block, options) => {
          watched.push(block.cid)
          return pinner.pin(block, options)
        },
        read: pinner.read,
      })
      expect(await stage.pin(slug)).toBe('pinned')
      // In the same order from the first block on: the next worker does not rely on the dead one, and assembles nothing again.
      expect(watched.slice(0, died)).toEqual(order)
      expect(watched).toHaveLength(5)
      expect((await check(slug)).verdict).toBe('mock')
    }
  })

  test('the exported file of a failed pin verifies without IPFS', async () => {
    const [result] = await sign([toMessage('0x99')])
    const { slug, opening } = result as SignResult
    const down: typeof pinner = {
      pin: () => Promise.reject(new PinError('pin_unavailable')),
      read: pinner.read,
    }
    const stage = createStage(down, { pinDeadlineMs: 0 })
    let outcome = await stage.pin(slug)
    while (outcome === 'retried') outcome = await stage.pin(slug)
    expect((await subject.store.findProof(slug))?.status).toBe('pin_failed')
    const exported = await exportReceipt(subject.database.db, slug)
    if ('fault' in exported) throw new Error(exported.fault)
    const { verdict, steps } = await checkCar(exported.bytes, { opening: toCanonicalJson(opening) })
    expect([verdict, steps.filter(({ status }) => status === 'fail')]).toEqual(['mock', []])
    const passed = steps.filter(({ status }) => status === 'pass').map(({ id }) => id)
    const wanted = ['blocks', 'opening', 'statement', 'inclusion', 'quote', 'release']
    expect(passed).toEqual(expect.arrayContaining(wanted))
  })

  test('with RECEIPTS=1 a transaction keeps its version 1 receipt in a mixed batch', async () => {
    const results = await sign([toTransaction(7), toMessage('0x11')], 1)
    const stage = createStage()
    const versions: unknown[] = []
    for (const { slug } of results) {
      expect(await stage.pin(slug)).toBe('pinned')
      const { receipt } = (await subject.store.findProof(slug)) ?? {}
      versions.push(receipt && JSON.parse(Buffer.from(receipt).toString()).version)
    }
    expect(versions).toEqual(['countersign-attestation/1', 'countersign-attestation/2'])
  })

  test('the same message signed twice has two proofs with separate openings', async () => {
    const [one, two] = (await sign([toMessage('0x77'), toMessage('0x77')])) as [SignResult, SignResult]
    expect(one.slug).not.toBe(two.slug)
    const stage = createStage()
    for (const { slug } of [one, two]) await stage.pin(slug)
    expect((await check(one.slug, one.opening)).verdict).toBe('mock')
    const wrong = await check(one.slug, two.opening)
    expect(wrong.steps.find(({ status }) => status === 'fail')?.id).toBe('opening')
  })

  test('50 random messages do not appear in the database, the blocks, the calldata or the log', async () => {
    const messages = Array.from({ length: 50 }, () => `0x${randomBytes(40).toString('hex')}` as const)
    const results = await sign(messages.map(toMessage))
    const stage = createStage()
    for (const { slug } of results) expect(await stage.pin(slug)).toBe('pinned')
    const { rows: tables } = await sql<{ name: string }>`
      select format('%I.%I', table_schema, table_name) as name from information_schema.tables
      where table_schema in ('public', 'pgboss') and table_type = 'BASE TABLE'`.execute(subject.database.db)
    const dump: string[] = []
    for (const { name } of tables) {
      const { rows } = await sql<{ line: string }>`select t::text as line from ${sql.raw(name)} as t`.execute(
        subject.database.db,
      )
      dump.push(...rows.map(({ line }) => line))
    }
    const proofs = await Promise.all(results.map(({ slug }) => subject.store.findProof(slug)))
    const events = proofs.map((proof) => ({
      wallet: key.address,
      txHash: proof?.txHash as Hex,
      ipfsCid: proof?.ipfsCid ?? '',
    }))
    // Searches for a public value first, to prove that the search works.
    const commitments = events.map(({ txHash }) => txHash.slice(2))
    const places = {
      database: dump.join('\n'),
      blocks: [...blocks.values()].map((bytes) => Buffer.from(bytes).toString('utf8')).join('\n'),
      calldata: encodePublish(events),
    }
    for (const [place, text] of Object.entries(places)) {
      expect([place, commitments.filter((one) => !text.includes(one))]).toEqual([place, []])
    }
    const haystack = [...Object.values(places), JSON.stringify(log.lines)].join('\n').toLowerCase()
    for (const [index, { signature, opening }] of results.entries()) {
      const halves = opening as { content: { salt: string; digest: Hex }; signature: { salt: string } }
      const message = messages[index] as Hex
      const private_ = {
        content: message.slice(2),
        bytes: Buffer.from(message.slice(2), 'hex').toString('base64').slice(0, 40),
        digest: halves.content.digest.slice(2),
        signature: signature?.slice(2, 66) ?? '',
        s: signature?.slice(66, 130) ?? '',
        salts: halves.content.salt,
        salt: halves.signature.salt,
      }
      for (const [name, part] of Object.entries(private_)) {
        expect([name, haystack.includes(part.toLowerCase())]).toEqual([name, false])
      }
    }
  })

  test('returns no CAR if a block is missing, and other blocks on their own', async () => {
    const [result] = await sign([toMessage('0x55')])
    await createStage().pin(result?.slug ?? '')
    const cid = (await subject.store.findProof(result?.slug ?? ''))?.ipfsCid ?? ''
    const receipt = parseBlock('attestation', blocks.get(cid) ?? new Uint8Array())
    const release = parseBlock('release', blocks.get(receipt.coordinator.release) ?? new Uint8Array())
    const named = [receipt.coordinator.release, receipt.signer.batch, release.coordinator, release.collateral]
    const get = (asked: string, missing?: string) =>
      getIpfsBlock(
        { getBlock: async (one) => (one === missing ? undefined : blocks.get(one)) },
        { method: 'GET', cid: asked, format: 'car' },
      )
    for (const missing of named) expect((await get(cid, missing)).status).toBe(404)
    expect((await get(cid)).status).toBe(200)
    for (const one of named) {
      const { status, body } = await get(one)
      expect([status, (body?.length ?? 0) - (blocks.get(one)?.length ?? 0) < 200]).toEqual([200, true])
    }
  })
})
