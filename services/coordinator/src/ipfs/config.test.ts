import { describe, expect, test } from 'vitest'
import { readReceiptSource } from './config.ts'

describe('readReceiptSource, of a coordinator that does not publish', () => {
  const find = (env: Record<string, string>, ipfsGatewayUrl?: string) =>
    readReceiptSource(env, { readFile: () => '', mode: 'development', ipfsGatewayUrl }, (text) => {
      throw new Error(text)
    })
  const gateway = { kind: 'gateway', gatewayUrl: 'https://ipfs.example' }
  const kubo = { IPFS_PINNER: 'kubo', IPFS_API_URL: 'http://127.0.0.1:5001' }

  test.each([
    [{}, undefined, undefined],
    [{ IPFS_PINNER: 'helia' }, undefined, undefined],
    [{ IPFS_PINNER: 'kubo' }, undefined, undefined],
    [{}, 'https://ipfs.example', gateway],
    [{ IPFS_PINNER: 'kubo' }, 'https://ipfs.example', gateway],
    [kubo, 'https://ipfs.example', { kind: 'kubo', apiUrl: 'http://127.0.0.1:5001', token: undefined }],
    // The gateway gets no token, so that none is needed.
    [{ IPFS_PINNER: 'pinata' }, undefined, { kind: 'gateway', gatewayUrl: 'https://gateway.pinata.cloud' }],
    [{ IPFS_PINNER: 'pinata' }, 'https://ipfs.example', gateway],
  ])('%j and the gateway %s: %j', (env, ipfsGatewayUrl, source) => {
    expect(find(env, ipfsGatewayUrl)).toEqual(source)
  })
})
