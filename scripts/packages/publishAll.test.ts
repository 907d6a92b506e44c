import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createPublishDeps, type PublishDeps, publishAll } from './publishAll.ts'
import type { Packed } from './readPublished.ts'

const TOKEN = 'npm_secret'
const packed: Packed[] = ['protocol', 'sdk'].map((name) => ({
  folder: `packages/${name}`,
  manifest: { name: `@countersign/${name}`, version: '0.1.0' },
  tarball: `/out/${name}.tgz`,
}))

/** A registry that has some packages already and refuses to publish others. */
function publish(change: Partial<PublishDeps> = {}, { has = [''], refuses = '' } = {}) {
  const calls: { args: readonly string[]; env: NodeJS.ProcessEnv }[] = []
  const said: string[] = []
  const deps: PublishDeps = {
    runNpm(args, env) {
      calls.push({ args, env })
      return args[0] === 'view' ? has.includes(args[1] ?? '') : args[1] !== refuses
    },
    readNpmConfig: (name) => (name === 'registry' ? 'https://registry.example/npm' : undefined),
    env: { NPM_TOKEN: TOKEN, HOME: '/home' },
    isClean: () => true,
    waiting: [],
    say: (text) => said.push(text),
    ...change,
  }
  let error: unknown
  try {
    publishAll(deps, packed)
  } catch (caught) {
    error = caught
  }
  const published = calls.filter(({ args }) => args[0] === 'publish').map(({ args }) => args[1])
  return { calls, said, published, error }
}

test('publishes each package after its dependencies', () => {
  const { published, error } = publish()
  expect([published, error]).toEqual([['/out/protocol.tgz', '/out/sdk.tgz'], undefined])
})

test.each<[string, Partial<PublishDeps>, RegExp]>([
  ['no token', { env: {} }, /NPM_TOKEN/],
  ['an empty token', { env: { NPM_TOKEN: '' } }, /NPM_TOKEN/],
  ['changes that are not committed', { isClean: () => false }, /committed/],
  ['changesets without a version', { waiting: ['.changeset/a.md'] }, /--bump/],
])('%s: npm is not even asked', (_, change, reason) => {
  const { calls, error } = publish(change)
  expect(calls).toEqual([])
  expect(String(error)).toMatch(reason)
})

test('needs and sends no token for a trusted publisher', () => {
  const env = { HOME: '/home', ACTIONS_ID_TOKEN_REQUEST_URL: 'https://identity.example' }
  const { calls, published, error } = publish({ env })
  expect([published, error]).toEqual([['/out/protocol.tgz', '/out/sdk.tgz'], undefined])
  for (const call of calls) expect(call.env).toEqual(env)
})

test('skips versions that the registry has', () => {
  expect(publish({}, { has: ['@countersign/protocol@0.1.0'] }).published).toEqual(['/out/sdk.tgz'])
})

test('stops after a rejected package', () => {
  const { published, error } = publish({}, { refuses: '/out/protocol.tgz' })
  expect(published).toEqual(['/out/protocol.tgz'])
  expect(String(error)).toMatch(/protocol@0\.1\.0 was not published/)
})

test.each<[string, PublishDeps['readNpmConfig'], string]>([
  ['registry', (name) => (name === 'registry' ? 'https://registry.example/npm' : undefined), '//registry.example/npm/'],
  ['scope', (name) => (name === '@countersign:registry' ? 'https://ours.example:8443/' : 'x'), '//ours.example:8443/'],
])('publishes to npm’s configured %s, and gives the token only to the publish command', (_, readNpmConfig, key) => {
  const { calls, said } = publish({ readNpmConfig })
  for (const { args, env } of calls) {
    const holders = Object.entries(env).filter(([, value]) => value?.includes(TOKEN))
    const names = args[0] === 'publish' ? [`npm_config_${key}:_authToken`] : []
    expect(holders.map(([name]) => name)).toEqual(names)
    expect(args).not.toContain('--registry')
  }
  expect(JSON.stringify([said, calls.map(({ args }) => args)])).not.toContain(TOKEN)
})

test("sends no token when it reads npm's configuration", () => {
  const root = mkdtempSync(join(tmpdir(), 'countersign-publish-'))
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(root, { recursive: true })
  })
  mkdirSync(join(root, '.changeset'))
  const npm = join(root, 'npm')
  writeFileSync(npm, '#!/bin/sh\necho "$3 [$NPM_TOKEN]"\n')
  chmodSync(npm, 0o755)
  vi.stubEnv('PATH', root)
  vi.stubEnv('NPM_TOKEN', TOKEN)
  const deps = createPublishDeps(root)
  expect(deps.readNpmConfig('registry')).toBe('registry []')
  expect(deps.env.NPM_TOKEN).toBe(TOKEN)
})
