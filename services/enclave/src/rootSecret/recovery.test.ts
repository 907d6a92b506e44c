import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createVerifier, vendorRoots } from '@countersign/attestation'
import {
  computeBackupReportData,
  createEnclaveSettings,
  enclavePaths,
  fromHex,
  rootSecretPaths,
  tags,
  toHex,
  toSubmissionContext,
  toTagBytes,
} from '@countersign/protocol'
import { type Backup, hashBackup, parseBackup, toBackupFile } from '@countersign/root-secret'
import { createX25519Pair, seal, type X25519Pair } from '@countersign/root-secret/sealing'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call, forge, genesis, recover, submit, toBackupPath } from '../../test/ceremony.ts'
import {
  createTestPeer,
  createTestPolicy,
  custodians,
  foreignSimulator,
  measurement,
  type TestPeer,
} from '../../test/peers.ts'
import type { App } from '../serveCalls.ts'
import { createEvidence } from './createEvidence.ts'

let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'backup-'))
})
afterEach(() => rm(folder, { recursive: true }))

describe('recovery', () => {
  test('two of three custodians restore the secret; before that only health and recovery respond', async () => {
    const { peer: lost } = await genesis(folder)
    const peer = createTestPeer()
    const { app, needed, recovered, finish } = await recover(folder, peer)
    expect(needed).toBe(2)
    expect((await call(app, '/health', {}, 'GET')).answer).toEqual({
      status: 'waiting',
      shares: { held: 0, needed: 2 },
    })
    for (const path of [...Object.values(enclavePaths), rootSecretPaths.challenge, rootSecretPaths.transfer]) {
      expect(await call(app, path, {})).toMatchObject({
        status: 503,
        answer: { error: { code: 'root_secret_missing' } },
      })
    }
    expect((await call(app, '/other', {})).status).toBe(404)
    expect((await call(app, rootSecretPaths.share, {}, 'GET')).status).toBe(405)
    expect(await submit(folder, app, { peer, pair: custodians[2] })).toContain(
      'The enclave reports that it has your share: 1 of 2.',
    )
    expect(peer.secrets).toEqual([])
    await submit(folder, app, { peer, pair: custodians[0] })
    await recovered
    await finish()
    expect(peer.secrets).toEqual(lost.secrets)
    expect(peer.lines.join()).not.toContain(lost.secrets[0])
  })

  test('an upgrade: another version under another policy, if the custodians consent to it', async () => {
    const { peer: lost } = await genesis(folder)
    const policy = createTestPolicy({ measurements: [{ ...measurement, mrTd: 'ab'.repeat(48) }, measurement] })
    const peer = createTestPeer({ policy, config: { version: '0.0.1' } })
    const { app, recovered } = await recover(folder, peer)
    // A custodian who doesn't know of the upgrade doesn't give a share.
    await expect(submit(folder, app, { peer: lost })).rejects.toThrow('different root secret policy')
    const configHash = toHex(peer.configHash)
    await expect(submit(folder, app, { peer, policy: lost.parsed, configHash })).rejects.toThrow(
      'different root secret policy',
    )
    for (const pair of custodians.slice(0, 2)) await submit(folder, app, { peer, madeUnder: lost.parsed, pair })
    await recovered
    expect(peer.secrets).toEqual(lost.secrets)
  })

  test('enough old custodians can consent to new ones and a new backup; a higher threshold applies immediately', async () => {
    const { peer: lost } = await genesis(folder)
    const newcomer = createX25519Pair()
    const pairs = [custodians[0], custodians[1], custodians[2], newcomer] as X25519Pair[]
    const keys = pairs.map(({ publicKey }) => toHex(publicKey))
    const policy = createTestPolicy({ custodians: { threshold: 3, keys } })
    await expect(recover(folder, createTestPeer({ policy }))).rejects.toThrow('set ROOT_SECRET_NEW_BACKUP_FILE')
    const peer = createTestPeer({ policy })
    const newPath = join(folder, 'new.json')
    const { app, needed, recovered, finish } = await recover(folder, peer, newPath)
    expect(needed).toBe(3)
    for (const pair of custodians) await submit(folder, app, { peer, pair, madeUnder: lost.parsed })
    await recovered
    await finish()
    expect(peer.secrets).toEqual(lost.secrets)
    // From the new backup, with the new custodian.
    await rm(toBackupPath(folder))
    await writeFile(toBackupPath(folder), await readFile(newPath))
    const next = createTestPeer({ policy })
    const second = await recover(folder, next)
    for (const pair of [newcomer, custodians[1], custodians[2]]) await submit(folder, second.app, { peer: next, pair })
    expect(next.secrets).toEqual(lost.secrets)
  })

  test('rejects a custodian who has left, even with a valid share', async () => {
    const { peer: lost } = await genesis(folder)
    const keys = [custodians[0], custodians[1], createX25519Pair()].map((pair) => toHex((pair as X25519Pair).publicKey))
    const peer = createTestPeer({ policy: createTestPolicy({ custodians: { threshold: 2, keys } }) })
    const { app } = await recover(folder, peer, join(folder, 'new.json'))
    const late = submit(folder, app, { peer, pair: custodians[2], madeUnder: lost.parsed })
    await expect(late).rejects.toMatchObject({ details: 'share_refused' })
    for (const pair of custodians.slice(0, 2)) await submit(folder, app, { peer, pair, madeUnder: lost.parsed })
    expect(peer.secrets).toEqual(lost.secrets)
  })

  test('rejects custodians that the policy does not list: a forged backup would name its own', async () => {
    const forger = [1, 2, 3].map(() => createX25519Pair())
    const keys = forger.map(({ publicKey }) => toHex(publicKey))
    await genesis(folder, createTestPeer({ policy: createTestPolicy({ custodians: { threshold: 2, keys } }) }))
    await expect(recover(folder)).rejects.toThrow('too few custodians of the backup')
  })

  test('rejects everything that can be read from the backup', async () => {
    const { backup } = await genesis(folder)
    const peer = createTestPeer()
    const { app } = await recover(folder, peer)
    for (const [index, { enc, ciphertext }] of backup.shares.entries()) {
      const { status, answer } = await call(app, rootSecretPaths.share, { index, enc, ciphertext })
      expect([status, answer.error?.code]).toEqual([403, 'share_refused'])
    }
    expect(peer.secrets).toEqual([])
  })

  test('malformed, repeated or wrong shares do not keep other custodians from giving theirs', async () => {
    await genesis(folder)
    const peer = createTestPeer()
    const { app } = await recover(folder, peer)
    for (const wrong of [
      null,
      {},
      { index: 0 },
      { index: '0', enc: '', ciphertext: '' },
      { index: 0.5, enc: '00'.repeat(32), ciphertext: '00'.repeat(49) },
      { index: 0, enc: '00'.repeat(32), ciphertext: '00'.repeat(48) },
    ]) {
      expect((await call(app, rootSecretPaths.share, wrong)).answer.error?.code).toBe('invalid_request')
    }
    await submit(folder, app, { peer, pair: custodians[0] })
    await expect(submit(folder, app, { peer, pair: custodians[0] })).rejects.toMatchObject({ details: 'share_refused' })
    // Anyone can send this, so it must not block a custodian.
    const garbage = { index: 1, enc: '11'.repeat(32), ciphertext: '22'.repeat(49) }
    for (let count = 0; count < 20; count++) {
      expect((await call(app, rootSecretPaths.share, garbage)).answer.error?.code).toBe('share_refused')
    }
    for (let count = 0; count < 20; count++) {
      const wrong = await submitWrongShare(app, peer, custodians[1] as X25519Pair)
      expect(wrong.answer.error?.code).toBe('share_refused')
    }
    await submit(folder, app, { peer, pair: custodians[2] })
    expect(peer.secrets).toHaveLength(1)
  })

  /** Sealed correctly by the second custodian, who has mixed up the shares. */
  async function submitWrongShare(app: App, peer: TestPeer, sender: X25519Pair) {
    const { answer } = await call(app, rootSecretPaths.recovery, { nonce: '00'.repeat(32) })
    const { publicKey, backupHash } = answer as { publicKey: string; backupHash: string }
    const aad = toSubmissionContext({ backupHash: fromHex(backupHash), configHash: peer.configHash, index: 1 })
    const context = { recipient: fromHex(publicKey), sender, info: toTagBytes(tags.rootSubmission), aad }
    const { enc, ciphertext } = seal(new Uint8Array(33).fill(5), context)
    return call(app, rootSecretPaths.share, { index: 1, enc: toHex(enc), ciphertext: toHex(ciphertext) })
  }

  test('a custodian waits up to a minute while others are handled', async () => {
    await genesis(folder)
    const peer = createTestPeer()
    const { app } = await recover(folder, peer)
    let refusals = 0
    const busyFor = (count: number): App => ({
      ...app,
      async handle(call) {
        if (refusals++ >= count) return app.handle(call)
        return { status: 503, headers: {}, body: { error: { code: 'quote_unavailable' } } }
      },
    })
    const printed = await submit(folder, busyFor(11), { peer })
    expect(printed.filter((line) => line.includes('busy'))).toHaveLength(11)
    refusals = 0
    await expect(submit(folder, busyFor(12), { peer })).rejects.toMatchObject({ details: 'quote_unavailable' })
  })

  test('creates one quote at a time, for a few waiting callers', async () => {
    await genesis(folder)
    const peer = createTestPeer()
    const { app } = await recover(folder, peer)
    const nonce = '00'.repeat(32)
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(app, rootSecretPaths.recovery, { nonce })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4)
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(16)
    expect((await call(app, rootSecretPaths.recovery, { nonce: 'zz' })).answer.error?.code).toBe('invalid_request')
  })
})

describe('enclave and custodian reject a changed backup', () => {
  let lost: TestPeer
  let backup: Backup
  let app: App
  beforeAll(async () => {
    const shared = await mkdtemp(join(tmpdir(), 'backup-'))
    ;({ peer: lost, backup } = await genesis(shared))
    ;({ app } = await recover(shared))
    await rm(shared, { recursive: true })
  })

  const flip = (hex = '') => (hex.startsWith('0') ? `1${hex.slice(1)}` : `0${hex.slice(1)}`)
  test.each<[string, (backup: Backup) => unknown]>([
    [
      'a share',
      ({ shares: [first, ...rest], ...backup }) => ({
        ...backup,
        shares: [{ ...first, ciphertext: flip(first?.ciphertext) }, ...rest],
      }),
    ],
    [
      'the hash of a share',
      ({ shares: [first, ...rest], ...backup }) => ({
        ...backup,
        shares: [{ ...first, hash: flip(first?.hash) }, ...rest],
      }),
    ],
    ['the order of shares', (backup) => ({ ...backup, shares: backup.shares.toReversed() })],
    ['the commitment', (backup) => ({ ...backup, commitment: flip(backup.commitment) })],
    ['the threshold', (backup) => ({ ...backup, threshold: 3 })],
    ['the time', (backup) => ({ ...backup, createdAt: '2026-06-15T12:00:01.000Z' })],
    ['the policy', (backup) => ({ ...backup, policyHash: flip(backup.policyHash) })],
    ['the configuration', (backup) => ({ ...backup, configHash: flip(backup.configHash) })],
    ['the settings', (backup) => ({ ...backup, settings: createEnclaveSettings([{ kind: 'unsigned' }]) })],
    ['the settings left out', ({ settings: _, ...backup }) => backup],
    ['a custodian left out', (backup) => ({ ...backup, shares: backup.shares.slice(1) })],
    ['a custodian twice', (backup) => ({ ...backup, shares: [backup.shares[0], ...backup.shares] })],
    ['the quote', (backup) => ({ ...backup, evidence: { ...backup.evidence, quote: flip(backup.evidence.quote) } })],
    ['a member more', (backup) => ({ ...backup, note: 'trust me' })],
    ['a member less', ({ evidence: _, ...backup }) => backup],
    ['another version', (backup) => ({ ...backup, version: 'countersign-root-backup/2' })],
  ])('%s', async (_, change) => {
    const changed = change(backup) as Backup
    await writeFile(toBackupPath(folder), JSON.stringify(changed))
    const peer = createTestPeer()
    await expect(recover(folder, peer)).rejects.toThrow(/^the backup /)
    await expect(submit(folder, app, { peer: lost, backup: changed })).rejects.toThrow(/^the backup /)
    expect(peer.secrets).toEqual([])
  })

  test('both reject duplicate members, which two readers could read differently', async () => {
    const { backup } = await genesis(folder)
    const text = toBackupFile(backup).replace('"threshold": 2', '"threshold": 3,\n  "threshold": 2')
    await writeFile(toBackupPath(folder), text)
    await expect(recover(folder)).rejects.toThrow('the backup cannot be read')
  })

  test.each<[string, Parameters<typeof createTestPeer>[0]]>([
    ['other code', { quote: { mrtd: new Uint8Array(48).fill(1) } }],
    ['other silicon', { silicon: foreignSimulator }],
    ['code that can be debugged', { quote: { tdAttributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) } }],
  ])('one created by %s, with any content', async (_, options) => {
    await forge(folder, createTestPeer(options))
    await expect(recover(folder)).rejects.toThrow('its quote is not valid')
  })

  test('both reject a backup of another policy than the custodian names, or with other custodians than the policy', async () => {
    const { peer } = await genesis(folder)
    const { app } = await recover(folder)
    const madeUnder = createTestPolicy({ statuses: ['UpToDate'] })
    await expect(submit(folder, app, { peer, madeUnder })).rejects.toThrow('it was created under another policy')
    await rm(toBackupPath(folder))
    const keys = [1, 2, 3].map(() => toHex(createX25519Pair().publicKey))
    const { policy } = createTestPolicy({ custodians: { threshold: 2, keys } })
    await forge(folder, { ...createTestPeer(), policy })
    await expect(recover(folder)).rejects.toThrow('it is for other custodians')
  })

  test('both reject a backup whose parts do not match, even if an enclave of the policy has quoted them', async () => {
    const peer = createTestPeer()
    await forge(folder, { ...peer, config: { ...peer.config, rootSecret: 'file' } })
    await expect(recover(folder)).rejects.toThrow('its configuration has another policy')
    const { evidence: _, ...body } = {
      ...parseBackup(await readFile(toBackupPath(folder), 'utf8')),
      configHash: '00'.repeat(32),
    }
    const reportData = computeBackupReportData({ backupHash: hashBackup(body), configHash: peer.configHash })
    await writeFile(toBackupPath(folder), toBackupFile({ ...body, evidence: await createEvidence(peer, reportData) }))
    await expect(recover(folder)).rejects.toThrow('its configuration does not match its hash')
  })

  test('a real enclave rejects a backup of simulated hardware', async () => {
    await genesis(folder)
    const peer = { ...createTestPeer(), verifier: createVerifier({ roots: vendorRoots }) }
    await expect(recover(folder, peer)).rejects.toThrow('root_not_trusted')
  })
})
