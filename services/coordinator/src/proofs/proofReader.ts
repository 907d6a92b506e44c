import { isSlug } from '@countersign/protocol'
import { createGatherer } from '../store/gather.ts'
import type { Store } from '../store/openStore.ts'
import type { ProofState } from '../store/proofs.ts'
import { type ProofView, proofNotFound, toProofView, toStateKey } from './proofView.ts'

export type ProofReader = {
  /**
   * `GET /proof/:slug`. Returns a cached, final proof without a promise. Rejects with `proof_not_found` if the slug is malformed or has no
   * proof.
   */
  read(slug: string): ProofView | Promise<ProofView>
}

/** Uses the slug from the database. A caller's slug may be a slice of a longer string, which it would keep in memory. */
type CachedView = { slug: string; view: ProofView; state: string }

/** About 600 proofs of version 1. Most proofs are only requested by one caller while they are new, so a larger cache would help little. */
const MAX_CACHE_BYTES = 16 * 1024 * 1024
/** Memory per cached view in addition to its bytes. */
const OVERHEAD_BYTES = 1024

const LIMIT = 256
const SLOTS = 2

/**
 * Caches complete proofs. A final proof never changes, so it is returned without a database query. A reorganization can move the event of any
 * other proof, and another process notices it, so every read checks the state in the database. Reads that arrive while two queries are
 * running share the next query.
 */
export function createProofReader(deps: {
  store: Pick<Store, 'findProof' | 'findProofStates'>
  ipfsGatewayUrl: string | undefined
  maxCacheBytes?: number
}): ProofReader {
  const { store, ipfsGatewayUrl, maxCacheBytes = MAX_CACHE_BYTES } = deps
  // In order of use: the first is the least recently used.
  const cache = new Map<string, CachedView>()
  let cachedBytes = 0

  const states = createGatherer<{ slug: string }, ProofState | undefined>({
    async run(requests, { answer }) {
      const found = await store.findProofStates([...new Set(requests.map(({ slug }) => slug))])
      const bySlug = new Map(found.map((state) => [state.slug, state]))
      for (const one of requests) answer(one, { status: 'fulfilled', value: bySlug.get(one.slug) })
    },
    limit: LIMIT,
    slots: SLOTS,
  })

  function add(one: CachedView) {
    drop(one.slug)
    cache.set(one.slug, one)
    cachedBytes += sizeOf(one)
    for (const oldest of cache.keys()) {
      if (cachedBytes <= maxCacheBytes) break
      drop(oldest)
    }
  }

  function drop(slug: string) {
    const one = cache.get(slug)
    if (one === undefined) return
    cache.delete(slug)
    cachedBytes -= sizeOf(one)
  }

  async function isCurrent({ slug, state }: CachedView): Promise<boolean> {
    const found = await states.add({ slug })
    return found !== undefined && toStateKey(found) === state
  }

  async function load(slug: string): Promise<ProofView> {
    const proof = isSlug(slug) ? await store.findProof(slug) : undefined
    if (proof === undefined) throw proofNotFound()
    const view = toProofView(proof, ipfsGatewayUrl)
    if (view.status === 'complete') add({ slug: proof.slug, view, state: toStateKey(proof) })
    return view
  }

  return {
    read(slug) {
      const one = cache.get(slug)
      if (one === undefined) return load(slug)
      cache.delete(slug)
      cache.set(one.slug, one)
      return one.view.isFinal ? one.view : isCurrent(one).then((isSame) => (isSame ? one.view : load(slug)))
    },
  }
}

const sizeOf = ({ view }: CachedView) => view.latin1.length + OVERHEAD_BYTES
