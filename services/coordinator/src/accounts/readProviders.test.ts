import { generateKeyPairSync, verify } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createAppleSecret } from './providers.ts'
import { drawIcon, readProviders } from './readProviders.ts'

const pem = (namedCurve: string) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
  return { privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, publicKey }
}
const apple = pem('P-256')
const files: Record<string, string> = {
  'icon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'icon.html': '<p><svg></svg></p>',
  'long.svg': `<svg>${' '.repeat(20_000)}</svg>`,
  'apple.p8': apple.privateKey,
  'other.p8': pem('P-384').privateKey,
}

function read(env: Record<string, string>) {
  const faults: string[] = []
  const readFile = (path: string) => {
    if (files[path] === undefined) throw new Error('no such file')
    return files[path]
  }
  return {
    providers: readProviders(env, readFile, (setting, problem) => void faults.push(`${setting}: ${problem}`)),
    faults,
  }
}

const settings = (id: string, more: Record<string, string> = {}) =>
  Object.fromEntries(
    Object.entries({ CLIENT_ID: 'client', CLIENT_SECRET: 'secret', ...more }).map(([part, value]) => [
      `OIDC_${id}_${part}`,
      value,
    ]),
  )

test('reads any number of providers, each named after its issuer', () => {
  const { providers, faults } = read({
    ...settings('GOOGLE'),
    ...settings('MICROSOFT', { ISSUER: 'https://login.microsoftonline.com/0000/v2.0' }),
    ...settings('SSO', { ISSUER: 'https://sso.example/realms/x' }),
    ...settings('GITHUB', { ISSUER: 'https://bridge.example', NAME: 'GitHub' }),
  })
  expect(faults).toEqual([])
  expect(providers.map(({ id, name, issuer }) => [id, name, issuer])).toEqual([
    ['github', 'GitHub', 'https://bridge.example'],
    ['google', 'Google', 'https://accounts.google.com'],
    ['microsoft', 'Microsoft', 'https://login.microsoftonline.com/0000/v2.0'],
    ['sso', 'sso.example', 'https://sso.example/realms/x'],
  ])
})

test('reads a provider at which pages sign in themselves, without a secret', () => {
  const issuer = 'https://accounts.example'
  const { providers, faults } = read({ ...settings('PAGE', { ISSUER: issuer, DIRECT: 'true', CLIENT_SECRET: '' }) })
  expect(faults).toEqual([])
  expect(providers).toMatchObject([{ id: 'page', issuer, clientId: 'client', clientSecret: undefined }])
})

test.each<[string, Record<string, string>, string]>([
  ['a secret', { DIRECT: 'true' }, 'OIDC_PAGE_CLIENT_SECRET: expected none with OIDC_PAGE_DIRECT=true'],
  [
    'a file with a secret',
    { DIRECT: 'true', CLIENT_SECRET: '', CLIENT_SECRET_FILE: 'secret' },
    'OIDC_PAGE_CLIENT_SECRET_FILE: expected none with OIDC_PAGE_DIRECT=true',
  ],
  [
    'the parts of Apple’s key',
    { DIRECT: 'true', CLIENT_SECRET: '', ISSUER: 'https://appleid.apple.com', TEAM_ID: 'team' },
    'OIDC_PAGE_TEAM_ID: expected none with OIDC_PAGE_DIRECT=true',
  ],
])('rejects %s of a provider at which pages sign in themselves', (_, more, fault) => {
  expect(read(settings('PAGE', { ISSUER: 'https://accounts.example', ...more })).faults).toContain(fault)
})

test('rejects DIRECT that is neither true nor false, and a missing secret without it', () => {
  const issuer = { ISSUER: 'https://accounts.example' }
  expect(read(settings('PAGE', { ...issuer, DIRECT: 'yes', CLIENT_SECRET: '' })).faults.join()).toContain(
    'OIDC_PAGE_DIRECT',
  )
  expect(read(settings('PAGE', { ...issuer, DIRECT: 'false', CLIENT_SECRET: '' })).faults.join()).toContain(
    'OIDC_PAGE_CLIENT_SECRET',
  )
})

test.each(['ME', 'LOGOUT', 'SESSION', 'SESSIONS'])('rejects the id %s, whose path has another meaning', (id) => {
  expect(read(settings(id, { ISSUER: 'https://accounts.example' })).faults).not.toEqual([])
})

test('names a provider after its issuer, not its id: google at another issuer is not called Google', () => {
  const { providers } = read(settings('GOOGLE', { ISSUER: 'http://localhost:9090' }))
  expect(providers[0]?.name).toBe('localhost:9090')
})

test.each([
  ['NAME', 'x'.repeat(41)],
  ['NAME', 'two\nlines'],
  ['PROMPT', 'none'],
  ['ICON_FILE', 'missing.svg'],
  ['ICON_FILE', 'icon.html'],
  ['ICON_FILE', 'long.svg'],
  ['ISSUER', 'http://issuer.example'],
])('%s: %j is a fault', (part, value) => {
  expect(read(settings('GOOGLE', { [part]: value })).faults).toEqual([
    expect.stringContaining(`OIDC_GOOGLE_${part}: expected`),
  ])
})

test.each(['ME', 'LOGOUT'])('rejects the id %s, because its path is reserved', (id) => {
  expect(read(settings(id, { ISSUER: 'https://issuer.example' })).faults[0]).toContain('reserved: ')
})

test('reads an icon from the file, or draws one from the name', () => {
  const decode = (url = '') => Buffer.from(url.split(',')[1] ?? '', 'base64').toString()
  const { providers } = read(settings('GOOGLE', { ICON_FILE: 'icon.svg' }))
  expect(decode(providers[0]?.icon)).toBe(files['icon.svg'])
  expect(decode(drawIcon('élan'))).toContain('>É</text>')
  expect(
    new Set(['Apple', 'Google', 'Microsoft', 'GitHub'].map((name) => decode(drawIcon(name)).match(/fill="#\w{6}/)?.[0]))
      .size,
  ).toBe(4)
  expect(decode(drawIcon('<&">'))).toMatch(/^<svg[^<>]*><rect[^<>]*\/><path[^<>]*\/><\/svg>$/)
})

describe('Apple’s client secret', () => {
  const key = { CLIENT_SECRET: '', TEAM_ID: 'TEAM', KEY_ID: 'KEY', PRIVATE_KEY_FILE: 'apple.p8' }

  test('is a JWT that is valid for five minutes, signed with the team’s key', () => {
    const { providers, faults } = read(settings('APPLE', key))
    expect(faults).toEqual([])
    expect(providers[0]).toMatchObject({ issuer: 'https://appleid.apple.com', name: 'Apple' })
    const secret = providers[0]?.clientSecret
    if (typeof secret !== 'object') throw new Error('no key')
    const token = createAppleSecret(secret, 'client', { now: () => 1_700_000_000_500 })()
    const [header = '', claims = '', signature = ''] = token.split('.')
    const parse = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
    expect(parse(header)).toEqual({ alg: 'ES256', kid: 'KEY' })
    expect(parse(claims)).toEqual({
      iss: 'TEAM',
      sub: 'client',
      aud: 'https://appleid.apple.com',
      iat: 1_700_000_000,
      exp: 1_700_000_300,
    })
    const bytes = Buffer.from(signature, 'base64url')
    const isSigned = verify(
      'sha256',
      Buffer.from(`${header}.${claims}`),
      { key: apple.publicKey, dsaEncoding: 'ieee-p1363' },
      bytes,
    )
    expect(isSigned).toBe(true)
  })

  test('the key is a fault for issuers other than Apple', () => {
    const { faults } = read(settings('GOOGLE', { TEAM_ID: 'TEAM', PRIVATE_KEY_FILE: '' }))
    expect(faults).toEqual(['OIDC_GOOGLE_TEAM_ID: only for Apple'])
  })

  test.each<[string, Record<string, string>]>([
    ['along with a secret', { CLIENT_SECRET: 'secret' }],
    ['without the team', { TEAM_ID: '' }],
    ['without the key’s name', { KEY_ID: '' }],
    ['without the key', { PRIVATE_KEY_FILE: '' }],
    ['with a key on another curve', { PRIVATE_KEY_FILE: 'other.p8' }],
    ['with something else as the key', { PRIVATE_KEY_FILE: 'icon.svg' }],
  ])('%s is a fault, and quotes nothing', (_, changes) => {
    const { faults } = read(settings('APPLE', { ...key, ...changes }))
    expect(faults.length).toBe(1)
    expect(faults[0]).toMatch(/^OIDC_APPLE_/)
    expect(faults[0]).not.toMatch(/BEGIN|svg|secret$/)
  })
})
