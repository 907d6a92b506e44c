import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toHex } from '@countersign/protocol'
import { type StartBackendParameters, startBackend as startPlainBackend } from '@countersign/testing'
import type { Environment } from '@countersign/testing/launcher'
import { type CheckAnswer, startInScope } from '@countersign/testing/stack'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { createKeyring, toOwner } from '../../enclave/src/keys/deriveKey.ts'
import { type AnswerCheck, createAnswerCheck } from './answerCheck.ts'
import { startTamperingWire } from './tamperingWire.ts'

export type Query = (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>

export type Backend = Awaited<ReturnType<typeof startBackend>>

/**
 * The backend of `@countersign/testing`, with what only the coordinator's own tests need: answers checked against the coordinator's
 * description, a wire that changes the enclave's answers, and a look into database and root secret. `env` is the coordinator's.
 */
export function startBackend(parameters: Pick<StartBackendParameters, 'kind' | 'env' | 'enclaveEnv' | 'log'>) {
  return startInScope(async ({ add }) => {
    const plain = add(await startPlainBackend(parameters), ({ stop }) => stop())
    const wire = add(await startTamperingWire(plain.enclaveUrl), ({ stop }) => stop())
    const { url, databaseUrl, dataDir, oidc } = plain
    let answers: Promise<AnswerCheck> | undefined
    const getAnswers = () => {
      answers ??= fetch(`${url}/openapi.json`).then(async (response) => createAnswerCheck(await response.text()))
      return answers
    }

    /** Throws unless the coordinator's own document describes the answer. */
    const checkAnswer: CheckAnswer = async (target, method, response) => {
      if (target.origin !== url) return
      const { check } = await getAnswers()
      await check({ method, path: target.pathname }, response)
    }

    return {
      ...plain,
      wire,
      checkAnswer,
      /** What the answers of this backend were checked as: `get /proof/{slug} 404`. */
      seenAnswers: async () => (await getAnswers()).seen,
      /** A request without a browser. */
      async call(path: string, init: { method?: string; headers?: Record<string, string>; body?: string } = {}) {
        const target = new URL(path, url)
        const response = await fetch(target, { redirect: 'manual', ...init })
        await checkAnswer(target, init.method ?? 'GET', response)
        return response
      },
      async startSecond(changes?: Environment) {
        return { ...(await plain.startSecond(changes)), checkAnswer }
      },
      /** Lends the database. PGlite is of one process, so there the coordinator is stopped, and started again afterwards. */
      async withDatabase<Result>(run: (query: Query) => Promise<Result>): Promise<Result> {
        if (databaseUrl !== undefined) return withPostgres(databaseUrl, run)
        await plain.stopCoordinator('SIGTERM')
        const result = await withPglite(join(dataDir, 'database'), run)
        await plain.startCoordinator()
        return result
      },
      /** The files of the embedded database. */
      readDataFiles: () => readFiles(dataDir),
      /** The root secret, and the private keys of all wallets, in hex: what must never be seen anywhere. */
      async readKeys(): Promise<string[]> {
        const rootSecret = (await readFile(plain.rootSecretFile, 'utf8')).trim()
        const keyring = createKeyring(Buffer.from(rootSecret, 'hex'), new Uint8Array(32))
        const owners = oidc.accounts.map(({ sub }) => toOwner({ issuer: oidc.issuer, subject: sub }))
        return [rootSecret, ...owners.map((owner) => keyring.withPrivateKey(owner, (key) => toHex(key)))]
      },
    }
  })
}

async function withPostgres<Result>(connectionString: string, run: (query: Query) => Promise<Result>) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return await run(async (text, values = []) => (await client.query(text, values)).rows)
  } finally {
    await client.end()
  }
}

async function withPglite<Result>(folder: string, run: (query: Query) => Promise<Result>) {
  const pglite = await PGlite.create(folder)
  try {
    return await run(async (text, values = []) => (await pglite.query<Record<string, unknown>>(text, values)).rows)
  } finally {
    await pglite.close()
  }
}

async function readFiles(folder: string): Promise<Buffer[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name))))
}
