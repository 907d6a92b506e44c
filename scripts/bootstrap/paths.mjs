import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))
export const runtime = join(root, 'scripts/runtime')
export const nodeModules = join(root, 'node_modules')

// Outside node_modules, because these must survive when an interrupted install is deleted.
export const setupFolder = join(root, '.countersign', 'setup')
export const lockFile = join(setupFolder, 'lock')
export const installingMark = join(setupFolder, 'installing')
export const npmLogFile = join(setupFolder, 'npm.log')
