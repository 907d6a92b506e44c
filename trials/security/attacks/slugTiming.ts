import { areaUnderCurve, interquartileRange, median, standardErrorOfArea } from '@countersign/testing/stack'
import type { AttackContext, AttackResult } from '../attack.ts'
import type { Answer } from '../createCaller.ts'
import type { Choices } from '../createChoices.ts'

const SAMPLES = { full: 4000, short: 25 } as const
/** More standard errors than this aren't chance. */
const MOST_ERRORS = 5

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** The last of 22 digits has only 2 significant bits. */
const LAST = 'AQgw'

const other = (random: Choices, letters: string, not: string | undefined) =>
  random.pick([...letters].filter((letter) => letter !== not))

/** A nonexistent slug that shares this many leading digits with an existing one. */
function toNearMiss(random: Choices, slug: string, shared: number): string {
  if (shared === 21) return slug.slice(0, 21) + other(random, LAST, slug[21])
  return (
    slug.slice(0, shared) + other(random, ALPHABET, slug[shared]) + random.text(20 - shared) + random.pick([...LAST])
  )
}

/** Checks that neither the time nor the content of an answer reveals how much of a slug is right. */
export async function slugTiming({ target, size, random, say }: AttackContext): Promise<AttackResult> {
  const faults: string[] = []
  const samples = SAMPLES[size]
  const slugs: string[] = []
  for (let count = 0; count < 20; count++) slugs.push((await (await target.alice.sign(target.nextTx())).json()).slug)
  if (new Set(slugs).size !== slugs.length || !slugs.every((slug) => /^[\w-]{21}[AQgw]$/.test(slug)))
    faults.push('slugs have the wrong form')

  const kinds: Record<string, () => string> = {
    known: () => random.pick(slugs),
    'all but the last digit': () => toNearMiss(random, random.pick(slugs), 21),
    'half the digits': () => toNearMiss(random, random.pick(slugs), 11),
    'the first digit': () => toNearMiss(random, random.pick(slugs), 1),
    random: () => random.text(21) + random.pick([...LAST]),
    malformed: () => random.text(random.pick([0, 1, 21, 23, 200])),
  }
  const times = new Map(Object.keys(kinds).map((name) => [name, [] as number[]]))
  const unknown = new Set<string>()
  let tried = 0
  for (let count = 0; count < (size === 'full' ? 200 : 5); count++)
    await target.call({ path: `/proof/${random.text(22)}` })
  for (let round = 0; round < samples; round++) {
    // In turns and random order, so that other load on the machine affects all kinds alike.
    for (const [name, make] of random.shuffle(Object.entries(kinds))) {
      const answer = await target.call({ path: `/proof/${make()}` })
      tried += 1
      times.get(name)?.push(answer.ms)
      const isKnown = name === 'known'
      if (answer.status !== (isKnown ? 200 : 404)) faults.push(`${name}: ${answer.status}`)
      // A path without a slug is not found as a route.
      if (
        !isKnown &&
        answer.headers.get('content-type') === 'application/problem+json' &&
        !answer.body.includes('"not_found"')
      ) {
        unknown.add(withoutIds(answer))
      }
    }
    if (round % 1000 === 999) say(`${round + 1} of ${samples} rounds`)
  }
  if (unknown.size !== 1) faults.push(`unknown slugs have ${unknown.size} different answers`)
  const baseline = times.get('random') ?? []
  const figures: Record<string, string> = {}
  for (const name of ['all but the last digit', 'half the digits', 'the first digit', 'malformed', 'known']) {
    const own = times.get(name) ?? []
    const area = areaUnderCurve(own, baseline)
    const errors = (area - 0.5) / standardErrorOfArea(own.length, baseline.length)
    const shift = (median(own) - median(baseline)) / interquartileRange(baseline)
    figures[`${name} vs random`] =
      `AUC ${area.toFixed(3)} (${errors.toFixed(1)} standard errors), medians ${shift.toFixed(2)} IQR apart`
    // Known slugs differ by design, and the form of slugs is public.
    const isSecret = name !== 'known' && name !== 'malformed'
    if (size === 'full' && isSecret && Math.abs(errors) > MOST_ERRORS)
      faults.push(`timing reveals ${name}: AUC ${area.toFixed(3)}`)
  }
  return {
    tried,
    figures: {
      ...figures,
      'different answers to unknown slugs': unknown.size,
      'time to guess one of 10⁹ slugs': toYears(),
    },
    faults,
  }
}

/** The answer without ids and dates of the request. */
function withoutIds({ status, headers, body }: Answer): string {
  const own = ['x-request-id', 'date']
  const said = [...headers].filter(([name]) => !own.includes(name)).toSorted()
  return JSON.stringify([status, said, { ...JSON.parse(body), requestId: undefined }])
}

/** For 128 random bits, 10⁹ proofs, and 10⁶ addresses with the default limit of 10 requests per second. */
function toYears(): string {
  const perYear = 1_000_000 * 10 * 3600 * 24 * 365
  return `${(2 ** 128 / 1e9 / perYear).toExponential(0)} years for 10⁶ addresses at the default limit`
}
