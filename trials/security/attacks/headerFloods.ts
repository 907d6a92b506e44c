import type { AttackContext, AttackResult } from '../attack.ts'
import { checkProblem } from '../httpRules.ts'
import { exchangeRaw, type RawExchange } from '../rawHttp.ts'
import type { Target } from '../startTarget.ts'

type Case = {
  name: string
  bytes: string
  /** `refused`: no status below 400. A number: exactly this status. */
  due: 'refused' | number
}

/** The smuggled request: it would end Alice's session. */
function toInner({ port, app, alice }: Target): string {
  return `POST /auth/logout HTTP/1.1\r\nHost: localhost:${port}\r\nOrigin: ${app}\r\nCookie: ${alice.cookie}\r\nContent-Length: 0\r\n\r\n`
}

/** Ambiguous requests that two parsers could split differently. Each must be rejected, without processing a smuggled request. */
function listSmuggling(target: Target): Case[] {
  const inner = toInner(target)
  const host = `Host: localhost:${target.port}`
  const post = (name: string, headers: string, body: string): Case => ({
    name: `smuggling, ${name}`,
    bytes: `POST /wallet/provision HTTP/1.1\r\n${host}\r\n${headers}\r\n\r\n${body}`,
    due: 'refused',
  })
  const get = (name: string, head: string): Case => ({
    name: `smuggling, ${name}`,
    bytes: `${head}${inner}`,
    due: 'refused',
  })
  const length = inner.length
  const chunked = `${(inner.length).toString(16)}\r\n${inner}\r\n0\r\n\r\n`
  const both = [
    'Transfer-Encoding: chunked',
    'Transfer-Encoding : chunked',
    'Transfer-Encoding:\tchunked',
    ' Transfer-Encoding: chunked',
    'X: y\r\n\tTransfer-Encoding: chunked',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: identity, chunked',
    'Transfer-Encoding: cHuNkEd',
    'Transfer-Encoding: "chunked"',
    'Transfer-Encoding:\u000bchunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: x',
    'Transfer-Encoding: x\r\nTransfer-Encoding: chunked',
  ]
  return [
    ...both.map((line) =>
      post(`CL.TE with ${JSON.stringify(line)}`, `Content-Length: ${length + 5}\r\n${line}`, `0\r\n\r\n${inner}`),
    ),
    ...both.map((line) => post(`TE.CL with ${JSON.stringify(line)}`, `${line}\r\nContent-Length: 4`, chunked)),
    post('two lengths', `Content-Length: 0\r\nContent-Length: ${length}`, inner),
    post('two lengths in one', `Content-Length: 0, ${length}`, inner),
    post('a length with a sign', 'Content-Length: +0', inner),
    post('a length in hex', 'Content-Length: 0x0', inner),
    post('a length with a space', 'Content-Length: 0 0', inner),
    post('a length before a colon and a space', 'Content-Length : 0', inner),
    post('an empty length', 'Content-Length:', inner),
    post('a folded length', 'Content-Length:\r\n 0', inner),
    post('a chunk size that is not a number', 'Transfer-Encoding: chunked', `x\r\n${inner}`),
    post('a negative chunk', 'Transfer-Encoding: chunked', `-1\r\n${inner}`),
    post('a chunk size out of range', 'Transfer-Encoding: chunked', `${'F'.repeat(20)}\r\n${inner}`),
    post('a chunk ended by a bare LF', 'Transfer-Encoding: chunked', `1\n \n0\n\n${inner}`),
    post('a chunk longer than its size', 'Transfer-Encoding: chunked', `1\r\n  \r\n0\r\n\r\n${inner}`),
    post('a chunk with an extension and LF', 'Transfer-Encoding: chunked', `0;a\nb\r\n\r\n${inner}`),
    get('bare LFs', `GET /health HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n`),
    get('a bare CR', `GET /health HTTP/1.1\r\n${host}\rX: y\r\n\r\n`),
    get('obs-fold', `GET /health HTTP/1.1\r\n${host}\r\nX: y\r\n z\r\n\r\n`),
    get('a space before the colon', `GET /health HTTP/1.1\r\n${host}\r\nX : y\r\n\r\n`),
    get('a zero byte in a name', `GET /health HTTP/1.1\r\n${host}\r\nX\0: y\r\n\r\n`),
    get('a zero byte in a value', `GET /health HTTP/1.1\r\n${host}\r\nX: \0\r\n\r\n`),
    get('a line without a colon', `GET /health HTTP/1.1\r\n${host}\r\nX\r\n\r\n`),
    get('HTTP/0.9', 'GET /health\r\n'),
    get('an unknown version', `GET /health HTTP/1.9\r\n${host}\r\n\r\n`),
  ]
}

function listOdd(target: Target): Case[] {
  const host = `Host: localhost:${target.port}`
  const get = (name: string, head: string, due: Case['due'], path = '/health'): Case => ({
    name,
    bytes: `GET ${path} HTTP/1.1\r\n${host}\r\n${head}\r\n`,
    due,
  })
  const line = (name: string, first: string, due: Case['due'], head = `${host}\r\n`): Case => ({
    name,
    bytes: `${first}\r\n${head}\r\n`,
    due,
  })
  const padding = 'a=1; '
  const { cookie } = target.alice
  return [
    get('100 headers', 'X-A: b\r\n'.repeat(100), 200),
    get('900 headers', 'A: b\r\n'.repeat(900), 200),
    get('5,000 headers', 'A: b\r\n'.repeat(5000), 'refused'),
    get('a header of 12 KiB', `X-A: ${'a'.repeat(12_288)}\r\n`, 200),
    get('a header of 17 KiB', `X-A: ${'a'.repeat(17_408)}\r\n`, 'refused'),
    get('a header of 4 MiB', `X-A: ${'a'.repeat(4 * 1024 * 1024)}\r\n`, 'refused'),
    get('a name of 64 KiB', `${'a'.repeat(65_536)}: b\r\n`, 'refused'),
    get('12 KiB of cookies before the session', `Cookie: ${padding.repeat(2400)}${cookie}\r\n`, 200, '/auth/me'),
    get('64 KiB of cookies', `Cookie: ${padding.repeat(13_000)}${cookie}\r\n`, 'refused', '/auth/me'),
    get('a cookie of semicolons', `Cookie: ${';'.repeat(12_000)}${cookie}\r\n`, 200, '/auth/me'),
    get('a cookie of equal signs', `Cookie: ${'='.repeat(12_000)}\r\n`, 401, '/auth/me'),
    get('an Accept of 12 KiB', `Accept: ${'text/xml;q=0.1,'.repeat(750)}\r\n`, 404, '/auth/nobody'),
    get('an X-Forwarded-For of 12 KiB', `X-Forwarded-For: ${'1.1.1.1, '.repeat(1300)}\r\n`, 200),
    get(
      'an If-None-Match of 12 KiB',
      `If-None-Match: ${'W/"a", '.repeat(1700)}\r\n`,
      404,
      '/proof/AAAAAAAAAAAAAAAAAAAAAA',
    ),
    get('a URL of 12 KiB', '', 404, `/${'a'.repeat(12_288)}`),
    get('a URL of 64 KiB', '', 'refused', `/${'a'.repeat(65_536)}`),
    get('a query of 12 KiB', '', 200, `/health?${'a=b&'.repeat(3000)}`),
    get('6,000 parameters', '', 400, `/auth/google?${'return_to&'.repeat(1200)}`),
    get('a slug of 12 KiB', '', 404, `/proof/${'A'.repeat(12_288)}`),
    get('dots', '', 404, `/${'../'.repeat(4000)}etc/passwd`),
    get('escaped dots', '', 404, '/docs/%2e%2e/%2e%2e/etc/passwd'),
    get('invalid escapes', '', 404, '/proof/%zz%ff%00'),
    get('two Hosts', 'Host: evil.example\r\n', 400),
    line('no Host', 'GET /health HTTP/1.1', 'refused', ''),
    line('a Host with a user', 'GET /health HTTP/1.1', 400, 'Host: a@b\r\n'),
    line('a Host with a path', 'GET /health HTTP/1.1', 400, 'Host: a/b\r\n'),
    line('a Host with a space', 'GET /health HTTP/1.1', 400, 'Host: a b\r\n'),
    // The Host header must not affect the answer: URLs come from the configuration.
    line('a foreign Host', 'GET /health HTTP/1.1', 200, 'Host: evil.example\r\n'),
    line('the absolute form', 'GET http://evil.example/health HTTP/1.1', 200),
    line('an invalid absolute form', 'GET http://[/health HTTP/1.1', 400),
    line('an absolute form with another scheme', 'GET ftp://evil.example/health HTTP/1.1', 400),
    line('a path of two slashes', 'GET //evil.example/health HTTP/1.1', 404),
    line('a backslash', 'GET /\\evil.example HTTP/1.1', 400),
    line('a fragment', 'GET /auth/me#/health HTTP/1.1', 401),
    line('the authority form', 'CONNECT evil.example:443 HTTP/1.1', 'refused'),
    line('the asterisk form', 'OPTIONS * HTTP/1.1', 400),
    line('a made-up method', 'COUNTERSIGN /health HTTP/1.1', 'refused'),
    line('a method in lower case', 'get /health HTTP/1.1', 'refused'),
    line('a method of 64 KiB', `${'A'.repeat(65_536)} /health HTTP/1.1`, 'refused'),
    line('a space in the target', 'GET /health /auth/me HTTP/1.1', 'refused'),
    line('tabs instead of spaces', 'GET\t/health HTTP/1.1', 'refused'),
    line('TRACE', 'TRACE /health HTTP/1.1', 405, `${host}\r\nOrigin: ${target.app}\r\nCookie: ${cookie}\r\n`),
    line('HTTP/2 with prior knowledge', 'PRI * HTTP/2.0', 'refused', '\r\nSM\r\n'),
    line(
      'HTTP/2 by upgrade',
      'GET /health HTTP/1.1',
      200,
      `${host}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n`,
    ),
    line(
      'a web socket',
      'GET /health HTTP/1.1',
      200,
      `${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n`,
    ),
    line('an expectation', 'GET /health HTTP/1.1', 'refused', `${host}\r\nExpect: the unexpected\r\n`),
    {
      name: 'the session in a trailer',
      bytes: `POST /auth/logout HTTP/1.1\r\n${host}\r\nOrigin: ${target.app}\r\nTransfer-Encoding: chunked\r\nTrailer: Cookie\r\n\r\n0\r\nCookie: ${cookie}\r\n\r\n`,
      due: 401,
    },
    {
      name: 'chunk extensions of 64 KiB',
      bytes: `POST /wallet/provision HTTP/1.1\r\n${host}\r\nTransfer-Encoding: chunked\r\n\r\n1;${'a'.repeat(65_536)}\r\n \r\n0\r\n\r\n`,
      due: 'refused',
    },
  ]
}

/** Headers that are too many, too large or ambiguous, and requests that smuggle another one. */
export async function headerFloods({ target, size, say }: AttackContext): Promise<AttackResult> {
  const faults: string[] = []
  const cases = [...listSmuggling(target), ...listOdd(target)]
  const statuses = new Map<number, number>()
  let smuggled = 0
  for (let round = 0; round < (size === 'full' ? 5 : 1); round++) {
    const queue = cases.values()
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (const { name, bytes, due } of queue) {
          const seen = await exchangeRaw({ port: target.port, parts: [bytes], limitMs: 1500 })
          for (const { status } of seen.answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
          for (const fault of checkExchange(seen, due)) faults.push(`${name}: ${fault}`)
          if (isSmuggled(seen)) smuggled += 1
        }
      }),
    )
    say(`${(round + 1) * cases.length} malformed requests sent`)
  }
  // A smuggled request would have ended this session.
  const me = await target.call({ path: '/auth/me', headers: [['Cookie', target.alice.cookie]] })
  if (me.status !== 200) {
    smuggled += 1
    faults.push('a smuggled request ended the session')
  }
  const count = size === 'full' ? 1000 : 200
  const pipelined = await pipeline(target, count)
  faults.push(...pipelined)
  const tried = cases.length * (size === 'full' ? 5 : 1) + count
  return {
    tried,
    figures: {
      kinds: cases.length,
      answers: [...statuses]
        .toSorted()
        .map(([status, times]) => `${status}: ${times}`)
        .join(', '),
      smuggled,
      pipelined: `${count - pipelined.length} of ${count} answered in order`,
    },
    faults,
  }
}

/** Whether more than one request was answered. A final 400 that closes the connection doesn't count. */
function isSmuggled({ answers }: Pick<RawExchange, 'answers'>): boolean {
  return answers.slice(1).some(({ status, headers }) => status !== 400 || headers.get('connection') !== 'close')
}

function checkExchange({ answers, isClosed, text }: RawExchange, due: Case['due']): string[] {
  const [answer] = answers
  if (isSmuggled({ answers })) return [`${answers.length} answers: ${answers.map(({ status }) => status)}`]
  if (answer === undefined)
    return due === 'refused' && isClosed ? [] : [`no answer: ${JSON.stringify(text.slice(0, 80))}`]
  if (due === 'refused' ? answer.status < 400 || answer.status >= 500 : answer.status !== due)
    return [`expected ${due}, got ${answer.status}`]
  // Rejections by the HTTP parser have no body. All others are problem+json.
  return answer.body === '' ? [] : checkProblem({ method: 'GET' }, answer)
}

/** Sends many requests at once, each with its own id. The answers must come in the same order. */
async function pipeline({ port }: Target, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `pipelined-${index}`)
  const bytes = ids
    .map((id) => `GET /health HTTP/1.1\r\nHost: localhost:${port}\r\nX-Request-Id: ${id}\r\n\r\n`)
    .join('')
  const { answers } = await exchangeRaw({ port, parts: [bytes], expected: count, limitMs: 20_000 })
  return ids
    .filter((id, index) => answers[index]?.headers.get('x-request-id') !== id)
    .map((id) => `${id} was not answered in order`)
}
