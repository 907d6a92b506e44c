import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Collateral } from '@countersign/attestation'
import { VendorError } from '@countersign/evidence'
import { rootSecretPaths, toHex } from '@countersign/protocol'
import type { TransferRequest } from '@countersign/root-secret'
import { type ParsedRootSecretPolicy, parseBackup, toBackupFile } from '@countersign/root-secret'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { genesis, recover, toBackupPath } from '../../test/ceremony.ts'
import {
  at,
  createTestPeer,
  createTestPolicy,
  simulator,
  type TestPeer,
  type TestPeerOptions,
} from '../../test/peers.ts'
import { createBackup, writeBackup } from './createBackup.ts'
import { createDonor, type Donor } from './donor.ts'
import { type ObtainDeps, obtainRootSecret } from './obtainRootSecret.ts'

const DAY_MS = 86_400_000
let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'backup-'))
})
afterEach(() => rm(folder, { recursive: true }))

describe('genesis', () => {
  test('the backup is on disk, public and complete, and reveals nothing of the secret', async () => {
    const { peer, backup } = await genesis(folder)
    expect(peer.secrets).toHaveLength(1)
    const text = await readFile(toBackupPath(folder), 'utf8')
    expect(text).not.toContain(peer.secrets[0])
    expect(peer.lines.join()).not.toContain(peer.secrets[0])
    expect(backup).toMatchObject({ threshold: 2, policyHash: peer.policyHash, configHash: toHex(peer.configHash) })
    expect(backup.shares.map(({ custodian }) => custodian)).toEqual(peer.policy.custodians.keys)
    expect(await readdir(folder)).toEqual(['backup.json'])
  })

  test('fails if the file exists, without creating a secret', async () => {
    const { backup } = await genesis(folder)
    const second = createTestPeer()
    await expect(genesis(folder, second)).rejects.toThrow('there is a backup already')
    expect(second.secrets).toEqual([])
    expect(parseBackup(await readFile(toBackupPath(folder), 'utf8'))).toEqual(backup)
    // Also if two start at the same time and both saw no file.
    await expect(writeBackup(toBackupPath(folder), backup, second.random)).rejects.toThrow('there is a backup already')
    expect(await readdir(folder)).toEqual(['backup.json'])
  })

  test('fails for an enclave that its own policy does not list, and writes nothing', async () => {
    const peer = createTestPeer({ quote: { mrtd: new Uint8Array(48).fill(1) } })
    await expect(genesis(folder, peer)).rejects.toThrow(`found ${'01'.repeat(48)}`)
    expect(await readdir(folder)).toEqual([])
  })

  test('fails without creating a secret if the backup cannot be written', async () => {
    const peer = createTestPeer()
    await expect(genesis(folder, peer, join(folder, 'missing/backup.json'))).rejects.toThrow('ENOENT')
    await writeFile(join(folder, 'file'), '')
    await expect(genesis(folder, peer, join(folder, 'file/backup.json'))).rejects.toThrow('cannot find out whether')
    await symlink(join(folder, 'unplugged'), toBackupPath(folder))
    await expect(genesis(folder, peer)).rejects.toThrow('there is a backup already')
    expect(peer.secrets).toEqual([])
  })

  test('a recovery with a mistyped path for the new backup asks no custodian', async () => {
    await genesis(folder)
    const peer = createTestPeer()
    await expect(recover(folder, peer, join(folder, 'missing/new.json'))).rejects.toThrow('ENOENT')
    expect(peer.countQuotes()).toBe(0)
    expect(await readdir(folder)).toEqual(['backup.json'])
  })

  test('nor does one whose new backup cannot be linked', async () => {
    await genesis(folder)
    const peer = createTestPeer()
    // All random names are equal, so the link finds the name taken.
    const random = (length: number) => new Uint8Array(length)
    await expect(recover(folder, { ...peer, random }, join(folder, 'new.json'))).rejects.toThrow('EEXIST')
    expect(peer.countQuotes()).toBe(0)
    expect(await readdir(folder)).toEqual(['backup.json'])
  })

  test('waits for unavailable quotes and collateral up to a time limit', async () => {
    const peer = createTestPeer()
    let failures = 5
    const fetchCollateral = async () => {
      if (failures-- > 0) throw new VendorError('vendor_unreachable', 'down')
      return peer.fetchCollateral()
    }
    await genesis(folder, { ...peer, fetchCollateral })
    expect(peer.lines.filter((line) => line.includes('Could not make the backup yet'))).toHaveLength(5)
    await rm(toBackupPath(folder))
    failures = 6
    await expect(genesis(folder, { ...createTestPeer(), fetchCollateral })).rejects.toThrow('down')
  })

  test.each([
    ['all of it', 'tcb_info_not_in_date', (issued: Collateral) => issued],
    ['its revocation list', 'crl_not_yet_valid', ({ pck_crl }: Collateral) => ({ ...simulator.collateral(), pck_crl })],
  ])('waits a limited time for collateral issued after the backup: %s', async (_, code, change) => {
    // The simulator's collateral is a day old at its time.
    const toFetch = (aheadMs: number) => async () =>
      change(simulator.collateral({ at: new Date(at.getTime() + DAY_MS + aheadMs) }))
    const peer = createTestPeer()
    await genesis(folder, { ...peer, fetchCollateral: toFetch(15_000) })
    const lines = peer.lines.filter((line) => line.includes('Could not make the backup yet'))
    expect(lines.map((line) => JSON.parse(line).reason)).toEqual([code, code])
    await rm(toBackupPath(folder))
    const late = { ...createTestPeer(), fetchCollateral: toFetch(51_000) }
    await expect(genesis(folder, late)).rejects.toThrow(`its quote is not valid (${code}`)
    expect(await readdir(folder)).toEqual([])
  })
})

describe('joining with the backup', () => {
  async function joinWith(donors: TestPeer[], peer = createTestPeer()) {
    const giving = donors.map((donor) => createDonor(donor))
    const urls = donors.map((_, index) => `https://${index}.example`)
    const callPeer: ObtainDeps['callPeer'] = async (url, path, body) => {
      const donor = giving[urls.indexOf(url)] as Donor
      return path === rootSecretPaths.challenge ? donor.challenge() : donor.transfer(body as TransferRequest)
    }
    const source = {
      kind: 'attested',
      policy: peer.parsed,
      from: { kind: 'join', urls, backupPath: toBackupPath(folder) },
      collateralUrl: '',
    } as const
    await obtainRootSecret({ ...peer, callPeer }, source)
    return peer
  }

  test('rejects the secret of another genesis, and accepts the backup’s', async () => {
    const stranger = createTestPeer()
    await stranger.holder.generate()
    const { peer } = await genesis(folder)
    await expect(joinWith([stranger])).rejects.toThrow('no enclave gives us')
    expect((await joinWith([stranger, peer])).secrets).toEqual(peer.secrets)
  })

  test('accepts a donor that is out of date by now if the backup is of the same policy; never other code', async () => {
    const { peer } = await genesis(folder)
    const donor = (quote: NonNullable<TestPeerOptions['quote']>) => {
      const { quoteSource, fetchCollateral } = createTestPeer({ quote })
      return { ...peer, quoteSource, fetchCollateral }
    }
    const old = donor({ status: 'OutOfDate' })
    expect((await joinWith([old])).secrets).toEqual(peer.secrets)
    const joiner = createTestPeer()
    await expect(joinWith([donor({ mrtd: new Uint8Array(48).fill(1) })], joiner)).rejects.toThrow('no enclave gives us')
    expect(joiner.lines.join()).toContain('measurement_not_allowed')
    // Without a backup of the same policy, only the donor vouches for the secret.
    const policy = createTestPolicy({ platforms: [{ fmspc: '00906ed50000' }] })
    await rm(toBackupPath(folder))
    await writeFile(toBackupPath(folder), toBackupFile(await createForeignBackup(peer, policy)))
    const careful = createTestPeer()
    await expect(joinWith([old], careful)).rejects.toThrow('no enclave gives us')
    expect(careful.lines.join()).toContain('tcb_status_not_accepted')
  })

  /** Of the same secret, by an enclave with another policy. */
  async function createForeignBackup({ holder }: TestPeer, policy: ParsedRootSecretPolicy) {
    const { config, ...maker } = createTestPeer({ policy })
    return createBackup({ ...maker, config, holder })
  }

  test('a named but missing backup is a fault', async () => {
    const { peer } = await genesis(folder)
    await rm(toBackupPath(folder))
    await expect(joinWith([peer])).rejects.toThrow('ROOT_SECRET_BACKUP_FILE cannot be read: ENOENT')
    await expect(recover(folder)).rejects.toThrow('ROOT_SECRET_BACKUP_FILE cannot be read: ENOENT')
  })

  test('rejects a changed backup', async () => {
    const { peer, backup } = await genesis(folder)
    await writeFile(toBackupPath(folder), toBackupFile({ ...backup, commitment: '00'.repeat(32) }))
    await expect(joinWith([peer])).rejects.toThrow('its quote is not valid')
  })
})
