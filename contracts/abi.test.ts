import { serviceAttestationsAbi } from '@countersign/protocol'
import { type Abi, type AbiEvent, parseAbiItem, toEventSelector, toFunctionSelector } from 'viem'
import { expect, test } from 'vitest'
import { logWitness, serviceAttestations } from './abi.ts'
import { compile } from './compile.ts'

test('abi.ts equals the compiled source', async () => {
  expect(await compile()).toEqual({ serviceAttestations, logWitness })
})

test('the contract has every fragment of the protocol’s ABI', () => {
  expect(serviceAttestationsAbi).toHaveLength(3)
  for (const fragment of serviceAttestationsAbi) expect(serviceAttestations.abi).toContainEqual(fragment)
})

function listFunctions(abi: Abi): string[] {
  const functions = abi.filter((item) => item.type === 'function')
  return functions.map((item) => `${item.name} ${item.stateMutability}`).toSorted()
}

test('the contract has no other functions, events and errors', () => {
  expect(listFunctions(serviceAttestations.abi)).toEqual([
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

test('LogWitness has no functions but these, and no constructor', () => {
  expect(listFunctions(logWitness.abi)).toEqual([
    'acceptOwnership nonpayable',
    'advance nonpayable',
    'head view',
    'owner view',
    'pendingOwner view',
    'proposeOwner nonpayable',
    'publisher view',
    'register nonpayable',
    'rotatePublisher nonpayable',
  ])
  expect(logWitness.abi.filter(({ type }) => !['function', 'event', 'error'].includes(type))).toEqual([])
})

test('event and functions keep their selectors, which readers of old blocks need', () => {
  const [event, publish, publishBatch] = serviceAttestationsAbi
  expect(toEventSelector(event as AbiEvent)).toBe('0x1a85ecbef58dd9f2ba6c675cd83d16bb690e0c547fc5aea56486a4ba6c253601')
  expect(serviceAttestations.deployedBytecode).toContain(toFunctionSelector(publish).slice(2))
  expect(serviceAttestations.deployedBytecode).toContain(toFunctionSelector(publishBatch).slice(2))
})

test('LogWitness keeps its event and functions, which publishers and readers need', () => {
  const event = parseAbiItem('event Checkpoint(bytes32 indexed id, uint64 indexed size, bytes32 root, bytes32 block)')
  const { name, inputs } = logWitness.abi.find((item) => item.type === 'event' && item.name === event.name) as AbiEvent
  expect({ name, inputs }).toEqual({
    name: event.name,
    inputs: event.inputs.map((input) => ({ indexed: false, internalType: input.type, ...input })),
  })
  const functions = [
    'advance(bytes32,uint64,bytes32,bytes32,bytes32[])',
    'head(bytes32)',
    'publisher(bytes32)',
    'register(bytes32,address)',
  ]
  for (const signature of functions) {
    expect(logWitness.deployedBytecode).toContain(toFunctionSelector(signature).slice(2))
  }
})

test.each([serviceAttestations, logWitness])(
  'the deployment code contains the whole runtime code, without links or immutable values',
  (contract) => {
    expect(contract.bytecode).toMatch(/^0x[0-9a-f]+$/)
    expect(contract.bytecode).toContain(contract.deployedBytecode.slice(2))
  },
)
