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
import { type Answer, type Handle, type InterceptedRequest, startInterceptor } from '../interceptor.ts'

/** How a witness answers. */
export const behaviours = [
  'honest',
  'dead',
  /** Records and cosigns, but its answer is lost. */
  'answer lost',
  'slow',
  /** Repeats its previous cosignature. */
  'lagging',
  'bad signature',
  /** Signs another root of the same size with its key. */
  'other root',
  'other size',
  /** Signs the right checkpoint with its key, but one hour ahead. */
  'dated ahead',
  /** Always reports that it has no checkpoint. */
  'behind',
  'nonsense',
  /** Reports a size that the log never had. */
  'ahead',
  /** Another process with the same key that has cosigned another history. */
  'forked',
] as const
export type Behaviour = (typeof behaviours)[number]

/** Behaviours that claim a second history of the log. */
export const contradicting: readonly Behaviour[] = ['ahead', 'forked']

/** A cosignature of the honest witness. */
export type Cosigned = { origin: string; size: number; root: string; lines: string }

export type BadWitness = {
  url: string
  behaviour(): Behaviour
  setBehaviour(behaviour: Behaviour): void
  /** Cosignatures of the real witness, even if they didn't reach the caller. */
  readonly cosigned: readonly Cosigned[]
  /** Number of requests by behaviour. */
  readonly requests: Readonly<Partial<Record<Behaviour, number>>>
  /** Acts once, at the next checkpoint: before or after the real witness processes it. Then it closes the caller's connection. */
  intercept(when: 'before' | 'after', act: () => Promise<void>): void
  stop(): Promise<void>
}

const SLOW_MS = { shortest: 100, longest: 6_000 }
const BEYOND = 1_000_000

/** A proxy in front of an honest witness that can misbehave. */
export async function startBadWitness(parameters: {
  witness: { url: string; folder: string }
  /** URL of the process with another history. */
  forkUrl?: () => string
  random: () => number
}): Promise<BadWitness> {
  const { witness, forkUrl, random } = parameters
  const [signer] = readSigners(await readFile(toKeyPath(witness.folder), 'utf8')) as [Signer, Signer]
  const cosigned: Cosigned[] = []
  const requests: Partial<Record<Behaviour, number>> = {}
  const stopping = new AbortController()
  let behaviour: Behaviour = 'honest'
  let interception: { when: 'before' | 'after'; act(): Promise<void> } | undefined

  /** Cosigns something else, or with another time, with the witness's key. */
  async function lie(
    { body }: InterceptedRequest,
    change: (checkpoint: Checkpoint) => Checkpoint,
    aheadS: number = 0,
  ): Promise<Answer> {
    const checkpoint = parseCheckpoint(parseNote(parseAddCheckpoint(body).checkpoint).text)
    const time = { timestampS: Math.floor(Date.now() / 1000) + aheadS }
    const message = toSignedMessage(signer.key, formatCheckpoint(change(checkpoint)), time)
    return toText(200, formatSignatureLines([toNoteSignature(signer.key, await signer.sign(message), time)]))
  }

  /** Forwards the request and records the cosignature. */
  async function answerHonestly({ body }: InterceptedRequest, forward: () => Promise<Answer>): Promise<Answer> {
    const taken = interception
    interception = undefined
    if (taken?.when === 'before') await taken.act()
    const answer = await forward()
    if (answer.status === 200) {
      const { origin, size, root } = parseCheckpoint(parseNote(parseAddCheckpoint(body).checkpoint).text)
      cosigned.push({ origin, size, root: toHex(root), lines: answer.body.toString('utf8') })
    }
    if (taken?.when === 'after') await taken.act()
    if (taken !== undefined) throw new Error('connection closed')
    return answer
  }

  const handle: Handle = async (call, forward) => {
    if (call.path !== '/add-checkpoint') return behaviour === 'dead' ? undefined : forward()
    requests[behaviour] = (requests[behaviour] ?? 0) + 1
    switch (behaviour) {
      case 'honest':
        return answerHonestly(call, forward)
      case 'dead':
        return undefined
      case 'answer lost':
        await answerHonestly(call, forward)
        return undefined
      case 'slow': {
        const { shortest, longest } = SLOW_MS
        await setTimeout(shortest + random() * (longest - shortest), undefined, { signal: stopping.signal })
        return answerHonestly(call, forward)
      }
      case 'lagging': {
        const earlier = cosigned.at(-1)
        return earlier === undefined ? undefined : toText(200, earlier.lines)
      }
      case 'bad signature': {
        const answer = await answerHonestly(call, forward)
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
        if (forkUrl === undefined) throw new Error('no forked witness to forward to')
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
    behaviour: () => behaviour,
    setBehaviour(next) {
      behaviour = next
    },
    cosigned,
    requests,
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

/** Changes one character in the signature of each line. */
function spoil(lines: string, random: () => number): string {
  return lines
    .split('\n')
    .map((line) => {
      const at = Math.floor(line.length * (0.5 + 0.4 * random()))
      return line === '' ? line : `${line.slice(0, at)}${line[at] === 'A' ? 'B' : 'A'}${line.slice(at + 1)}`
    })
    .join('\n')
}
