import { createUser, toDigest } from '@countersign/testing/stack'
import type { AttackContext, AttackResult } from '../attack.ts'
import { type Call, createCaller } from '../createCaller.ts'
import { catalogue, checkAnswer, MAX_BODY_BYTES, type RequestFacts, routeRules, toExpected } from '../httpRules.ts'
import type { Target } from '../startTarget.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY']
const FETCH_SITES = [undefined, 'same-origin', 'same-site', 'cross-site', 'none', 'Same-Origin, none']

const TYPES: readonly { value: string | undefined; isJson: boolean }[] = [
  { value: 'application/json', isJson: true },
  { value: 'Application/JSON; charset=utf-8', isJson: true },
  { value: undefined, isJson: false },
  { value: 'text/plain', isJson: false },
  { value: 'text/plain; application/json', isJson: false },
  { value: 'application/x-www-form-urlencoded', isJson: false },
  { value: 'multipart/form-data; boundary=x', isJson: false },
  { value: 'application/jsonx', isJson: false },
  { value: 'application/json, text/plain', isJson: false },
]

type Origin = { value: string | undefined; kind: RequestFacts['origin'] }
type Session = { name: string; cookies: readonly string[]; state: RequestFacts['session'] }
type Body = { name: string; bytes: Uint8Array; faults: RequestFacts['bodyFaults'] }

type Case = {
  route: string
  method: string
  origin: Origin
  fetchSite: string | undefined
  type: (typeof TYPES)[number]
  session: Session
  body: Body
}

/** The allowed origin, and whatever looks like it. */
function listOrigins(app: string): Origin[] {
  const { host, hostname, port } = new URL(app)
  const foreign = [
    ...['null', '', 'https://evil.example', `https://${host}`, `http://${hostname}`, `http://${hostname}:${port}0`],
    ...[`http://${hostname}:80`, `http://${hostname}:${port}.evil.example`, `http://${host}.evil.example`],
    ...[`http://evil.example/${host}`, `http://evil${hostname}:${port}`, `http://${host}@evil.example`],
    ...[`http://evil.example@${host}`, `HTTP://${hostname.toUpperCase()}:${port}`, `http://${hostname}.:${port}`],
    ...[`${app}/`, `${app} `, `${app}, ${app}`, `${app} https://evil.example`, `http://127.0.0.1:${port}`],
    ...[`http://[::1]:${port}`, `http://loc\u00e4lhost:${port}`, `http://xn--loclhost-8za:${port}`, 'file://', '*'],
  ]
  // What is trimmed on the way is no look-alike.
  const odd = foreign.filter((value) => value.trim() !== app)
  return [
    { value: app, kind: 'allowed' },
    { value: undefined, kind: 'missing' },
    ...odd.map((value): Origin => ({ value, kind: 'foreign' })),
  ]
}

async function listSessions(target: Target): Promise<Session[]> {
  const expired = createUser(target.backend)
  await expired.signIn('carol')
  const ofCarol = "where user_id = (select id from users where email = 'carol@example.com')"
  await target.query(`update sessions set expires_at = now() - interval '1 second' ${ofCarol}`)
  const { cookie } = target.alice
  const secret = cookie.split('=')[1] ?? ''
  return [
    { name: 'none', cookies: [], state: 'none' },
    { name: 'valid', cookies: [cookie], state: 'valid' },
    { name: 'another user’s', cookies: [target.mallory.cookie], state: 'valid' },
    { name: 'expired', cookies: [expired.cookie], state: 'expired' },
    { name: 'unknown', cookies: [`countersign-session=${'5a'.repeat(32)}`], state: 'none' },
    { name: 'malformed', cookies: [`countersign-session=${secret.slice(1)}g`], state: 'none' },
    { name: 'upper case', cookies: [`countersign-session=${secret.toUpperCase().replace(/\d/g, 'A')}`], state: 'none' },
    { name: 'duplicated', cookies: [`${cookie}; ${target.mallory.cookie}`], state: 'none' },
    { name: 'in two lines', cookies: [target.mallory.cookie, cookie], state: 'none' },
    { name: 'of another name', cookies: [`session=${secret}`], state: 'none' },
  ]
}

const SHAPE = ['invalid_request', 'invalid_digest', 'invalid_tx_metadata']

function listBodies(target: Target): Body[] {
  const txMetadata = target.nextTx()
  const digest = toDigest(txMetadata)
  const signing = (change: object) => JSON.stringify({ digest, txMetadata, ...change })
  const wrong = (name: string, body: string | Uint8Array, ...signingFaults: string[]): Body => ({
    name,
    bytes: Buffer.from(body),
    faults: { nothing: ['invalid_request'], signing: signingFaults.length > 0 ? signingFaults : SHAPE },
  })
  const broken = (name: string, body: string | Uint8Array): Body => ({
    name,
    bytes: Buffer.from(body),
    faults: { nothing: ['invalid_json'], signing: ['invalid_json'] },
  })
  const padded = (length: number): Body => ({
    name: `{} and spaces, ${length} bytes`,
    bytes: Buffer.from('{}'.padEnd(length)),
    faults: { nothing: [], signing: length > MAX_BODY_BYTES ? [] : SHAPE },
  })
  return [
    { name: 'none', bytes: new Uint8Array(), faults: { nothing: [], signing: [...SHAPE, 'invalid_json'] } },
    { name: '{}', bytes: Buffer.from('{}'), faults: { nothing: [], signing: SHAPE } },
    { name: 'a signing', bytes: Buffer.from(signing({})), faults: { nothing: ['invalid_request'], signing: [] } },
    ...[padded(MAX_BODY_BYTES - 1), padded(MAX_BODY_BYTES), padded(MAX_BODY_BYTES + 1)],
    ...['[]', 'null', 'true', '0', '"{}"', '[{}]'].map((text) => wrong(text, text)),
    broken('truncated', '{"digest":"0x'),
    broken('a BOM', '\ufeff{}'),
    broken('not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])),
    broken('two values', '{}{}'),
    broken('a comment', '{}//'),
    broken('single quotes', "{'a':1}"),
    broken('NaN', '{"a":NaN}'),
    wrong('__proto__', '{"__proto__":{"digest":"0x","txMetadata":{}}}'),
    wrong('constructor', '{"constructor":{"prototype":{"isAdmin":true}}}'),
    wrong('huge numbers', `{"a":1e400,"b":-1e400,"c":${'9'.repeat(2000)}}`),
    wrong('one member more', signing({ userId: 'alice' })),
    wrong('digest of another type', signing({ digest: 1 })),
    wrong('digest as a list', signing({ digest: [digest] })),
    wrong('no transaction', signing({ txMetadata: null })),
    wrong('a nonce that is text', signing({ txMetadata: { ...txMetadata, nonce: '1' } })),
    wrong('a nonce beyond all bounds', signing({ txMetadata: { ...txMetadata, nonce: 1e300 } })),
    wrong('a negative value', signing({ txMetadata: { ...txMetadata, value: '-1' } })),
    wrong('__proto__ in the transaction', signing({}).replace('{"chainId"', '{"__proto__":{"to":"0x"},"chainId"')),
    wrong('another digest', signing({ digest: `0x${'22'.repeat(32)}` }), 'digest_mismatch'),
    wrong(
      'the digest twice',
      `${signing({}).slice(0, -1)},"digest":"0x${'22'.repeat(32)}"}`,
      'digest_mismatch',
      ...SHAPE,
    ),
    wrong('another transaction', signing({ txMetadata: target.nextTx() }), 'digest_mismatch'),
    wrong(
      'a legacy one',
      signing({ txMetadata: { ...txMetadata, gasPrice: '1' } }),
      'unsupported_transaction',
      ...SHAPE,
    ),
  ]
}

/**
 * Every route, with every method, from every origin, with every session; every POST with each origin, site, session, type and
 * body against a good rest, and all pairs of type and body; and as much of the whole product again, at random.
 */
function listCases(context: AttackContext, lists: { origins: Origin[]; sessions: Session[]; bodies: Body[] }): Case[] {
  const { random, size } = context
  const { origins, sessions, bodies } = lists
  const routes = Object.keys(routeRules)
  const [origin, session, body, type] = [origins[0], sessions[1], bodies[0], TYPES[0]]
  if (origin === undefined || session === undefined || body === undefined || type === undefined)
    throw new Error('empty')
  const good = { origin, fetchSite: undefined, type, session, body }
  const all: Case[] = []
  for (const route of routes) {
    for (const method of METHODS) {
      for (const each of origins)
        for (const one of sessions) all.push({ ...good, route, method, origin: each, session: one })
    }
  }
  for (const route of routes.filter((each) => routeRules[each]?.takes !== undefined)) {
    const own = { ...good, route, method: 'POST' }
    for (const each of bodies) for (const one of TYPES) all.push({ ...own, body: each, type: one })
    for (const each of bodies) for (const one of sessions) all.push({ ...own, body: each, session: one })
    for (const fetchSite of FETCH_SITES) {
      for (const each of origins)
        for (const one of sessions) all.push({ ...own, fetchSite, origin: each, session: one })
    }
  }
  const any = (): Case => ({
    route: random.pick(routes),
    method: random.pick(random.below(2) === 0 ? ['POST'] : METHODS),
    origin: random.below(2) === 0 ? origin : random.pick(origins),
    fetchSite: random.pick(FETCH_SITES),
    type: random.pick(TYPES),
    session: random.below(2) === 0 ? session : random.pick(sessions),
    body: random.pick(bodies),
  })
  if (size === 'full') return [...all, ...Array.from({ length: 8000 }, any)]
  // Each route as it should be called, and each body: a matrix in which nothing succeeds would prove little.
  const controls = routes.flatMap((route): Case[] => {
    const own = { ...good, route, method: routeRules[route]?.method ?? 'GET' }
    return own.method === 'GET' ? [own] : bodies.map((each) => ({ ...own, body: each }))
  })
  return [...controls, ...random.shuffle(all).slice(0, 500), ...Array.from({ length: 200 }, any)]
}

/** An address for each path of the description. */
function toAddress(route: string, slug: string): string {
  const values: Record<string, string> = {
    '/auth/{provider}': '/auth/google',
    '/auth/{provider}/callback': '/auth/google/callback',
    '/proof/{slug}': `/proof/${slug}`,
    '/proof/{slug}/events': '/proof/AAAAAAAAAAAAAAAAAAAAAA/events',
    '/ipfs/{cid}': '/ipfs/bafkreigh2akiscaildc',
  }
  return values[route] ?? route
}

function toCall({ route, method, origin, fetchSite, type, session, body }: Case, slug: string): Call {
  const headers: [string, string][] = [
    ...(origin.value === undefined ? [] : [['Origin', origin.value] as [string, string]]),
    ...(fetchSite === undefined ? [] : [['Sec-Fetch-Site', fetchSite] as [string, string]]),
    ...(type.value === undefined ? [] : [['Content-Type', type.value] as [string, string]]),
    ...session.cookies.map((cookie): [string, string] => ['Cookie', cookie]),
  ]
  return { method, path: toAddress(route, slug), headers, ...(body.bytes.length === 0 ? {} : { body: body.bytes }) }
}

function toFacts({ method, origin, fetchSite, type, session, body }: Case): RequestFacts {
  return {
    method,
    // A browser has no empty one; whoever sends it has named none.
    origin: origin.kind,
    fetchSite,
    hasCookie: session.cookies.length > 0,
    session: session.state,
    isJsonType: type.isJson,
    bodyLength: body.bytes.length,
    bodyFaults: body.faults,
  }
}

/** The HTTP abuse matrix: what comes in, by whom, from where and how, against the rules. */
export async function abuseMatrix(context: AttackContext): Promise<AttackResult> {
  const { target, say } = context
  const faults: string[] = []
  const { paths, components } = await (await fetch(`${target.url}/openapi.json`)).json()
  const described = Object.entries<Record<string, object>>(paths)
  const codes: string[] = components.schemas.Problem.properties.code.enum
  if (codes.toSorted().join() !== Object.keys(catalogue).toSorted().join()) faults.push(`codes ${codes}`)
  for (const [path, methods] of described) {
    const rule = routeRules[path]
    if (rule === undefined) faults.push(`${path} is not covered by a rule`)
    else if (Object.keys(methods).join() !== rule.method.toLowerCase()) faults.push(`${path}: ${Object.keys(methods)}`)
  }
  for (const path of Object.keys(routeRules)) {
    if (!described.some(([each]) => each === path)) faults.push(`${path} is a rule for nothing`)
  }

  const { slug } = await (await target.alice.sign(target.nextTx())).json()
  const lists = { origins: listOrigins(target.app), sessions: await listSessions(target), bodies: listBodies(target) }
  const cases = listCases(context, lists)
  const caller = createCaller({ port: target.port })
  let [unexpected, failures, done] = [0, 0, 0]
  let [signings, logins] = [0, 0]
  const signers = new Set<Session>()

  async function run(each: Case) {
    const rule = routeRules[each.route]
    if (rule === undefined) return
    const expected = toExpected(rule, toFacts(each))
    const isDone = 'status' in expected
    if (isDone && each.route === '/sign/digest') signers.add(each.session)
    if (isDone && each.route === '/auth/{provider}') logins += 1
    const answer = await caller.call(toCall(each, slug))
    if (isDone && each.route === '/sign/digest') signings += 1
    const sent = {
      method: each.method,
      origin: each.origin.value,
      isAllowedOrigin: each.origin.kind === 'allowed',
      isHttps: false,
    }
    const found = checkAnswer(rule, sent, expected, answer)
    if (each.route === '/auth/me' && answer.status === 200 && each.method === 'GET') {
      const owner = each.session.name === 'valid' ? 'alice' : 'bob'
      if (JSON.parse(answer.body).email !== `${owner}@example.com`) found.push('it is somebody else')
    }
    if (answer.status >= 500) failures += 1
    if (found.length > 0) unexpected += 1
    const { route, method, origin, fetchSite, type, session, body } = each
    const label = `${method} ${route} origin ${origin.value} site ${fetchSite} type ${type.value} session ${session.name} body ${body.name}`
    for (const fault of found) faults.push(`${label}: ${fault}`)
    done += 1
    if (done % 5000 === 0) say(`${done} of ${cases.length} requests`)
  }

  // What ends a session is tried on its own, and the session put back, so that the rest still has it.
  const isEnding = (each: Case) =>
    each.route === '/auth/logout' && 'status' in toExpected(routeRules['/auth/logout'] as never, toFacts(each))
  const before = await target.readState()
  const rest = cases.filter((each) => !isEnding(each))
  try {
    const queue = rest.values()
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        for (const each of queue) await run(each)
      }),
    )
    const after = await target.readState()
    const due = {
      ...before,
      logins: before.logins + logins,
      pending_transactions: before.pending_transactions + signers.size,
    }
    for (const table of ['users', 'wallets', 'sessions', 'logins', 'pending_transactions'] as const) {
      if (after[table] !== due[table]) faults.push(`${table}: ${after[table]} rows where ${due[table]} were due`)
    }
    faults.push(...(await findUnrecorded(target)))
    await target.backend.withDatabase(async (query) => {
      await query('create table kept_sessions as select * from sessions')
      for (const each of cases.filter(isEnding).slice(0, context.size === 'full' ? 100 : 5)) {
        await run(each)
        const [row] = await query(
          'with back as (insert into sessions select * from kept_sessions on conflict do nothing returning 1) select count(*)::int as count from back',
        )
        if (row?.count !== 1) faults.push(`a logout ended ${row?.count} sessions`)
      }
      await query('drop table kept_sessions')
    })
  } finally {
    caller.close()
  }
  const preflights = await tryPreflights(target, context.size === 'full' ? lists.origins : lists.origins.slice(0, 4))
  return {
    name: 'abuse matrix',
    tried: done + preflights.tried,
    figures: {
      routes: described.length,
      requests: done + preflights.tried,
      unexpected: unexpected + preflights.faults.length,
      '5xx': failures,
      signed: `${signers.size} of ${signings} asked for`,
    },
    faults: [...faults, ...preflights.faults],
  }
}

/** The enclave numbers its batches: a number that is not on record was signed and not committed. */
async function findUnrecorded(target: Target): Promise<string[]> {
  await (await target.alice.sign(target.nextTx())).json()
  const [row] = await target.query(
    'select max(sequence)::int - min(sequence)::int + 1 - count(*)::int as missing from batches group by boot_id',
  )
  return row?.missing === 0 ? [] : [`${row?.missing} batches were signed and are not on record`]
}

async function tryPreflights(target: Target, origins: readonly Origin[]): Promise<{ tried: number; faults: string[] }> {
  const caller = createCaller({ port: target.port })
  const faults: string[] = []
  let tried = 0
  try {
    for (const [route, rule] of Object.entries(routeRules)) {
      for (const origin of origins) {
        if (origin.value === undefined) continue
        for (const method of ['GET', 'POST', 'DELETE']) {
          tried += 1
          const headers = [
            ['Origin', origin.value],
            ['Access-Control-Request-Method', method],
            ['Access-Control-Request-Headers', 'content-type, x-evil'],
            ['Cookie', target.alice.cookie],
          ] as const
          const answer = await caller.call({
            method: 'OPTIONS',
            path: toAddress(route, 'AAAAAAAAAAAAAAAAAAAAAA'),
            headers,
          })
          const isOpen = rule.isPublic === true && method === 'GET'
          const due = origin.kind === 'allowed' ? origin.value : isOpen ? '*' : undefined
          const isGood =
            answer.headers.get('access-control-allow-origin') === due &&
            answer.headers.has('access-control-allow-credentials') === (origin.kind === 'allowed') &&
            !/DELETE|\*/.test(answer.headers.get('access-control-allow-methods') ?? '') &&
            !/evil|\*/.test(answer.headers.get('access-control-allow-headers') ?? '') &&
            answer.status === (due === undefined ? 403 : 204)
          if (!isGood)
            faults.push(`preflight of ${method} ${route} from ${origin.value}: ${answer.status} ${[...answer.headers]}`)
        }
      }
    }
    return { tried, faults }
  } finally {
    caller.close()
  }
}
