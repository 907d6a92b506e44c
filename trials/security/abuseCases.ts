import { createUser, toDigest } from '@countersign/testing/stack'
import type { AttackContext } from './attack.ts'
import type { Call } from './createCaller.ts'
import { MAX_BODY_BYTES, type RequestFacts, routeRules } from './httpRules.ts'
import type { Target } from './startTarget.ts'

/* The requests of the abuse matrix: the values that vary and their combinations. */

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY']
const FETCH_SITES = [undefined, 'same-origin', 'same-site', 'cross-site', 'none', 'Same-Origin, none']

const FETCH_MODES = [undefined, 'navigate', 'cors', 'no-cors', 'Navigate']

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

export type Origin = { value: string | undefined; kind: RequestFacts['origin'] }
export type Session = { name: string; cookies: readonly string[]; state: RequestFacts['session'] }
export type Body = { name: string; bytes: Uint8Array; faults: RequestFacts['bodyFaults'] }

export type Case = {
  route: string
  method: string
  origin: Origin
  fetchSite: string | undefined
  fetchMode: string | undefined
  type: (typeof TYPES)[number]
  session: Session
  body: Body
}

/** The allowed origin and its look-alikes. */
export function listOrigins(app: string): Origin[] {
  const { host, hostname, port } = new URL(app)
  const foreign = [
    ...['null', '', 'https://evil.example', `https://${host}`, `http://${hostname}`, `http://${hostname}:${port}0`],
    ...[`http://${hostname}:80`, `http://${hostname}:${port}.evil.example`, `http://${host}.evil.example`],
    ...[`http://evil.example/${host}`, `http://evil${hostname}:${port}`, `http://${host}@evil.example`],
    ...[`http://evil.example@${host}`, `HTTP://${hostname.toUpperCase()}:${port}`, `http://${hostname}.:${port}`],
    ...[`${app}/`, `${app} `, `${app}, ${app}`, `${app} https://evil.example`, `http://127.0.0.1:${port}`],
    ...[`http://[::1]:${port}`, `http://loc\u00e4lhost:${port}`, `http://xn--loclhost-8za:${port}`, 'file://', '*'],
  ]
  // Drops values that equal the allowed origin once whitespace is trimmed.
  const odd = foreign.filter((value) => value.trim() !== app)
  return [
    { value: app, kind: 'allowed' },
    { value: undefined, kind: 'missing' },
    ...odd.map((value): Origin => ({ value, kind: 'foreign' })),
  ]
}

export async function listSessions(target: Target): Promise<Session[]> {
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
    {
      name: 'in upper case',
      cookies: [`countersign-session=${secret.toUpperCase().replace(/\d/g, 'A')}`],
      state: 'none',
    },
    { name: 'duplicated', cookies: [`${cookie}; ${target.mallory.cookie}`], state: 'none' },
    { name: 'in two lines', cookies: [target.mallory.cookie, cookie], state: 'none' },
    { name: 'of another name', cookies: [`session=${secret}`], state: 'none' },
  ]
}

const SHAPE = ['invalid_request', 'invalid_digest', 'invalid_tx_metadata']

export function listBodies(target: Target): Body[] {
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
    name: `{} padded with spaces to ${length} bytes`,
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
    wrong('an extra member', signing({ userId: 'alice' })),
    wrong('digest of another type', signing({ digest: 1 })),
    wrong('digest as a list', signing({ digest: [digest] })),
    wrong('a null transaction', signing({ txMetadata: null })),
    wrong('a nonce of type string', signing({ txMetadata: { ...txMetadata, nonce: '1' } })),
    wrong('a nonce out of range', signing({ txMetadata: { ...txMetadata, nonce: 1e300 } })),
    wrong('a negative value', signing({ txMetadata: { ...txMetadata, value: '-1' } })),
    wrong('__proto__ in the transaction', signing({}).replace('{"chainId"', '{"__proto__":{"to":"0x"},"chainId"')),
    wrong('another digest', signing({ digest: `0x${'22'.repeat(32)}` }), 'digest_mismatch'),
    broken('the digest twice', `${signing({}).slice(0, -1)},"digest":"0x${'22'.repeat(32)}"}`),
    wrong('another transaction', signing({ txMetadata: target.nextTx() }), 'digest_mismatch'),
    wrong(
      'a legacy transaction',
      signing({ txMetadata: { ...txMetadata, gasPrice: '1' } }),
      'unsupported_transaction',
      ...SHAPE,
    ),
  ]
}

/**
 * Combines every route with every method, origin and session. Varies origin, site, session, type and body of every POST against valid values
 * of the rest, with all pairs of type and body. Adds random combinations.
 */
export function listCases(
  context: AttackContext,
  lists: { origins: Origin[]; sessions: Session[]; bodies: Body[] },
): Case[] {
  const { random, size } = context
  const { origins, sessions, bodies } = lists
  const routes = Object.keys(routeRules)
  const [origin, session, body, type] = [origins[0], sessions[1], bodies[0], TYPES[0]]
  if (origin === undefined || session === undefined || body === undefined || type === undefined)
    throw new Error('empty')
  const good = { origin, fetchSite: undefined, fetchMode: undefined, type, session, body }
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
    fetchMode: random.pick(FETCH_MODES),
    type: random.pick(TYPES),
    session: random.below(2) === 0 ? session : random.pick(sessions),
    body: random.pick(bodies),
  })
  if (size === 'full') return [...all, ...Array.from({ length: 8000 }, any)]
  // Includes valid requests for each route and all bodies, since a matrix without successes would prove little.
  const controls = routes.flatMap((route): Case[] => {
    const own = { ...good, route, method: routeRules[route]?.method ?? 'GET' }
    return own.method === 'GET' ? [own] : bodies.map((each) => ({ ...own, body: each }))
  })
  return [...controls, ...random.shuffle(all).slice(0, 500), ...Array.from({ length: 200 }, any)]
}

/** A path for each pattern of the API description. */
export function toAddress(route: string, slug: string): string {
  const values: Record<string, string> = {
    '/auth/{provider}': '/auth/google',
    '/auth/{provider}/form': '/auth/google/form',
    '/auth/{provider}/token': '/auth/google/token',
    '/auth/{provider}/callback': '/auth/google/callback',
    ...Object.fromEntries(
      ['attest', 'sign', 'budget', 'revoke'].map((each) => [
        `/vaults/{address}/${each}`,
        `/vaults/0x${'11'.repeat(20)}/${each}`,
      ]),
    ),
    '/proof/{slug}': `/proof/${slug}`,
    '/proof/{slug}/events': '/proof/AAAAAAAAAAAAAAAAAAAAAA/events',
    '/ipfs/{cid}': '/ipfs/bafkreigh2akiscaildc',
    '/log/{hash}/checkpoint': `/log/${'ab'.repeat(32)}/checkpoint`,
    '/log/{hash}/tile/{path}': `/log/${'ab'.repeat(32)}/tile/0/x001/000.p/7`,
  }
  return values[route] ?? route
}

export function toCall({ route, method, origin, fetchSite, fetchMode, type, session, body }: Case, slug: string): Call {
  const headers: [string, string][] = [
    ...(origin.value === undefined ? [] : [['Origin', origin.value] as [string, string]]),
    ...(fetchSite === undefined ? [] : [['Sec-Fetch-Site', fetchSite] as [string, string]]),
    ...(fetchMode === undefined ? [] : [['Sec-Fetch-Mode', fetchMode] as [string, string]]),
    ...(type.value === undefined ? [] : [['Content-Type', type.value] as [string, string]]),
    ...session.cookies.map((cookie): [string, string] => ['Cookie', cookie]),
  ]
  return { method, path: toAddress(route, slug), headers, ...(body.bytes.length === 0 ? {} : { body: body.bytes }) }
}

export function toFacts({ method, origin, fetchSite, fetchMode, type, session, body }: Case): RequestFacts {
  return {
    method,
    origin: origin.kind,
    fetchSite,
    fetchMode,
    hasCookie: session.cookies.length > 0,
    session: session.state,
    isJsonType: type.isJson,
    isFormType: type.value === 'application/x-www-form-urlencoded',
    bodyLength: body.bytes.length,
    bodyFaults: body.faults,
  }
}
