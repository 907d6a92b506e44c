import { readFile } from 'node:fs/promises'
import { toHex } from '@countersign/protocol'
import { connectPostgres, type StartBackendParameters, startBackend as startPlainBackend } from '@countersign/testing'
import type { Environment } from '@countersign/testing/launcher'
import { type CheckAnswer, startInScope } from '@countersign/testing/stack'
import { createKeyring, toOwner } from '../../enclave/src/keys/deriveKey.ts'
import { type AnswerCheck, createAnswerCheck } from './answerCheck.ts'
import { startTamperingWire } from './tamperingWire.ts'

export type Query = (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>

export type Backend = Awaited<ReturnType<typeof startBackend>>

/**
 * The backend of `@countersign/testing` with additions for the coordinator's tests: a check of all responses, a wire that tampers with the
 * enclave's responses, and access to database and root secret. `env` is the coordinator's.
 */
export function startBackend(
  parameters: Pick<StartBackendParameters, 'env' | 'enclaveEnv' | 'log' | 'databaseUrl' | 'isDirect' | 'pageUrl'> = {},
) {
  return startInScope(async ({ add }) => {
    const plain = add(await startPlainBackend(parameters), ({ stop }) => stop())
    const wire = add(await startTamperingWire(plain.enclaveUrl), ({ stop }) => stop())
    const { url, databaseUrl, oidc } = plain
    let answers: Promise<AnswerCheck> | undefined
    const getAnswers = () => {
      answers ??= fetch(`${url}/openapi.json`).then(async (response) => createAnswerCheck(await response.text()))
      return answers
    }

    /** Throws if the coordinator's own document doesn't describe the response. */
    const checkAnswer: CheckAnswer = async (target, method, response) => {
      if (target.origin !== url) return
      const { check } = await getAnswers()
      await check({ method, path: target.pathname }, response)
    }

    return {
      ...plain,
      wire,
      checkAnswer,
      /** The checked responses of this backend: `get /proof/{slug} 404`. */
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
      /** Lends a database connection. */
      async withDatabase<Result>(run: (query: Query) => Promise<Result>): Promise<Result> {
        const client = await connectPostgres(databaseUrl)
        return run(client.query).finally(client.end)
      },
      /** The root secret and the private keys of all wallets, in hex. They must never appear anywhere. */
      async readKeys(): Promise<string[]> {
        const rootSecret = (await readFile(plain.rootSecretFile, 'utf8')).trim()
        const keyring = createKeyring(Buffer.from(rootSecret, 'hex'), new Uint8Array(32))
        const owners = oidc.accounts.map(({ sub }) => toOwner({ issuer: oidc.issuer, subject: sub }))
        return [rootSecret, ...owners.map((owner) => keyring.withPrivateKey(owner, (key) => toHex(key)))]
      },
    }
  })
}
