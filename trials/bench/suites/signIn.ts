import { startPostgres } from '@countersign/testing'
import { createAccounts, createUser, percentile, withScope } from '@countersign/testing/stack'
import type { Report, Row, Run } from '../report.ts'
import { QUOTE_MS, startSatelliteServer, startStack, stopProgram } from '../startStack.ts'

/** New users for each round, so that 9 rounds have 207 of either kind. */
const USERS_PER_ROUND = 23
const AT_ONE_TIME = 8

/** Milliseconds until `GET /wallet/me` answered with the wallet: from the start of the navigation, and from the callback. */
type Times = { fromStart: number; fromCallback: number }

/**
 * From the first sign-in of a new user to a wallet, on PostgreSQL with quotes of 39 ms: one user after the other, and several at
 * a time. The identity provider, these browsers and the service share the machine's cores.
 */
export function benchSignIn({ rounds, isQuick, say }: Run): Promise<Report> {
  return withScope(async ({ add }) => {
    const count = isQuick ? AT_ONE_TIME : rounds * USERS_PER_ROUND
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const satellite = add(await startSatelliteServer(), stopProgram)
    const databaseUrl = await postgres.createDatabase()
    const { url } = add(await startStack({ satellite, databaseUrl, limit: 256, users: 2 * count + 1 }), ({ stop }) =>
      stop(),
    )
    // The very first opens connections and fetches the provider's keys.
    const first = await measure(url, { start: 2 * count, count: 1, atOneTime: 1 })
    say('one at a time')
    const alone = await measure(url, { start: 0, count, atOneTime: 1 })
    say(`${AT_ONE_TIME} at a time`)
    const together = await measure(url, { start: count, count, atOneTime: AT_ONE_TIME })
    return {
      suite: 'signin',
      title: 'Sign-in',
      setting:
        `From the navigation to \`/auth/google\` to a wallet in \`GET /wallet/me\`, PostgreSQL, quotes of ${QUOTE_MS} ms, ` +
        `${count} new users each; provider and browsers share the machine with the service.`,
      rows: [
        { name: 'the very first after a start', value: first[0]?.fromStart ?? Number.NaN, unit: 'ms' },
        ...toRows(alone, 1),
        ...toRows(together, AT_ONE_TIME),
      ],
    }
  })
}

async function measure(
  url: string,
  { start, count, atOneTime }: { start: number; count: number; atOneTime: number },
): Promise<Times[]> {
  const left = createAccounts(start + count)
    .slice(start)
    .map(({ sub }) => sub)
  const times: Times[] = []
  const lanes = Array.from({ length: atOneTime }, async () => {
    for (let subject = left.pop(); subject !== undefined; subject = left.pop()) times.push(await signIn(url, subject))
  })
  await Promise.all(lanes)
  return times
}

/** A browser of their own for each user, with neither cookies nor a session at the provider. */
async function signIn(url: string, subject: string): Promise<Times> {
  const user = createUser({ url })
  const startedAt = performance.now()
  const callback = await user.beginSignIn(subject)
  const calledBackAt = performance.now()
  await user.finishSignIn(callback)
  const response = await user.get('/wallet/me')
  const body = await response.text()
  if (response.status !== 200) throw new Error(`no wallet: ${response.status} ${body}`)
  const now = performance.now()
  return { fromStart: now - startedAt, fromCallback: now - calledBackAt }
}

function toRows(times: readonly Times[], atOneTime: number): Row[] {
  const at = { value: atOneTime, of: 'at a time' }
  return [
    { name: 'from the start', times: times.map(({ fromStart }) => fromStart) },
    { name: 'from the callback', times: times.map(({ fromCallback }) => fromCallback) },
  ].flatMap(({ name, times }) => [
    { name: `${name}, p50`, at, value: percentile(times, 0.5), unit: 'ms' },
    { name: `${name}, p99`, at, value: percentile(times, 0.99), unit: 'ms' },
  ])
}
