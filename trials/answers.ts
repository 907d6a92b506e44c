import { createTx, type TestUser, toDigest } from '@countersign/testing/stack'
import type { ReceivedSignature } from './audit.ts'

type Answer = Pick<ReceivedSignature, 'signature' | 'slug'>

/** A client that requests signatures from a service that may crash, and records the answers. */
export function createClient(user: TestUser) {
  const answers = new Map<number, Answer>()
  const conflicts: string[] = []
  let nonce = 0

  /** A coordinator that is killed may not answer. */
  async function requestSignature(tx: number): Promise<Answer | undefined> {
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
    /** Nonces with two different answers. */
    conflicts: conflicts as readonly string[],
    next: (count: number) => Array.from({ length: count }, () => nonce++),
    all: () => Array.from({ length: nonce }, (_, each) => each),
    missing: (nonces: readonly number[]) => nonces.filter((each) => !answers.has(each)),
    async sign(nonces: readonly number[]) {
      await Promise.all(
        nonces.map(async (each) => {
          const answer = await requestSignature(each)
          if (answer === undefined) return
          const earlier = answers.get(each)
          if (earlier !== undefined && (earlier.signature !== answer.signature || earlier.slug !== answer.slug)) {
            conflicts.push(`nonce ${each} has two answers: ${earlier.slug} and ${answer.slug}`)
          }
          answers.set(each, answer)
        }),
      )
    },
    received: (address: string): ReceivedSignature[] =>
      [...answers].map(([each, answer]) => ({ ...answer, digest: toDigest(createTx(each)), address })),
  }
}
