import { toVkey } from '@countersign/log'
import { expect, test } from 'vitest'
import { createSigner } from '../../../../packages/log/test/logs.ts'
import { readWitnesses } from './witnessClient.ts'

const vkeyOf = (name: string, type: Parameters<typeof createSigner>[1] = 'cosignature-ed25519') =>
  toVkey(createSigner(name, type).key)

function read(LOG_WITNESSES: string) {
  const faults: string[] = []
  const sites = readWitnesses({ LOG_WITNESSES }, (setting, problem) => void faults.push(`${setting}: ${problem}`))
  return { sites: sites.map(({ key, url }) => `${key.name} ${url}`), faults }
}

test('accepts an empty list', () => {
  expect(read('')).toEqual({ sites: [], faults: [] })
})

test('accepts several over https and on loopback, with paths and an @ in a name', () => {
  const items = [
    `${vkeyOf('w1.example')}@https://w1.example/witness/`,
    `${vkeyOf('a@http://b')}@http://127.0.0.1:8095`,
    `${vkeyOf('w3.example')}@http://[::1]:1`,
  ]
  expect(read(items.join(', '))).toEqual({
    sites: ['w1.example https://w1.example/witness/', 'a@http://b http://127.0.0.1:8095', 'w3.example http://[::1]:1'],
    faults: [],
  })
})

test.each([
  ['no key', '@https://w1.example'],
  ['no URL', vkeyOf('w1.example')],
  ['a key of a log', `${vkeyOf('w1.example', 'ed25519')}@https://w1.example`],
  ['a key of another kind', `${vkeyOf('w1.example', 'cosignature-ml-dsa-44')}@https://w1.example`],
  ['a key with another id', `${vkeyOf('w1.example').replace(/\+[0-9a-f]{8}\+/, '+00000000+')}@https://w1.example`],
  ['http', `${vkeyOf('w1.example')}@http://w1.example`],
  ['a password', `${vkeyOf('w1.example')}@https://user:secret@w1.example`],
  ['a query', `${vkeyOf('w1.example')}@https://w1.example?token=secret`],
  ['another protocol', `${vkeyOf('w1.example')}@ftp://w1.example`],
  ['one key twice', `${vkeyOf('w1.example')}@https://a.example,${vkeyOf('w1.example')}@https://b.example`],
  ['too many', Array.from({ length: 33 }, (_, index) => `${vkeyOf(`w${index}`)}@https://w${index}.example`).join(',')],
])('%s is a fault that shows no value', (_, text) => {
  const { faults } = read(text)
  expect(faults).toHaveLength(1)
  expect(faults.join()).toMatch(/^LOG_WITNESSES: /)
  expect(faults.join()).not.toContain('secret')
})
