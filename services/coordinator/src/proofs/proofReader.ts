import { isSlug } from '@countersign/protocol'
import { createGatherer } from '../store/gather.ts'
import type { Store } from '../store/openStore.ts'
import type { ProofState } from '../store/proofs.ts'
import { type ProofView, proofNotFound, toProofView, toStateKey } from './proofView.ts'

export type ProofReader = {
  /** `GET /proof/:slug`. Returns a kept, final proof without a promise. Rejects with `proof_not_found` if the slug is malformed or has no proof. */
  read(slug: string): ProofView | Promise<ProofView>
}

/** By the slug as the database has it. That of a caller may be a piece of a long address, all of which it would keep. */
type Kept = { slug: string; view: ProofView; state: string }

/** Some 600 proofs of version 1. Most are read to their end once, by who asked for them, so that more would hold little that is asked for again. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024
/** Of a kept view beside its bytes. */
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

  function keep(one: Kept) {
    drop(one.slug)
    kept.set(one.slug, one)
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

  async function isCurrent({ slug, state }: Kept): Promise<boolean> {
    const found = await states.add({ slug })
    return found !== undefined && toStateKey(found) === state
  }

  async function load(slug: string): Promise<ProofView> {
    const proof = isSlug(slug) ? await store.findProof(slug) : undefined
    if (proof === undefined) throw proofNotFound()
    const view = toProofView(proof, ipfsGatewayUrl)
    if (view.status === 'complete') keep({ slug: proof.slug, view, state: toStateKey(proof) })
    return view
  }

  return {
    read(slug) {
      const one = kept.get(slug)
      if (one === undefined) return load(slug)
      kept.delete(slug)
      kept.set(one.slug, one)
      return one.view.isFinal ? one.view : isCurrent(one).then((isIt) => (isIt ? one.view : load(slug)))
    },
  }
}

const sizeOf = ({ view }: Kept) => view.latin1.length + OVERHEAD_BYTES
