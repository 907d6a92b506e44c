import { readFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import {
  type Checkpoint,
  formatCheckpoint,
  formatSignatureLines,
  parseAddCheckpoint,
  parseCheckpoint,
  parseNote,
  toNoteSignature,
  toSignedMessage,
} from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { readSigners, type Signer } from '../../services/witness/src/signers.ts'
import { toKeyPath } from '../../services/witness/src/witnessFolder.ts'
import { type Answer, type Asked, type Handle, startInterceptor } from '../interceptor.ts'

/** What a witness does with the calls of a log. */
export const moods = [
  'honest',
  'dead',
  /** Records and cosigns, and its answer is lost. */
  'answer lost',
  'slow',
  /** Gives the cosignature that it gave the time before. */
  'lagging',
  'bad signature',
  /** By its own key, of the same size. */
  'other root',
  'other size',
  /** By its own key, of the right checkpoint, an hour ahead. */
  'dated ahead',
  /** Says again and again that it has seen nothing. */
  'behind',
  'nonsense',
  /** Names a size that the log never had. */
  'ahead',
  /** Another process with the same key, which has cosigned another history. */
  'forked',
] as const
export type Mood = (typeof moods)[number]

/** Who says so says that the log has two histories. */
export const contradicting: readonly Mood[] = ['ahead', 'forked']

/** What a witness cosigned: an honest one answered it. */
export type Cosigned = { origin: string; size: number; root: string; lines: string }

export type BadWitness = {
  url: string
  mood(): Mood
  setMood(mood: Mood): void
  /** What the real witness answered, whether or not that reached the caller. */
  readonly cosigned: readonly Cosigned[]
  /** How often it was asked in each mood. */
  readonly asked: Readonly<Partial<Record<Mood, number>>>
  /** Once, at the next checkpoint: before the real witness gets it, or when it has answered. Then the caller is cut off. */
  intercept(when: 'before' | 'after', act: () => Promise<void>): void
  stop(): Promise<void>
}

const SLOW_MS = { shortest: 100, longest: 6_000 }
const BEYOND = 1_000_000

/** A witness that can misbehave, before one that does not. */
export async function startBadWitness(parameters: {
  witness: { url: string; folder: string }
  /** Of the process that has another history. */
  forkUrl?: () => string
  random: () => number
}): Promise<BadWitness> {
  const { witness, forkUrl, random } = parameters
  const [signer] = readSigners(await readFile(toKeyPath(witness.folder), 'utf8')) as [Signer, Signer]
  const cosigned: Cosigned[] = []
  const asked: Partial<Record<Mood, number>> = {}
  const stopping = new AbortController()
  let mood: Mood = 'honest'
  let interception: { when: 'before' | 'after'; act(): Promise<void> } | undefined

  /** Cosigns something else, or at another time, with the key of the witness. */
  async function lie(
    { body }: Asked,
    change: (checkpoint: Checkpoint) => Checkpoint,
    aheadS: number = 0,
  ): Promise<Answer> {
    const checkpoint = parseCheckpoint(parseNote(parseAddCheckpoint(body).checkpoint).text)
    const time = { timestampS: Math.floor(Date.now() / 1000) + aheadS }
    const message = toSignedMessage(signer.key, formatCheckpoint(change(checkpoint)), time)
    return toText(200, formatSignatureLines([toNoteSignature(signer.key, await signer.sign(message), time)]))
  }

  /** Asks the real one, and remembers what it cosigned. */
  async function askHonestly({ body }: Asked, forward: () => Promise<Answer>): Promise<Answer> {
    const taken = interception
    interception = undefined
    if (taken?.when === 'before') await taken.act()
    const answer = await forward()
    if (answer.status === 200) {
      const { origin, size, root } = parseCheckpoint(parseNote(parseAddCheckpoint(body).checkpoint).text)
      cosigned.push({ origin, size, root: toHex(root), lines: answer.body.toString('utf8') })
    }
    if (taken?.when === 'after') await taken.act()
    if (taken !== undefined) throw new Error('cut off')
    return answer
  }

  const handle: Handle = async (call, forward) => {
    if (call.path !== '/add-checkpoint') return mood === 'dead' ? undefined : forward()
    asked[mood] = (asked[mood] ?? 0) + 1
    switch (mood) {
      case 'honest':
        return askHonestly(call, forward)
      case 'dead':
        return undefined
      case 'answer lost':
        await askHonestly(call, forward)
        return undefined
      case 'slow': {
        const { shortest, longest } = SLOW_MS
        await setTimeout(shortest + random() * (longest - shortest), undefined, { signal: stopping.signal })
        return askHonestly(call, forward)
      }
      case 'lagging': {
        const earlier = cosigned.at(-1)
        return earlier === undefined ? undefined : toText(200, earlier.lines)
      }
      case 'bad signature': {
        const answer = await askHonestly(call, forward)
        return answer.status === 200 ? toText(200, spoil(answer.body.toString('utf8'), random)) : answer
      }
      case 'other root':
        return lie(call, (checkpoint) => ({ ...checkpoint, root: checkpoint.root.map((byte) => byte ^ 1) }))
      case 'other size':
        return lie(call, (checkpoint) => ({ ...checkpoint, size: checkpoint.size + 1 }))
      case 'dated ahead':
        return lie(call, (checkpoint) => checkpoint, 3_600)
      case 'behind':
        return toText(409, '0\n', 'text/x.tlog.size')
      case 'nonsense':
        return toText(200, '— nobody AAAA\n\u0000')
      case 'ahead':
        return toText(409, `${BEYOND}\n`, 'text/x.tlog.size')
      case 'forked': {
        if (forkUrl === undefined) throw new Error('there is no other history')
        const response = await fetch(`${forkUrl()}/add-checkpoint`, {
          method: 'POST',
          body: Uint8Array.from(call.body),
        })
        return toText(response.status, await response.text(), response.headers.get('content-type') ?? '')
      }
    }
  }

  const interceptor = await startInterceptor(witness.url, handle)
  return {
    url: interceptor.url,
    mood: () => mood,
    setMood(next) {
      mood = next
    },
    cosigned,
    asked,
    intercept(when, act) {
      interception = { when, act }
    },
    async stop() {
      stopping.abort()
      await interceptor.stop()
    },
  }
}

function toText(status: number, text: string, type = 'text/plain; charset=utf-8'): Answer {
  return { status, type, body: Buffer.from(text) }
}

/** Another character somewhere in the last half of each line, which is in the signature. */
function spoil(lines: string, random: () => number): string {
  return lines
    .split('\n')
    .map((line) => {
      const at = Math.floor(line.length * (0.5 + 0.4 * random()))
      return line === '' ? line : `${line.slice(0, at)}${line[at] === 'A' ? 'B' : 'A'}${line.slice(at + 1)}`
    })
    .join('\n')
}
