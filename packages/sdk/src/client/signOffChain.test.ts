import { computeCommitment, type Hex } from '@countersign/protocol'
import { numberToHex, parseSignature, serializeSignature, verifyMessage, verifyTypedData } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { verifyAuthorization } from 'viem/utils'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import {
  chainId,
  config,
  type FakeNetwork,
  html,
  installFakeNetwork,
  json,
  problem,
  wallet,
} from '../../test/client/network.ts'
import { withCode } from '../../test/client/withCode.ts'
import { ServiceClient } from './ServiceClient.ts'

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const to: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
/** Hardhat's second development key. */
const stranger = privateKeyToAccount('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d')
const message = 'I agree.'
const typedData = {
  domain: { name: 'App', chainId },
  types: { Order: [{ name: 'amount', type: 'uint256' }] },
  primaryType: 'Order',
  message: { amount: 5n },
} as const

let network: FakeNetwork
let client: ServiceClient

beforeEach(() => {
  network = installFakeNetwork()
  client = new ServiceClient(config)
})

type Answer = { signature: Hex; slug: string; opening: { content: object; signature: object } }

/** Applies `change` to the service's answers. */
function tamper(route: string, change: (answer: Answer) => unknown): void {
  const honest = network.routes[route]
  network.routes[route] = async (call) => {
    const response = await honest?.(call)
    return json(change((await response?.json()) as Answer))
  }
}

describe('signs exactly the request', () => {
  test('signs a message with one wallet lookup and one call', async () => {
    const { signature, attestationSlug, opening } = await client.signMessage({ message })
    expect(await verifyMessage({ address: wallet.address, message, signature })).toBe(true)
    expect(attestationSlug).toBe('slug-off-chain')
    expect(opening).toMatchObject({ content: { kind: 'message', content: { message: '0x492061677265652e' } } })
    expect(computeCommitment(opening)).toHaveLength(32)
    expect(network.paths()).toEqual(['GET /wallet/me', 'POST /sign/message'])
  })

  test('sends the bigints of typed data in decimal', async () => {
    const { signature, opening } = await client.signTypedData(typedData)
    expect(await verifyTypedData({ ...typedData, address: wallet.address, signature })).toBe(true)
    expect(network.calls.at(-1)?.body).toEqual({ ...typedData, message: { amount: '5' } })
    expect(opening).toMatchObject({ content: { kind: 'typed-data', content: { message: { amount: '5' } } } })
  })

  test('signs an authorization', async () => {
    const { signature, attestationSlug } = await client.signAuthorization({ address: to, nonce: 3 })
    const authorization = { address: to, chainId, nonce: 3, ...parseSignature(signature) }
    expect(await verifyAuthorization({ address: wallet.address, authorization: authorization as never })).toBe(true)
    expect(attestationSlug).toBe('slug-authorization')
  })

  test('accepts members named like methods of Object', async () => {
    const names = ['toString', 'valueOf', 'toJSON', 'constructor', 'hasOwnProperty']
    const types = {
      Order: names.map((name) => ({ name, type: 'Inner' })),
      Inner: [{ name: 'toString', type: 'string' }],
    }
    const inner = names.map((name) => [name, { toString: name }])
    const odd = { ...typedData, types, message: Object.fromEntries(inner) }
    const { opening } = await client.signTypedData(odd)
    expect(opening.content).toMatchObject({ content: JSON.parse(JSON.stringify(odd)) })
  })

  test('accepts the members of an opening in any order', async () => {
    tamper('POST /sign/typed-data', (answer) => JSON.parse(JSON.stringify(reversed(answer))))
    const { opening } = await client.signTypedData(typedData)
    expect(Object.keys(opening.content)).toEqual(['salt', 'kind', 'digest', 'content'])
  })
})

function reversed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reversed(member)]),
  )
}

describe('a malicious service', () => {
  const sign = {
    'POST /sign/message': () => client.signMessage({ message }),
    'POST /sign/typed-data': () => client.signTypedData(typedData),
    'POST /sign/authorization': () => client.signAuthorization({ address: to, nonce: 0 }),
  }
  const routes = Object.keys(sign) as (keyof typeof sign)[]

  const hostile: [string, (answer: Answer) => Promise<Hex> | Hex][] = [
    ['a signature over another message', () => stranger.signMessage({ message: 'x' })],
    ['a stranger’s signature over the same', () => stranger.signMessage({ message })],
    ['a signature of zeros', () => `0x${'00'.repeat(65)}`],
    [
      'another recovery bit',
      ({ signature }) => `${signature.slice(0, -2)}${signature.endsWith('1b') ? '1c' : '1b'}` as Hex,
    ],
    ['v = 0 or 1, which contracts do not take', ({ signature }) => toPlainParity(signature)],
    ['a high s', ({ signature }) => toHighS(signature)],
  ]

  test.each(routes.flatMap((route) => hostile.map(([name, change]) => [route, name, change] as const)))(
    '%s: %s',
    async (route, _name, change) => {
      const replaced: Hex[] = []
      const honest = network.routes[route]
      network.routes[route] = async (call) => {
        const answer = (await (await honest?.(call))?.json()) as Answer
        const signature = await change(answer)
        replaced.push(signature)
        // The opening matches the signature, so only the signature itself is wrong.
        const opening = answer.opening && { ...answer.opening, signature: { salt: 'b2'.repeat(32), signature } }
        return json({ ...answer, signature, opening })
      }
      await expect(sign[route]()).rejects.toEqual(withCode('signature_mismatch'))
      expect(replaced).toHaveLength(1)
    },
  )

  test('names the proof of another wallet’s signature', async () => {
    const signature = await stranger.signMessage({ message })
    tamper('POST /sign/message', (answer) => ({ ...answer, signature }))
    await expect(client.signMessage({ message })).rejects.toEqual(
      withCode('signature_mismatch', { details: expect.stringContaining('slug-off-chain') }),
    )
  })

  test.each<[string, (opening: Answer['opening']) => unknown]>([
    ['a content half of another message', (opening) => change(opening, 'content', { content: { message: '0x00' } })],
    ['another digest', (opening) => change(opening, 'content', { digest: `0x${'00'.repeat(32)}` })],
    ['another kind', (opening) => change(opening, 'content', { kind: 'typed-data' })],
    ['another signature', (opening) => change(opening, 'signature', { signature: `0x${'11'.repeat(65)}` })],
    ['a salt that is too short', (opening) => change(opening, 'content', { salt: 'a1'.repeat(31) })],
    ['a salt in capitals', (opening) => change(opening, 'signature', { salt: 'B2'.repeat(32) })],
    ['no salt', (opening) => change(opening, 'signature', { salt: undefined })],
    ['a salt that is a list', (opening) => change(opening, 'content', { salt: ['a1'.repeat(32)] })],
    ['a member more', (opening) => change(opening, 'content', { approvals: [] })],
    ['the content withheld', (opening) => ({ ...opening, content: 'ab'.repeat(32) })],
    ['the signature withheld', (opening) => ({ ...opening, signature: 'ab'.repeat(32) })],
    ['a half that is null', (opening) => ({ ...opening, content: null })],
    ['a half more', (opening) => ({ ...opening, more: {} })],
    ['nothing in it', () => ({})],
  ])('rejects an opening with %s', async (_name, tampered) => {
    tamper('POST /sign/message', (answer) => ({ ...answer, opening: tampered(answer.opening) }))
    await expect(client.signMessage({ message })).rejects.toEqual(
      withCode('opening_mismatch', { details: 'proof slug-off-chain' }),
    )
  })

  test.each<[string, (answer: Answer) => unknown]>([
    ['no opening', ({ signature, slug }) => ({ signature, slug })],
    ['an opening that is text', (answer) => ({ ...answer, opening: 'ab'.repeat(32) })],
    ['an opening that is null', (answer) => ({ ...answer, opening: null })],
    ['no slug', (answer) => ({ ...answer, slug: undefined })],
    ['a signature in capitals', (answer) => ({ ...answer, signature: `0x${answer.signature.slice(2).toUpperCase()}` })],
    ['an empty slug', (answer) => ({ ...answer, slug: '' })],
    ['64 bytes of signature', (answer) => ({ ...answer, signature: answer.signature.slice(0, -2) })],
    ['nothing', () => null],
  ])('rejects an answer with %s', async (_name, change) => {
    tamper('POST /sign/message', change)
    await expect(client.signMessage({ message })).rejects.toEqual(withCode('response_invalid'))
  })
})

function change(opening: Answer['opening'], half: keyof Answer['opening'], members: object): unknown {
  return { ...opening, [half]: { ...opening[half], ...members } }
}

function toPlainParity(signature: Hex): Hex {
  return `${signature.slice(0, -2)}${signature.endsWith('1b') ? '00' : '01'}` as Hex
}

function toHighS(signature: Hex): Hex {
  const { r, s, yParity } = parseSignature(signature)
  return serializeSignature({ r, s: numberToHex(ORDER - BigInt(s), { size: 32 }), yParity: yParity === 0 ? 1 : 0 })
}

describe('sessions and failures', () => {
  test('rejects invalid requests before sending', async () => {
    await expect(client.signMessage({ message: '\ud800' })).rejects.toEqual(withCode('invalid_message'))
    await expect(client.signTypedData({} as never)).rejects.toEqual(withCode('invalid_typed_data'))
    await expect(client.signAuthorization({ address: '0x12', nonce: 0 })).rejects.toEqual(withCode('invalid_request'))
    expect(network.calls).toEqual([])
  })

  test('rejects without a wallet or a session', async () => {
    network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
    await expect(client.signMessage({ message })).rejects.toEqual(withCode('wallet_not_ready'))
    network.routes['GET /wallet/me'] = () => problem(401, 'not_authenticated')
    await expect(client.signMessage({ message })).rejects.toEqual(withCode('not_authenticated', { status: 401 }))
    expect(network.paths()).not.toContain('POST /sign/message')
  })

  test('does not sign if another user has signed in', async () => {
    network.routes['GET /wallet/me'] = () => json({ ...wallet, address: to })
    await expect(client.signMessage({ message }, { wallet })).rejects.toEqual(withCode('wallet_changed'))
    await expect(client.signTypedData(typedData, { wallet })).rejects.toEqual(withCode('wallet_changed'))
    await expect(client.signAuthorization({ address: to, nonce: 0 }, { wallet })).rejects.toEqual(
      withCode('wallet_changed'),
    )
    expect(network.paths()).toEqual(['GET /wallet/me', 'GET /wallet/me', 'GET /wallet/me'])
  })

  test('names a given wallet to the service, and no wallet by default', async () => {
    await client.signMessage({ message })
    await client.signMessage({ message }, { wallet })
    await client.signTypedData(typedData, { wallet })
    const bodies = network.calls.flatMap(({ body }) => (body === undefined ? [] : [body]))
    expect(bodies).toEqual([
      { message: '0x492061677265652e' },
      { message: '0x492061677265652e', wallet: wallet.address },
      { ...typedData, message: { amount: '5' }, wallet: wallet.address },
    ])
  })

  test('the service rejects the named wallet if another user signs in at the last moment', async () => {
    network.routes['POST /sign/message'] = () => {
      network.routes['GET /wallet/me'] = () => json({ ...wallet, address: to })
      return problem(404, 'vault_not_found')
    }
    await expect(client.signMessage({ message }, { wallet })).rejects.toEqual(
      withCode('wallet_changed', { details: to }),
    )
  })

  test('does not sign if assertWanted throws', async () => {
    const assertWanted = () => {
      throw new Error('not any more')
    }
    await expect(client.signMessage({ message }, { assertWanted })).rejects.toThrow('not any more')
    expect(network.paths()).toEqual(['GET /wallet/me'])
  })

  test.each<[string, (call: { init: RequestInit }) => Response | Promise<Response>, string]>([
    ['the network is gone', () => Promise.reject(new TypeError('fetch failed')), 'network_unreachable'],
    ['something else answered', () => html(), 'response_invalid'],
    ['the service failed', () => problem(503, 'enclave_unavailable', { retryable: true }), 'enclave_unavailable'],
  ])('does not retry after %s, because each call creates a proof', async (_name, answer, code) => {
    network.routes['POST /sign/message'] = answer
    await expect(client.signMessage({ message })).rejects.toEqual(withCode(code))
    expect(network.paths().filter((path) => path === 'POST /sign/message')).toHaveLength(1)
  })

  test.each<[string, string, () => Response | Promise<Response>]>([
    ['nothing was signed', 'GET /wallet/me', () => Promise.reject(new TypeError('fetch failed'))],
    ['nothing was signed', 'GET /wallet/me', () => html()],
    ['it may have been signed', 'POST /sign/message', () => Promise.reject(new TypeError('fetch failed'))],
    ['it may have been signed', 'POST /sign/message', () => html()],
  ])('details show whether %s: they begin with the lost call, %s', async (_name, route, answer) => {
    network.routes[route] = answer
    const details = expect.stringMatching(new RegExp(`^${route}`))
    await expect(client.signMessage({ message })).rejects.toMatchObject({ details })
  })

  describe('a lost answer to an authorization', () => {
    const asked = () => network.calls.filter(({ url }) => url.endsWith('/sign/authorization')).map(({ body }) => body)
    const gone = () => Promise.reject(new TypeError('Failed to fetch'))

    /** The service signs, but the client gets each of these answers in turn. */
    function lose(...answers: (() => Response | Promise<Response>)[]): void {
      const sign = network.routes['POST /sign/authorization'] ?? (() => json({}))
      network.routes['POST /sign/authorization'] = (call) => (answers.shift() ?? (() => sign(call)))()
    }

    test.each([
      ['the network is gone', gone],
      ['a proxy answers with HTML', () => html(504)],
    ])('requests the same authorization again after %s', async (_name, answer) => {
      lose(answer)
      expect(await client.signAuthorization({ address: to, nonce: 3 })).toMatchObject({
        attestationSlug: 'slug-authorization',
      })
      expect(asked()).toHaveLength(2)
      expect(asked()[0]).toEqual(asked()[1])
    })

    test('does not retry after an error of the service', async () => {
      lose(() => problem(403, 'authorization_not_allowed'))
      await expect(client.signAuthorization({ address: to, nonce: 3 })).rejects.toEqual(
        withCode('authorization_not_allowed'),
      )
      expect(asked()).toHaveLength(1)
    })
  })

  test('the error says to reload if a part of the app cannot be loaded', async () => {
    vi.resetModules()
    vi.doMock('./signOffChain.ts', () => {
      throw new TypeError('Failed to fetch dynamically imported module')
    })
    try {
      await expect(client.signMessage({ message })).rejects.toEqual(
        withCode('network_unreachable', { details: 'reload the page' }),
      )
      expect(network.calls).toEqual([])
    } finally {
      vi.doUnmock('./signOffChain.ts')
    }
  })
})
