import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig, parseConfig } from './config.ts'

const good = { apiBaseUrl: 'https://api.example.com', chainId: 11155111 }
const faultsOf = async (answer: () => Response | Promise<Response>) => {
  const error = await loadConfig(async () => answer()).catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).faults
}

describe('loadConfig', () => {
  test('reads /config.json', async () => {
    const asked: unknown[] = []
    const config = await loadConfig(async (input) => {
      asked.push(input)
      return Response.json(good)
    })
    expect(asked).toEqual(['/config.json'])
    expect(config).toEqual(good)
  })

  test.each([
    ['a server that is down', () => Promise.reject(new TypeError('Failed to fetch')), /could not be loaded/],
    ['404', () => new Response(null, { status: 404 }), /missing.*404/],
    ['the page of a one-page app', () => new Response('\n<!doctype html>'), /missing.*page/],
    ['half a file', () => new Response('{"apiBaseUrl":'), /not valid JSON/],
    ['a list', () => Response.json([good]), /not an object/],
  ])('reports the error for %s', async (_, answer, words) => {
    expect(await faultsOf(answer)).toEqual([expect.stringMatching(words)])
  })
})

describe('parseConfig', () => {
  test('keeps known members and drops the rest', () => {
    const unchecked = { trust: { anything: [1] }, allowMock: true, tcbStatuses: ['OutOfDate'] }
    const attestations = { chainId: 1, rpcUrl: 'http://localhost:1', address: `0x${'ab'.repeat(20)}` }
    const full = {
      ...good,
      rpcUrl: 'http://localhost:8545',
      faucetUrl: 'http://localhost:8545/faucet',
      attestations,
      manifestFile: '.countersign/manifest.json',
      signInDemoUrl: 'http://localhost:5174',
      ...unchecked,
    }
    expect(parseConfig({ ...full, other: 1 })).toEqual(full)
  })

  test('keeps a large fee cap exact', () => {
    const maxFeePerGas = 50_000_000_000_000_000_001n
    expect(parseConfig({ ...good, maxFeePerGas: String(maxFeePerGas) })).toEqual({ ...good, maxFeePerGas })
  })

  const token = { chainId: 1, address: `0x${'ab'.repeat(20)}`, symbol: 'TEST', decimals: 6, name: 'Test Token' }

  test('keeps a token’s known members and lower-cases its address', () => {
    const { tokens } = parseConfig({ ...good, tokens: [{ ...token, address: `0x${'AB'.repeat(20)}`, logo: 'x' }] })
    expect(tokens).toEqual([token])
  })

  test('accepts the same token address on two chains', () => {
    expect(parseConfig({ ...good, tokens: [token, { ...token, chainId: 2 }] }).tokens).toHaveLength(2)
  })

  test('accepts another chain’s coin as a token', () => {
    expect(parseConfig({ ...good, tokens: [{ ...token, symbol: 'POL' }] }).tokens).toHaveLength(1)
  })

  test.each<[string, unknown]>([
    ['no list', token],
    [
      'more than the wallet asks about',
      Array.from({ length: 21 }, (_, chainId) => ({ ...token, chainId: chainId + 1 })),
    ],
    ['one twice', [token, { ...token, address: `0x${'AB'.repeat(20)}` }]],
    ['null', [null]],
    ['no chain', [{ ...token, chainId: 0 }]],
    ['half an address', [{ ...token, address: '0xab' }]],
    ['a symbol that could be an amount', [{ ...token, symbol: '5' }]],
    ['a symbol that could be ether', [{ ...token, symbol: 'Eth' }]],
    ['a symbol that could be the coin of its chain', [{ ...token, chainId: 137, symbol: 'Pol' }]],
    ['an empty symbol', [{ ...token, symbol: '' }]],
    ['half a decimal', [{ ...token, decimals: 1.5 }]],
    ['too many decimals', [{ ...token, decimals: 37 }]],
    ['decimals as text', [{ ...token, decimals: '6' }]],
    ['negative decimals', [{ ...token, decimals: -1 }]],
    ['a name that turns the text around', [{ ...token, name: 'a\u202eb' }]],
    ['no name', [{ ...token, name: undefined }]],
  ])('rejects tokens with %s', (_, tokens) => {
    expect(() => parseConfig({ ...good, tokens })).toThrow(ConfigError)
  })

  test('reports every error at once', () => {
    const bad = { apiBaseUrl: 'api.example.com', chainId: '1', faucetUrl: 'ftp://x', attestations: {} }
    const parse = () => parseConfig(bad)
    expect(parse).toThrow(ConfigError)
    try {
      parse()
    } catch (error) {
      expect((error as ConfigError).faults.map((fault) => fault.split(' ')[0])).toEqual([
        'apiBaseUrl',
        'chainId',
        'faucetUrl',
        'attestations',
      ])
    }
  })

  test.each([
    ['explorerUrl', 'javascript:alert(1)'],
    ['explorerUrl', 'data:text/html,x'],
    ['rpcUrl', null],
    ['chainId', 0],
    ['chainId', 1.5],
    ['chainName', ''],
    ['maxFeePerGas', 10_000_000_000_000],
    ['maxFeePerGas', '0'],
    ['maxFeePerGas', '-1'],
    ['maxFeePerGas', '1e13'],
    ['maxFeePerGas', '10000 gwei'],
    ['maxFeePerGas', ''],
    ['maxFeePerGas', null],
    ['apiBaseUrl', undefined],
  ])('rejects the %s %j', (name, value) => {
    expect(() => parseConfig({ ...good, [name]: value })).toThrow(ConfigError)
  })
})
