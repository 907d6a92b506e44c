import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { computeBackupReportData, createEnclaveSettings, rootSecretPaths, toHex } from '@countersign/protocol'
import { type Backup, hashBackup, nameBackup, toBackupFile, verifyBackup } from '@countersign/root-secret'
import { createX25519Pair } from '@countersign/root-secret/sealing'
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call, genesis, recover, type SubmitOptions, submit, toBackupPath } from '../../test/ceremony.ts'
import { createTestPeer, createTestPolicy, type TestPeerOptions } from '../../test/peers.ts'
import { satelliteKey } from '../../test/witness.ts'
import { createBackup } from './createBackup.ts'
import { createEvidence } from './createEvidence.ts'

let folder = ''

const toEd25519Key = (name: string) => toHex(ed25519.getPublicKey(sha256(new TextEncoder().encode(name))))

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'backup-'))
})
afterEach(() => rm(folder, { recursive: true }))

describe('a drill with simulated hardware gets no share of a real backup', () => {
  /** As real as simulated hardware can look: its configuration claims it, and custodians have checked that configuration. */
  const real = { config: { quoteSource: 'configfs' } }

  test('nor is a drill’s share accepted for a real backup', async () => {
    const { backup } = await genesis(folder, createTestPeer(real))
    const drill = createTestPeer()
    const { verifier } = drill
    await expect(verifyBackup({ verifier, isMock: true }, backup)).rejects.toThrow('it was created on real hardware')
    await expect(recover(folder, drill)).rejects.toThrow('it was created on real hardware')
    await verifyBackup({ verifier, isMock: false }, backup)
    await rm(toBackupPath(folder))
    const { backup: ofDrill } = await genesis(folder)
    await expect(verifyBackup({ verifier, isMock: false }, ofDrill)).rejects.toThrow(
      'it was created on simulated hardware',
    )
  })

  test('nor if its shares are copied into a backup of the drill', async () => {
    const { backup } = await genesis(folder, createTestPeer(real))
    const drill = createTestPeer()
    const { evidence: _, ...body } = { ...backup, configHash: toHex(drill.configHash) }
    const reportData = computeBackupReportData({ backupHash: hashBackup(body), configHash: drill.configHash })
    await writeFile(toBackupPath(folder), toBackupFile({ ...body, evidence: await createEvidence(drill, reportData) }))
    const { app } = await recover(folder, drill)
    await expect(submit(folder, app, { peer: drill })).rejects.toThrow('this key cannot decrypt its share')
    expect(drill.lines.join()).not.toContain('Got a share')
  })

  test('nor is an enclave that claims to be real accepted in a drill', async () => {
    await genesis(folder)
    const { app } = await recover(folder)
    const peer = createTestPeer(real)
    const change = (path: string, body: unknown) => {
      if (path !== '/recovery answer') return body
      const answer = body as { evidence: object }
      return { ...answer, evidence: { ...answer.evidence, config: peer.config } }
    }
    await expect(submit(folder, app, { peer, change })).rejects.toThrow(
      'wrong quote source: expected simulated hardware',
    )
  })
})

describe('the configuration that a custodian accepts', () => {
  const satellite = { kind: 'satellite', key: satelliteKey } as const
  const log = { origins: ['log.example/a'], witnesses: [satelliteKey], quorum: 1 }
  const issuer = (name: string) => ({ issuer: name, audience: 'a', jwksOrigin: name })
  const [kept, dropped] = [issuer('https://a.example'), issuer('https://b.example')]
  const old = {
    settings: createEnclaveSettings([satellite], [], log),
    config: { issuers: [kept, dropped] },
  }

  async function startUpgrade(changes: TestPeerOptions) {
    await genesis(folder, createTestPeer(old))
    const peer = createTestPeer({ ...old, ...changes })
    const { app } = await recover(folder, peer)
    return { peer, app }
  }

  const unsigned = { kind: 'unsigned' } as const
  const operators = ['one', 'two'].map(toEd25519Key)
  test.each<[string, TestPeerOptions, string[]]>([
    ['the log', { settings: createEnclaveSettings([satellite]) }, ['log']],
    ['signed entropy', { settings: createEnclaveSettings([unsigned], [], log) }, ['entropy']],
    ['entropy that is always signed', { settings: createEnclaveSettings([satellite, unsigned], [], log) }, ['entropy']],
    [
      'the origin of the log',
      { settings: createEnclaveSettings([satellite], [], { ...log, origins: ['log.example/b'] }) },
      ['log'],
    ],
    [
      'a witness of the log',
      { settings: createEnclaveSettings([satellite], [], { ...log, witnesses: ['22'.repeat(32)] }) },
      ['log'],
    ],
    [
      'the list of sources, by a new one that signs',
      { settings: createEnclaveSettings([satellite, { kind: 'satellite', key: '22'.repeat(32) }], [], log) },
      ['entropy'],
    ],
    [
      'the quorum to added witnesses',
      {
        settings: createEnclaveSettings([satellite], [], {
          ...log,
          witnesses: [satelliteKey, ...operators].toSorted(),
          quorum: 2,
        }),
      },
      ['log'],
    ],
    ['an issuer', { config: { issuers: [kept] } }, ['issuer:https://b.example=a']],
    [
      'the origin of an issuer’s keys',
      { config: { issuers: [kept, { ...dropped, jwksOrigin: 'https://c.example' }] } },
      ['issuer:https://b.example=a'],
    ],
    [
      'an audience of an issuer, and the log',
      {
        settings: createEnclaveSettings([satellite]),
        config: { issuers: [kept, { ...dropped, audience: 'b' }] },
      },
      ['log', 'issuer:https://b.example=a'],
    ],
  ])('is refused if it drops or changes %s, unless --allow-loss names it', async (_, changes, losses) => {
    const { peer, app } = await startUpgrade(changes)
    const all = ['log', 'entropy', 'issuer:https://a.example=a', 'issuer:https://b.example=a']
    for (const loss of losses) {
      const allowedLosses = all.filter((name) => name !== loss)
      await expect(submit(folder, app, { peer, allowedLosses })).rejects.toThrow(`add --allow-loss ${loss}`)
    }
    expect(peer.lines.join()).not.toContain('Got a share')
    const printed = await submit(folder, app, { peer, allowedLosses: losses })
    expect(printed.at(-1)).toContain('1 of 2')
  })

  test('the tool also refuses to lose the only signed source next to an unsigned one', async () => {
    const both = { ...old, settings: createEnclaveSettings([satellite, unsigned], [], log) }
    await genesis(folder, createTestPeer(both))
    const peer = createTestPeer({ ...old, settings: createEnclaveSettings([unsigned], [], log) })
    const { app } = await recover(folder, peer)
    await expect(submit(folder, app, { peer })).rejects.toThrow('add --allow-loss entropy')
  })

  test('is shown as the computed hash and each line that differs', async () => {
    const settings = createEnclaveSettings([satellite], [`0x${'11'.repeat(20)}`], {
      ...log,
      origins: ['log.example/b'],
    })
    const { peer, app } = await startUpgrade({ settings, config: { ...old.config, callerPolicy: 'other' } })
    const printed = await submit(folder, app, { peer, allowedLosses: ['log'] })
    const [lines, difference] = [
      printed,
      printed.slice(printed.findIndex((line) => line.startsWith('Differences'))),
    ].map((list) => list.map((line) => line.trim().split(/ {2,}/).join(': ')))
    const hash = (of: TestPeerOptions) => toHex(createTestPeer(of).configHash)
    expect(lines).toContain(`configuration hash: ${toHex(peer.configHash)}`)
    expect(lines).toContain('accepts sign-ins from: https://b.example for a, keys from https://b.example')
    expect(difference?.slice(1, -1)).toEqual([
      `- configuration hash: ${hash(old)}`,
      '- caller policy: any',
      `- version: ${createTestPeer(old).config.version}`,
      '- allowed delegation code: none',
      '- logs: log.example/a',
      `+ configuration hash: ${toHex(peer.configHash)}`,
      '+ caller policy: other',
      `+ version: ${peer.config.version}`,
      `+ allowed delegation code: 0x${'11'.repeat(20)}`,
      '+ logs: log.example/b',
    ])
  })

  test('is rejected if the settings do not match its hash', async () => {
    const { peer, app } = await startUpgrade({ settings: createEnclaveSettings([satellite]) })
    const change = (path: string, body: unknown) =>
      path === '/recovery answer' ? { ...(body as object), settings: old.settings } : body
    await expect(submit(folder, app, { peer, change })).rejects.toThrow('not the response of an enclave')
    expect(peer.lines.join()).not.toContain('Got a share')
  })

  test('is rejected without a log and signed entropy if the backup has no settings', async () => {
    const maker = createTestPeer(old)
    await maker.holder.generate()
    const { evidence: _, settings: __, ...body } = await createBackup(maker)
    const reportData = computeBackupReportData({ backupHash: hashBackup(body), configHash: maker.configHash })
    await writeFile(toBackupPath(folder), toBackupFile({ ...body, evidence: await createEvidence(maker, reportData) }))
    const same = createTestPeer(old)
    expect((await submit(folder, (await recover(folder, same)).app, { peer: same })).at(-1)).toContain('1 of 2')
    const peer = createTestPeer({ ...old, settings: createEnclaveSettings([unsigned]) })
    const { app } = await recover(folder, peer)
    await expect(submit(folder, app, { peer })).rejects.toThrow('add --allow-loss log --allow-loss entropy')
    // It is unknown whether these are the old witnesses.
    const replaced = createEnclaveSettings([satellite], [], { ...log, witnesses: operators.toSorted(), quorum: 2 })
    const other = createTestPeer({ ...old, settings: replaced })
    const waiting = (await recover(folder, other)).app
    await expect(submit(folder, waiting, { peer: other })).rejects.toThrow('add --allow-loss log --allow-loss entropy')
    expect((await submit(folder, app, { peer, allowedLosses: ['log', 'entropy'] })).at(-1)).toContain('1 of 2')
  })
})

describe('a custodian gives a share to no other enclave', () => {
  type Answer = { publicKey: string; backupHash: string; evidence: Record<string, unknown> }
  let backup: Backup
  beforeAll(async () => {
    const shared = await mkdtemp(join(tmpdir(), 'backup-'))
    ;({ backup } = await genesis(shared))
    await rm(shared, { recursive: true })
  })
  beforeEach(() => writeFile(toBackupPath(folder), toBackupFile(backup)))

  test.each<[string, Partial<SubmitOptions>, string]>([
    [
      'an enclave of another configuration than --config-hash',
      { configHash: '00'.repeat(32) },
      'wrong configuration hash',
    ],
    [
      'without --mock, simulated silicon',
      {
        isMock: false,
        policy: createTestPolicy({ platforms: [{ ppid: '11'.repeat(16) }] }),
        madeUnder: createTestPolicy(),
      },
      'the backup is not accepted',
    ],
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
      'the enclave has a different backup',
    ],
    [
      'something that is no enclave',
      { change: (path, body) => (path === '/recovery answer' ? {} : body) },
      'not the response of an enclave',
    ],
    ['with a key that has no share', { pair: createX25519Pair() }, 'no share in the backup'],
  ])('%s', async (_, options, reason) => {
    const peer = createTestPeer()
    const { app } = await recover(folder, peer)
    await expect(submit(folder, app, { peer, ...options })).rejects.toThrow(reason)
    expect(peer.lines.join()).not.toContain('Got a share')
  })

  test('other code, even if backup and configuration are right', async () => {
    const peer = createTestPeer({ quote: { mrtd: new Uint8Array(48).fill(1) } })
    const { app } = await recover(folder, peer)
    await expect(submit(folder, app, { peer })).rejects.toThrow('measurement_not_allowed')
    expect(peer.lines.join()).not.toContain('Got a share')
  })

  test('a share sealed to one enclave is useless to another', async () => {
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
