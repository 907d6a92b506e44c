import { randomBytes } from 'node:crypto'
import { createUser } from '@countersign/testing/stack'
import type { AttackContext, AttackResult, Size } from '../attack.ts'
import type { Answer } from '../createCaller.ts'
import { openSignIn } from '../openSignIn.ts'
import type { Target } from '../startTarget.ts'

type Tally = { tried: number; faults: string[] }

const secretOf = (cookie: string) => cookie.split('=')[1] ?? ''

/** The session cookie that an answer sets, under any name. Cleared cookies don't count. */
const readSession = (answer: Answer) =>
  /countersign-session=([0-9a-f]{64})/.exec(answer.headers.get('set-cookie') ?? '')?.[1]

/** Cookies planted from a sibling domain or another path, and cookies set by an attacker before the sign-in. */
export async function cookieTossing(context: AttackContext): Promise<AttackResult> {
  const { target, size, say } = context
  const tally: Tally = { tried: 0, faults: [] }
  await tossSessions(target, tally, size)
  for (let round = 0; round < (size === 'full' ? 10 : 1); round++) await tossLogins(target, tally, size)
  await fixSessions(target, tally, size === 'full' ? 10 : 1)
  if (size === 'full') {
    say(`${tally.tried} planted cookies tried; continuing with https`)
    await target.restart({ PUBLIC_URL: `https://localhost:${target.port}` })
    await tossWithHttps(target, tally)
  }
  const { tried, faults } = tally
  return { tried, figures: { 'wrongly accepted': faults.length }, faults }
}

/** A planted session cookie next to the user's own, or an oddly spelled one, must not sign in anyone. */
async function tossSessions({ call: send, app, alice, mallory }: Target, tally: Tally, size: Size) {
  const [own, planted] = [alice.cookie, mallory.cookie]
  const secret = secretOf(planted)
  const adjacent = [`${own}; ${planted}`, `${planted}; ${own}`, `${own}; ${own}`, `${own};${planted}`]
  const among = [`a=b; ${planted}; c=d; ${own}`, `countersign-session=; ${own}`, `${own}; countersign-session=`]
  const upper = secret.toUpperCase().replace(/^\d/, 'A')
  const values = [
    `"${secret}"`,
    upper,
    `${secret}0`,
    secret.slice(1),
    `0x${secret}`,
    `${secret},${secret}`,
    `%${secret.slice(1)}`,
  ]
  const names = ['[]', '.', '\u00a0'].map((end) => `countersign-session${end}=${secret}`)
  const prefixes = ['__Host-', '__Secure-', '=', 'x=', '\u00a0'].map((start) => `${start}${planted}`)
  const others = [`Countersign-Session=${secret}`, `countersign-session%3D${secret}`, `\u00a0${planted}; ${own}x`]
  const jars: readonly (readonly string[])[] = [
    ...[
      [own, planted],
      [planted, own],
    ],
    ...[
      ...adjacent,
      ...among,
      ...values.map((value) => `countersign-session=${value}`),
      ...names,
      ...prefixes,
      ...others,
    ].map((line) => [line]),
  ]
  const posts = ['/wallet/provision', '/sign/digest', '/auth/logout'].map((path) => ({ method: 'POST', path }))
  const calls = ['/auth/me', '/wallet/me', '/wallet/transactions']
    .map((path) => ({ method: 'GET', path }))
    .concat(posts)
  for (const jar of jars) {
    for (const call of size === 'full' ? calls : calls.slice(3)) {
      const headers: [string, string][] = [['Origin', app], ...jar.map((line): [string, string] => ['Cookie', line])]
      const answer = await send({ ...call, headers })
      tally.tried += 1
      if (answer.status !== 401)
        tally.faults.push(`${call.path} with ${describe(jar)}: expected 401, got ${answer.status}`)
    }
  }
  // Other cookies must not prevent the user's session.
  for (const jar of [`${'junk=1; '.repeat(1000)}${own}`, `a="b; ${own}`, `=; ;;${own}`, `__Host-${planted}; ${own}`]) {
    const answer = await send({ path: '/auth/me', headers: [['Cookie', jar]] })
    tally.tried += 1
    const isOwn = answer.status === 200 && JSON.parse(answer.body).email === 'alice@example.com'
    if (!isOwn) tally.faults.push(`/auth/me with other cookies: ${answer.status}`)
  }
}

/** Removes secrets from a report. */
const describe = (jar: readonly string[]) => JSON.stringify(jar).replace(/[0-9a-f]{40,}/gi, '…')

/** Login CSRF: opens the callback of the attacker's own sign-in in the victim's browser. */
async function tossLogins(target: Target, tally: Tally, size: Size) {
  const { alice, app } = target
  const random = () => randomBytes(32).toString('hex')
  const victims: ((name: string, value: string) => string[])[] = [
    () => [],
    () => [alice.cookie],
    (name) => [`${name}=${random()}`],
    (name, value) => [`${name}=${random()}; ${name}=${value}`],
    (name, value) => [`${name}=${value}; ${name}=${random()}`],
    (name, value) => [`${name}=${value}`, `${name}=${value}`],
    (name, value) => [`__Host-${name}=${value}`],
    (name, value) => [`${name.slice(0, -1)}0x=${value}`],
    (_, value) => [`countersign-login-${'0'.repeat(16)}=${value}`],
    (name, value) => [`${name}="${value}"`],
    (name, value) => [`${name.toUpperCase()}=${value}`],
  ]
  for (const toJar of size === 'full' ? victims : victims.slice(1, 4)) {
    const { callback, login } = await openSignIn(target, 'bob')
    const jar = toJar(login.name, login.value)
    const path = `${callback.pathname}${callback.search}`
    const answer = await target.call({ path, headers: jar.map((line): [string, string] => ['Cookie', line]) })
    tally.tried += 1
    const isRefused = answer.status === 400 && JSON.parse(answer.body).code === 'oauth_state_invalid'
    if (!isRefused || readSession(answer) !== undefined) {
      tally.faults.push(`foreign sign-in with ${describe(jar)}: ${answer.status}`)
    }
    // Control: with its own cookie, the sign-in succeeds once.
    const cookie: [string, string] = ['Cookie', `${login.name}=${login.value}`]
    const isSpent = jar.some(
      (line) => line.startsWith(`${login.name}=`) && !line.includes(';') && line.length < 200 && !line.includes('"'),
    )
    const own = await target.call({ path, headers: [cookie] })
    const again = await target.call({ path, headers: [cookie] })
    tally.tried += 2
    const landed = own.status === 302 && new URL(own.headers.get('location') ?? '', target.url).origin === app
    if (!landed && !(isSpent && own.status === 400))
      tally.faults.push(`own browser with ${describe(jar)}: ${own.status}`)
    if (again.status !== 400) tally.faults.push(`a callback succeeded twice: ${again.status}`)
  }
}

/** Session fixation: a session planted before the sign-in must not be valid after it. */
async function fixSessions(target: Target, tally: Tally, rounds: number) {
  const me = (secret: string) =>
    target.call({ path: '/auth/me', headers: [['Cookie', `countersign-session=${secret}`]] })
  for (let round = 0; round < rounds; round++) {
    const attacker = createUser(target.backend)
    await attacker.signIn('erin')
    for (const planted of [randomBytes(32).toString('hex'), secretOf(attacker.cookie)]) {
      const { callback, login } = await openSignIn(target, 'dave')
      const jar = `countersign-session=${planted}; ${login.name}=${login.value}`
      const answer = await target.call({ path: `${callback.pathname}${callback.search}`, headers: [['Cookie', jar]] })
      const session = readSession(answer)
      tally.tried += 3
      if (session === undefined) tally.faults.push(`sign-in with a planted session: ${answer.status}`)
      if (session === planted || session === login.value) tally.faults.push('a planted value became the session')
      for (const secret of [planted, login.value]) {
        if ((await me(secret)).status !== 401) tally.faults.push('a planted value is a valid session after the sign-in')
      }
      const who = session === undefined ? '' : JSON.parse((await me(session)).body).email
      if (who !== 'dave@example.com') tally.faults.push('signed in as another user')
    }
  }
}

/** With https, a sibling domain can't set cookies with the `__Host-` prefix, so cookies without it must be ignored. */
async function tossWithHttps({ call, alice, mallory, app }: Target, tally: Tally) {
  const expect = (isTrue: boolean, text: string) => {
    tally.tried += 1
    if (!isTrue) tally.faults.push(`with https: ${text}`)
  }
  const get = (path: string, cookie?: string) =>
    call({ path, headers: cookie === undefined ? [] : [['Cookie', cookie]] })
  const isStrict = (line: string) =>
    /^__Host-[^;]+; /.test(line) &&
    /; Path=\//.test(line) &&
    /; Secure/.test(line) &&
    /; HttpOnly/.test(line) &&
    !/domain/i.test(line)

  for (const start of ['', '__host-', '__Secure-', ' __Host_']) {
    const name = `${start}countersign-session`
    const answer = await get('/auth/me', `${name}=${secretOf(alice.cookie)}`)
    expect(answer.status === 401, `${name} was accepted`)
  }
  const both = await get('/auth/me', `${mallory.cookie}; __Host-${alice.cookie}`)
  expect(
    both.status === 200 && JSON.parse(both.body).email === 'alice@example.com',
    "a planted cookie replaced the user's",
  )
  expect(both.headers.get('strict-transport-security') !== undefined, 'no HSTS')

  const start = await get('/auth/google')
  const line = start.headers.get('set-cookie') ?? ''
  expect(
    isStrict(line) && /; SameSite=Lax/.test(line),
    `wrong attributes of the login cookie: ${line.replace(/=[0-9a-f]{64}/, '=…')}`,
  )
  const [, name = '', value = ''] = /^__Host-([^=]+)=([0-9a-f]{64})/.exec(line) ?? []
  const state = new URL(start.headers.get('location') ?? '').searchParams.get('state')
  const finish = (cookie: string) => get(`/auth/google/callback?code=planted&state=${state}`, cookie)
  const planted = await finish(`${name}=${value}`)
  expect(JSON.parse(planted.body).code === 'oauth_state_invalid', 'a planted login cookie was accepted')
  // Control: with the prefix the cookie is accepted, and the request fails only at the provider, which doesn't know the code.
  const own = await finish(`__Host-${name}=${value}`)
  expect(JSON.parse(own.body).code === 'oauth_exchange_failed', `the login cookie was rejected: ${own.status}`)

  const victim = await call({
    method: 'POST',
    path: '/auth/logout',
    headers: [
      ['Origin', app],
      ['Cookie', mallory.cookie],
    ],
  })
  expect(victim.status === 401, 'a session without the prefix was ended')
}
