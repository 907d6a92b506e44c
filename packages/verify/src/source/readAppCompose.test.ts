import { describe, expect, test } from 'vitest'
import { appCompose, changeCompose } from '../../test/releases.ts'
import { ENCLAVE_VARIABLES, MAX_APP_COMPOSE_BYTES, readAppCompose } from './readAppCompose.ts'

const read = (text: string) => readAppCompose(new TextEncoder().encode(text))
const { template } = read(appCompose)
const digest = 'ab'.repeat(32)
const IMAGE = /image: .*/
const PORT = '      PORT: "8090"\n'

const setVariable = (line: string) => {
  const [name = ''] = line.split(':')
  const others = (text: string) => text.replace(new RegExp(`^      ${name}: .*\\n`, 'm'), '')
  return changeCompose((text) => others(text).replace('    ports:', () => `      ${line}\n    ports:`))
}

test('reads image and settings', () => {
  const found = read(
    changeCompose((text) => text.replace(IMAGE, `image: ghcr.io/acme/countersign-enclave@sha256:${digest}`)),
  )
  expect(found).toMatchObject({ image: 'ghcr.io/acme/countersign-enclave', digest, template })
  expect(found.settings).toContainEqual({ name: 'PORT', value: '8090' })
  expect(found.settings).toHaveLength(8)
})

test.each([
  'BATCH_LIMIT: "64"',
  'LOG_ORIGINS: log.example/1,log.example/2',
  'LOG_WITNESSES: w.example/1+abcdef01+BAAbCdEf/+12=',
  'ENTROPY_DRAND: "52db9ba7|3|1692803367"',
  'HOST: 10.0.0.1',
  'OIDC_ISSUERS: "https://a.example=b, https://c.example=d"',
])('accepts the setting %s', (line) => {
  expect(read(setVariable(line)).template).toBe(template)
})

describe('rejects', () => {
  const code = (name: string) => expect.objectContaining({ code: name })

  test.each([
    ['an unknown variable', 'NODE_OPTIONS: --import=/run/x.js'],
    ['the loader’s variable', 'LD_PRELOAD: /run/x.so'],
    ['a variable from the host', 'PORT:'],
    ['an empty value', 'PORT: '],
    ['null', 'PORT: null'],
    ['null in short', 'PORT: ~'],
    ['a boolean', 'PORT: Yes'],
    ['a number', 'PORT: 0x1f90'],
    ['a time', 'PORT: 12:30:45'],
    ['an interpolation', 'PORT: $PORT'],
    ['a quoted interpolation', 'PORT: "$PORT"'],
    ['an escape', 'PORT: "\\x41"'],
    ['single quotes', "PORT: '8090'"],
    ['an anchor', 'PORT: &a x'],
    ['an alias', 'PORT: *a'],
    ['a tag', 'PORT: !!binary aGk='],
    ['a block', 'PORT: |'],
    ['flow style', 'PORT: {a: b}'],
    ['a comment after a value', 'PORT: x # y'],
    ['a key in a value', 'PORT: x:'],
    ['two values in quotes', 'PORT: "a" "b"'],
    ['a carriage return', 'PORT: x\r'],
    ['a line separator', 'PORT: x\u2028y'],
  ])('%s', (_, line) => {
    expect(() => read(setVariable(line))).toThrow(code('app_compose_rejected'))
  })

  test.each<[string, (text: string) => string]>([
    ['no image', (text) => text.replace(IMAGE, 'build: .')],
    ['an image by tag', (text) => text.replace(IMAGE, 'image: a.example/countersign-enclave:latest')],
    ['another image', (text) => text.replace(IMAGE, `image: a.example/other@sha256:${digest}`)],
    ['a quoted image', (text) => text.replace(IMAGE, `image: "a.example/countersign-enclave@sha256:${digest}"`)],
    ['Docker Hub', (text) => text.replace(IMAGE, `image: countersign-enclave@sha256:${digest}`)],
    ['a variable twice', (text) => text.replace(PORT, PORT + PORT)],
    ['two images', (text) => text.replace(/( {4}image: .*\n)/, '$1$1')],
    [
      'a service with the same image',
      (text) => `${text}  other:\n    image: a.example/countersign-enclave@sha256:${digest}\n`,
    ],
  ])('%s', (_, change) => {
    expect(() => read(changeCompose(change))).toThrow(code('app_compose_rejected'))
  })

  test.each([
    ['white space', `${appCompose}\n`],
    ['a member twice', appCompose.replace('{', '{"allowed_envs":[],')],
    ['another order', JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(appCompose)).reverse()))],
  ])('%s', (_, text) => {
    expect(() => read(text)).toThrow(code('json_not_canonical'))
  })

  test('a file of more than one IPFS block', () => {
    const text = changeCompose((compose) => compose + '#'.repeat(MAX_APP_COMPOSE_BYTES))
    expect(() => read(text)).toThrow(code('json_not_canonical'))
  })
})

describe('gives another template for', () => {
  test.each<[string, (text: string) => string]>([
    ['a second service', (text) => `${text}  other:\n    image: a.example/other\n`],
    ['a quoted key', (text) => text.replace('    image:', '    "image": other\n    image:')],
    [
      'an unquoted image without a digest',
      (text) => text.replace('    image:', '    image: countersign-enclave\n    image:'),
    ],
    ['a command', (text) => text.replace('    read_only', '    command: [health]\n    read_only')],
    ['an entry point', (text) => text.replace('    read_only', '    entrypoint: /bin/node\n    read_only')],
    ['a comment', (text) => text.replace('    read_only: true', '    read_only: true # yes')],
    ['a comment in the environment', (text) => text.replace(PORT, `${PORT}      # more\n`)],
    ['a volume', (text) => text.replace('    volumes:\n', '    volumes:\n      - /run/x:/app\n')],
    ['flow style', (text) => text.replace('services:\n', 'services: {a: {image: x}}\n')],
    ['an anchor', (text) => text.replace('  enclave:', '  enclave: &a')],
    ['an anchor of the environment', (text) => text.replace('environment:', 'environment: &a')],
    ['a merge key', (text) => text.replace(PORT, `${PORT}      <<: *a\n`)],
    ['a second environment', (text) => text.replace('    ports:', '    environment:\n      SESSIONS: any\n    ports:')],
    ['a variable in quotes', (text) => text.replace(PORT, '      "PORT": "1"\n')],
    ['a variable elsewhere', (text) => text.replace('    ports:', '    ports:\n      PORT: "1"\n')],
    ['another user', (text) => text.replace('65532:65532', '0:0')],
    ['a second document', (text) => `${text}---\nservices: {}\n`],
    ['a directive', (text) => `%YAML 1.1\n---\n${text}`],
    ['a line end of Windows', (text) => text.replace('    read_only: true\n', '    read_only: true\r\n')],
  ])('%s', (_, change) => {
    const text = changeCompose(change)
    expect(text).not.toBe(appCompose)
    expect(read(text).template).not.toBe(template)
  })

  test.each([
    ['a script before the start', { pre_launch_script: 'sh' }],
    ['variables from outside', { allowed_envs: ['PORT'] }],
    ['another key service', { local_key_provider_enabled: true }],
    ['another runner', { runner: 'bash' }],
    ['an unknown member', { zz: 1 }],
  ])('%s', (_, change) => {
    const value = { ...JSON.parse(appCompose), ...change }
    const sorted = Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1))
    expect(read(JSON.stringify(Object.fromEntries(sorted))).template).not.toBe(template)
  })
})

test('lists no variable twice', () => {
  expect(new Set(ENCLAVE_VARIABLES).size).toBe(ENCLAVE_VARIABLES.length)
})
