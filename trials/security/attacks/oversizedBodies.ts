import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { toDigest } from '@countersign/testing/stack'
import type { AttackContext, AttackResult, Size } from '../attack.ts'
import { checkProblem, MAX_BODY_BYTES } from '../httpRules.ts'
import { exchangeRaw } from '../rawHttp.ts'
import { compareHonest, startHonest } from '../startHonest.ts'
import type { Target } from '../startTarget.ts'

type Case = {
  name: string
  /** Headers that declare the body's length and type. */
  headers: readonly string[]
  parts: readonly (string | Uint8Array)[]
  /** Accepted statuses. */
  statuses: readonly number[]
  isSilenceFine?: true
}

const JSON_TYPE = 'Content-Type: application/json'

/** A body with its actual length. */
const whole = (name: string, body: string | Uint8Array, statuses: readonly number[]): Case => {
  const bytes = Buffer.from(body)
  return { name, headers: [JSON_TYPE, `Content-Length: ${bytes.length}`], parts: [bytes], statuses }
}

const chunk = (bytes: string | Uint8Array) => {
  const body = Buffer.from(bytes)
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')])
}

/** A chunked body without a declared length, whose bytes must be counted as they arrive. */
const chunked = (name: string, chunks: readonly (string | Uint8Array)[], statuses: readonly number[]): Case => ({
  name,
  headers: [JSON_TYPE, 'Transfer-Encoding: chunked'],
  parts: [...chunks.map(chunk), '0\r\n\r\n'],
  statuses,
  // The server cuts off senders that continue, which can discard the answer.
  isSilenceFine: true,
})

const declared = (length: string, body: string, statuses: readonly number[]): Case => ({
  name: `declared as ${length}, sent ${body.length}`,
  headers: [JSON_TYPE, `Content-Length: ${length}`],
  parts: [body],
  statuses,
})

function nest(open: string, close: string, levels: number): string {
  return `${open.repeat(levels)}0${close.repeat(levels)}`
}

function listCases(target: Target, size: Size): Case[] {
  const megabyte = Buffer.alloc(1024 * 1024, 0x20)
  const txMetadata = target.nextTx()
  const digest = toDigest(txMetadata)
  const inDigest = (text: string) => `{"digest":${text},"txMetadata":{}}`
  const inTx = (text: string) => `{"digest":"${digest}","txMetadata":${text}}`
  const keys = (count: number) => `{${Array.from({ length: count }, (_, index) => `"${index.toString(36)}":0`).join()}}`
  const large = size === 'full' ? 64 : 8
  const bomb = gzipSync(Buffer.alloc(large * 1024 * 1024, 0x20))
  const levels = [10_000, 20_000, 40_000, 60_000]
  return [
    declared(String(MAX_BODY_BYTES + 1), '{', [413]),
    declared('1073741824', '{', [413]),
    declared('9007199254740993', '{', [400, 413]),
    declared('18446744073709551617', '{', [400, 413]),
    declared('-1', '{}', [400]),
    declared('2e1', '{}', [400]),
    declared('0x2', '{}', [400]),
    // Bytes beyond the declared length are read as a next request, which is invalid.
    declared('1', '{}', [400]),
    declared('0', '{"digest":1}\r\n\r\n', [400]),
    whole('128 KiB and one byte', Buffer.alloc(MAX_BODY_BYTES + 1, 0x20), [413]),
    whole(`${large} MiB`, Buffer.alloc(large * 1024 * 1024, 0x5b), [413]),
    chunked('128 KiB and one byte in chunks', [megabyte.subarray(0, MAX_BODY_BYTES), ' '], [413]),
    chunked(
      `${large} MiB in chunks`,
      Array.from({ length: large }, () => megabyte),
      [413],
    ),
    chunked(
      'one byte per chunk',
      Array.from({ length: 20_000 }, () => '['),
      [400],
    ),
    whole('10⁵ keys', keys(100_000), [413]),
    whole('the maximum number of keys', keys(15_000), [400]),
    {
      name: `gzip that expands to ${large} MiB`,
      headers: [JSON_TYPE, 'Content-Encoding: gzip', `Content-Length: ${bomb.length}`],
      parts: [bomb],
      statuses: [400, 415],
    },
    {
      name: 'gzip as transfer encoding',
      headers: [JSON_TYPE, 'Transfer-Encoding: gzip, chunked'],
      parts: [chunk(bomb), '0\r\n\r\n'],
      statuses: [400, 415, 501],
      isSilenceFine: true,
    },
    ...levels.map((count) => whole(`${count} levels of [`, nest('[', ']', count), [400])),
    ...levels.map((count) => whole(`${count} levels of [ unclosed`, '['.repeat(count), [400])),
    ...levels.map((count) =>
      whole(`${Math.floor(count / 3)} levels of {`, nest('{"a":', '}', Math.floor(count / 3)), [400]),
    ),
    ...levels.map((count) => whole(`${count} levels in the digest`, inDigest(nest('[', ']', count)), [400])),
    ...levels.map((count) => whole(`${count} levels in the transaction`, inTx(nest('[', ']', count)), [400, 422])),
    whole('escapes', `"${'\\u0000'.repeat(20_000)}"`, [400]),
    whole('lone surrogates', inDigest(`"${'\\ud800'.repeat(20_000)}"`), [400]),
    whole('backslashes', inDigest(`"${'\\\\'.repeat(60_000)}"`), [400]),
    whole('a number with 10⁵ digits', inTx(`{"nonce":${'9'.repeat(100_000)}}`), [400, 422]),
    whole('an amount with 10⁵ digits', inTx(JSON.stringify({ ...txMetadata, value: '9'.repeat(100_000) })), [400, 422]),
    whole('spaces', ' '.repeat(MAX_BODY_BYTES), [400]),
    whole('a hex string with 10⁵ digits', inDigest(`"0x${'a'.repeat(100_000)}"`), [400]),
    whole(
      '60 kB of data for another digest',
      inTx(JSON.stringify({ ...txMetadata, data: `0x${'ab'.repeat(60_000)}` })),
      [422],
    ),
  ]
}

const TIMES = { full: 25, short: 1 } as const

/** Bodies that are too large, too deep or of another length than declared, while an honest user signs. */
export async function oversizedBodies({ target, size, random, say }: AttackContext): Promise<AttackResult> {
  const faults: string[] = []
  const cases = listCases(target, size)
  const honest = await startHonest(target)
  const statuses = new Map<number, number>()
  let tried = 0

  async function attack({ name, headers, parts, statuses: fine, isSilenceFine }: Case, withSession: boolean) {
    const head = [
      'POST /sign/digest HTTP/1.1',
      `Host: localhost:${target.port}`,
      `Origin: ${target.app}`,
      ...(withSession ? [`Cookie: ${target.alice.cookie}`] : []),
      ...headers,
    ]
    tried += 1
    const { answers, text } = await exchangeRaw({
      port: target.port,
      parts: [`${head.join('\r\n')}\r\n\r\n`, ...parts],
      limitMs: 10_000,
    })
    const [answer, ...more] = answers
    statuses.set(answer?.status ?? 0, (statuses.get(answer?.status ?? 0) ?? 0) + 1)
    const label = `${name}${withSession ? '' : ', without a session'}`
    if (answer === undefined) {
      if (!isSilenceFine) faults.push(`${label}: invalid answer ${JSON.stringify(text.slice(0, 80))}`)
      return
    }
    // Without a session, 401 may come first. The HTTP parser answers without a body.
    const isExpected = fine.includes(answer.status) || (!withSession && answer.status === 401)
    if (!isExpected) faults.push(`${label}: ${answer.status} ${answer.body.slice(0, 200)}`)
    if (answer.body !== '')
      for (const fault of checkProblem({ method: 'POST' }, answer)) faults.push(`${label}: ${fault}`)
    if (more.some(({ status }) => status < 400)) faults.push(`${label}: was read as two requests`)
  }

  try {
    const quietMs = size === 'full' ? 8000 : 500
    await sleep(quietMs / 4)
    await honest.take()
    await sleep(quietMs)
    const quiet = await honest.take()
    const before = await target.memoryMb()
    let during = before
    const all = Array.from({ length: TIMES[size] }, () =>
      cases.flatMap((each) => (size === 'full' ? [true, false] : [true]).map((withSession) => ({ each, withSession }))),
    )
    const queue = random.shuffle(all.flat()).values()
    const watch = setInterval(() => {
      say(`${tried} bodies sent`)
      void target.memoryMb().then((memory) => (during = Math.max(during, memory)))
    }, 5000)
    try {
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          for (const { each, withSession } of queue) await attack(each, withSession)
        }),
      )
    } finally {
      clearInterval(watch)
    }
    const loud = await honest.take()
    during = Math.max(during, await target.memoryMb())
    for (const failure of new Set(loud.failures)) faults.push(`an honest request failed meanwhile: ${failure}`)
    if (size === 'full') await sleep(5000)
    const after = await target.memoryMb()
    const compared = compareHonest(quiet, loud)
    return {
      tried,
      figures: {
        kinds: cases.length,
        answers: [...statuses]
          .toSorted()
          .map(([status, count]) => `${status === 0 ? 'cut' : status}: ${count}`)
          .join(', '),
        'honest success': compared.success,
        ...compared.figures,
        memory: `${before} MB before, ${during} MB during, ${after} MB after`,
      },
      faults,
    }
  } finally {
    await honest.stop()
  }
}
