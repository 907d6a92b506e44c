import { ConfigError } from '@countersign/service'
import { describe, expect, test } from 'vitest'
import { toVkey } from '../../../packages/log/src/noteKey.ts'
import { createSigner, log, origin } from '../../../packages/log/test/logs.ts'
import { readConfig } from './config.ts'
import { parseLogList } from './logList.ts'
import { createMetrics } from './metrics.ts'
import { createKeyFile, readSigners } from './signers.ts'

const vkey = toVkey(log.key)
const list = `logs/v0\n\nvkey ${vkey}\n`
const read = (env: Record<string, string>, text = list) =>
  readConfig(
    { WITNESS_DIR: '/w', WITNESS_LOGS_FILE: 'logs', ...env },
    {
      readFile(path) {
        if (path !== 'logs') throw new Error('no such file')
        return text
      },
    },
  )

describe('the configuration', () => {
  test('listens on loopback and port 8095 by default', () => {
    expect(read({})).toMatchObject({ host: '127.0.0.1', port: 8095, metricsPort: undefined, folder: '/w' })
    expect([...read({ HOST: '0.0.0.0', PORT: '1', METRICS_PORT: '2' }).logs.keys()]).toEqual([origin])
  })

  test('lists every fault', () => {
    const broken = { WITNESS_DIR: '', PORT: 'x', METRICS_PORT: '-1', WITNESS_LOGS_FILE: 'gone' }
    expect(() => read(broken)).toThrow('4 faults')
    expect(() => read({}, 'logs/v0\n')).toThrow(ConfigError)
  })
})

describe('a list of logs (logs/v0)', () => {
  const faultsOf = (text: string) => {
    const faults: string[] = []
    parseLogList(text, (fault) => void faults.push(fault))
    return faults
  }

  test('keys by origin: the list’s, or the key’s name; a log may have several keys', () => {
    const second = createSigner(origin, 'cosignature-ml-dsa-44')
    const other = createSigner('sum.example')
    const text = `logs/v0\n# a remark\nvkey ${vkey}\nqpd 86400\ncontact a@example.com\n\nvkey ${toVkey(second.key)}\nvkey ${toVkey(other.key)}\norigin go.sum database tree\n`
    const logs = parseLogList(text, (fault) => expect.unreachable(fault))
    expect([...logs.keys()]).toEqual([origin, 'go.sum database tree'])
    expect(logs.get(origin)?.map(({ type }) => type)).toEqual(['ed25519', 'cosignature-ml-dsa-44'])
  })

  test.each([
    ['no header', `vkey ${vkey}\n`],
    ['another version', list.replace('v0', 'v1')],
    ['an invalid key', list.replace('+', '-')],
    ['a key without its word', `logs/v0\n${vkey}\n`],
    ['an origin before any key', `logs/v0\norigin x\n${list.slice(8)}`],
    ['two origins of one log', `${list}origin a\norigin b\n`],
    ['a misspelled word', `${list}orign a\n`],
    ['an empty origin', `${list}origin\n`],
    ['a key twice', `${list}vkey ${vkey}\n`],
  ])('refused: %s', (_, text) => {
    expect(faultsOf(list)).toEqual([])
    expect(faultsOf(text)).not.toEqual([])
  })
})

test('a fault for a wrong key id names the expected and the actual id', () => {
  const faults: string[] = []
  parseLogList(list.replace(`+${log.key.id}+`, '+00000000+'), (fault) => void faults.push(fault))
  expect(faults).toEqual([expect.stringContaining(`expected ${log.key.id}, found 00000000`)])
})

describe('the key file', () => {
  const random = (length: number) => new Uint8Array(length).fill(3)

  test('has one name, two kinds of cosignatures, and the same keys each time', () => {
    const file = createKeyFile('witness.example/w1', random)
    const keys = readSigners(file).map(({ key }) => key)
    expect(keys.map(({ type, publicKey }) => [type, publicKey.length])).toEqual([
      ['cosignature-ed25519', 32],
      ['cosignature-ml-dsa-44', 1_312],
    ])
    expect(readSigners(file).map(({ key }) => toVkey(key))).toEqual(keys.map(toVkey))
  })

  test.each(['', 'a b', 'a+b', 'a\nb'])('rejects the name %j', (name) => {
    expect(() => createKeyFile(name, random)).toThrow(expect.objectContaining({ code: 'note_key_malformed' }))
  })

  const secret = '5e'.repeat(32)
  test.each([
    ['no JSON', `{"ed25519":"${secret}"`],
    ['a member missing', `{"name":"a","ed25519":"${secret}"}`],
    ['a member more', `{"name":"a","ed25519":"${secret}","mlDsa44":"${secret}","x":1}`],
    ['a seed that is cut off', `{"name":"a","ed25519":"${secret.slice(2)}","mlDsa44":"${secret}"}`],
    ['a name that is a number', `{"name":1,"ed25519":"${secret}","mlDsa44":"${secret}"}`],
  ])('refused without a word of it: %s', (_, text) => {
    let message = ''
    try {
      readSigners(text)
    } catch (error) {
      message = String(error)
    }
    expect(message).toContain('the key file')
    expect(message).not.toContain('5e5e')
  })
})

test('metrics: answers by status, sizes by log', () => {
  const metrics = createMetrics({
    readSizes: () => [['a "log"', 7]],
    readDisk: () => ({ freeBytes: 1, sizeBytes: 2 }),
    now: () => 5_000,
    startedAt: 2_500,
    version: '1.2.3',
  })
  expect(metrics.toText()).toContain('countersign_witness_answers_total{status="500"} 0\n')
  expect(metrics.toText()).toContain('countersign_witness_forks_total 0\n')
  metrics.countFork()
  expect(metrics.toText()).toContain('countersign_witness_forks_total 1\n')
  for (const status of [200, 409, 200]) metrics.count(status)
  expect(metrics.toText()).toContain('countersign_witness_answers_total{status="200"} 2\n')
  expect(metrics.toText()).toContain('countersign_witness_log_size{origin="a \\"log\\""} 7\n')
  expect(metrics.toText()).toContain('countersign_clock_seconds 5\n')
  expect(metrics.toText()).toContain('process_start_time_seconds 2.5\n')
  expect(metrics.toText()).toContain('countersign_disk_free_bytes 1\n')
})
