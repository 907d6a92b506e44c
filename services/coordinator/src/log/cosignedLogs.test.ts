import { toVkey } from '@countersign/log'
import { expect, test } from 'vitest'
import { createSigner, hash } from '../../../../packages/log/test/logs.ts'
import { createFakeEnclaveLog } from '../../test/log/enclaveLog.ts'
import { createFakeLogStore } from '../../test/log/logStore.ts'
import { createManualTime } from '../../test/manualTime.ts'
import { createFakeLog } from '../../test/ports.ts'
import { createCosignedLogs } from './cosignedLogs.ts'

test('another key under the same name is another log, and callers that wait for the first get an error', async () => {
  const origin = 'log.example/a'
  const witnesses = ['w1', 'w2'].map((name) => Buffer.from(createSigner(name).key.publicKey).toString('hex'))
  const { terms } = createFakeEnclaveLog({ own: [origin], witnesses, quorum: 2 })
  const { clock, schedule } = createManualTime(new Date('2026-06-15T12:00:00.000Z'))
  const logs = createCosignedLogs({
    store: createFakeLogStore(),
    clients: new Map(),
    metrics: { observeRound() {}, observeWitness() {}, observeLogSize() {}, observeEntry() {} },
    clock,
    schedule,
    log: createFakeLog(),
    onRefused() {},
  })
  const first = logs.get(origin, terms)
  const waiting = first.cosigner.cosign({ size: 5 })
  const keys = [toVkey(createSigner(origin, 'ed25519', hash('another root secret')).key)]
  const second = logs.get(origin, { ...terms, logs: { own: [origin], keys } })
  expect(second).not.toBe(first)
  await expect(waiting).rejects.toMatchObject({ code: 'log_unavailable' })
  await expect(first.cosigner.cosign({ size: 5 })).rejects.toMatchObject({ code: 'log_unavailable' })
  expect(logs.find(origin)).toBe(second)
  await logs.stop()
})
