import { serviceAttestationsAbi } from '@countersign/protocol'
import { type AbiEvent, toEventSelector, toFunctionSelector } from 'viem'
import { expect, test } from 'vitest'
import { serviceAttestations } from './abi.ts'
import { compile } from './compile.ts'

test('abi.ts equals the compiled source', async () => {
  expect(await compile()).toEqual(serviceAttestations)
})

test('the contract has every fragment of the protocol’s ABI', () => {
  expect(serviceAttestationsAbi).toHaveLength(3)
  for (const fragment of serviceAttestationsAbi) expect(serviceAttestations.abi).toContainEqual(fragment)
})

test('the contract has no other functions, events and errors', () => {
  const functions = serviceAttestations.abi.filter((item) => item.type === 'function')
  expect(functions.map((item) => `${item.name} ${item.stateMutability}`).toSorted()).toEqual([
    'MAX_BATCH view',
    'MAX_CID_BYTES view',
    'acceptOwnership nonpayable',
    'owner view',
    'pendingOwner view',
    'proposeOwner nonpayable',
    'publish nonpayable',
    'publishBatch nonpayable',
    'publisher view',
    'rotatePublisher nonpayable',
  ])
  expect(
    serviceAttestations.abi.filter(({ type }) => !['constructor', 'function', 'event', 'error'].includes(type)),
  ).toEqual([])
})

test('event and functions keep their selectors, which readers of old blocks need', () => {
  const [event, publish, publishBatch] = serviceAttestationsAbi
  expect(toEventSelector(event as AbiEvent)).toBe('0x1a85ecbef58dd9f2ba6c675cd83d16bb690e0c547fc5aea56486a4ba6c253601')
  expect(serviceAttestations.deployedBytecode).toContain(toFunctionSelector(publish).slice(2))
  expect(serviceAttestations.deployedBytecode).toContain(toFunctionSelector(publishBatch).slice(2))
})

test('the deployment code contains the whole runtime code, without links or immutable values', () => {
  expect(serviceAttestations.bytecode).toMatch(/^0x[0-9a-f]+$/)
  expect(serviceAttestations.bytecode).toContain(serviceAttestations.deployedBytecode.slice(2))
})
