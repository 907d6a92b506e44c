import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { ConfigError, settingNames } from '@countersign/service'
import { describe, expect, test } from 'vitest'
import { inspectConfig } from '../services/coordinator/src/config.ts'
import { readConfig } from '../services/enclave/src/config.ts'

const LABEL = '[A-Z]\\d+'
const SHOWN = RegExp(`\\[${LABEL}\\]|\\(not tested|\\]\\(`)

/** A text of code, quoted in any way, which is all of a string. */
function holdsText(code: string, text: string, before = ''): boolean {
  const escaped = text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`${before}(['"\`])${escaped}\\1`).test(code)
}

/** Whether a file has a test of that name: `name`, or `name › row` for a row of its table. In Solidity it is a function. */
function hasTest(file: string, code: string, name: string): boolean {
  if (file.endsWith('.sol')) return code.includes(`function ${name}(`)
  const parts = name.split(' › ')
  if (parts.length > 1) return parts.every((part) => holdsText(code, part))
  // The first argument of `test(…)`, `describe(…)`, or of what `test.each(…)` answers.
  return holdsText(code, name, '(?:\\b(?:test|describe)|\\))\\(\\s*')
}

/** Titles by label, by test file. */
type Tests = Record<string, Record<string, string>>

/** Finds claims without a test, labels without a test or a use, and tests that their file does not have. */
function checkModel(model: string, tests: Tests, read: (path: string) => string | undefined): string[] {
  const used = new Set([...model.matchAll(RegExp(`\\[(${LABEL})\\]`, 'g'))].map(([, label = '']) => label))
  const listed = Object.values(tests).flatMap((titles) => Object.keys(titles))
  const faults = [
    ...[...used].filter((label) => !listed.includes(label)).map((label) => `${label} is not in the list of tests`),
    ...listed.filter((label) => !used.has(label)).map((label) => `${label} is not used`),
    ...listed.filter((label, index) => listed.indexOf(label) < index).map((label) => `${label} is listed twice`),
  ]
  for (const [path, titles] of Object.entries(tests)) {
    const code = read(path)
    if (code === undefined) faults.push(`no such file: ${path}`)
    for (const [label, title] of Object.entries(titles)) {
      if (code !== undefined && !hasTest(path, code, title)) faults.push(`${label}: ${path} has no test “${title}”`)
    }
  }
  const parties = model
    .split(/^## /m)
    .filter((section) => /^(Parties|Vaults)\n/.test(section))
    .flatMap((section) => section.split(/^### /m).slice(1))
  for (const section of parties) {
    const party = section.slice(0, section.indexOf('\n'))
    for (const list of ['Can', 'Cannot']) {
      if (!RegExp(`^${list}\\b[^\n]*:\n\n- `, 'm').test(section)) faults.push(`${party}: no list of what it ${list}`)
    }
    const items = section.match(/^- .*(?:\n {2}.*)*/gm) ?? []
    // Each sentence names its test, states that there is none, or links to a page.
    const bare = items.flatMap((item) => item.slice(2).split(/\.\s+/)).filter((text) => !SHOWN.test(text))
    faults.push(...bare.map((text) => `${party}: no test for “${text}”`))
  }
  return parties.length < 20 ? [...faults, `expected at least 20 parties, found ${parties.length}`] : faults
}

const root = join(import.meta.dirname, '..')

const page = readFileSync(join(root, 'docs/security-model.md'), 'utf8')

test('every claim about a party names a test, and every named test exists', () => {
  const read = (path: string) => (existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : undefined)
  const tests = JSON.parse(readFileSync(join(root, 'docs/security-model.tests.json'), 'utf8'))
  expect(checkModel(page, tests, read)).toEqual([])
})

describe('settings that no hash covers', () => {
  const key = 'ab'.repeat(32)
  // The base point, the simulator's key, and two of RFC 8032 §7.1.
  const witnesses = [
    `58${'66'.repeat(31)}`,
    '18edb664c40ab63537e6172fec37395f602afbba7a6c1b983ea80ba0b7f35f11',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
  ]
  const deps = { version: '0', readFile: (path: string) => path }
  const env: Record<string, string | undefined> = {
    ...parseEnv(readFileSync(join(root, '.env.example'), 'utf8')),
    LOG_ORIGINS: 'a',
    LOG_SERVICE_ORIGINS: 'a,b',
    LOG_WITNESSES: witnesses.slice(1).join(),
  }
  /** The coordinator's hash and the enclave's configuration. If a changed setting is invalid for the enclave, its unchanged configuration. */
  function toCovered(changes: Record<string, string>): unknown[] {
    const { LOG_WITNESSES: _, ...coordinatorEnv } = { ...env, ...changes }
    const { configHash } = inspectConfig(coordinatorEnv, deps).config
    try {
      return [configHash, readConfig({ ...env, ...changes }, deps).enclave]
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return [configHash, readConfig(env, deps).enclave]
    }
  }
  /** For each covered setting, a change that changes a hash. */
  const covered: Record<string, Record<string, string>> = {
    OIDC_ISSUERS: { OIDC_ISSUERS: 'https://other.example=countersign' },
    'OIDC_<ID>_ISSUER': { OIDC_GOOGLE_ISSUER: 'http://localhost:9999' },
    'OIDC_<ID>_CLIENT_ID': { OIDC_GOOGLE_CLIENT_ID: 'other' },
    CALLER_POLICY_FILE: {
      CALLER_POLICY_FILE: JSON.stringify({ measurements: ['ab'.repeat(48)], configHashes: [key] }),
    },
    ENCLAVE_POLICY_FILE: {
      ENCLAVE_POLICY_FILE: JSON.stringify({ measurements: [{ mrTd: 'ab'.repeat(48) }], configHashes: [key] }),
    },
    ROOT_SECRET: { ROOT_SECRET: 'dstack' },
    QUOTE_SOURCE: { QUOTE_SOURCE: 'configfs', MOCK_ATTESTATION: 'false' },
    ENTROPY_PUBLIC_KEY: { ENTROPY_PUBLIC_KEY: `58${'66'.repeat(31)}` },
    ENTROPY_DRAND: { ENTROPY_DRAND: 'quicknet' },
    ENTROPY_ALLOW_UNSIGNED: { ENTROPY_ALLOW_UNSIGNED: 'true' },
    ENTROPY_SOURCE: { ENTROPY_SOURCE: 'drand', RECEIPTS: '2' },
    ENTROPY_MAX_AGE_S: { ENTROPY_MAX_AGE_S: '59' },
    SESSIONS: { SESSIONS: 'bound' },
    IMPLEMENTATIONS: { IMPLEMENTATIONS: `0x${'11'.repeat(20)}` },
    LOG_SERVICE_ORIGINS: { LOG_SERVICE_ORIGINS: 'a,b,c' },
    LOG_WITNESSES: { LOG_WITNESSES: witnesses.join(), LOG_QUORUM: '3' },
    LOG_QUORUM: { LOG_QUORUM: '3' },
  }
  /** Tested with the enclave's configuration: it needs `ROOT_SECRET=attested`, which changes the hash as well. */
  const coveredElsewhere = ['ROOT_SECRET_POLICY_FILE']
  const [, table = ''] = page.split(/^## Settings that no hash covers$/m)
  const rows =
    table
      .split('\n## ')[0]
      ?.split('\n')
      .filter((line) => line.startsWith('| `')) ?? []
  const listed = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )

  test('every setting is covered by a hash or listed, and none is both', () => {
    const template = [
      ...readFileSync(join(root, '.env.example'), 'utf8').matchAll(/^(?:# )?(OIDC_[A-Z]+)(_[A-Z_]+)=/gm),
    ]
    const providers = template
      .map(([, , member]) => `OIDC_<ID>${member}`)
      .filter((name) => name !== 'OIDC_<ID>_ISSUERS')
    const all = new Set([...settingNames, ...providers, 'OIDC_<ID>_PRIVATE_KEY', 'NODE_ENV'])
    const found = [...listed, ...Object.keys(covered), ...coveredElsewhere]
    expect(found.toSorted()).toEqual([...all].toSorted())
  })

  test.each(Object.entries(covered))('another %s is another hash', (_, changes) => {
    expect(toCovered(changes)).not.toEqual(toCovered({}))
  })

  test.each(listed)('another %s is the same hash', (name) => {
    const set = name.replace('<ID>', 'GOOGLE')
    for (const value of ['7', 'b', 'true']) expect(toCovered({ [set]: value })).toEqual(toCovered({}))
  })
})
