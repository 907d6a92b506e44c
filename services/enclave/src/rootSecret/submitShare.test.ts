import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { computeBackupReportData, rootSecretPaths, toHex } from '@countersign/protocol'
import { type Backup, hashBackup, nameBackup, toBackupFile, verifyBackup } from '@countersign/root-secret'
import { createX25519Pair } from '@countersign/root-secret/sealing'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call, genesis, recover, type SubmitOptions, submit, toBackupPath } from '../../test/ceremony.ts'
import { createTestPeer } from '../../test/peers.ts'
import { createEvidence } from './createEvidence.ts'

let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'backup-'))
})
afterEach(() => rm(folder, { recursive: true }))

describe('a drill with simulated silicon gets no share of a real backup', () => {
  /** As real as this silicon can be: its configuration says so, and custodians have checked that configuration. */
  const real = { config: { quoteSource: 'configfs' } }

  test('nor is one of a drill taken for real', async () => {
    const { backup } = await genesis(folder, createTestPeer(real))
    const drill = createTestPeer()
    const { verifier } = drill
    await expect(verifyBackup({ verifier, isMock: true }, backup)).rejects.toThrow('of real silicon, and no drill')
    await expect(recover(folder, drill)).rejects.toThrow('of real silicon, and no drill')
    await verifyBackup({ verifier, isMock: false }, backup)
    await rm(toBackupPath(folder))
    const { backup: ofDrill } = await genesis(folder)
    await expect(verifyBackup({ verifier, isMock: false }, ofDrill)).rejects.toThrow('it is of simulated silicon')
  })

  test('not though its shares are copied into a backup of the drill', async () => {
    const { backup } = await genesis(folder, createTestPeer(real))
    const drill = createTestPeer()
    const { evidence: _, ...body } = { ...backup, configHash: toHex(drill.configHash) }
    const reportData = computeBackupReportData({ backupHash: hashBackup(body), configHash: drill.configHash })
    await writeFile(toBackupPath(folder), toBackupFile({ ...body, evidence: await createEvidence(drill, reportData) }))
    const { app } = await recover(folder, drill)
    await expect(submit(folder, app, { peer: drill })).rejects.toThrow('this key does not open its share')
    expect(drill.lines.join()).not.toContain('Got a share')
  })

  test('nor does an enclave that calls itself real, in a drill', async () => {
    await genesis(folder)
    const { app } = await recover(folder)
    const peer = createTestPeer(real)
    const change = (path: string, body: unknown) => {
      if (path !== '/recovery answer') return body
      const answer = body as { evidence: object }
      return { ...answer, evidence: { ...answer.evidence, config: peer.config } }
    }
    await expect(submit(folder, app, { peer, change })).rejects.toThrow('is of real silicon and this a drill')
  })
})

describe('a custodian gives his share to nobody else', () => {
  type Answer = { publicKey: string; backupHash: string; evidence: Record<string, unknown> }
  let backup: Backup
  beforeAll(async () => {
    const shared = await mkdtemp(join(tmpdir(), 'backup-'))
    ;({ backup } = await genesis(shared))
    await rm(shared, { recursive: true })
  })
  beforeEach(() => writeFile(toBackupPath(folder), toBackupFile(backup)))

  test.each<[string, Partial<SubmitOptions>, string]>([
    ['an enclave of another configuration than he named', { configHash: '00'.repeat(32) }, 'another configuration'],
    ['without --mock, simulated silicon', { isMock: false }, 'the backup is not accepted'],
    [
      'under a key that the quote does not cover',
      {
        change: (path, body) =>
          path === '/recovery answer' ? { ...(body as Answer), publicKey: toHex(createX25519Pair().publicKey) } : body,
      },
      'report_data_mismatch',
    ],
    [
      'with an old quote, over another nonce',
      { change: (path, body) => (path === '/recovery' ? { nonce: '00'.repeat(32) } : body) },
      'report_data_mismatch',
    ],
    [
      'for another backup',
      {
        change: (path, body) =>
          path === '/recovery answer' ? { ...(body as Answer), backupHash: '00'.repeat(32) } : body,
      },
      'another backup',
    ],
    [
      'something that is no enclave',
      { change: (path, body) => (path === '/recovery answer' ? {} : body) },
      'not the answer of an enclave',
    ],
    ['with a key that has no share', { pair: createX25519Pair() }, 'no share in the backup'],
  ])('%s', async (_, options, reason) => {
    const peer = createTestPeer()
    const { app } = await recover(folder, peer)
    await expect(submit(folder, app, { peer, ...options })).rejects.toThrow(reason)
    expect(peer.lines.join()).not.toContain('Got a share')
  })

  test('other code, though the backup and the configuration are right', async () => {
    const peer = createTestPeer({ quote: { mrtd: new Uint8Array(48).fill(1) } })
    const { app } = await recover(folder, peer)
    await expect(submit(folder, app, { peer })).rejects.toThrow('measurement_not_allowed')
    expect(peer.lines.join()).not.toContain('Got a share')
  })

  test('a share sealed to one enclave says nothing to another', async () => {
    const [one, other] = [createTestPeer(), createTestPeer()]
    const [first, second] = [await recover(folder, one), await recover(folder, other)]
    let sent: unknown
    await submit(folder, first.app, {
      peer: one,
      change: (path, body) => {
        if (path === rootSecretPaths.share) sent = body
        return body
      },
    })
    expect((await call(second.app, rootSecretPaths.share, sent)).answer.error?.code).toBe('share_refused')
    expect(nameBackup(backup)).toMatch(/^[0-9a-f]{64}$/)
  })
})
