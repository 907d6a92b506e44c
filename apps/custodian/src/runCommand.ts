import { readFile } from 'node:fs/promises'
import { createVerifier, PolicyError, QuoteError, type Verifier, vendorRoots } from '@countersign/attestation'
import {
  computeRecoveryReportData,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  hashShare,
  rootSecretPaths,
  tags,
  toHex,
  toRootSecretName,
  toShareContext,
  toSubmissionContext,
  toTagBytes,
} from '@countersign/protocol'
import {
  type Backup,
  type CallPeer,
  hashBackup,
  nameBackup,
  type ParsedRootSecretPolicy,
  PeerError,
  parseAnswer,
  parseBackup,
  parseRootSecretPolicy,
  recoveryResponse,
  shareResponse,
  toQuotePolicy,
  verifyBackup,
  verifyPeerEvidence,
} from '@countersign/root-secret'
import { open, seal, type X25519Pair } from '@countersign/root-secret/sealing'
import { type ConfigLine, toPrintable } from '@countersign/verify'
import { describeDifference, describeEnclave, type Enclave, findLosses } from './consent.ts'
import { createKeyFile, readKeyFile } from './keyFile.ts'
import { type Command, CustodianError } from './parseCommand.ts'

export type CustodianDeps = {
  callPeer: CallPeer
  clock: { now(): number }
  /** Cryptographically strong random bytes. */
  random(length: number): Uint8Array<ArrayBuffer>
  wait(durationMs: number): Promise<void>
  print(line: string): void
}

type Of<Kind extends Command['kind']> = Extract<Command, { kind: Kind }>

export async function runCommand(deps: CustodianDeps, command: Of<'keygen' | 'check' | 'submit'>): Promise<void> {
  if (command.kind === 'keygen') {
    const { publicKey } = await createKeyFile(command.file)
    deps.print(
      `Wrote the key to ${command.file}. Anyone with this file has your share. Keep it offline and keep a copy.`,
    )
    deps.print(`Public key for the policy: ${toHex(publicKey)}`)
    return
  }
  if (command.isMock)
    deps.print('MOCK: this is a drill with simulated hardware. It proves nothing about real hardware.')
  if (command.kind === 'check') await check(deps, command)
  else await submit(deps, command)
}

async function check(deps: CustodianDeps, command: Of<'check'>) {
  const verified = await readVerifiedBackup(command)
  const { backup } = verified
  deps.print(`Backup: ${nameBackup(backup)}`)
  deps.print(`Created at ${backup.createdAt} by this enclave:`)
  printLines(deps, describeEnclave(toMaker(verified)))
  deps.print(`${backup.threshold} of ${backup.shares.length} custodians can recover the root secret.`)
  if (command.key !== undefined) {
    const { index, share } = openShare(backup, await readKeyFile(command.key))
    share.fill(0)
    deps.print(`Your key opens share ${index + 1}.`)
  }
  if (command.enclave === undefined) return
  await verifyEnclave(deps, { ...command, enclave: command.enclave }, verified)
  deps.print('Nothing was sent.')
}

async function submit(deps: CustodianDeps, command: Of<'submit'>) {
  const verified = await readVerifiedBackup(command)
  const { backup } = verified
  const pair = await readKeyFile(command.key)
  const recipient = await verifyEnclave(deps, command, verified)
  const { index, share } = openShare(backup, pair)
  const aad = toSubmissionContext({ backupHash: hashBackup(backup), configHash: fromHex(command.configHash), index })
  const sealed = seal(share, { recipient, sender: pair, info: toTagBytes(tags.rootSubmission), aad })
  share.fill(0)
  const request = { index, enc: toHex(sealed.enc), ciphertext: toHex(sealed.ciphertext) }
  const { held, needed } = parseAnswer(
    shareResponse,
    await callWithRetries(deps, command.enclave, rootSecretPaths.share, request),
  )
  // The response is unauthenticated: an attacker on the network can forge or drop it.
  deps.print(`The enclave reports that it has your share: ${held} of ${needed}.`)
  if (held >= needed) deps.print('With your share, it has recovered the root secret and is starting.')
}

type VerifiedBackup = {
  backup: Backup
  madeUnder: ParsedRootSecretPolicy
  /** The policy of the waiting enclave. */
  policy: ParsedRootSecretPolicy
  verifier: Verifier
}

/** A policy of an older version may lack platforms. Its backup must stay readable, so that a policy with platforms can replace it. */
async function readVerifiedBackup(command: Of<'check' | 'submit'>): Promise<VerifiedBackup> {
  const { isMock } = command
  const policy = await readPolicy(command.policy, { requirePlatforms: !isMock && command.enclave !== undefined })
  const backup = parseBackup(await readText(command.backup))
  const verifier = await chooseVerifier(isMock)
  const madeUnder = await readPolicy(command.backupPolicy, { requirePlatforms: false })
  await verifyBackup({ verifier, isMock, madeUnder }, backup)
  return { backup, madeUnder, policy, verifier }
}

function toMaker({ backup, madeUnder }: VerifiedBackup): Enclave {
  return { config: backup.evidence.config, settings: backup.settings, policy: madeUnder.policy }
}

function printLines(deps: CustodianDeps, lines: readonly ConfigLine[]) {
  for (const [name, value] of lines) deps.print(`  ${name.padEnd(26)} ${toPrintable(value)}`)
}

const ATTEMPTS = 12
const PAUSE_MS = 5_000

/** Retries while other custodians fill the enclave's queue. */
async function callWithRetries(deps: CustodianDeps, ...call: Parameters<CallPeer>): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await deps.callPeer(...call)
    } catch (error) {
      const isBusy = error instanceof PeerError && error.status === 503
      if (!isBusy || attempt === ATTEMPTS) throw error
      deps.print('The enclave is busy. Trying again.')
      await deps.wait(PAUSE_MS)
    }
  }
}

type Request = Pick<Of<'submit'>, 'enclave' | 'allowedLosses' | 'isMock'> & { configHash?: string }

/**
 * Verifies the waiting enclave, prints its configuration and returns its key. Throws if it is not the enclave that the custodian named.
 * The enclave's quote covers everything that is printed.
 */
async function verifyEnclave(deps: CustodianDeps, command: Request, verified: VerifiedBackup) {
  const { backup, policy, verifier } = verified
  const nonce = deps.random(32)
  const answer = parseAnswer(
    recoveryResponse,
    await callWithRetries(deps, command.enclave, rootSecretPaths.recovery, { nonce: toHex(nonce) }),
  )
  const { evidence, settings } = answer
  const configHash = hashEnclaveConfig(evidence.config)
  if (evidence.config.rootSecret !== toRootSecretName(policy.policyHash)) {
    throw new CustodianError('the enclave has a different root secret policy')
  }
  if ((evidence.config.quoteSource === 'mock') !== command.isMock) {
    throw new CustodianError(
      `wrong quote source: expected ${command.isMock ? 'simulated' : 'real'} hardware, got ${evidence.config.quoteSource}`,
    )
  }
  if (answer.backupHash !== nameBackup(backup)) throw new CustodianError('the enclave has a different backup')
  const publicKey = fromHex(answer.publicKey)
  const backupHash = hashBackup(backup)
  try {
    await verifyPeerEvidence(
      { verifier, policy: toQuotePolicy(policy.policy), at: new Date(deps.clock.now()) },
      { evidence, reportData: computeRecoveryReportData({ nonce, publicKey, backupHash, configHash }) },
    )
  } catch (cause) {
    if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
    const details = cause.details === undefined ? cause.code : `${cause.code}, ${cause.details}`
    throw new CustodianError(`invalid quote from the enclave (${details})`, { cause })
  }
  const maker = toMaker(verified)
  const waiting = { config: evidence.config, settings, policy: policy.policy }
  deps.print('This enclave would get the root secret (the tool computed the configuration hash):')
  printLines(deps, describeEnclave(waiting))
  const difference = describeDifference(maker, waiting)
  deps.print(
    difference.length === 0 ? "No differences from the backup's enclave." : "Differences from the backup's enclave:",
  )
  printLines(deps, difference)
  if (command.configHash !== undefined && toHex(configHash) !== command.configHash) {
    throw new CustodianError(
      `wrong configuration hash: expected ${command.configHash}, the enclave has ${toHex(configHash)}`,
    )
  }
  const losses = findLosses(maker, waiting).filter((loss) => !command.allowedLosses.includes(loss))
  if (losses.length > 0) {
    const flags = losses.map((loss) => `--allow-loss ${toPrintable(loss)}`).join(' ')
    throw new CustodianError(`the new configuration drops or weakens protections. To accept this, add ${flags}`)
  }
  return publicKey
}

function openShare(backup: Backup, pair: X25519Pair): { index: number; share: Uint8Array } {
  const index = backup.shares.findIndex(({ custodian }) => custodian === toHex(pair.publicKey))
  const entry = backup.shares[index]
  if (entry === undefined) throw new CustodianError('this key has no share in the backup')
  const aad = toShareContext({
    policyHash: fromHex(backup.policyHash),
    configHash: fromHex(backup.configHash),
    commitment: fromHex(backup.commitment),
    threshold: backup.threshold,
    index,
  })
  try {
    const sealed = { enc: fromHex(entry.enc), ciphertext: fromHex(entry.ciphertext) }
    const share = open(sealed, { recipient: pair, info: toTagBytes(tags.rootShare), aad })
    if (equalBytes(hashShare({ index, share }), fromHex(entry.hash))) return { index, share }
  } catch {
    // Reported below without its cause.
  }
  throw new CustodianError('this key cannot decrypt its share')
}

/** Simulated roots replace the vendors' roots, so real evidence fails in a drill. */
async function chooseVerifier(isMock: boolean): Promise<Verifier> {
  if (!isMock) return createVerifier({ roots: vendorRoots })
  const { createSimulator } = await import('@countersign/attestation/simulator')
  return createVerifier({ roots: [createSimulator({ at: new Date() }).intelRoot] })
}

async function readPolicy(path: string, options: { requirePlatforms: boolean }): Promise<ParsedRootSecretPolicy> {
  const parsed = parseRootSecretPolicy(await readText(path), options)
  if ('faults' in parsed) throw new CustodianError(`invalid policy ${path}: ${parsed.faults.join('; ')}`)
  return parsed
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    throw new CustodianError(`could not read ${path}`)
  }
}
