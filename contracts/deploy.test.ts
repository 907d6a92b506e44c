import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LocalChain, startChain } from '@countersign/testing'
import { COMPILE_CACHE } from '@countersign/testing/launcher'
import { createPublicClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { logWitness, serviceAttestations } from './abi.ts'

let chain: LocalChain
let folder: string

beforeAll(async () => {
  chain = await startChain()
  folder = await mkdtemp(join(tmpdir(), 'countersign-deploy-'))
})

afterAll(async () => {
  await chain.stop()
  await rm(folder, { recursive: true, force: true })
})

type Outcome = { code: number | null; stdout: string; stderr: string }

/** Runs the command with only the given environment and the compile cache. */
function run(argv: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const path = join(import.meta.dirname, 'deploy.ts')
  const child = spawn(process.execPath, ['-C', 'source', path, ...argv], {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

function toArguments(chainId = chain.chainId): string[] {
  const [, owner, publisher] = chain.accounts
  if (!owner || !publisher) throw new Error('a chain without accounts')
  return [
    ...['--rpc-url', chain.url, '--chain-id', String(chainId)],
    ...['--owner', owner.address, '--publisher', publisher.address],
  ]
}

const keyOf = (index: number) => chain.accounts[index]?.privateKey ?? ''

test('prints address, transaction and block of the deployed contract', async () => {
  const { code, stdout, stderr } = await run(toArguments(), { DEPLOYER_PRIVATE_KEY: keyOf(0) })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [, address, transaction, block] =
    /^ServiceAttestations is on chain 31337\n {2}address {6}(0x\w{40})\n {2}transaction {2}(0x\w{64})\n {2}block {8}(\d+)\n$/.exec(
      stdout,
    ) ?? []
  const client = createPublicClient({ transport: http(chain.url) })
  const receipt = await client.getTransactionReceipt({ hash: transaction as `0x${string}` })
  expect(String(receipt.blockNumber)).toBe(block)
  expect(await client.getCode({ address: address as `0x${string}` })).toBe(serviceAttestations.deployedBytecode)
})

test('prints address, block and logs of LogWitness, and only the block of its own deployment', async () => {
  const [owner, , publisher] = chain.accounts
  if (!owner || !publisher) throw new Error('a chain without accounts')
  const argv = [
    ...['--contract', 'LogWitness', '--rpc-url', chain.url, '--chain-id', String(chain.chainId)],
    ...['--publisher', publisher.address, '--origin', 'log.example/a', '--origin', 'log.example/b'],
  ]
  const { code, stdout, stderr } = await run(argv, { DEPLOYER_PRIVATE_KEY: keyOf(0) })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [, address = '', logs] =
    /^LogWitness is on chain 31337\n {2}address {2}(0x[0-9a-f]{40})\n {2}block {4}\d+\n((?: {2}log {6}0x\w{64} {2}log\.example\/[ab]\n){2})$/.exec(
      stdout,
    ) ?? []
  const client = createPublicClient({ transport: http(chain.url) })
  expect(await client.getCode({ address: address as `0x${string}` })).toBe(logWitness.deployedBytecode)
  const again = await run([...argv, '--address', address], { DEPLOYER_PRIVATE_KEY: keyOf(0) })
  expect(again).toEqual({ code: 0, stderr: '', stdout: `LogWitness is on chain 31337\n  address  ${address}\n${logs}` })
})

test('invalid arguments exit with 2 and list every fault', async () => {
  const { code, stdout, stderr } = await run(['--chain-id', 'sepolia'])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr.split('\n')).toEqual([
    'deploy: --rpc-url is missing',
    'deploy: --chain-id is not a positive whole number',
    'deploy: --owner is missing',
    'deploy: --publisher is missing',
    'deploy: DEPLOYER_PRIVATE_KEY or DEPLOYER_PRIVATE_KEY_FILE is missing',
    'deploy: see --help',
    '',
  ])
})

test('a failed deployment exits with 1 and one line', async () => {
  expect(await run(toArguments(1), { DEPLOYER_PRIVATE_KEY: keyOf(0) })).toEqual({
    code: 1,
    stdout: '',
    stderr: 'deploy: invalid node: expected chain 1, got 31337\n',
  })
})
