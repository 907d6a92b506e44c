import { isIP } from 'node:net'
import {
  type Env,
  type Fault,
  type Mode,
  PRODUCTION_FIX,
  readBoolean,
  readInteger,
  readList,
  readSecret,
} from '@countersign/service'
import { isLoopbackAddress, isPublicAddress, toHost } from './postWebhook.ts'

/** The receivers of webhooks and the keys that sign them. */
export type WebhookConfig = {
  urls: readonly URL[]
  /** Seeds of Ed25519 keys, 32 bytes each. Every key signs every webhook, so that a key can be replaced while receivers know the old one. */
  seeds: readonly Uint8Array[]
  allowsLoopback: boolean
  /** How long after an event its delivery is retried. */
  deadlineMs: number
  timeoutMs: number
}

const MAX_URLS = 8
const MAX_KEYS = 4
const MAX_URL_LENGTH = 2_048
/** Half of the retention time, so that dead webhooks stay listed for two weeks. */
const MAX_DEADLINE_S = 1_296_000

/** Undefined without `WEBHOOK_URL`: then webhooks are off. */
export function readWebhooks(
  env: Env,
  { readFile, mode }: { readFile(path: string): string; mode: Mode },
  fault: Fault,
): WebhookConfig | undefined {
  const texts = readList(readSecret(env, 'WEBHOOK_URL', readFile, fault))
  const allowsLoopback = readBoolean(env, 'WEBHOOK_ALLOW_LOOPBACK', fault)
  if (allowsLoopback && mode !== 'development') fault('WEBHOOK_ALLOW_LOOPBACK', `rejected in ${mode}`, PRODUCTION_FIX)
  const key = readSecret(env, 'WEBHOOK_PRIVATE_KEY', readFile, fault)
  if (texts.length === 0) {
    if (key) fault('WEBHOOK_URL', 'required with WEBHOOK_PRIVATE_KEY')
    return undefined
  }
  if (new Set(texts).size !== texts.length || texts.length > MAX_URLS) {
    fault('WEBHOOK_URL', `expected at most ${MAX_URLS} URLs, each once`)
  }
  return {
    urls: texts.flatMap((text) => readReceiver(text, { allowsLoopback }, fault)),
    seeds: readSeeds(key, fault),
    allowsLoopback,
    deadlineMs:
      1000 * readInteger(env, 'WEBHOOK_DEADLINE_S', { fallback: 259_200, min: 1, max: MAX_DEADLINE_S }, fault),
    timeoutMs: readInteger(env, 'WEBHOOK_TIMEOUT_MS', { fallback: 10_000, min: 100, max: 60_000 }, fault),
  }
}

/** No fault quotes a URL, because its path may be secret. */
function readReceiver(text: string, { allowsLoopback }: { allowsLoopback: boolean }, fault: Fault): URL[] {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (
    url === undefined ||
    text.length > MAX_URL_LENGTH ||
    url.username !== '' ||
    url.password !== '' ||
    url.hash !== ''
  ) {
    fault('WEBHOOK_URL', 'expected URLs without credentials or fragment')
    return []
  }
  const host = toHost(url)
  const isLoopback = host === 'localhost' || isLoopbackAddress(host)
  const isAllowed = isLoopback ? allowsLoopback : isIP(host) === 0 || isPublicAddress(host)
  if (!isAllowed) fault('WEBHOOK_URL', 'expected a public address')
  else if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback))
    fault('WEBHOOK_URL', 'expected https')
  return [url]
}

function readSeeds(text: string | undefined, fault: Fault): Uint8Array[] {
  if (text === undefined) return []
  const seeds = text.split(/[\s,]+/).filter((seed) => seed !== '')
  // The message never quotes a key.
  const isValid =
    seeds.length > 0 &&
    seeds.length <= MAX_KEYS &&
    seeds.every((seed) => /^[0-9a-f]{64}$/.test(seed) && !/^0+$/.test(seed))
  if (!isValid) fault('WEBHOOK_PRIVATE_KEY', `expected 32 bytes of hex, or up to ${MAX_KEYS} of them`)
  return isValid ? seeds.map((seed) => Buffer.from(seed, 'hex')) : []
}
