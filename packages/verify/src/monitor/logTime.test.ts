import { beforeEach, describe, expect, test } from 'vitest'
import { all, createLoggedWallet, kindsOf, now, others, wallet } from '../../test/monitor/loggedWallet.ts'
import { apiBaseUrl } from '../../test/network.ts'
import { createLogsMemory } from './log/logMemory.ts'
import { createLogTime } from './monitorLogs.ts'

describe('a slow log service', () => {
  let stack: ReturnType<typeof createLoggedWallet>
  let clock: number
  const clocked = { now: () => new Date(clock) }
  beforeEach(() => {
    stack = createLoggedWallet()
    stack.publish(...all)
    stack.append(...others(1500))
    clock = now.getTime()
  })
  /** The delay of each response of the log. */
  const slow = (ms: number) =>
    stack.network.routes.unshift([
      `${apiBaseUrl}/log`,
      (url) => {
        clock += ms
        return stack.log.answer(url)
      },
    ])
  const timedOut = { kind: 'log-unavailable', detail: 'the time for reading logs was over' }

  test('does not delay the results from the chain', async () => {
    stack.node.mine({ hash: `0x${'f0'.repeat(32)}`, from: wallet, nonce: 2 })
    stack.node.rest(60)
    slow(9_900)
    const report = await stack.monitor({}, createLogsMemory(), { ...clocked, logTime: createLogTime(60_000) })
    expect(report).toMatchObject({ conclusion: 'used-elsewhere', proven: 2 })
    expect(report.findings).toMatchObject([timedOut, { kind: 'no-receipt', nonces: [2, 2] }])
    // A few requests are concurrent.
    expect(clock - now.getTime()).toBeLessThan(60_000 + 16 * 9_900)
  })

  test('with rate limits ends the run as well', async () => {
    const asked = new Map<string, number>()
    stack.network.routes.unshift([
      `${apiBaseUrl}/log/`,
      (url) => {
        const turn = (asked.get(url.pathname) ?? 0) + 1
        asked.set(url.pathname, turn)
        return turn < 12 ? new Response(null, { status: 429 }) : stack.log.answer(url)
      },
    ])
    const wait = async (ms: number) => {
      clock += ms
      return true
    }
    const report = await stack.monitor({}, createLogsMemory(), { ...clocked, wait, logTime: createLogTime(600_000) })
    expect(report).toMatchObject({ conclusion: 'incomplete', findings: [timedOut] })
    expect(clock - now.getTime()).toBeLessThan(600_000 + 16 * 10_000)
  })

  test('delays all wallets together no longer than one', async () => {
    slow(9_900)
    const logTime = createLogTime(60_000)
    const logs = createLogsMemory()
    await stack.monitor({}, logs, { ...clocked, logTime })
    stack.log.requests.splice(0)
    expect((await stack.monitor({}, logs, { ...clocked, logTime })).findings).toMatchObject([timedOut])
    expect(stack.log.requests).toEqual([])
  })

  test('is not asked again for what it has returned', async () => {
    slow(9_900)
    const logs = createLogsMemory()
    expect(kindsOf(await stack.monitor({}, logs, { ...clocked, logTime: createLogTime(60_000) }))).toEqual([
      'log-unavailable',
    ])
    const bundles = () => stack.log.requests.splice(0).filter((path) => path.includes('/tile/entries/'))
    const before = bundles()
    expect(before.length).toBeGreaterThan(0)
    expect(await stack.monitor({}, logs, clocked)).toMatchObject({ conclusion: 'complete', findings: [] })
    expect(bundles().filter((path) => before.includes(path))).toEqual([])
  })
})
