import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { readConfig as readCoordinatorConfig } from '../services/coordinator/src/config.ts'
import { readConfig as readEnclaveConfig } from '../services/enclave/src/config.ts'

const template = await readFile(join(import.meta.dirname, '../.env.example'), 'utf8')
const deps = { readFile: () => '', version: '0.0.0' }

/** The keys that a service reads from its environment, even if it fails later. */
function keysRead(readConfig: (env: Record<string, string | undefined>, parts: typeof deps) => unknown) {
  const keys = new Set<string>()
  for (const source of ['satellite', 'orbitport']) {
    const values = { ...parseEnv(template), ENTROPY_SOURCE: source }
    const get = (target: Record<string, string | undefined>, key: string) => {
      keys.add(key)
      return target[key]
    }
    try {
      readConfig(new Proxy(values, { get }), deps)
    } catch (error) {
      expect(error).toHaveProperty('faults')
    }
  }
  // Node's own settings are not documented here.
  return [...keys].filter((key) => !key.startsWith('NODE_'))
}

describe('.env.example', () => {
  test('is a valid configuration for both services', () => {
    const env = parseEnv(template)
    expect(readEnclaveConfig(env, deps).issuers).toMatchObject([{ audience: 'countersign' }])
    expect(readCoordinatorConfig(env, deps)).toMatchObject({ isMock: true, providers: [{ id: 'google' }] })
  })

  test.each([
    ['enclave', readEnclaveConfig, 'ROOT_SECRET'],
    ['coordinator', readCoordinatorConfig, 'ENTROPY_AUTH_URL'],
  ] as const)('names every key that %s reads', (_, readConfig, one) => {
    const keys = keysRead(readConfig)
    expect(keys).toContain(one)
    const named = new Set([...template.matchAll(/^(?:# )?([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name))
    expect(keys.filter((key) => !named.has(key))).toEqual([])
  })
})

test('.env, the copy of the template, is not committed', async () => {
  const ignored = await readFile(join(import.meta.dirname, '../.gitignore'), 'utf8')
  expect(ignored.split('\n')).toContain('.env')
})
