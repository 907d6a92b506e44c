import { createTx, type TestUser, toDigest } from '@countersign/testing/stack'
import type { ReceivedSignature } from './audit.ts'

type Answer = Pick<ReceivedSignature, 'signature' | 'slug'>

/** A client that asks for signatures of a dying service, and keeps what it was answered. */
export function createClient(user: TestUser) {
  const answers = new Map<number, Answer>()
  const changed: string[] = []
  let nonce = 0

  /** A dying coordinator may not answer. */
  async function ask(tx: number): Promise<Answer | undefined> {
    try {
      const response = await user.sign(createTx(tx))
      return response.status === 200 ? ((await response.json()) as Answer) : undefined
    } catch {
      return undefined
    }
  }

  return {
    /** By nonce. */
    answers: answers as ReadonlyMap<number, Answer>,
    /** Nonces that were answered in two ways. */
    changed: changed as readonly string[],
    /** New nonces, as many as asked for. */
    next: (count: number) => Array.from({ length: count }, () => nonce++),
    all: () => Array.from({ length: nonce }, (_, each) => each),
    missing: (nonces: readonly number[]) => nonces.filter((each) => !answers.has(each)),
    async sign(nonces: readonly number[]) {
      await Promise.all(
        nonces.map(async (each) => {
          const answer = await ask(each)
          if (answer === undefined) return
          const earlier = answers.get(each)
          if (earlier !== undefined && (earlier.signature !== answer.signature || earlier.slug !== answer.slug)) {
            changed.push(`nonce ${each} was answered with ${earlier.slug} and ${answer.slug}`)
          }
          answers.set(each, answer)
        }),
      )
    },
    received: (address: string): ReceivedSignature[] =>
      [...answers].map(([each, answer]) => ({ ...answer, digest: toDigest(createTx(each)), address })),
  }
}
