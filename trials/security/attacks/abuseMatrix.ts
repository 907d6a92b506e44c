import {
  type Case,
  listBodies,
  listCases,
  listOrigins,
  listSessions,
  type Origin,
  type Session,
  toAddress,
  toCall,
  toFacts,
} from '../abuseCases.ts'
import type { AttackContext, AttackResult } from '../attack.ts'
import { catalogue, checkAnswer, routeRules, toExpected } from '../httpRules.ts'
import type { Target } from '../startTarget.ts'

const EXPORTS = '/proofs/export'

/** HTTP abuse matrix: checks the answers to all combinations against the rules. */
export async function abuseMatrix(context: AttackContext): Promise<AttackResult> {
  const { target, say } = context
  const faults: string[] = []
  const { paths, components } = await (await fetch(`${target.url}/openapi.json`)).json()
  const described = Object.entries<Record<string, object>>(paths)
  const codes: string[] = components.schemas.Problem.properties.code.enum
  if (codes.toSorted().join() !== Object.keys(catalogue).toSorted().join())
    faults.push(`error codes differ from the catalogue: ${codes}`)
  for (const [path, methods] of described) {
    const rule = routeRules[path]
    if (rule === undefined) faults.push(`no rule for ${path}`)
    else if (Object.keys(methods).join() !== (rule.isReadable ? 'get,' : '') + rule.method.toLowerCase())
      faults.push(`${path}: methods differ from the rule: ${Object.keys(methods)}`)
  }
  for (const path of Object.keys(routeRules)) {
    if (!described.some(([each]) => each === path)) faults.push(`rule for the unknown path ${path}`)
  }

  const { slug } = await (await target.alice.sign(target.nextTx())).json()
  const lists = { origins: listOrigins(target.app), sessions: await listSessions(target), bodies: listBodies(target) }
  const cases = listCases(context, lists)
  let [unexpected, failures, done] = [0, 0, 0]
  let [signings, logins] = [0, 0]
  const signers = new Set<Session>()
  const attested = new Set<Session>()

  async function run(each: Case) {
    const rule = routeRules[each.route]
    if (rule === undefined) return
    const expected = toExpected(rule, toFacts(each))
    const isDone = 'status' in expected
    if (isDone && each.route === '/sign/digest') signers.add(each.session)
    if (isDone && each.route === '/wallet/attest') attested.add(each.session)
    if (isDone && each.route === '/auth/{provider}') logins += 1
    const answer = await target.call(toCall(each, slug))
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
      if (JSON.parse(answer.body).email !== `${owner}@example.com`) found.push('signed in as another user')
    }
    if (answer.status >= 500) failures += 1
    if (found.length > 0) unexpected += 1
    const { route, method, origin, fetchSite, fetchMode, type, session, body } = each
    const label = `${method} ${route} origin ${origin.value} site ${fetchSite} mode ${fetchMode} type ${type.value} session ${session.name} body ${body.name}`
    for (const fault of found) faults.push(`${label}: ${fault}`)
    done += 1
    if (done % 5000 === 0) say(`${done} of ${cases.length} requests`)
  }

  // Requests that end a session run separately, and the session is restored after each.
  const isEnding = (each: Case) =>
    each.route === '/auth/logout' && 'status' in toExpected(routeRules['/auth/logout'] as never, toFacts(each))
  const before = await target.readState()
  const rest = cases.filter((each) => !isEnding(each))
  const runAll = async (queue: Iterable<Case>) => {
    for (const each of queue) await run(each)
  }
  // The number of concurrent exports per user is limited.
  const exports = rest.filter(({ route }) => route === EXPORTS)
  const others = rest.filter(({ route }) => route !== EXPORTS).values()
  await Promise.all([runAll(exports), ...Array.from({ length: 16 }, () => runAll(others))])
  const after = await target.readState()
  const due = {
    ...before,
    logins: before.logins + logins,
    signings: before.signings + signers.size + attested.size,
  }
  for (const table of ['users', 'wallets', 'sessions', 'logins', 'signings'] as const) {
    if (after[table] !== due[table]) faults.push(`${table}: ${after[table]} rows, expected ${due[table]}`)
  }
  faults.push(...(await findUnrecorded(target)))
  await target.backend.withDatabase(async (query) => {
    await query('create table kept_sessions as select * from sessions')
    for (const each of cases.filter(isEnding).slice(0, context.size === 'full' ? 100 : 5)) {
      await run(each)
      const [row] = await query(
        'with back as (insert into sessions select * from kept_sessions on conflict do nothing returning 1) select count(*)::int as count from back',
      )
      if (row?.count !== 1) faults.push(`expected a logout to end 1 session, got ${row?.count}`)
    }
    await query('drop table kept_sessions')
  })
  const preflights = await tryPreflights(target, context.size === 'full' ? lists.origins : lists.origins.slice(0, 4))
  return {
    tried: done + preflights.tried,
    figures: {
      routes: described.length,
      requests: done + preflights.tried,
      unexpected: unexpected + preflights.faults.length,
      '5xx': failures,
      signed: `${signers.size} of ${signings} requests`,
    },
    faults: [...faults, ...preflights.faults],
  }
}

/** The enclave numbers its batches. A missing number is a batch that was signed but not stored. */
async function findUnrecorded(target: Target): Promise<string[]> {
  await (await target.alice.sign(target.nextTx())).json()
  const [row] = await target.query(
    'select max(sequence)::int - min(sequence)::int + 1 - count(*)::int as missing from batches group by boot_id',
  )
  return row?.missing === 0 ? [] : [`${row?.missing} batches were signed but not stored`]
}

async function tryPreflights(target: Target, origins: readonly Origin[]): Promise<{ tried: number; faults: string[] }> {
  const faults: string[] = []
  let tried = 0
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
        const answer = await target.call({
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
}
