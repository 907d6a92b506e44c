import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { onSync } from '../../../packages/service/test/onSync.ts'
import { createKeyFile, readKeyFile } from './keyFile.ts'
import { parseCommand } from './parseCommand.ts'

const parse = (text: string) => parseCommand(text.split(' ').filter((word) => word !== ''))
const hash = 'ab'.repeat(32)

describe('commands', () => {
  test('parses each command', () => {
    expect(parse('keygen a.key')).toEqual({ kind: 'keygen', file: 'a.key' })
    expect(parse('check b.json --policy p.json')).toEqual({
      kind: 'check',
      backup: 'b.json',
      policy: 'p.json',
      backupPolicy: 'p.json',
      allowedLosses: [],
      isMock: false,
    })
    expect(parse('check b.json --policy p.json --enclave https://e:8090 --allow-loss log')).toMatchObject({
      enclave: 'https://e:8090',
      allowedLosses: ['log'],
    })
    const submit = `submit b.json --key a.key --enclave https://e:8090 --policy p.json --config-hash ${hash}`
    const read = {
      kind: 'submit',
      backup: 'b.json',
      policy: 'p.json',
      backupPolicy: 'p.json',
      key: 'a.key',
      enclave: 'https://e:8090',
      configHash: hash,
      allowedLosses: [],
      isMock: false,
    }
    expect(parse(submit)).toEqual(read)
    expect(parse(`${submit} --backup-policy old.json --mock`)).toEqual({
      ...read,
      backupPolicy: 'old.json',
      isMock: true,
    })
    const losses = ['log', 'entropy', 'sessions', 'issuer:https://a.example=one']
    expect(parse(`${submit} ${losses.map((loss) => `--allow-loss ${loss}`).join(' ')}`)).toEqual({
      ...read,
      allowedLosses: losses,
    })
  })

  test('rejects an empty key', () => {
    const parameters = ['check', 'b.json', '--policy', 'p.json', '--key', '']
    expect(parseCommand(parameters)).toEqual({ kind: 'fault', fault: 'check has an empty --key' })
  })

  test.each(['', '--help', 'submit --help', 'keygen --help'])('shows the help for "%s"', (text) => {
    expect(parse(text)).toEqual({ kind: 'help' })
  })

  test.each([
    'keygen',
    'keygen a b',
    'keygen a --mock',
    'destroy a',
    'toString a',
    'check b.json',
    'check --policy p.json',
    'check b.json --policy',
    'check b.json --policy p.json --enclave http://e',
    `check b.json --policy p.json --config-hash ${hash}`,
    'check b.json --policy p.json --allow-loss logs',
    'check b.json --policy p.json --allow-loss session',
    'check b.json --policy p.json --allow-loss issuer:https://a.example',
    'check b.json --polcy p.json',
    'submit b.json',
    `submit b.json --key a --enclave http://e:8090 --policy p --config-hash ${hash}`,
    `submit b.json --key a --enclave e:8090 --policy p --config-hash ${hash}`,
    `submit b.json --key a --enclave https://e:8090 --policy p --config-hash ${hash.slice(2)}`,
    `submit b.json --key a --enclave https://e:8090 --policy p --config-hash ${hash.toUpperCase()}`,
    `submit b.json --key a --enclave https://e:8090 --policy p`,
    `submit b.json --key a --policy p --config-hash ${hash}`,
    `submit b.json --enclave https://e:8090 --policy p --config-hash ${hash}`,
  ])('%s: a fault', (text) => {
    expect(parse(text)).toMatchObject({ kind: 'fault' })
  })
})

describe('key files', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'custodian-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  test('creates a file for its owner only and never overwrites one', async () => {
    const path = join(folder, 'a.key')
    const { publicKey } = await createKeyFile(path)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    const text = await readFile(path, 'utf8')
    await expect(createKeyFile(path)).rejects.toThrow('already exists')
    expect(await readFile(path, 'utf8')).toBe(text)
    expect((await readKeyFile(path)).publicKey).toEqual(publicKey)
  })

  test('names the file only after it is on disk, so a crash leaves no partial key', async () => {
    const seen: boolean[] = []
    await onSync(async () => void seen.push((await readdir(folder)).includes('a.key')))
    await createKeyFile(join(folder, 'a.key'))
    expect(seen).toEqual([false, true])
  })

  test.each([
    ['other users', `${'01'.repeat(32)}\n`, 0o640, 'chmod 600'],
    ['cut short', '0011', 0o600, 'invalid custodian key'],
    ['not hex', 'zz'.repeat(32), 0o600, 'invalid custodian key'],
    ['empty', '', 0o600, 'invalid custodian key'],
  ])('rejects a file that is %s, without printing its content', async (_, text, mode, reason) => {
    const path = join(folder, 'a.key')
    await writeFile(path, text)
    await chmod(path, mode)
    const error: Error = await readKeyFile(path).catch((thrown) => thrown)
    expect(error.message).toContain(reason)
    expect(error.message).not.toContain(text.slice(0, 8) || 'nothing to tell')
  })

  test('rejects a missing file', async () => {
    await expect(readKeyFile(join(folder, 'none'))).rejects.toThrow('could not read')
    await expect(createKeyFile(join(folder, 'none/a.key'))).rejects.toThrow('could not write')
  })
})
