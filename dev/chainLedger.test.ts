import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NodeRequest } from '@countersign/testing'
import { keccak256, numberToHex } from 'viem'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ChainJournal, type JournaledBlock, openChainJournal } from './chainJournal.ts'
import { createChainLedger } from './chainLedger.ts'

/** A node that makes a block of every transaction except 0xbad0. */
function createNode(): NodeRequest {
  let height = 0
  return async (method, [first]) => {
    if (method === 'eth_sendRawTransaction' && first === '0xbad0') throw new Error('refused')
    if (method === 'evm_mine' || method === 'eth_sendRawTransaction') height++
    const number = numberToHex(height)
    if (method === 'eth_blockNumber') return number
    return { number, timestamp: numberToHex(Math.floor(Date.now() / 1000)), hash: keccak256(number) }
  }
}

/** A journal on a slow disk. */
function createJournal() {
  const appended: JournaledBlock[] = []
  const waiting: { finish(): void; fail(error: Error): void }[] = []
  const journal: ChainJournal = {
    blocks: [],
    wasTorn: false,
    append: (block) =>
      new Promise<void>((finish, fail) => {
        appended.push(block)
        waiting.push({ finish, fail })
      }),
    close: async () => {},
  }
  return { journal, appended, waiting }
}

async function createLedger() {
  const disk = createJournal()
  const ledger = createChainLedger({ journal: disk.journal, path: 'journal.jsonl', chainId: 31337 })
  await ledger.attach(createNode())
  return { ...disk, ledger }
}

/** Long enough for everything that needs no I/O. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('the ledger of the local chain', () => {
  test('hides a block from sender and readers until it is on disk', async () => {
    const { ledger, waiting, appended } = await createLedger()
    const heard: string[] = []
    const hear = (name: string) => () => void heard.push(name)
    const early = ledger.request('eth_blockNumber', [])
    const sending = ledger.request('eth_sendRawTransaction', ['0x01']).then(hear('sender'))
    await settle()
    const reading = ledger.request('eth_blockNumber', []).then(hear('reader'))
    await settle()
    expect(appended).toMatchObject([{ number: 1, raw: '0x01' }])
    expect(heard).toEqual([])
    waiting[0]?.finish()
    await Promise.all([early, sending, reading])
    expect(heard.toSorted()).toEqual(['reader', 'sender'])
    expect(await ledger.request('eth_blockNumber', [])).toBe('0x1')
  })

  test('writes blocks one at a time, in order', async () => {
    const { ledger, waiting, appended } = await createLedger()
    const sending = ['0x01', '0xbad0', '0x02'].map((raw) => ledger.request('eth_sendRawTransaction', [raw]))
    const mining = ledger.request('evm_mine', [])
    const settled = Promise.allSettled([...sending, mining])
    for (const count of [1, 2, 3]) {
      await settle()
      expect(appended).toHaveLength(count)
      waiting[count - 1]?.finish()
    }
    expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(appended.map(({ number, raw }) => [number, raw])).toEqual([
      [1, '0x01'],
      [2, '0x02'],
      [3, null],
    ])
  })

  test('fails the sender, waiting senders and readers if the disk fails, and mines nothing more', async () => {
    const { ledger, waiting, appended } = await createLedger()
    const calls = [
      ledger.request('eth_sendRawTransaction', ['0x01']),
      ledger.request('eth_sendRawTransaction', ['0x02']),
      ledger.request('eth_blockNumber', []),
    ]
    const settled = Promise.allSettled(calls)
    await settle()
    waiting[0]?.fail(new Error('no space left'))
    for (const result of await settled) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: -32603, message: /no space left/ } })
    }
    await expect(ledger.request('eth_chainId', [])).rejects.toThrow('no space left')
    await expect(ledger.request('evm_mine', [])).rejects.toThrow('no space left')
    expect(appended).toHaveLength(1)
  })

  test('stopping waits for the current block and rejects new ones', async () => {
    const { ledger, waiting } = await createLedger()
    const sending = ledger.request('eth_sendRawTransaction', ['0x01'])
    await settle()
    let hasEnded = false
    const ending = ledger.end().then(() => {
      hasEnded = true
    })
    await settle()
    expect(hasEnded).toBe(false)
    waiting[0]?.finish()
    await Promise.all([sending, ending])
    await expect(ledger.request('evm_mine', [])).rejects.toThrow('stopping')
  })

  test('rejects every call before it has a node', async () => {
    const ledger = createChainLedger({ journal: createJournal().journal, path: 'journal.jsonl', chainId: 31337 })
    await expect(ledger.request('eth_blockNumber', [])).rejects.toThrow('not started')
  })
})

describe('the journal of the local chain', () => {
  const header = { format: 'countersign-dev-chain/1', chainId: 31337 }
  const blockOf = (number: number, changes: object = {}) => ({
    number,
    timestamp: 1_735_689_600 + number,
    hash: keccak256(numberToHex(number)),
    raw: null,
    ...changes,
  })
  async function open(text: string) {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-journal-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const path = join(folder, 'journal.jsonl')
    await writeFile(path, text)
    const opened = await openChainJournal({ path, chainId: 31337 }).catch((error: Error) => error)
    if (!(opened instanceof Error)) await opened.close()
    return { opened, text: await readFile(path, 'utf8') }
  }
  const toText = (...lines: unknown[]) =>
    lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')

  test('reads what it wrote, and drops half a line, also the first', async () => {
    const whole = toText(header, blockOf(1), blockOf(2))
    expect(await open(`${whole}{"number":3,"ha`)).toMatchObject({
      opened: { blocks: [blockOf(1), blockOf(2)], wasTorn: true },
      text: whole,
    })
    expect(await open('{"format":"counter')).toMatchObject({ opened: { blocks: [] }, text: toText(header) })
  })

  test.each([
    ['a missing line', [header, blockOf(1), blockOf(3)], 'damaged at line 3'],
    ['a line twice', [header, blockOf(1), blockOf(1)], 'damaged at line 3'],
    ['a line that is not JSON', [header, '{"number":1,'], 'damaged at line 2'],
    ['an empty line', [header, blockOf(1), ''], 'damaged at line 3'],
    ['a line that is null', [header, 'null'], 'damaged at line 2'],
    ['odd hex', [header, blockOf(1, { raw: '0x123' })], 'damaged at line 2'],
    ['no time', [header, blockOf(1, { timestamp: '1' })], 'damaged at line 2'],
    ['no first line', [blockOf(1)], 'not a journal of this version'],
    ['another format', [{ ...header, format: 'other/1' }], 'not a journal of this version'],
    ['another chain', [{ ...header, chainId: 1 }], 'is of chain 1, not 31337'],
  ])('rejects a journal with %s and leaves it unchanged', async (_, lines, reason) => {
    const { opened, text } = await open(toText(...lines))
    expect(opened).toMatchObject({ name: 'ChainJournalError', message: expect.stringContaining(reason) })
    expect(text).toBe(toText(...lines))
  })
})

test('fails if a block replays to another hash or not at all', async () => {
  const node = createNode()
  const journalOf = (changes: object) => {
    const block = { number: 1, timestamp: 1, hash: keccak256('0x1'), raw: null, ...changes } as JournaledBlock
    return { ...createJournal().journal, blocks: [block] }
  }
  for (const changes of [{ hash: keccak256('0x2') }, { raw: '0xbad0' as const }]) {
    const ledger = createChainLedger({ journal: journalOf(changes), path: 'journal.jsonl', chainId: 31337 })
    await expect(ledger.attach(node)).rejects.toMatchObject({ name: 'ChainJournalError' })
  }
})
