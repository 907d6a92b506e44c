import { createRequire, registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

type Hardhat = typeof import('hardhat/hre')

let loading: Promise<Hardhat> | undefined

/**
 * Loads Hardhat as a library. Its `hardhat-zod-utils` would resolve the zod 4 of other packages, with which Hardhat's own zod 3 can't read a
 * configuration. So this makes it resolve Hardhat's zod.
 */
export function loadHardhat(): Promise<Hardhat> {
  loading ??= load()
  return loading
}

async function load(): Promise<Hardhat> {
  // Disables telemetry, which Hardhat otherwise sends when started from a terminal.
  process.env.HARDHAT_DISABLE_TELEMETRY = 'true'
  const hardhat = pathToFileURL(createRequire(import.meta.url).resolve('hardhat/package.json')).href
  // The hook stays registered, because Hardhat loads its parts on first use.
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const isMisled = specifier === 'zod' && context.parentURL?.includes('/hardhat-zod-utils/') === true
      return nextResolve(specifier, isMisled ? { ...context, parentURL: hardhat } : context)
    },
  })
  return import('hardhat/hre')
}
