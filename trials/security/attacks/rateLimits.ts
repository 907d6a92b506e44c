import type { AttackContext, AttackResult } from '../attack.ts'
import type { Answer, Call } from '../createCaller.ts'
import { checkProblem } from '../httpRules.ts'

/** Long enough that no allowance is refilled during the run. */
const COUNT = 20
const LIMIT = `${COUNT}/3600`
const ENV = { RATE_LIMIT_SIGN: LIMIT, RATE_LIMIT_PROVISION: LIMIT, RATE_LIMIT_AUTH: LIMIT, RATE_LIMIT_PROOF: LIMIT }

const SPOOFS = [
  'X-Forwarded-For',
  'X-Real-IP',
  'Forwarded',
  'X-Client-IP',
  'True-Client-IP',
  'CF-Connecting-IP',
  'X-Forwarded-Host',
  'X-Originating-IP',
]

/** Rate limits: exact under concurrent requests, and not evaded by spoofed addresses. */
export async function rateLimits({ target, size, random, say }: AttackContext): Promise<AttackResult> {
  const faults: string[] = []
  const attempts = size === 'full' ? 400 : 60
  let tried = 0
  const address = () => Array.from({ length: 4 }, () => 1 + random.below(250)).join('.')
  const unknown = () => `/proof/${random.text(21)}A`

  /** Sends all requests at once and returns how many were allowed. */
  async function flood(label: string, toCall: (index: number) => Call, due: number) {
    const answers = await Promise.all(Array.from({ length: attempts }, (_, index) => target.call(toCall(index))))
    tried += attempts
    const allowed = answers.filter(({ status }) => status !== 429).length
    if (allowed !== due) faults.push(`${label}: ${allowed} of ${attempts} allowed, expected ${due}`)
    for (const fault of new Set(answers.filter(({ status }) => status === 429).flatMap(checkRejection)))
      faults.push(`${label}: ${fault}`)
    return allowed
  }

  await target.restart(ENV)
  const guesses = await flood('guessing slugs', () => ({ path: unknown() }), COUNT)
  const spoof = (index: number): [string, string] => [
    SPOOFS[index % SPOOFS.length] ?? '',
    SPOOFS[index % SPOOFS.length] === 'Forwarded' ? `for=${address()}` : address(),
  ]
  await flood('guessing slugs with spoofed addresses', (index) => ({ path: unknown(), headers: [spoof(index)] }), 0)
  await flood('starting sign-ins', (index) => ({ path: '/auth/google', headers: [spoof(index)] }), COUNT)
  const post = (path: string, cookie: string | undefined): Call => ({
    method: 'POST',
    path,
    headers: [['Origin', target.app], ...(cookie === undefined ? [] : [['Cookie', cookie] as const])],
  })
  await flood('provisioning by one user', () => post('/wallet/provision', target.alice.cookie), COUNT)
  await flood(
    'guessing sessions',
    (index) => ({ ...post('/sign/digest', `countersign-session=${index.toString(16).padStart(64, '0')}`) }),
    COUNT,
  )
  // Each caller has a separate limit.
  await flood('another user', () => post('/wallet/provision', target.mallory.cookie), COUNT)
  say('limits are exact; continuing behind a proxy')

  await target.restart({ ...ENV, TRUSTED_PROXIES: '127.0.0.1' })
  const through = (chain: string, path = unknown()): Call => ({ path, headers: [['X-Forwarded-For', chain]] })
  await flood('behind a proxy, with addresses added by the caller', () => through(`${address()}, 203.0.113.9`), COUNT)
  await flood('behind a proxy, another caller', () => through('203.0.113.10'), COUNT)
  await flood('behind a proxy, one /64', () => through(`2001:db8:1:2:${random.below(65535).toString(16)}::1`), COUNT)
  await flood('behind a proxy, IPv4 as IPv6', () => through('::ffff:203.0.113.9'), 0)
  return {
    tried,
    figures: {
      limit: LIMIT,
      'allowed of each flood': COUNT,
      'slug guesses allowed': `${guesses} of ${attempts}`,
      evaded: faults.length,
    },
    faults,
  }
}

function checkRejection(answer: Answer): string[] {
  const wait = Number(answer.headers.get('retry-after'))
  const hasRetryAfter = wait >= 1 && wait <= 3600 && answer.headers.get('ratelimit-remaining') === '0'
  return [...(hasRetryAfter ? [] : ['429 without a valid Retry-After']), ...checkProblem({ method: 'GET' }, answer)]
}
