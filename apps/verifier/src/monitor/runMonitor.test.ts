import { readFile, readlink, symlink } from 'node:fs/promises'
import type { BootEntry, LogEntry, StatementEntry } from '@countersign/log'
import { nameSignature, toCid } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import { issue, issueGoldenV2, signedAt, toManifest } from '../../../../packages/verify/test/issues.ts'
import {
  answerAsWitness,
  createFakeLog,
  type FakeLog,
  logReceipt,
  origin,
  withTable,
} from '../../../../packages/verify/test/monitor/log/log.ts'
import { createFakeNode } from '../../../../packages/verify/test/monitor/node.ts'
import {
  apiBaseUrl,
  createFakeNetwork,
  type FakeNetwork,
  gatewayUrl,
  json,
  rpcUrl,
} from '../../../../packages/verify/test/network.ts'
import { createFolder } from '../../test/folder.ts'
import { runMonitor } from './runMonitor.ts'

const signed = await issue()
const history = createFakeLog()
const plain = { treeSize: 1, leafIndex: 0, batchSequence: 0 }
const issued = await issueGoldenV2({ ...plain, signedAt, log: { origin } })
const started: BootEntry = {
  kind: 'boot',
  bootId: 'b0'.repeat(16),
  configHash: issued.anchors.configHashes[0] as string,
  timeMs: signedAt.getTime() - 1000,
}
history.append(started)
const logged = logReceipt(history, issued)
const { from: wallet, txHash } = nameSignature(signed.receipt)
const foreign = { hash: `0x${'f0'.repeat(32)}`, from: wallet, nonce: 1 }
const hook = 'https://alerts.test/secret'
const NOW = '2026-07-01T00:00:00Z'

let network: FakeNetwork
let node: ReturnType<typeof createFakeNode>
let told: { exitCode: number; looks: unknown[] }[]
beforeEach(() => {
  network = createFakeNetwork(signed)
  node = createFakeNode({ wallet })
  // The manifest's contract starts at block 7.
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

/** Runs `between` two runs. Ends the program after the last one. */
async function run(argv: readonly string[], between: readonly (() => void)[] = [], now = () => new Date(NOW)) {
  const folder = await createFolder({ 'release.json': JSON.stringify(toBothManifest()) })
  const output = { stdout: '', stderr: '' }
  const rest = [...between]
  const exitCode = await runMonitor(
    {
      fetch: network.fetch as typeof fetch,
      timeoutMs: 5_000,
      now,
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

/** Both services have the same machines but different settings. */
function toBothManifest() {
  const [one, other] = [toManifest(signed), toManifest(logged)]
  const configHashes = [...one.enclave.configHashes, ...other.enclave.configHashes]
  return { ...one, enclave: { ...one.enclave, configHashes } }
}

const options = ['--rpc', rpcUrl, '--ipfs', gatewayUrl, '--manifest', 'release.json', '--allow-mock']

describe('one run', () => {
  test('returns 0 for an honest wallet and names the limits of the check', async () => {
    const { exitCode, stdout, stderr } = await run([wallet, ...options])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('1 of 1 transaction has a proof; complete up to nonce 1.')
    expect(stdout).toContain('signed messages')
  })

  test('returns 1 for a key that is used elsewhere and notifies the webhook', async () => {
    node.mine(foreign)
    const { exitCode, stdout } = await run([wallet, ...options, '--grace', '0', '--json', '--webhook', hook])
    expect(exitCode).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ exitCode: 1, looks: [{ report: { conclusion: 'used-elsewhere' } }] })
    expect(told).toMatchObject([{ exitCode: 1, looks: [{ address: wallet }] }])
  })

  test('returns 3 for a pending receipt', async () => {
    node.mine(foreign)
    expect(await run([wallet, ...options])).toMatchObject({ exitCode: 3 })
  })

  test('is incomplete without anchors', async () => {
    const { exitCode } = await run([wallet, ...options.slice(0, 4), '--contract', `0x${'c0'.repeat(20)}`])
    expect(exitCode).toBe(3)
  })

  test('returns the worst code of several wallets', async () => {
    node.mine(foreign)
    node.lie = (method, [address]) => (method === 'eth_getTransactionCount' && address !== wallet ? '0x0' : undefined)
    const { exitCode, stdout } = await run([`0x${'11'.repeat(20)}`, wallet, ...options, '--grace', '0'])
    expect(exitCode).toBe(1)
    expect(stdout).toContain('There is no transaction yet')
  })

  test('returns 3 if the node fails, and names only its host', async () => {
    network.routes.unshift([rpcUrl, () => new Response(null, { status: 503 })])
    const { exitCode, stderr } = await run([wallet, '--rpc', `${rpcUrl}/secret`, ...options.slice(2)])
    expect(exitCode).toBe(3)
    expect(stderr).toContain('rpc.test returned 503')
    expect(stderr).not.toContain('secret')
  })

  test('reports a failed webhook and keeps its code', async () => {
    node.mine(foreign)
    network.routes.unshift([hook, () => new Response(null, { status: 500 })])
    const { exitCode, stderr } = await run([wallet, ...options, '--grace', '0', '--webhook', hook])
    expect(exitCode).toBe(1)
    expect(stderr).toContain('alerts.test returned 500')
    expect(stderr).not.toContain('secret')
  })
})

describe('--follow', () => {
  test('prints only changes and notifies the webhook once', async () => {
    const nothing = () => {}
    const { exitCode, stdout } = await run(
      [wallet, ...options, '--follow', '--grace', '0', '--json', '--webhook', hook],
      [nothing, () => void node.mine(foreign), nothing, nothing],
    )
    expect(exitCode).toBe(1)
    expect(stdout.trim().split('\n')).toHaveLength(2)
    expect(told.map(({ exitCode: code }) => code)).toEqual([1])
  })

  test('continues while the node is down', async () => {
    const away: FakeNetwork['routes'][number] = [rpcUrl, () => new Response(null, { status: 503 })]
    const { exitCode, stdout, stderr } = await run(
      [wallet, ...options, '--follow', '--webhook', hook],
      [() => void network.routes.unshift(away), () => void network.routes.shift()],
    )
    expect(exitCode).toBe(0)
    expect(stderr).toContain('not checked')
    expect(stdout.match(/complete up to nonce 1/g)).toHaveLength(2)
    expect(told.map(({ exitCode: code }) => code)).toEqual([3, 0])
  })

  const withoutGateway = ['--rpc', rpcUrl, '--manifest', 'release.json']
  test.each([
    ['a node that lags', ['--from-nonce', '1', ...options], {}, { eth_getTransactionCount: '0x0' }, /this many nonces/],
    ['a first receipt', withoutGateway, { eth_getTransactionCount: '0x0', eth_getLogs: [] }, {}, /needs a gateway/],
  ])(
    'continues after %s makes its arguments invalid, and notifies the webhook',
    async (_, argv, first, then, fault) => {
      const answers: Record<string, unknown>[] = [first, then]
      node.lie = (method) => answers[0]?.[method]
      const looks = await run([wallet, ...argv, '--follow', '--webhook', hook], [() => void answers.shift()])
      expect(looks).toMatchObject({ exitCode: 3, stderr: expect.stringMatching(fault) })
      expect(new Set(told.map(({ exitCode: code }) => code))).toEqual(new Set([3]))
    },
  )
})

describe('with a log', () => {
  const now = new Date(NOW)
  const keyId = logged.receipt.signer.statement.keyId
  let log: FakeLog
  beforeEach(() => {
    node = createFakeNode({ wallet })
    node.rest(7)
    network.routes.splice(0)
    network.routes.push([rpcUrl, node.answer], [`${apiBaseUrl}/log`, (url) => log.answer(url)])
    for (const block of [logged.bytes, logged.collateral, ...Object.values(logged.blocks)]) {
      network.blocks.set(toCid(block), Uint8Array.from(block))
    }
    node.mine({ hash: nameSignature(logged.receipt).txHash, from: wallet, nonce: 0 })
    node.publish(logged)
    node.rest(60)
    log = fork(history.entries)
  })
  const fork = (entries: readonly LogEntry[]) => {
    const forked = createFakeLog(entries)
    forked.cosignedAtS = now.getTime() / 1000 - 60
    return forked
  }
  const signature = (leaf: string): LogEntry => ({
    kind: 'signature',
    keyId,
    leaf: leaf.repeat(32),
    timeMs: signedAt.getTime(),
  })
  const withLog = [wallet, ...options, '--log', apiBaseUrl]

  test('states the complete tree size', async () => {
    const { exitCode, stdout } = await run(withLog)
    expect(exitCode).toBe(0)
    expect(stdout).toContain('1 of 1 transaction has a proof; complete up to size 3 and nonce 1.')
    expect(stdout).toContain('The log log.example/enclave-a has 3 entries')
    expect(stdout).not.toContain('Only a log of all signatures')
  })

  const planted: [string, number, () => void][] = [
    ['an entry without a receipt', 4, () => void log.append(signature('5e'))],
    [
      'a log that contradicts itself',
      5,
      () => void log.append({ ...(history.entries[1] as StatementEntry), kind: 'dropped' }),
    ],
    [
      'an entry of an enclave that stopped',
      6,
      () => {
        log.append(signature('5e'))
        log.append({ ...started, bootId: 'b1'.repeat(16), timeMs: signedAt.getTime() + 1 })
      },
    ],
    ['a log that withholds', 3, () => void log.gone.add('tile/entries/000.p/3')],
  ]
  test.each(planted)('%s returns %i and notifies the webhook', async (_, expected, plant) => {
    network.routes.push([
      hook,
      (_url, { body }) => {
        told.push(JSON.parse(String(body)))
        return json({})
      },
    ])
    plant()
    const { exitCode, stdout } = await run([...withLog, '--json', '--webhook', hook])
    expect(exitCode).toBe(expected)
    expect(JSON.parse(stdout)).toMatchObject({ exitCode: expected })
    expect(told).toMatchObject([{ exitCode: expected, looks: [{ address: wallet }] }])
  })

  test('stores what it saw and detects a second history in the next run', async () => {
    const folder = await createFolder({})
    const state = ['--state', `${folder}/state.json`]
    expect(await run([...withLog, ...state])).toMatchObject({ exitCode: 0, stderr: '' })
    const before = await readFile(`${folder}/state.json`, 'utf8')
    log.append(signature('11'))
    const kept = log
    log = fork([...history.entries.slice(0, 1), signature('22'), ...history.entries.slice(1)])
    const { exitCode, stdout } = await run([...withLog, ...state])
    expect(exitCode).toBe(5)
    expect(stdout).toContain('The log lies.')
    expect(await readFile(`${folder}/state.json`, 'utf8')).toBe(before)
    log = kept
    expect(await run([...withLog, ...state])).toMatchObject({ exitCode: 4 })
  })

  test.each(['', '{', '{"version":"countersign-monitor/1","hash":"","logs":[]}'])(
    'rejects a damaged state: %s',
    async (text) => {
      const folder = await createFolder({ 'state.json': text })
      const { exitCode, stderr } = await run([...withLog, '--state', `${folder}/state.json`])
      expect(exitCode).toBe(2)
      expect(stderr).toMatch(/state\.json.*\[(?:state_malformed|file_unreadable)\]/)
      expect(await readFile(`${folder}/state.json`, 'utf8')).toBe(text)
    },
  )

  test('rejects an unreadable state and does not replace it', async () => {
    const folder = await createFolder({})
    const path = `${folder}/state.json`
    // A link to itself fails like a disk: with an error other than a missing file.
    await symlink(path, path)
    const { exitCode, stdout, stderr } = await run([...withLog, '--state', path])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain('state.json (ELOOP) [file_unreadable]')
    expect(await readlink(path)).toBe(path)
  })

  test('reports a state that can’t be written, and still raises the alarm', async () => {
    const state = ['--state', '/nowhere/state.json']
    const { exitCode, stdout, stderr } = await run([...withLog, ...state, '--json'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 3, stderr: expect.stringContaining('file_unwritable') })
    expect(JSON.parse(stdout)).toMatchObject({ exitCode: 3, error: { code: 'file_unwritable' } })
    log.append(signature('5e'))
    expect(await run([...withLog, ...state])).toMatchObject({ exitCode: 4 })
  })

  test('reads at most --max-log-entries', async () => {
    expect(await run([...withLog, '--max-log-entries', '3'])).toMatchObject({ exitCode: 0 })
    const { exitCode, stdout } = await run([...withLog, '--max-log-entries', '2'])
    expect(exitCode).toBe(3)
    expect(stdout).toContain('could not be read: 3 entries are unread, and one run reads at most 2')
  })

  test('reports the chain’s result when --log-time is over', async () => {
    node.mine(foreign)
    node.rest(60)
    const { exitCode, stdout } = await run([...withLog, '--log-time', '0'])
    expect(exitCode).toBe(1)
    expect(stdout).toContain('The log could not be read: the time for reading logs was over')
    expect(stdout).toContain('Nonce 1 was used without a receipt')
  })

  test('prints nothing for other wallets’ new entries', async () => {
    const others = () => void log.append({ ...signature('77'), keyId: '77'.repeat(16) } as LogEntry)
    const { exitCode, stdout } = await run([...withLog, '--follow', '--json'], [others, others, others])
    expect(exitCode).toBe(0)
    expect(stdout.trim().split('\n')).toHaveLength(1)
  })

  test('continues with other wallets after an internal error', async () => {
    const other = `0x${'11'.repeat(20)}`
    node.lie = (method, [address]) => (method === 'eth_getTransactionCount' && address === other ? '0x0' : undefined)
    // The first wallet is the first to ask.
    let faults = 1
    const readClock = () => {
      faults -= 1
      if (faults >= 0) throw new RangeError('no such time')
      return now
    }
    const looks = await run([wallet, other, ...withLog.slice(1), '--follow'], [() => {}], readClock)
    expect(looks.stderr).toContain(`${wallet}: not checked: internal error`)
    expect(looks.stderr).toContain('RangeError: no such time')
    expect(looks.stdout.match(/There is no transaction yet/g)).toHaveLength(2)
    expect(looks.stdout.match(/complete up to size 3 and nonce 1/g)).toHaveLength(1)
    // The other wallet has no receipt, and the log has entries.
    expect(looks.exitCode).toBe(3)
    faults = 1
    expect(await run(withLog, [], readClock)).toMatchObject({ exitCode: 3 })
  })

  test('asks witnesses directly', async () => {
    for (const [place, url] of ['https://w1.test', 'https://w2.test'].entries()) {
      const ahead = Object.assign(fork([...withTable(history.entries), signature('5e')]), { cosigners: [] })
      network.routes.push([url, (asked) => answerAsWitness(asked, { place, logs: [ahead], at: now })])
    }
    const urls = ['--witness-url', 'https://w1.test', '--witness-url', 'https://w2.test']
    const pauses = Array.from({ length: 30 }, () => () => {})
    const { exitCode, stdout } = await run([...withLog, ...urls], pauses)
    expect(exitCode).toBe(3)
    expect(stdout).toContain('withholds entries: it shows 3 entries, but its witnesses cosigned 5')
  })
})

describe('returns 2 for bad input', () => {
  test.each([
    ['no wallet', ['--rpc', rpcUrl]],
    ['no node', [wallet]],
    ['an address that is cut', [wallet.slice(0, -1), ...options]],
    ['an address whose capitals do not match', ['0x70997970C51812dc3A010C7d01b50e0d17dc79c8', ...options]],
    ['a name', ['vitalik.eth', ...options]],
    ['a node that is no URL', [wallet, '--rpc', 'node']],
    ['a node with credentials', [wallet, '--rpc', 'https://me:secret@rpc.test']],
    ['two beginnings', [wallet, ...options, '--from-nonce', '1', '--from-block', '1']],
    ['a beginning that is no number', [wallet, ...options, '--from-nonce', '-1']],
    ['a beginning that the wallet has not reached', [wallet, ...options, '--from-nonce', '2']],
    ['an interval without following', [wallet, ...options, '--interval', '5']],
    ['help among other arguments', [wallet, '--help']],
    ['a witness without a quorum', [wallet, ...options, '--log', apiBaseUrl, '--witness', '11'.repeat(32)]],
    ['a state without a log', [wallet, ...options, '--state', 'state.json']],
    ['entries without a log', [wallet, ...options, '--max-log-entries', '5']],
    ['a time for logs without a log', [wallet, ...options, '--log-time', '5']],
    ['witnesses without a log', [wallet, ...options, '--witness-url', 'https://w1.test']],
    [
      'a witness whose answers anybody on the way could change',
      [wallet, ...options, '--log', apiBaseUrl, '--witness-url', 'http://w1.test'],
    ],
    ['a log that is no URL', [wallet, ...options, '--log', 'log.example/enclave-a']],
    ['an unknown option', [wallet, ...options, '--all']],
    ['an option twice', [wallet, ...options, '--rpc', rpcUrl]],
    ['no contract', [wallet, ...options.slice(0, 4)]],
    ['no gateway', [wallet, '--rpc', rpcUrl, '--manifest', 'release.json']],
  ])('%s', async (_, argv) => {
    const { exitCode, stdout, stderr } = await run(argv)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain('[invalid_arguments]')
  })

  test('rejects a missing manifest', async () => {
    const { exitCode, stderr } = await run([wallet, '--rpc', rpcUrl, '--manifest', '/nowhere.json'])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('[file_unreadable]')
  })
})
