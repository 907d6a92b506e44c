import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../../../..')

/** A path in the repository, from its root. */
export const toPath = (path: string): string => join(ROOT, path)

/** The programs of the service, each started by its path. */
export const mains = {
  enclave: toPath('services/enclave/src/main.ts'),
  coordinator: toPath('services/coordinator/src/main.ts'),
  worker: toPath('services/coordinator/src/worker.ts'),
  web: toPath('dev/webServer.ts'),
} as const

/** Compiled code of all processes. With it they load in half the time. */
export const COMPILE_CACHE = toPath('node_modules/.cache/countersign')
