import { createRequire, registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

type Hardhat = typeof import('hardhat/hre')

let loading: Promise<Hardhat> | undefined

/**
 * Hardhat as a library. Its `hardhat-zod-utils` takes whichever zod lies beside it, which is the zod 4 of other packages;
 * hardhat's own zod 3 can then read no configuration. So it is given hardhat's.
 */
export function loadHardhat(): Promise<Hardhat> {
  loading ??= load()
  return loading
}

async function load(): Promise<Hardhat> {
  // Hardhat would otherwise report its use to its makers, from a terminal.
  process.env.HARDHAT_DISABLE_TELEMETRY = 'true'
  const hardhat = pathToFileURL(createRequire(import.meta.url).resolve('hardhat/package.json')).href
  // It stays: hardhat loads its parts when it first needs them.
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const isMisled = specifier === 'zod' && context.parentURL?.includes('/hardhat-zod-utils/') === true
      return nextResolve(specifier, isMisled ? { ...context, parentURL: hardhat } : context)
    },
  })
  return import('hardhat/hre')
}
