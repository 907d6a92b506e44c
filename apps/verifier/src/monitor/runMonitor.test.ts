import { nameSignature, toCid } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import { issue, toManifest } from '../../../../packages/verify/src/issues.fake.ts'
import { createFakeNode } from '../../../../packages/verify/src/monitor/node.fake.ts'
import {
  createFakeNetwork,
  type FakeNetwork,
  gatewayUrl,
  json,
  rpcUrl,
} from '../../../../packages/verify/src/network.fake.ts'
import { createFolder } from '../folder.fake.ts'
import { runMonitor } from './runMonitor.ts'

const signed = await issue()
const { from: wallet, txHash } = nameSignature(signed.receipt)
const foreign = { hash: `0x${'f0'.repeat(32)}`, from: wallet, nonce: 1 }
const hook = 'https://alerts.test/secret'

let network: FakeNetwork
let node: ReturnType<typeof createFakeNode>
let told: { exitCode: number; looks: unknown[] }[]
beforeEach(() => {
  network = createFakeNetwork(signed)
  node = createFakeNode({ wallet })
  // The manifest's contract begins at block 7.
  node.rest(7)
  told = []
  network.blocks.set(toCid(signed.bytes), Uint8Array.from(signed.bytes))
  network.routes.push([rpcUrl, node.answer])
  network.routes.push([
    hook,
    (_, { body }) => {
      told.push(JSON.parse(String(body)))
      return json({})
    },
  ])
  node.mine({ hash: txHash, from: wallet, nonce: 0 })
  node.publish(signed)
})

/** `between` runs between two looks; with the last one the program is told to end. */
async function run(argv: readonly string[], between: readonly (() => void)[] = []) {
  const folder = await createFolder({ 'release.json': JSON.stringify(toManifest(signed)) })
  const output = { stdout: '', stderr: '' }
  const rest = [...between]
  const exitCode = await runMonitor(
    {
      fetch: network.fetch as typeof fetch,
      timeoutMs: 5_000,
      now: () => new Date('2026-07-01T00:00:00Z'),
      writeOut: (text) => {
        output.stdout += text
      },
      writeError: (text) => {
        output.stderr += text
      },
      wait: async () => {
        const next = rest.shift()
        next?.()
        return next !== undefined
      },
    },
    argv.map((argument) => argument.replace('release.json', `${folder}/release.json`)),
  )
  return { exitCode, ...output }
}

const options = ['--rpc', rpcUrl, '--ipfs', gatewayUrl, '--manifest', 'release.json', '--allow-mock']

describe('one look', () => {
  test('at an honest wallet ends with 0, and says what was not seen', async () => {
    const { exitCode, stdout, stderr } = await run([wallet, ...options])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('1 of 1 transaction has a proof; complete up to nonce 1.')
    expect(stdout).toContain('signed messages')
  })

  test('at a key that is used elsewhere ends with 1, and the webhook has it', async () => {
    node.mine(foreign)
    const { exitCode, stdout } = await run([wallet, ...options, '--grace', '0', '--json', '--webhook', hook])
    expect(exitCode).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ exitCode: 1, looks: [{ report: { conclusion: 'used-elsewhere' } }] })
    expect(told).toMatchObject([{ exitCode: 1, looks: [{ address: wallet }] }])
  })

  test('at a receipt that is still awaited ends with 3', async () => {
    node.mine(foreign)
    expect(await run([wallet, ...options])).toMatchObject({ exitCode: 3 })
  })

  test('without the anchors is not complete', async () => {
    const { exitCode } = await run([wallet, ...options.slice(0, 4), '--contract', `0x${'c0'.repeat(20)}`])
    expect(exitCode).toBe(3)
  })

  test('at several wallets ends with the worst', async () => {
    node.mine(foreign)
    node.lie = (method, [address]) => (method === 'eth_getTransactionCount' && address !== wallet ? '0x0' : undefined)
    const { exitCode, stdout } = await run([`0x${'11'.repeat(20)}`, wallet, ...options, '--grace', '0'])
    expect(exitCode).toBe(1)
    expect(stdout).toContain('There is no transaction yet')
  })

  test('at a node that does not answer ends with 3, and names its host alone', async () => {
    network.routes.unshift([rpcUrl, () => new Response(null, { status: 503 })])
    const { exitCode, stderr } = await run([wallet, '--rpc', `${rpcUrl}/secret`, ...options.slice(2)])
    expect(exitCode).toBe(3)
    expect(stderr).toContain('rpc.test answers 503')
    expect(stderr).not.toContain('secret')
  })

  test('says when the webhook did not take it, and keeps its code', async () => {
    node.mine(foreign)
    network.routes.unshift([hook, () => new Response(null, { status: 500 })])
    const { exitCode, stderr } = await run([wallet, ...options, '--grace', '0', '--webhook', hook])
    expect(exitCode).toBe(1)
    expect(stderr).toContain('alerts.test answers 500')
    expect(stderr).not.toContain('secret')
  })
})

describe('following', () => {
  test('says only what has changed, and tells the webhook of the alarm once', async () => {
    const nothing = () => {}
    const { exitCode, stdout } = await run(
      [wallet, ...options, '--follow', '--grace', '0', '--json', '--webhook', hook],
      [nothing, () => void node.mine(foreign), nothing, nothing],
    )
    expect(exitCode).toBe(1)
    expect(stdout.trim().split('\n')).toHaveLength(2)
    expect(told.map(({ exitCode: code }) => code)).toEqual([1])
  })

  test('goes on when the node does not answer for a while', async () => {
    const away: FakeNetwork['routes'][number] = [rpcUrl, () => new Response(null, { status: 503 })]
    const { exitCode, stdout, stderr } = await run(
      [wallet, ...options, '--follow', '--webhook', hook],
      [() => void network.routes.unshift(away), () => void network.routes.shift()],
    )
    expect(exitCode).toBe(0)
    expect(stderr).toContain('nothing was looked at')
    expect(stdout.match(/complete up to nonce 1/g)).toHaveLength(2)
    expect(told.map(({ exitCode: code }) => code)).toEqual([3, 0])
  })
})

describe('bad input ends with 2', () => {
  test.each([
    ['no wallet', ['--rpc', rpcUrl]],
    ['no node', [wallet]],
    ['an address that is cut', [wallet.slice(0, -1), ...options]],
    ['a name', ['vitalik.eth', ...options]],
    ['a node that is no URL', [wallet, '--rpc', 'node']],
    ['a node with credentials', [wallet, '--rpc', 'https://me:secret@rpc.test']],
    ['two beginnings', [wallet, ...options, '--from-nonce', '1', '--from-block', '1']],
    ['a beginning that is no number', [wallet, ...options, '--from-nonce', '-1']],
    ['a beginning that the wallet has not reached', [wallet, ...options, '--from-nonce', '2']],
    ['an interval without following', [wallet, ...options, '--interval', '5']],
    ['help among other arguments', [wallet, '--help']],
    ['an unknown option', [wallet, ...options, '--all']],
    ['no contract', [wallet, ...options.slice(0, 4)]],
    ['no gateway', [wallet, '--rpc', rpcUrl, '--manifest', 'release.json']],
  ])('%s', async (_, argv) => {
    const { exitCode, stdout, stderr } = await run(argv)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain('[invalid_arguments]')
  })

  test('a manifest that is not there', async () => {
    const { exitCode, stderr } = await run([wallet, '--rpc', rpcUrl, '--manifest', '/nowhere.json'])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('[file_unreadable]')
  })
})
