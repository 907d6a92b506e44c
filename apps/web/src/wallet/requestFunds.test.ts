import { expect, test } from 'vitest'
import { FaucetError, requestFunds } from './FaucetButton.tsx'

const parameters = { faucetUrl: 'https://faucet.test/faucet', address: `0x${'ab'.repeat(20)}` }

test('posts the address as JSON and returns the hash', async () => {
  const asked: unknown[] = []
  const fetch = async (url: unknown, init?: RequestInit) => {
    asked.push([url, init?.method, init?.body])
    return Response.json({ txHash: '0x01' })
  }
  expect(await requestFunds(fetch, parameters)).toBe('0x01')
  expect(asked).toEqual([[parameters.faucetUrl, 'POST', JSON.stringify({ address: parameters.address })]])
})

test.each([
  ['is down', () => Promise.reject(new TypeError('Failed to fetch')), /unavailable/],
  ['answers with a page', () => new Response('<html>'), /unavailable/],
  ['refuses', () => Response.json({ error: 'expected an address' }, { status: 400 }), /expected an address/],
  ['fails without a word', () => Response.json(null, { status: 500 }), /status 500/],
  ['says yes without a hash', () => Response.json({}), /status 200/],
])('a faucet that %s', async (_, answer, words) => {
  const error = await requestFunds(async () => answer(), parameters).catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(FaucetError)
  expect((error as Error).message).toMatch(words)
})
