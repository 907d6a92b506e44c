import { LogError, type NoteKey, parseVkey } from '@countersign/log'
import { isSafeUrl, MAX_WITNESSES } from '@countersign/protocol'
import { type Env, type Fault, readList } from '@countersign/service'

/** A witness: its key, and where it is asked. */
export type WitnessSite = { key: NoteKey; url: string }

/**
 * `LOG_WITNESSES`: a verifier key and a URL for each, with `@` between them. Which of them count, and how many are enough, is in the enclave's settings:
 * this says only where they are.
 */
export function readWitnesses(env: Env, fault: Fault): WitnessSite[] {
  const items = readList(env.LOG_WITNESSES)
  const sites = items.flatMap((item) => readSite(item) ?? [])
  if (sites.length < items.length) {
    fault('LOG_WITNESSES: expected VKEY@URL, each an Ed25519 key of a witness and https, or http on loopback')
  }
  if (items.length > MAX_WITNESSES) fault(`LOG_WITNESSES: at most ${MAX_WITNESSES}`)
  const keys = new Set(sites.map(({ key }) => Buffer.from(key.publicKey).toString('hex')))
  if (keys.size < sites.length) fault('LOG_WITNESSES: a key stands there twice')
  return sites
}

function readSite(item: string): WitnessSite | undefined {
  // The last one: a name may have an @ too.
  const split = Math.max(item.lastIndexOf('@http://'), item.lastIndexOf('@https://'))
  const url = item.slice(split + 1)
  if (split < 0 || !isWitnessUrl(url)) return undefined
  try {
    const key = parseVkey(item.slice(0, split))
    return key.type === 'cosignature-ed25519' ? { key, url } : undefined
  } catch (error) {
    if (error instanceof LogError) return undefined
    throw error
  }
}

function isWitnessUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  const isPlain = url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  return isPlain && isSafeUrl(url)
}
