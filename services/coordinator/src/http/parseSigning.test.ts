import { parseRequest } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { signBody, txMetadata } from '../../test/http/testApp.ts'
import { invalidBody } from '../errors.ts'

const parse = (metadata: unknown, digest: unknown = signBody.digest) =>
  parseRequest('POST /sign/digest', { digest, txMetadata: metadata }, invalidBody)

const codeOf = (metadata: unknown, digest?: unknown): string => {
  try {
    parse(metadata, digest)
    return 'accepted'
  } catch (error) {
    return (error as { code: string }).code
  }
}

const accessList = [{ address: txMetadata.to, storageKeys: [] }]
const { maxFeePerGas: _, maxPriorityFeePerGas: __, ...withoutFees } = txMetadata

describe('returns unsupported_transaction for other transaction types', () => {
  test.each<[string, object]>([
    ['legacy, as viem has it', { ...withoutFees, type: 'legacy', gasPrice: '1' }],
    ['legacy, without a type', { ...withoutFees, gasPrice: '1' }],
    ['a gas price along with the fees', { ...txMetadata, gasPrice: '0' }],
    ['a gas price that is malformed too', { gasPrice: {} }],
    ['EIP-2930', { ...txMetadata, type: 'eip2930', accessList }],
    ['an access list', { ...txMetadata, accessList }],
    ['an access list of the right type', { ...txMetadata, type: 'eip1559', accessList }],
    ['EIP-4844', { ...txMetadata, type: 'eip4844', blobVersionedHashes: ['0x01'] }],
    ['blobs', { ...txMetadata, blobVersionedHashes: [] }],
    ['EIP-7702', { ...txMetadata, type: 'eip7702', authorizationList: [] }],
    ['authorizations', { ...txMetadata, authorizationList: [{}] }],
    ['no recipient', { ...txMetadata, to: null }],
    ['no recipient and no fees', { ...withoutFees, to: null }],
    ...[0, 1, 3, 4, 127, 2.5, -2, '0x0', '0x1', '0x3', '0x04', '0x02', '2', 'EIP1559', ''].map(
      (type): [string, object] => [`type ${JSON.stringify(type)}`, { ...txMetadata, type }],
    ),
  ])('%s', (_, metadata) => {
    expect(codeOf(metadata)).toBe('unsupported_transaction')
  })

  test('details name the member without its value', () => {
    expect(() => parse({ ...txMetadata, gasPrice: 'canary' })).toThrow(
      expect.objectContaining({ details: 'gasPrice belongs to another type of transaction' }),
    )
  })
})

describe('returns invalid_tx_metadata for other faults', () => {
  test.each<[string, unknown]>([
    ['the right type as a name', { ...txMetadata, type: 'eip1559' }],
    ['the right type as a number', { ...txMetadata, type: 2 }],
    ['the right type in hex', { ...txMetadata, type: '0x2' }],
    ['an invalid type', { ...txMetadata, type: null }],
    ['a type that is a list', { ...txMetadata, type: ['legacy'] }],
    ['a type that is true', { ...txMetadata, type: true }],
    ['an empty access list', { ...txMetadata, accessList: [] }],
    ['an invalid access list', { ...txMetadata, accessList: 'x' }],
    ['an access list that is an object', { ...txMetadata, accessList: { length: 1 } }],
    ['a gas price that is null', { ...txMetadata, gasPrice: null }],
    ['blobs that are null', { ...txMetadata, blobVersionedHashes: null }],
    ['a recipient that is missing', { ...txMetadata, to: undefined }],
    ['an empty recipient', { ...txMetadata, to: '' }],
    ['a recipient without digits', { ...txMetadata, to: '0x' }],
    ['a foreign member', { ...txMetadata, from: txMetadata.to }],
    ['members of the prototype', JSON.parse('{"__proto__": {"gasPrice": "1"}}')],
    ['nothing', {}],
    ['null', null],
    ['a list', [{ gasPrice: '1' }]],
    ['text', 'gasPrice'],
    ['a number', 3],
  ])('%s', (_, metadata) => {
    expect(codeOf(metadata)).toBe('invalid_tx_metadata')
  })

  test('reports a malformed digest first', () => {
    expect(codeOf({ ...txMetadata, gasPrice: '1' }, '0x')).toBe('invalid_digest')
  })

  test('parses valid requests', () => {
    expect(parse(txMetadata)).toEqual(signBody)
  })
})
