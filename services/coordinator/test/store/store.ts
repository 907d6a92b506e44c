import { hash, randomBytes, randomUUID } from 'node:crypto'
import {
  createEnclaveSettings,
  type Hex,
  hashEntropy,
  hashSubject,
  hashWitness,
  type Signed,
  type Statement,
  tags,
  toHex,
} from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { createTestDatabase } from '@countersign/testing'
import { sql } from 'kysely'
import type { Release, SigningBatch } from '../../src/store/batches.ts'
import { type Jobs, openJobs } from '../../src/store/jobs.ts'
import { createLogStore, type LogStore } from '../../src/store/logs.ts'
import { type Database, type OpenDatabaseOptions, openDatabase } from '../../src/store/openDatabase.ts'
import { createStore, openStores, type Store } from '../../src/store/openStore.ts'
import type { Session } from '../../src/store/sessions.ts'
import type { Signing } from '../../src/store/signings.ts'
import type { User } from '../../src/store/users.ts'
import type { Wallet } from '../../src/store/wallets.ts'

export const NOW = Date.UTC(2025, 0, 2, 3, 4, 5, 678)

export type TestStore = {
  store: Store
  logStore: LogStore
  database: Database
  jobs: Jobs
  options: OpenDatabaseOptions
  /** Another store on the same database, optionally with other jobs. */
  withJobs(jobs: Jobs): Store
  /** The rows of a statement that the store lacks. */
  query(text: string): Promise<unknown[]>
  stop(): Promise<void>
}

/** The URL of a database with the coordinator's schema. */
export function createMigratedDatabase() {
  return createTestDatabase({
    name: 'coordinator',
    fill: async (databaseUrl) => (await openStore({ databaseUrl })).close(),
  })
}

/** A store on a new database. */
export async function startTestStore(): Promise<TestStore> {
  const { url, drop } = await createMigratedDatabase()
  const options: OpenDatabaseOptions = { databaseUrl: url, poolSize: 20 }
  const database = await openDatabase(options)
  const jobs = await openJobs(database, { pipelineDelayMs: 1000 })
  const store = createStore({ database, jobs })
  return {
    store,
    logStore: createLogStore(database),
    database,
    jobs,
    options,
    withJobs: (others) => createStore({ database, jobs: others }),
    query: async (text) => (await sql.raw(text).execute(database.db)).rows,
    async stop() {
      await store.close()
      await drop()
    },
  }
}

/** The part of `openStores` that most tests need. */
export async function openStore(options: Parameters<typeof openStores>[0]): Promise<Store> {
  return (await openStores(options)).store
}

export function createTestUser(changes: Partial<User> = {}): Omit<User, 'id'> & { now: number } {
  return {
    issuer: 'https://issuer.example',
    subject: randomUUID(),
    email: 'someone@example.org',
    name: 'Some One',
    kmsKeyId: randomHex(16),
    now: NOW,
    ...changes,
  }
}

export function createTestWitness(): Witness {
  return {
    source: 'simulated-satellite',
    valueHex: randomHex(32),
    signatureHex: randomHex(64),
    publicKey: randomHex(32),
    timestamp: new Date(NOW - 1000).toISOString(),
    sequence: 7,
  }
}

export function createTestSession(user: User, changes: Partial<Session> = {}): Session {
  return {
    sidHash: randomHex(32),
    userId: user.id,
    grant: 'a grant',
    clientKey: undefined,
    owner: { salt: randomHex(32), identity: { issuer: user.issuer, subject: user.subject, email: null } },
    keyId: user.kmsKeyId,
    address: `0x${randomHex(20)}`,
    createdAt: NOW,
    lastSeenAt: NOW,
    expiresAt: NOW + 43_200_000,
    ...changes,
  }
}

/** A user with a wallet. */
export async function createTestWallet(store: Store): Promise<Wallet> {
  const user = await store.upsertUser(createTestUser())
  return store.createWallet({
    userId: user.id,
    address: `0x${randomHex(20)}`,
    kmsKeyId: user.kmsKeyId,
    witness: createTestWitness(),
    now: NOW,
  })
}

export function createTestBatch(changes: Partial<SigningBatch> = {}): SigningBatch {
  return {
    bootId: randomHex(16),
    sequence: 3,
    previous: randomHex(32),
    leaves: Array.from({ length: 300 }, () => randomHex(32)),
    quote: randomBytes(5_000),
    eventLog: undefined,
    mode: 'mock',
    tcbStatus: 'UpToDate',
    measurement: {
      mrTd: 'aa'.repeat(48),
      rtmr0: 'bb'.repeat(48),
      rtmr1: 'cc'.repeat(48),
      rtmr2: 'dd'.repeat(48),
      rtmr3: 'ee'.repeat(48),
    },
    config: {
      issuers: [{ issuer: 'https://issuer.example', audience: 'wallet', jwksOrigin: 'https://issuer.example' }],
      caSet: 'system',
      rootSecret: 'file',
      quoteSource: 'mock',
      callerPolicy: 'none',
      version: '0.1.0',
    },
    settings: createEnclaveSettings([{ kind: 'unsigned' }]),
    collateral: Buffer.from('{"collateral":true}'),
    selfAttestation: {
      reportHex: '01'.repeat(1184),
      certificates: { ek: '02'.repeat(1_000), ask: '03'.repeat(1_000), ark: '04'.repeat(1_000) },
      measurement: '05'.repeat(48),
      configHash: '06'.repeat(32),
      fetchedAt: new Date(NOW - 60_000).toISOString(),
    },
    coordinatorMode: 'mock',
    ...changes,
  }
}

/** A signing as the sign path passes it on. The signature is invalid, because the store does not verify it. */
export function createTestSigning(wallet: Wallet, digest: Hex = `0x${randomHex(32)}`): Signing & { version: 1 } {
  const witness = createTestWitness()
  const statement: Statement = {
    type: tags.signing,
    keyId: wallet.kmsKeyId,
    address: wallet.address,
    publicKey: `04${randomHex(64)}`,
    digest,
    signature: `0x${hash('sha512', digest)}1b`,
    txHash: `0x${hash('sha256', digest)}`,
    chainId: 84532,
    entropyHash: toHex(hashEntropy(Buffer.from(witness.valueHex, 'hex'))),
    coordinatorKey: randomHex(32),
    signedAt: new Date(NOW).toISOString(),
  }
  return {
    version: 1,
    slug: randomBytes(16).toString('base64url'),
    walletId: wallet.id,
    txMetadata: {
      chainId: 84532,
      nonce: 0,
      to: `0x${'Ab'.repeat(20)}`,
      value: '1000000000000000000',
      data: '0x',
      gas: '21000',
      maxFeePerGas: '2000000000',
      maxPriorityFeePerGas: '1000000000',
    },
    statement,
    leafIndex: 0,
    witness,
    release: randomHex(64),
  }
}

export function randomHex(bytes: number): string {
  return randomBytes(bytes).toString('hex')
}

/** This coordinator's release as the sign path passes it on. Its signatures are invalid. */
export function createTestRelease(coordinatorKey: string): Release {
  return {
    coordinatorKey,
    coordinator: Buffer.from('{"coordinator":true}'),
    ed25519: randomBytes(64),
    mlDsa65: randomBytes(3_309),
  }
}

export function createTestAuthorization(): Signed {
  const address: Hex = `0x${'22'.repeat(20)}`
  const digest: Hex = `0x${randomHex(32)}`
  return {
    kind: 'authorization',
    subject: { chainId: 5, address, nonce: 1, digest, signature: `0x${'11'.repeat(64)}1b` },
  }
}

/** A signing of version 2. Off-chain ones have a random commitment. */
export function createTestSigningV2(
  wallet: Wallet,
  signed: Signed = { kind: 'off-chain', subject: { commitment: randomHex(32) } },
): Signing & { version: 2 } {
  const { slug, walletId, leafIndex, witness, statement } = createTestSigning(wallet)
  return {
    version: 2,
    slug,
    walletId,
    leafIndex,
    witness,
    signed,
    statement: {
      type: tags.signingV2,
      kind: signed.kind,
      keyId: wallet.kmsKeyId,
      address: wallet.address,
      publicKey: statement.publicKey,
      subject: toHex(hashSubject(signed.subject)),
      witness: toHex(hashWitness(witness)),
      policy: null,
      approvals: null,
      coordinatorKey: statement.coordinatorKey,
      rule: null,
      session: 'cookie',
      signedAt: statement.signedAt,
    },
  }
}
