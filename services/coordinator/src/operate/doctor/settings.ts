import { constants } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { codeRegisters, findOpenRegisters } from '@countersign/attestation'
import { describeFault, type Env, settingNames } from '@countersign/service'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Config } from '../../config.ts'
import type { EnclavePolicy } from '../../sign/enclave/keyEnclave.ts'
import { type Check, type Context, type Finding, fault, ok, type Subject, skipped, warning } from './check.ts'
import { findCode } from './reasons.ts'

/** Checks the settings, the errors that the service would report at its start, and what the machine provides: Node, folders, disk. */
export function createSettingsChecks(context: Context): Check[] {
  const { env, subject } = context
  const { coordinator } = subject
  return [
    {
      name: 'configuration',
      async run() {
        if (subject.faults.length > 0) return subject.faults.map((each) => fault(describeFault(each), each.fix))
        const { isProduction } = subject
        const mode = coordinator?.isMock ? 'simulated hardware' : isProduction ? 'production' : 'not production'
        const hash = coordinator === undefined ? '' : `, configuration hash ${coordinator.configHash}`
        return ok(`valid for a ${subject.role} (${mode})${hash}`)
      },
    },
    { name: 'secrets', run: () => checkSecrets(context) },
    { name: 'publishing', settings: /^(WORKER|RPC_URL)$/, run: async () => checkPublishing(context) },
    { name: 'node', run: async () => checkNode(process.versions.node) },
    { name: 'data-directory', settings: /^(DATA_DIR|IPFS_PINNER)$/, run: () => checkDataDir(subject) },
    { name: 'disk', settings: /^(DATA_DIR|IPFS_PINNER)$/, run: () => checkDisk(subject) },
    // Workers don't call enclaves.
    ...(coordinator === undefined ? [] : [createPolicyCheck(env, coordinator)]),
  ]
}

function createPolicyCheck(env: Env, { enclavePolicy }: Config): Check {
  return {
    name: 'policy',
    settings: /^(ENCLAVE_POLICY_FILE|MOCK_ATTESTATION)$/,
    run: async () =>
      env.ENCLAVE_POLICY_FILE ? evaluatePolicy(enclavePolicy) : ok('not needed for simulated hardware'),
  }
}

/** Finds secret files that every user of the machine can read, and secrets in the environment, which child processes inherit. */
async function checkSecrets({ env, subject }: Context): Promise<Finding[]> {
  const isOurs = (name: string) => settingNames.includes(name) || name.startsWith('OIDC_')
  const isSecret = (name: string) => isOurs(name) && /(_SECRET|_PRIVATE_KEY|_TOKEN|^DATABASE_URL)$/.test(name)
  const files = Object.keys(env).filter((name) => name.endsWith('_FILE') && isSecret(name.slice(0, -5)) && env[name])
  const found: Finding[] = []
  for (const name of files.toSorted()) {
    // The configuration check reports files that cannot be read.
    const mode = (await stat(env[name] ?? '').catch(() => undefined))?.mode ?? 0
    if ((mode & 0o007) !== 0) {
      found.push(
        warning(
          `${name}: every user of this machine can read the file`,
          'Set its mode to 0400, and its owner to the user that runs the service.',
        ),
      )
    }
  }
  if (subject.isProduction) {
    const byValue = Object.keys(env).filter((name) => isSecret(name) && env[name] && name !== 'ROOT_SECRET')
    for (const name of byValue.toSorted()) {
      found.push(
        warning(`${name} is in the environment`, `Put it in a file with mode 0400, and set ${name}_FILE to its path.`),
      )
    }
  }
  if (found.length > 0) return found
  return [
    files.length === 0
      ? skipped('no setting names a secret file')
      : ok(`${files.length} secret file(s), readable only by their owners`),
  ]
}

function checkPublishing({ env, subject }: Context): Finding {
  if (subject.pipeline !== undefined) return ok(`this ${subject.role} publishes`)
  if (env.WORKER === 'off') return skipped('WORKER=off: workers publish; check them with --worker')
  return warning(
    'RPC_URL is not set: this coordinator publishes nothing, so proofs wait',
    'Set RPC_URL, CHAIN_ID, ATTESTATIONS_ADDRESS and the publisher’s key here, or WORKER=off and start workers.',
  )
}

const GIB = 2 ** 30
const LITTLE = GIB
const TOO_LITTLE = GIB / 8

export function checkNode(version: string): Finding {
  const [, least = '0'] = /^>=(\d+)/.exec(packageJson.engines.node) ?? []
  if (Number(version.split('.')[0]) >= Number(least)) return ok(`v${version}`)
  return fault(`v${version} is too old`, `Use Node ${least} or later; npm run brings its own.`)
}

/** Only the embedded IPFS node stores anything there. */
const isUsed = ({ pipeline }: Subject) => pipeline?.pinner.kind === 'helia'
const notUsed = () => skipped('not used: the IPFS node runs elsewhere')

async function checkDataDir(subject: Subject): Promise<Finding> {
  if (!isUsed(subject)) return notUsed()
  const folder = resolve(subject.dataDir)
  const { path, isThere } = await findExisting(folder)
  const about = `DATA_DIR ${folder}`
  if (!(await stat(path)).isDirectory()) {
    return fault(`${about}: ${path} is a file`, 'Set DATA_DIR to a folder.')
  }
  try {
    await access(path, constants.W_OK | constants.X_OK)
  } catch (error) {
    const reason = findCode(error) === 'EROFS' ? 'is on a read-only disk' : 'is not writable'
    return fault(`${about} ${reason}`, `Set DATA_DIR to another folder, or make user ${process.getuid?.()} its owner.`)
  }
  return ok(isThere ? `${folder}` : `${folder}: the first start creates it`)
}

async function checkDisk(subject: Subject): Promise<Finding> {
  if (!isUsed(subject)) return notUsed()
  const { path } = await findExisting(resolve(subject.dataDir))
  const { bavail, bsize } = await statfs(path)
  return evaluateSpace(bavail * bsize)
}

export function evaluateSpace(bytes: number): Finding {
  const text = `${(bytes / GIB).toFixed(1)} GiB free`
  const fix = 'Free up space on the disk of DATA_DIR, or move it to another disk.'
  if (bytes < TOO_LITTLE) return fault(`only ${Math.floor(bytes / 2 ** 20)} MiB free`, fix)
  return bytes < LITTLE ? warning(`only ${text}`, fix) : ok(text)
}

/** The folder, or its nearest existing parent. */
async function findExisting(folder: string): Promise<{ path: string; isThere: boolean }> {
  for (let path = folder; ; path = dirname(path)) {
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined || path === dirname(path)) return { path, isThere: path === folder }
  }
}

const MEND = 'Measure your own build and write its values into the policy: docs/run/deploy.md#policies.'

export function evaluatePolicy(policy: EnclavePolicy): Finding | Finding[] {
  const { measurements = [], configHashes = [], events } = policy
  const found: Finding[] = []
  for (const [index, measurement] of measurements.entries()) {
    const values = codeRegisters.flatMap((name) => measurement[name] ?? [])
    // A register that a guest does not use is all zeros, but the firmware is always there.
    const isPlaceholder = values.every(isZeros) || values.some((value) => isOneByte(value) && !isZeros(value))
    if (isPlaceholder || (measurement.mrTd !== undefined && isZeros(measurement.mrTd))) {
      found.push(fault(`measurements[${index}] in the enclave policy is a placeholder`, MEND))
    }
    const open = findOpenRegisters(measurement, events)
    if (open.length > 0) {
      found.push(warning(`measurements[${index}] leaves out ${open.join(', ')}, which production rejects`, MEND))
    }
  }
  for (const [index, hash] of configHashes.entries()) {
    if (!isOneByte(hash)) continue
    const fix = 'Use the configHash that the enclave logs when it starts.'
    found.push(fault(`configHashes[${index}] in the enclave policy is a placeholder`, fix))
  }
  if (found.length > 0) return found
  return ok(`${measurements.length} measurement(s), ${configHashes.length} configuration hash(es)`)
}

function isZeros(hex: string): boolean {
  return /^0*$/.test(hex)
}

function isOneByte(hex: string): boolean {
  return hex === hex.slice(0, 2).repeat(hex.length / 2)
}
