import { registerHooks } from 'node:module'

/* Loaded into an enclave process whose limits are switched off, to check that the trial reports it. */

const LIMIT = 'after > limit'

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!url.endsWith('/countSpends.ts')) return loaded
    const source = String(loaded.source)
    if (!source.includes(LIMIT)) throw new Error('countSpends.ts has no limit to switch off')
    return { ...loaded, source: source.replace(LIMIT, 'after < 0n') }
  },
})
