import { isSlug } from '@countersign/protocol'
import type { Store } from '../ports.ts'
import { createGatherer } from '../sign/gather.ts'
import type { ProofState } from '../store/types.ts'
import { proofNotFound } from './proofNotFound.ts'
import { type ProofView, toProofView } from './toProofView.ts'
import { toStateKey } from './toStateKey.ts'

export type ProofReader = {
  /** `GET /proof/:slug`. Throws `proof_not_found`, alike for what is no slug and what is no proof. */
  read(slug: string): Promise<ProofView>
}

/**
 * The body a character for each byte, as a string in V8's heap. Buffers that stay for long are scattered over the C heap, between those of
 * sockets, so that it never shrinks.
 */
type Kept = Omit<ProofView, 'body'> & { bytes: string; state: string }

/** Some 600 proofs of version 1. Most are read to their end once, by who asked for them, so that more would hold little that is asked for again. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024
/** Of a kept view beside its body. */
const OVERHEAD_BYTES = 1024

const LIMIT = 256
const SLOTS = 2

/**
 * Keeps the answers of complete proofs. A final one never changes again, by a rule of the database, and is answered without a look
 * at it. The event of any other may move with a reorganisation, which another process sees, so that its state is looked up for every
 * read: in one statement for all that come while two are under way, and never in one that began before the read.
 */
export function createProofReader(deps: {
  store: Pick<Store, 'findProof' | 'findProofStates'>
  ipfsGatewayUrl: string | undefined
  maxKeptBytes?: number
}): ProofReader {
  const { store, ipfsGatewayUrl, maxKeptBytes = MAX_KEPT_BYTES } = deps
  // In the order of use, so that the first is the one unused for longest.
  const kept = new Map<string, Kept>()
  let keptBytes = 0

  const states = createGatherer<{ slug: string }, ProofState | undefined>({
    async run(asked, { answer }) {
      const found = await store.findProofStates([...new Set(asked.map(({ slug }) => slug))])
      const bySlug = new Map(found.map((state) => [state.slug, state]))
      for (const one of asked) answer(one, { status: 'fulfilled', value: bySlug.get(one.slug) })
    },
    limit: LIMIT,
    slots: SLOTS,
  })

  function keep(slug: string, one: Kept) {
    drop(slug)
    kept.set(slug, one)
    keptBytes += sizeOf(one)
    for (const oldest of kept.keys()) {
      if (keptBytes <= maxKeptBytes) break
      drop(oldest)
    }
  }

  function drop(slug: string) {
    const one = kept.get(slug)
    if (one === undefined) return
    kept.delete(slug)
    keptBytes -= sizeOf(one)
  }

  async function findKept(slug: string): Promise<ProofView | undefined> {
    const one = kept.get(slug)
    if (one === undefined) return undefined
    kept.delete(slug)
    kept.set(slug, one)
    if (one.isFinal) return toView(one)
    const state = await states.add({ slug })
    return state !== undefined && toStateKey(state) === one.state ? toView(one) : undefined
  }

  async function load(slug: string): Promise<ProofView> {
    const proof = isSlug(slug) ? await store.findProof(slug) : undefined
    if (proof === undefined) throw proofNotFound()
    const view = toProofView(proof, ipfsGatewayUrl)
    if (view.status === 'complete') keep(slug, toKept(view, toStateKey(proof)))
    return view
  }

  return { read: async (slug) => (await findKept(slug)) ?? load(slug) }
}

const toKept = ({ body, ...rest }: ProofView, state: string): Kept => ({
  ...rest,
  bytes: body.toString('latin1'),
  state,
})

const toView = ({ bytes, state: _, ...rest }: Kept): ProofView => ({ ...rest, body: Buffer.from(bytes, 'latin1') })

const sizeOf = ({ bytes }: Kept) => bytes.length + OVERHEAD_BYTES
