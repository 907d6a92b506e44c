import type { AttackContext, AttackResult } from '../attack.ts'
import type { Answer, Call } from '../createCaller.ts'
import { checkProblem } from '../httpRules.ts'

/** Nothing is filled up again while the test runs: an hour for so few. */
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

/** Rate limits: exact when everything comes at one time, and not evaded by what a caller claims of itself. */
export async function rateLimits({ target, size, random, say }: AttackContext): Promise<AttackResult> {
  const faults: string[] = []
  const attempts = size === 'full' ? 400 : 60
  let tried = 0
  const address = () => Array.from({ length: 4 }, () => 1 + random.below(250)).join('.')
  const unknown = () => `/proof/${random.text(21)}A`

  /** Sends all at once and answers how many were let in. */
  async function flood(label: string, toCall: (index: number) => Call, due: number) {
    const answers = await Promise.all(Array.from({ length: attempts }, (_, index) => target.call(toCall(index))))
    tried += attempts
    const letIn = answers.filter(({ status }) => status !== 429).length
    if (letIn !== due) faults.push(`${label}: ${letIn} of ${attempts} were let in where ${due} were due`)
    for (const fault of new Set(answers.filter(({ status }) => status === 429).flatMap(checkRefusal)))
      faults.push(`${label}: ${fault}`)
    return letIn
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
  await flood('a user who provisions', () => post('/wallet/provision', target.alice.cookie), COUNT)
  await flood(
    'strangers who guess sessions',
    (index) => ({ ...post('/sign/digest', `countersign-session=${index.toString(16).padStart(64, '0')}`) }),
    COUNT,
  )
  // Each caller has a limit of its own.
  await flood('another user', () => post('/wallet/provision', target.mallory.cookie), COUNT)
  say('limits are exact; now behind a proxy')

  await target.restart({ ...ENV, TRUSTED_PROXIES: '127.0.0.1' })
  const through = (chain: string, path = unknown()): Call => ({ path, headers: [['X-Forwarded-For', chain]] })
  await flood('behind a proxy, with what the caller said before it', () => through(`${address()}, 203.0.113.9`), COUNT)
  await flood('behind a proxy, another caller', () => through('203.0.113.10'), COUNT)
  await flood('behind a proxy, one /64', () => through(`2001:db8:1:2:${random.below(65535).toString(16)}::1`), COUNT)
  await flood('behind a proxy, IPv4 as IPv6', () => through('::ffff:203.0.113.9'), 0)
  return {
    tried,
    figures: {
      limit: LIMIT,
      'let in of each flood': COUNT,
      'guesses at slugs let in': `${guesses} of ${attempts}`,
      evaded: faults.length,
    },
    faults,
  }
}

function checkRefusal(answer: Answer): string[] {
  const wait = Number(answer.headers.get('retry-after'))
  const isTold = wait >= 1 && wait <= 3600 && answer.headers.get('ratelimit-remaining') === '0'
  return [...(isTold ? [] : ['429 does not say when to come back']), ...checkProblem({ method: 'GET' }, answer)]
}
