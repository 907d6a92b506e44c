import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestBrowser, startPostgres } from '@countersign/testing'
import { ORIGIN, QUOTE_MS, type Stack, startProcess, startStack, stopProcess, toAccount } from './startStack.ts'

/** New users for each round, so that the default of 9 rounds has 207 of either kind. */
const USERS_PER_ROUND = 23
const AT_ONE_TIME = 8

/** Milliseconds until `GET /wallet/me` answered with the wallet: from the start of the navigation, and from the callback. */
type Times = { fromStart: number; fromCallback: number }

/**
 * From the first sign-in of a new user to a wallet, on PostgreSQL with quotes of 39 ms: one user after the other, and several at
 * a time. The identity provider, these browsers and the service share the machine's cores.
 */
export async function benchSignIn({ rounds }: { rounds: number }) {
  const count = rounds * USERS_PER_ROUND
  const folder = await mkdtemp(join(tmpdir(), 'bench-sign-in-'))
  const postgres = await startPostgres()
  const satellite = await startProcess('bench/satelliteServer.ts', {}, 'Started the satellite')
  let stack: Stack | undefined
  try {
    const databaseUrl = await postgres.createDatabase()
    stack = await startStack({ folder, satellite, databaseUrl, limit: 256, users: 2 * count + 1 })
    const { url } = stack
    console.log(
      `PostgreSQL, quotes of ${QUOTE_MS} ms, ${count} new users each; Node ${process.version} on ${process.arch}; ` +
        `provider and browsers share ${availableParallelism()} cores with the service`,
    )
    console.log('at one time   measured from    p50 ms   p99 ms   max ms')
    // The very first opens connections and fetches the provider's keys.
    const [first] = await measure(url, { start: 2 * count, count: 1, atOneTime: 1 })
    if (first !== undefined) print('the first', [first])
    print('1', await measure(url, { start: 0, count, atOneTime: 1 }))
    print(String(AT_ONE_TIME), await measure(url, { start: count, count, atOneTime: AT_ONE_TIME }))
  } finally {
    await stack?.stop()
    await stopProcess(satellite.child)
    await postgres.stop()
    await rm(folder, { recursive: true })
  }
}

async function measure(
  url: string,
  { start, count, atOneTime }: { start: number; count: number; atOneTime: number },
): Promise<Times[]> {
  const left = Array.from({ length: count }, (_, index) => toAccount(start + index).sub)
  const times: Times[] = []
  const lanes = Array.from({ length: atOneTime }, async () => {
    for (let subject = left.pop(); subject !== undefined; subject = left.pop()) times.push(await signIn(url, subject))
  })
  await Promise.all(lanes)
  return times
}

/** A browser of their own for each user, with neither cookies nor a session at the provider. */
async function signIn(url: string, subject: string): Promise<Times> {
  const browser = createTestBrowser()
  const startedAt = performance.now()
  const { url: page } = await browser.navigate(`${url}/auth/google`)
  let calledBackAt = Number.NaN
  let target = new URL(`?as=${subject}`, page)
  while (target.origin !== ORIGIN) {
    if (target.pathname === '/auth/google/callback') calledBackAt = performance.now()
    const response = await browser.request(target)
    const location = response.headers.get('location')
    if (location === null) throw new Error(`sign-in ended with ${response.status}: ${await response.text()}`)
    await response.body?.cancel()
    target = new URL(location, target)
  }
  const response = await browser.request(`${url}/wallet/me`)
  const body = await response.text()
  if (response.status !== 200) throw new Error(`no wallet: ${response.status} ${body}`)
  const now = performance.now()
  return { fromStart: now - startedAt, fromCallback: now - calledBackAt }
}

function print(label: string, times: readonly Times[]) {
  for (const [name, pick] of [
    ['the start', ({ fromStart }: Times) => fromStart],
    ['the callback', ({ fromCallback }: Times) => fromCallback],
  ] as const) {
    const sorted = times.map(pick).toSorted((left, right) => left - right)
    const at = (share: number) => (sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN).toFixed(1).padStart(8)
    console.log(`${label.padStart(11)}   ${name.padEnd(13)} ${at(0.5)} ${at(0.99)} ${at(1)}`)
  }
}
