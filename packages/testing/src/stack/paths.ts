import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../../../..')

/** Absolute path of a path in the repository. */
export const toPath = (path: string): string => join(ROOT, path)

/** Main files of the service's programs. */
export const mains = toMains(ROOT)

/** Main files in a checkout. */
export function toMains(root: string) {
  return {
    enclave: join(root, 'services/enclave/src/main.ts'),
    coordinator: join(root, 'services/coordinator/src/main.ts'),
    worker: join(root, 'services/coordinator/src/worker.ts'),
    witness: join(root, 'services/witness/src/main.ts'),
    web: join(root, 'dev/webServer.ts'),
  }
}

/** Cache of compiled code for all processes. It halves their load time. */
export const COMPILE_CACHE = toPath('node_modules/.cache/countersign')
