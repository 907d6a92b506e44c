import { expect, test } from 'vitest'
import { parseHttpUrl, toStatedGateway } from './toStatedGateway.ts'

test('only http and https without credentials are addresses to ask', () => {
  expect(parseHttpUrl('https://node.example/key')).toBe('https://node.example/key')
  for (const bad of ['ipfs://x', 'https://a:b@node.example', '//node.example', 'data:,x', 7, undefined]) {
    expect(parseHttpUrl(bad)).toBeUndefined()
  }
})

test('a gateway may stand under a path', () => {
  expect(toStatedGateway('https://g.test/path/ipfs/bafkrei')).toBe('https://g.test/path')
  expect(toStatedGateway('https://g.test/ipfs/bafkrei')).toBe('https://g.test')
  expect(toStatedGateway('https://g.test/elsewhere')).toBe('https://g.test')
  for (const bad of ['ipfs://bafkrei', 'javascript:alert(1)', 'https://a:b@g.test/ipfs/x', null]) {
    expect(toStatedGateway(bad)).toBeUndefined()
  }
})
