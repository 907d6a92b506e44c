import { describe, expect, test } from 'vitest'
import {
  coordinatorKey,
  cosign,
  createOpenLog,
  createSignedItem,
  given,
  kindsOf,
  NOW,
  origins,
  release,
  sign,
  type TestLog,
  toBatch,
  toLeaf,
  toPlacements,
  withCode,
} from '../../test/statementLog.ts'

const [first = ''] = origins

describe('an ended statement', () => {
  test('an erased one is never created again, even if the clock is stopped', async () => {
    const log = await createOpenLog()
    const item = createSignedItem()
    await sign(log, [item])
    await release(log.statementLog, { drop: [toLeaf(item)] })
    await expect(sign(log, [item])).rejects.toEqual(withCode('log_unavailable'))
    await sign(log, [createSignedItem()])
    expect(await kindsOf(log)).toEqual(['boot', 'signature', 'dropped', 'signature'])
  })

  test('nor one of too many to remember: the next statement is dated later, and nothing else is delayed', async () => {
    const log = await createOpenLog({ limits: { ended: 1 } })
    const two = [createSignedItem(), createSignedItem()]
    await sign(log, two)
    await release(log.statementLog, { drop: two.map(toLeaf) })
    expect(log.statementLog.now()).toBe(NOW + 1)
    for (const item of [...two, createSignedItem()]) {
      await expect(sign(log, [item])).rejects.toEqual(withCode('log_unavailable'))
    }
    await sign(log, [createSignedItem({ signedAtMs: NOW + 1 })])
  })

  test('one that was dated ahead by a wrong clock does not change the dates of others', async () => {
    const log = await createOpenLog()
    const ahead = createSignedItem({ signedAtMs: NOW + 86_400_000 })
    log.clock.nowMs += 86_400_000
    await sign(log, [ahead])
    // It is dropped while the clock is wrong, and by the time that it is correct.
    log.clock.elapsedMs += 30_000
    log.statementLog.expire()
    log.clock.nowMs -= 86_400_000
    expect(log.statementLog.now()).toBe(NOW)
    await sign(log, [createSignedItem()])
    log.clock.nowMs += 86_400_000
    await expect(sign(log, [ahead])).rejects.toEqual(withCode('log_unavailable'))
  })

  test('erasing one while others are being signed does not fail them, even if they are dated earlier', async () => {
    const log = await createOpenLog()
    const [early, late] = [createSignedItem(), createSignedItem({ signedAtMs: NOW + 5 })]
    const reservation = log.statementLog.reserve([early] as never)
    await sign(log, [late])
    await release(log.statementLog, { drop: [toLeaf(late)] })
    reservation.add([early], coordinatorKey)
    const batch = toBatch([early])
    log.statementLog.append(batch)
    expect(await reservation.collect(toPlacements(batch))).toMatchObject({ origin: first })
    reservation.close()
    expect(await kindsOf(log)).toEqual(['boot', 'signature', 'dropped', 'signature'])
  })

  test.each<[string, (log: TestLog, leaf: string) => void]>([
    ['acknowledged', ({ statementLog }, leaf) => void release(statementLog, { acknowledge: [leaf] })],
    [
      'reported',
      ({ statementLog, clock }) => {
        clock.elapsedMs += 60_000
        statementLog.expire()
      },
    ],
  ])(
    'nor one that was released and %s: it could then be dropped, and an entry would say that it was not released',
    async (_, end) => {
      const log = await createOpenLog()
      const { statementLog } = log
      const item = createSignedItem()
      const { checkpoint } = await sign(log, [item])
      const leaves = [toLeaf(item)]
      expect(await release(statementLog, { ...cosign(checkpoint), leaves })).toEqual([given])
      // Signed at the same time by a call that takes longer.
      const reservation = statementLog.reserve([item] as never)
      end(log, toLeaf(item))
      expect(() => reservation.add([item], coordinatorKey)).toThrow(withCode('log_unavailable'))
      reservation.close()
      await release(statementLog, { drop: leaves })
      expect(await kindsOf(log)).not.toContain('dropped')
      await sign(log, [createSignedItem()])
    },
  )
})
