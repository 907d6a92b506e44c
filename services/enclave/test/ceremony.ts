import { readFile, writeFile } from 'node:fs/promises'
import { join as joinPath } from 'node:path'
import { toHex } from '@countersign/protocol'
import {
  type Backup,
  type ParsedRootSecretPolicy,
  PeerError,
  parseBackup,
  toBackupFile,
} from '@countersign/root-secret'
import { exportX25519, type X25519Pair } from '@countersign/root-secret/sealing'
import { type CustodianDeps, runCommand } from '../../../apps/custodian/src/runCommand.ts'
import { createBackup, writeBackup } from '../src/rootSecret/createBackup.ts'
import { type ObtainDeps, obtainRootSecret } from '../src/rootSecret/obtainRootSecret.ts'
import type { App } from '../src/serveCalls.ts'
import { at, createTestPeer, custodians, type TestPeer as Peer } from './peers.ts'

/** The ceremonies of the root secret, with a folder for its backup and the custodians' files. */

export const toBackupPath = (folder: string) => joinPath(folder, 'backup.json')

const noPeer: ObtainDeps['callPeer'] = async () => {
  throw new PeerError('peer_unreachable', 'no response from the enclave')
}

export async function genesis(folder: string, peer: Peer = createTestPeer(), path = toBackupPath(folder)) {
  const from = { kind: 'genesis', backupPath: path } as const
  await obtainRootSecret(
    { ...peer, callPeer: noPeer },
    { kind: 'attested', policy: peer.parsed, from, collateralUrl: '' },
  )
  return { peer, backup: parseBackup(await readFile(path, 'utf8')) }
}

/** A backup of an enclave that skips the check of its own policy. */
export async function forge(folder: string, peer: Peer) {
  await peer.holder.generate()
  await writeBackup(toBackupPath(folder), await createBackup(peer), peer.random)
}

export async function recover(folder: string, peer: Peer = createTestPeer(), newBackupPath?: string) {
  const backupPath = toBackupPath(folder)
  const from = { kind: 'recover', backupPath, ...(newBackupPath === undefined ? {} : { newBackupPath }) } as const
  const source = { kind: 'attested', policy: peer.parsed, from, collateralUrl: '' } as const
  const awaited = await obtainRootSecret({ ...peer, callPeer: noPeer }, source)
  if (awaited === undefined) throw new Error('there is nothing to wait for')
  return awaited
}

/** A call as the server passes it on. */
export async function call(app: App, path: string, request: unknown, method = 'POST') {
  const body = new TextEncoder().encode(JSON.stringify(request))
  const { status, body: answer } = await app.handle({ method, path, headers: {}, body })
  return { status, answer: answer as { error?: { code: string } } & Record<string, unknown> }
}

export type SubmitOptions = {
  pair?: X25519Pair | undefined
  peer: Peer
  policy?: ParsedRootSecretPolicy
  madeUnder?: ParsedRootSecretPolicy
  configHash?: string
  backup?: Backup
  allowedLosses?: string[]
  isMock?: boolean
  change?(path: string, body: unknown): unknown
}

/** A custodian's tool, connected to this app. */
export async function submit(folder: string, app: App, options: SubmitOptions) {
  const { pair = custodians[0] as X25519Pair, peer, change = (_, body) => body } = options
  const { policy = peer.parsed, madeUnder = policy } = options
  const files = { key: 'submit.key', policy: 'policy.json', backupPolicy: 'made-under.json', backup: 'checked.json' }
  const path = (name: keyof typeof files) => joinPath(folder, files[name])
  await writeFile(path('key'), Buffer.from(exportX25519(pair.privateKey)).toString('hex'), { mode: 0o600 })
  await writeFile(path('policy'), JSON.stringify(policy.policy))
  await writeFile(path('backupPolicy'), JSON.stringify(madeUnder.policy))
  await writeFile(
    path('backup'),
    options.backup ? toBackupFile(options.backup) : await readFile(toBackupPath(folder), 'utf8'),
  )
  const printed: string[] = []
  const deps: CustodianDeps = {
    clock: { now: () => at.getTime() },
    random: peer.random,
    wait: peer.wait,
    print: (line) => printed.push(line),
    async callPeer(_, where, body) {
      const { status, answer } = await call(app, where, change(where, body))
      if (status === 200) return change(`${where} answer`, answer)
      throw new PeerError('peer_refused', 'the enclave refused', { details: answer.error?.code, status })
    },
  }
  // The tool would load the simulated roots of the public seed, which is also the simulator's seed here.
  await runCommand(deps, {
    kind: 'submit',
    backup: path('backup'),
    policy: path('policy'),
    backupPolicy: path('backupPolicy'),
    key: path('key'),
    enclave: 'http://127.0.0.1:1',
    configHash: options.configHash ?? toHex(peer.configHash),
    allowedLosses: options.allowedLosses ?? [],
    isMock: options.isMock ?? true,
  })
  return printed
}
