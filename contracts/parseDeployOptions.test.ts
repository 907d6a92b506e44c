import { privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { DeployInputError, help, parseDeployOptions } from './parseDeployOptions.ts'

const KEY = `0x${'1f'.repeat(32)}` as const
const OWNER = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const PUBLISHER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const ARGUMENTS = [
  '--rpc-url',
  'https://node.example/key',
  '--chain-id',
  '84532',
  '--owner',
  OWNER,
  '--publisher',
  PUBLISHER,
]

const readFile = (path: string) => {
  if (path !== '/key') throw new Error(`no such file: ${path}`)
  return `${KEY}\n`
}

function parse(argv: readonly string[], env: Record<string, string> = { DEPLOYER_PRIVATE_KEY: KEY }) {
  return parseDeployOptions({ env, readFile }, argv)
}

function faultsOf(...parameters: Parameters<typeof parse>): readonly string[] {
  try {
    parse(...parameters)
  } catch (error) {
    if (error instanceof DeployInputError) return error.faults
  }
  throw new Error('no DeployInputError')
}

/** The arguments with one value replaced. */
const withOption = (name: string, value: string) =>
  ARGUMENTS.map((argument, index) => (ARGUMENTS[index - 1] === name ? value : argument))

const expected = {
  command: 'deploy',
  rpcUrl: 'https://node.example/key',
  chainId: 84532,
  owner: OWNER,
  publisher: PUBLISHER,
  confirmations: 1,
  privateKey: KEY,
}

test('reads options, and the key from the environment', () => {
  expect(parse(ARGUMENTS)).toEqual(expected)
})

test('reads everything from the environment, and the key from a file', () => {
  const env = {
    RPC_URL: 'https://node.example/key',
    CHAIN_ID: '84532',
    ATTESTATIONS_OWNER: OWNER,
    ATTESTATIONS_PUBLISHER: PUBLISHER,
    DEPLOYER_PRIVATE_KEY_FILE: '/key',
  }
  expect(parse([], env)).toEqual(expected)
})

test('options override variables, and an empty variable counts as unset', () => {
  const env = { CHAIN_ID: '1', RPC_URL: '', DEPLOYER_PRIVATE_KEY: KEY, DEPLOYER_PRIVATE_KEY_FILE: '' }
  expect(parse(ARGUMENTS, env)).toEqual(expected)
})

test('accepts addresses without a checksum, and a key without 0x', () => {
  const argv = withOption('--owner', OWNER.toLowerCase())
  expect(parse(argv, { DEPLOYER_PRIVATE_KEY: KEY.slice(2) })).toEqual(expected)
})

test.each([['--help'], ['-h'], ['--help', '--owner', 'nonsense']])('%s', (...argv) => {
  expect(parse(argv, {})).toEqual({ command: 'help' })
  expect(help).toContain('DEPLOYER_PRIVATE_KEY_FILE')
})

test('lists every fault', () => {
  expect(faultsOf([], {})).toEqual([
    '--rpc-url is missing',
    '--chain-id is missing',
    '--owner is missing',
    '--publisher is missing',
    'DEPLOYER_PRIVATE_KEY or DEPLOYER_PRIVATE_KEY_FILE is missing',
  ])
})

test.each([
  ['--rpc-url', 'node.example'],
  ['--rpc-url', 'file:///etc/passwd'],
  ['--chain-id', '0'],
  ['--chain-id', '0x1'],
  ['--chain-id', '9999999999999999'],
  ['--owner', '0x0000000000000000000000000000000000000000'],
  ['--owner', OWNER.slice(0, -1)],
  // One letter in the other case invalidates the checksum.
  ['--owner', OWNER.replace('Fd6', 'fd6')],
  ['--publisher', '0x0000000000000000000000000000000000000000'],
  ['--publisher', ''],
])('%s %s', (name, value) => {
  const faults = faultsOf(withOption(name, value))
  expect(faults).toHaveLength(1)
  expect(faults[0]).toMatch(new RegExp(`^${name} is not an? `))
})

const WITNESS_ARGUMENTS = [
  ...['--contract', 'LogWitness', '--rpc-url', 'https://node.example/key', '--chain-id', '84532'],
  ...['--publisher', PUBLISHER, '--origin', 'log.example/a', '--origin', 'log.example/ü'],
]
const { owner: _, ...expectedOfBoth } = expected
const expectedWitness = {
  ...expectedOfBoth,
  command: 'deployLogWitness',
  origins: ['log.example/a', 'log.example/ü'],
}

test('reads options for LogWitness', () => {
  expect(parse(WITNESS_ARGUMENTS)).toEqual(expectedWitness)
  expect(parse([...WITNESS_ARGUMENTS, '--address', OWNER])).toEqual({ ...expectedWitness, address: OWNER })
})

test('LogWitness accepts the paying account as owner, and ignores the owner of ServiceAttestations', () => {
  const { address } = privateKeyToAccount(KEY)
  const env = { DEPLOYER_PRIVATE_KEY: KEY, ATTESTATIONS_OWNER: OWNER }
  expect(parse([...WITNESS_ARGUMENTS, '--owner', address.toLowerCase()], env)).toEqual(expectedWitness)
  expect(parse(WITNESS_ARGUMENTS, env)).toEqual(expectedWitness)
})

test('LogWitness has no other owner at first, and the help says how to hand a log over', () => {
  expect(faultsOf([...WITNESS_ARGUMENTS, '--owner', OWNER])).toEqual([
    '--owner is not the account that pays, which becomes the owner of the logs',
  ])
  expect(help).toContain('proposeOwner')
})

test('lists every fault for LogWitness', () => {
  expect(faultsOf(['--contract', 'LogWitness', '--owner', '', '--address', ''], {})).toEqual([
    '--rpc-url is missing',
    '--chain-id is missing',
    '--owner is not an address other than zero (a checksum must be valid)',
    '--publisher is missing',
    'DEPLOYER_PRIVATE_KEY or DEPLOYER_PRIVATE_KEY_FILE is missing',
    '--address is not an address other than zero (a checksum must be valid)',
    '--origin is missing',
  ])
})

test.each([
  '',
  'log example',
  'log+example',
  'log.example\u00a0a',
  'log.example\u0000',
  'log.example\ud800',
  `${'ü'.repeat(127)}ab`,
])('%j is not an origin', (origin) => {
  const fault = '--origin is not 1 to 255 bytes without spaces and plus signs'
  expect(faultsOf([...WITNESS_ARGUMENTS, `--origin=${origin}`])).toEqual([fault])
})

test('rejects an origin that is given twice', () => {
  expect(faultsOf([...WITNESS_ARGUMENTS, '--origin', 'log.example/a'])).toEqual(['--origin has duplicates'])
})

test('rejects options of the other contract, and other contracts', () => {
  expect(faultsOf([...ARGUMENTS, '--origin', 'log.example/a', '--address', OWNER])).toEqual([
    '--origin needs --contract LogWitness',
    '--address needs --contract LogWitness',
  ])
  expect(faultsOf([...ARGUMENTS, '--contract', 'logWitness'])).toEqual([
    '--contract is not ServiceAttestations or LogWitness',
  ])
})

test.each(['0', '-1', 'many', ''])('--confirmations=%s', (value) => {
  expect(faultsOf([...ARGUMENTS, `--confirmations=${value}`])).toEqual([
    '--confirmations is not a positive whole number',
  ])
})

test.each([
  KEY.slice(0, -1),
  `${KEY}0`,
  KEY.replace('1', 'g'),
  // Zero, and the order of the curve.
  `0x${'0'.repeat(64)}`,
  '0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141',
])('%s is no private key, and is not repeated', (key) => {
  const faults = faultsOf(ARGUMENTS, { DEPLOYER_PRIVATE_KEY: key })
  expect(faults).toEqual(['DEPLOYER_PRIVATE_KEY is not a private key: 0x and 64 hex digits'])
})

test('a missing key file', () => {
  expect(faultsOf(ARGUMENTS, { DEPLOYER_PRIVATE_KEY_FILE: '/nowhere' })).toEqual([
    'DEPLOYER_PRIVATE_KEY_FILE cannot be read',
  ])
})

test('a key and a key file', () => {
  expect(faultsOf(ARGUMENTS, { DEPLOYER_PRIVATE_KEY: KEY, DEPLOYER_PRIVATE_KEY_FILE: '/key' })).toEqual([
    'DEPLOYER_PRIVATE_KEY and DEPLOYER_PRIVATE_KEY_FILE are both set',
  ])
})

test.each([['--private-key', KEY], [`--private-key=${KEY}`], [KEY], ['--owner']])('does not quote %s', (...argv) => {
  const [fault = '', ...more] = faultsOf([...ARGUMENTS, ...argv])
  expect(more).toEqual([])
  expect(fault).toMatch(/^(unknown option|invalid arguments)$/)
})
