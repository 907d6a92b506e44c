import { randomBytes } from 'node:crypto'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder, readCode, writeNewFile } from '@countersign/service'
import { removePostgres } from '@countersign/testing/launcher'
import { type Manifest, parseManifest } from '@countersign/verify'

/** The stack's own state between starts. */
export type DevState = { oidcClientSecret: string }

const FILE = 'dev.json'
const MANIFEST = 'manifest.json'
export const POSTGRES = 'postgres'
export const WITNESSES = 'witnesses'
/** The database folder of earlier versions. */
const EMBEDDED = 'database'

/** Reads the state. The first start creates it, readable only by its owner. */
export async function loadState(stateDir: string): Promise<DevState> {
  const path = join(stateDir, FILE)
  await createFolder(stateDir)
  const made: DevState = { oidcClientSecret: randomBytes(32).toString('hex') }
  try {
    await writeNewFile({ path, text: `${JSON.stringify(made)}\n`, mode: 0o600 })
    return made
  } catch (error) {
    if (readCode(error) !== 'EEXIST') throw error
  }
  const state = parseState(await readFile(path, 'utf8'))
  if (state === undefined) throw new Error(`${path} is damaged. Delete it, and the next start creates a new one`)
  return state
}

function parseState(text: string): DevState | undefined {
  try {
    const { oidcClientSecret } = JSON.parse(text)
    const isValid = typeof oidcClientSecret === 'string' && /^[0-9a-f]{64}$/.test(oidcClientSecret)
    return isValid ? { oidcClientSecret } : undefined
  } catch {
    return undefined
  }
}

/** Writes this stack's manifest next to its state, merged with that of earlier starts. Returns the manifest and its path. */
export async function writeManifest(
  stateDir: string,
  manifest: Manifest,
): Promise<{ path: string; manifest: Manifest }> {
  const path = join(stateDir, MANIFEST)
  const merged = addEarlier(manifest, await readEarlier(path))
  await writeFile(path, `${JSON.stringify(merged, undefined, 2)}\n`)
  return { path, manifest: merged }
}

/** Undefined at the first start or if the file is damaged: this start replaces it. */
async function readEarlier(path: string): Promise<Manifest | undefined> {
  try {
    return parseManifest(await readFile(path, 'utf8'))
  } catch {
    return undefined
  }
}

/** A wallet keeps its receipts when the stack starts with other options, so a verifier still needs their anchors. */
function addEarlier(manifest: Manifest, earlier: Manifest | undefined): Manifest {
  if (earlier === undefined) return manifest
  const { log, ...rest } = manifest
  const { enclave, coordinator } = manifest
  const logContracts = manifest.logContracts ?? earlier.logContracts
  return {
    ...rest,
    enclave: {
      ...enclave,
      measurements: union(enclave.measurements, earlier.enclave.measurements),
      configHashes: union(enclave.configHashes, earlier.enclave.configHashes),
    },
    coordinator: {
      ...coordinator,
      measurements: union(coordinator.measurements, earlier.coordinator.measurements),
      configHashes: union(coordinator.configHashes, earlier.coordinator.configHashes),
    },
    entropyKeys: union(manifest.entropyKeys, earlier.entropyKeys),
    ...(logContracts === undefined ? {} : { logContracts }),
    // Receipts from before the log would fail. The settings, which the configuration hash covers, name the witnesses.
    ...(log === undefined || earlier.log === undefined ? {} : { log }),
  }
}

/** Each value once, compared by its JSON. */
function union<Value>(newer: readonly Value[], older: readonly Value[]): Value[] {
  return [...new Map([...newer, ...older].map((value) => [JSON.stringify(value), value])).values()]
}

/** Throws if an earlier version created the state. */
export async function assertSupported(stateDir: string): Promise<void> {
  const isThere = await stat(join(stateDir, EMBEDDED)).catch(() => undefined)
  if (isThere === undefined) return
  throw new Error(
    `${stateDir} is from an earlier version with another database. npm run dev -- --reset deletes its users, wallets and receipts, and starts with empty state.`,
  )
}

/** Deletes only the stack's files: other tools store things in the same folder. */
export async function clearState(stateDir: string): Promise<void> {
  await removePostgres(join(stateDir, POSTGRES))
  for (const name of [FILE, MANIFEST, 'enclave', EMBEDDED, 'chain', 'ipfs', 'web', WITNESSES]) {
    await rm(join(stateDir, name), { recursive: true, force: true })
  }
}
