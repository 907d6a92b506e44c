import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { findClosedUrl, serveBlocks, startLoopback } from '../test/loopback.ts'
import { createFetchBytes } from './fetchBytes.ts'
import { getBlock, parseHttpUrl, toGatewayLink, toStatedGateway, trimWhiteSpace } from './getBlock.ts'

const deps = { fetchBytes: createFetchBytes({ fetch, timeoutMs: 5_000 }) }
const block = new TextEncoder().encode('block')
const other = new TextEncoder().encode('other')
const cid = toCid(block)

describe('a block from gateways', () => {
  test.each(['', '/', '/ipfs', '/ipfs/'])('the base may end in "%s"', async (ending) => {
    const { url, requests } = await startLoopback(serveBlocks({ [cid]: block }))
    const found = await getBlock(deps, { cid, gateways: [`${url}${ending}`], maxBytes: 100 })
    expect(found).toEqual({ bytes: block, problems: [] })
    expect(requests).toEqual([`GET /ipfs/${cid}?format=raw`])
  })

  test('is requested as a raw block', async () => {
    let accept: string | undefined
    const { url } = await startLoopback((request, response) => {
      accept = request.headers.accept
      response.end(block)
    })
    await getBlock(deps, { cid, gateways: [url], maxBytes: 100 })
    expect(accept).toBe('application/vnd.ipld.raw')
  })

  test('rejects other bytes, names that gateway, and tries the next one', async () => {
    const liar = await startLoopback(serveBlocks({ [cid]: other }))
    const good = await startLoopback(serveBlocks({ [cid]: block }))
    expect(await getBlock(deps, { cid, gateways: [liar.url, good.url], maxBytes: 100 })).toEqual({
      bytes: block,
      problems: [`${liar.host} sent 5 other bytes with the CID ${toCid(other)}: truncated or changed`],
    })
  })

  test('lists the reason of each gateway if all fail', async () => {
    const closed = await findClosedUrl()
    const empty = await startLoopback(serveBlocks({}))
    const cut = await startLoopback(serveBlocks({ [cid]: block.subarray(0, 4) }))
    const large = await startLoopback(serveBlocks({ [cid]: new Uint8Array(101) }))
    const gateways = [closed, empty.url, cut.url, large.url]
    const { bytes, problems } = await getBlock(deps, { cid, gateways, maxBytes: 100 })
    expect(bytes).toBeUndefined()
    expect(problems).toEqual([
      expect.stringContaining('could not be reached'),
      `${empty.host} returned 404`,
      `${cut.host} sent 4 other bytes with the CID ${toCid(block.subarray(0, 4))}: truncated or changed`,
      `${large.host} sent more than 100 bytes`,
    ])
  })

  test('asks a gateway only once', async () => {
    const empty = await startLoopback(serveBlocks({}))
    await getBlock(deps, { cid, gateways: [empty.url, `${empty.url}/ipfs`], maxBytes: 100 })
    expect(empty.requests).toHaveLength(1)
  })
})

test.each([
  ['{}', '{}'],
  ['{}\n', '{}'],
  ['\r\n\t {} { }\t\r\n', '{} { }'],
  ['\u{feff}{}\v', '\u{feff}{}\v'],
  [' \n', ''],
  ['', ''],
])('%j becomes %j', (text, trimmed) => {
  expect(new TextDecoder('utf-8', { ignoreBOM: true }).decode(trimWhiteSpace(new TextEncoder().encode(text)))).toBe(
    trimmed,
  )
})

test('accepts only http and https without credentials', () => {
  expect(parseHttpUrl('https://node.example/key')).toBe('https://node.example/key')
  for (const bad of ['ipfs://x', 'https://a:b@node.example', '//node.example', 'data:,x', 7, undefined]) {
    expect(parseHttpUrl(bad)).toBeUndefined()
  }
})

test('accepts a gateway below a path', () => {
  expect(toStatedGateway('https://g.test/path/ipfs/bafkrei')).toBe('https://g.test/path')
  expect(toStatedGateway('https://g.test/ipfs/bafkrei')).toBe('https://g.test')
  expect(toStatedGateway('https://g.test/elsewhere')).toBe('https://g.test')
  for (const bad of ['ipfs://bafkrei', 'javascript:alert(1)', 'https://a:b@g.test/ipfs/x', null]) {
    expect(toStatedGateway(bad)).toBeUndefined()
  }
})

test('replaces the CID in a gateway’s host name with an asterisk, for other blocks', () => {
  const [cid, other] = ['a', 'b'].map((text) => toCid(new TextEncoder().encode(text)))
  const gateway = toStatedGateway(`http://${cid}.ipfs.g.test:8080/`)
  expect(gateway).toBe('http://*.ipfs.g.test:8080')
  expect(toGatewayLink(gateway ?? '', other ?? '')).toBe(`http://${other}.ipfs.g.test:8080/`)
  expect(toStatedGateway('https://hello.ipfs.g.test/')).toBe('https://hello.ipfs.g.test')
})
