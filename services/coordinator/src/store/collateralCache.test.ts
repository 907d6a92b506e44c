import { createSimulator } from '@countersign/attestation/simulator'
import { ServiceError } from '@countersign/protocol'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createManualTime } from '../../test/manualTime.ts'
import { startTestStore, type TestStore } from '../../test/store/store.ts'
import { createCollateralStore } from '../sign/enclave/collateral/collateralStore.ts'
import { createCollateralCache } from './collateralCache.ts'

const start = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at: start })
const platform = { fmspc: 'f0c06f000000', ca: 'platform' } as const

describe('collateral in the database', () => {
  let subject: TestStore
  beforeAll(async () => {
    subject = await startTestStore()
  })
  afterAll(() => subject.stop())
  beforeEach(() => subject.database.db.deleteFrom('collateral_cache').execute())

  const down = async () => {
    throw new ServiceError('down', 'down')
  }
  /** Another coordinator on the same database. */
  const boot = (fetchCollateral: () => Promise<ReturnType<typeof simulator.collateral>>) =>
    createCollateralStore({
      fetchCollateral,
      roots: [simulator.intelRoot],
      cache: createCollateralCache(subject.database.db),
      ...createManualTime(start),
    })

  test('after a restart while Intel’s service is down, uses what the last process fetched', async () => {
    const first = boot(async () => simulator.collateral())
    const { hash } = await first.current(platform)
    await first.stop()
    const second = boot(down)
    expect(await second.current(platform)).toMatchObject({ hash })
    await second.stop()
  })

  test('returns collateral_stale if the database has none', async () => {
    const store = boot(down)
    await expect(store.current(platform)).rejects.toMatchObject({ code: 'collateral_stale' })
    await store.stop()
  })

  test('does not use changed bytes', async () => {
    const cache = createCollateralCache(subject.database.db)
    const first = boot(async () => simulator.collateral())
    const { bytes } = await first.current(platform)
    await first.stop()
    const forged = Buffer.from(bytes).toString().replace('UpToDate', 'OutOfDat')
    await cache.save(platform, Buffer.from(forged))
    const second = boot(down)
    await expect(second.current(platform)).rejects.toMatchObject({ code: 'collateral_stale' })
    await second.stop()
  })

  test('stores one row per platform, the newest', async () => {
    const cache = createCollateralCache(subject.database.db)
    const other = { ...platform, ca: 'processor' } as const
    for (const [at, byte] of [
      [platform, 1],
      [other, 2],
      [platform, 3],
    ] as const) {
      await cache.save(at, new Uint8Array([byte]))
    }
    expect([...((await cache.load(platform)) ?? [])]).toEqual([3])
    expect([...((await cache.load(other)) ?? [])]).toEqual([2])
    expect(await cache.load({ ...platform, fmspc: '000000000000' })).toBeUndefined()
  })
})
