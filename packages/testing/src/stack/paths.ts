import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../../../..')

/** A path in the repository, from its root. */
export const toPath = (path: string): string => join(ROOT, path)

/** The programs of the service, each started by its path. */
export const mains = toMains(ROOT)

/** Those of a checkout, this or another. */
export function toMains(root: string) {
  return {
    enclave: join(root, 'services/enclave/src/main.ts'),
    coordinator: join(root, 'services/coordinator/src/main.ts'),
    worker: join(root, 'services/coordinator/src/worker.ts'),
    witness: join(root, 'services/witness/src/main.ts'),
    web: join(root, 'dev/webServer.ts'),
  }
}

/** Compiled code of all processes. With it they load in half the time. */
export const COMPILE_CACHE = toPath('node_modules/.cache/countersign')
