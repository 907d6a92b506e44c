import { toCid } from '@countersign/receipt'
import { expect, test } from 'vitest'
import { parseHttpUrl, toGatewayLink, toStatedGateway } from './getBlock.ts'

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

test('a gateway that gives each CID a name of its own keeps an asterisk in its place, for the CIDs of other blocks', () => {
  const [cid, other] = ['a', 'b'].map((text) => toCid(new TextEncoder().encode(text)))
  const gateway = toStatedGateway(`http://${cid}.ipfs.g.test:8080/`)
  expect(gateway).toBe('http://*.ipfs.g.test:8080')
  expect(toGatewayLink(gateway ?? '', other ?? '')).toBe(`http://${other}.ipfs.g.test:8080/`)
  expect(toStatedGateway('https://hello.ipfs.g.test/')).toBe('https://hello.ipfs.g.test')
})
