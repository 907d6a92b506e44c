import { createAccounts, createUser, percentile, withScope } from '@countersign/testing/stack'
import { type Report, type Row, type Run, toRow, withAt } from '../report.ts'
import { QUOTE_MS } from '../signer.ts'
import { openBench } from '../stack.ts'

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
  return withScope(async (scope) => {
    const count = isQuick ? AT_ONE_TIME : rounds * USERS_PER_ROUND
    const { start } = await openBench(scope)
    const subjects = createAccounts(2 * count + 1).map(({ sub }) => sub)
    const { stack } = await start({ users: 0, accounts: subjects.length })
    // The very first opens connections and fetches the provider's keys.
    const first = await measure(stack, subjects.splice(-1), 1)
    say('one at a time')
    const alone = await measure(stack, subjects.slice(0, count), 1)
    say(`${AT_ONE_TIME} at a time`)
    const together = await measure(stack, subjects.slice(count), AT_ONE_TIME)
    return {
      suite: 'signin',
      title: 'Sign-in',
      setting:
        `From the navigation to \`/auth/google\` to a wallet in \`GET /wallet/me\`, PostgreSQL, quotes of ${QUOTE_MS} ms, ` +
        `${count} new users each; provider and browsers share the machine with the service.`,
      rows: [
        toRow('the very first after a start', first[0]?.fromStart ?? Number.NaN, 'ms'),
        ...withAt(1, 'at a time', toRows(alone)),
        ...withAt(AT_ONE_TIME, 'at a time', toRows(together)),
      ],
    }
  })
}

async function measure(service: { url: string }, subjects: readonly string[], atOneTime: number): Promise<Times[]> {
  const left = [...subjects]
  const times: Times[] = []
  const lanes = Array.from({ length: atOneTime }, async () => {
    for (let subject = left.pop(); subject !== undefined; subject = left.pop())
      times.push(await signIn(service, subject))
  })
  await Promise.all(lanes)
  return times
}

/** A separate browser for each user, with neither cookies nor a session at the provider. */
async function signIn({ url }: { url: string }, subject: string): Promise<Times> {
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

const toRows = (times: readonly Times[]): Row[] =>
  [['fromStart', 'from the start'] as const, ['fromCallback', 'from the callback'] as const].flatMap(([member, name]) =>
    [50, 99].map((share) =>
      toRow(
        `${name}, p${share}`,
        percentile(
          times.map((each) => each[member]),
          share / 100,
        ),
        'ms',
      ),
    ),
  )
