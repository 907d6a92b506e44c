import { hash } from 'node:crypto'
import { decodeBundle, decodeLogEntry } from '@countersign/log'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { FakeEnclaveLog } from '../../test/log/enclaveLog.ts'
import { createLogRig, type LogRig } from '../../test/log/logService.ts'
import { startTestStore, type TestStore } from '../../test/store/store.ts'
import type { LogStore } from '../store/logs.ts'

describe('on PostgreSQL', () => {
  let database: TestStore
  let older: TestStore
  let rig: LogRig
  let own: string[]
  let made = 0
  beforeAll(async () => {
    ;[database, older] = await Promise.all([startTestStore(), startTestStore()])
  })
  afterAll(async () => {
    await Promise.all([database.stop(), older.stop()])
  })
  beforeEach(async () => {
    made += 1
    own = [`log.example/${made}`, `log.example/${made}-spare`]
    rig = await createLogRig({ own })
  })
  afterEach(() => rig.stop())

  const first = () => own[0] as string

  async function untilOpen(enclave: FakeEnclaveLog = rig.enclave) {
    await expect
      .poll(() => {
        rig.time.pass(1_000)
        return enclave.current?.isOpen
      })
      .toBe(true)
  }

  async function sign(logService: ReturnType<LogRig['startLogService']>, count = 1) {
    const { leaves: _, ...appended } = rig.enclave.append(count)
    const { bootId, terms } = rig.enclave
    await logService.record(appended, { bootId, terms, claims: [] })
    return logService.cosign({ origin: appended.origin, size: appended.from + count })
  }

  async function readKinds(store: LogStore, origin: string) {
    const name = hash('sha256', origin, 'hex')
    const width = (await store.findLogHead(name))?.written.size ?? 0
    const bundle = (await store.readBundle(name, { index: 0, width })) ?? new Uint8Array()
    return decodeBundle(bundle, width).map((entry) => decodeLogEntry(entry).kind)
  }

  test('two coordinators sign in turn and concurrently, and a third continues', async () => {
    const store = database.logStore
    const logServices = [rig.startLogService({ store }), rig.startLogService({ store })]
    await untilOpen()
    for (const logService of logServices) await sign(logService, 2)
    for (let round = 0; round < 5; round++) {
      await Promise.all(logServices.flatMap((logService) => [sign(logService), sign(logService, 4)]))
    }
    await Promise.all(logServices.map((logService) => logService.stop()))
    rig.enclave.reboot()
    const next = rig.startLogService({ store })
    await untilOpen()
    const { size } = await sign(next)
    expect(size).toBe(57)
    // The only coordinator of a log stores notes after it has answered, and the last one when it stops.
    await next.stop()
    expect(await readKinds(store, first())).toEqual(['boot', ...Array(54).fill('signature'), 'boot', 'signature'])
    expect(await store.findCosigned(hash('sha256', first(), 'hex'))).toMatchObject({ size: 57 })
    expect(rig.log.lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('a restored database ends the origin, and the next origin is used', async () => {
    const logService = rig.startLogService({ store: database.logStore })
    await untilOpen()
    const { entries: _, ...head } = await rig.enclave.enclaveLog.call({}).then(({ log }) => log ?? { entries: [] })
    await sign(logService, 3)
    await sign(logService, 30)
    await logService.stop()
    // The log as it was with one entry.
    const name = hash('sha256', first(), 'hex')
    const bundle = await database.logStore.readBundle(name, { index: 0, width: 1 })
    const [boot] = decodeBundle(bundle ?? new Uint8Array(), 1)
    const note = 'checkpoint' in head ? head.checkpoint : ''
    const root = Uint8Array.from(Buffer.from(note.split('\n')[2] ?? '', 'base64'))
    const { bootId, terms } = rig.enclave
    await older.logStore.appendLog({
      origin: first(),
      key: terms.logs?.keys[0] ?? '',
      bootId,
      from: 0,
      entries: [boot as Uint8Array],
      checkpoint: { size: 1, root, note },
      claims: [],
      states: [],
      claimMs: 0,
      now: 0,
    })
    rig.enclave.reboot()
    const next = rig.startLogService({ store: older.logStore })
    await untilOpen()
    expect(rig.enclave.current?.origin).toBe(own[1])
    await sign(next)
    expect(await readKinds(older.logStore, own[1] as string)).toEqual(['boot', 'signature'])
    expect(rig.witnesses.map((witness) => witness.getSize(first()))).toEqual([34, 34, 34])
  })
})
